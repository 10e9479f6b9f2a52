"""Arguments that a call doesn't take: their name here, or why none is needed."""

import inspect

import jax.numpy as jnp
import numpy as np
import pytest

import schuss

CALLS = {
    "sample": schuss.sample,
    "trajectory": schuss.trajectory,
    "evidence": schuss.evidence,
    "Sampler": schuss.Sampler,
    "Sampler.run": schuss.Sampler().run,
    "from_pymc": schuss.from_pymc,
    "from_pytree": schuss.from_pytree,
    "from_value_and_grad": schuss.from_value_and_grad,
    "ESH": schuss.ESH,
    "HMC": schuss.HMC,
    "Normal": schuss.Normal,
}


def logdensity(x):
    return -jnp.sum(x**2)


@pytest.mark.parametrize("name", CALLS)
def test_every_call_says_what_it_takes(name):
    known = list(inspect.signature(CALLS[name]).parameters)
    with pytest.raises(TypeError) as error:
        CALLS[name](nonsense=1)
    assert str(error.value) == f"nonsense isn't an argument of {name}; it takes {', '.join(known)}"


@pytest.mark.parametrize(
    ("given", "here"),
    [
        ("random_seed", "seed"),
        ("rng_key", "seed"),
        ("num_samples", "draws"),
        ("n_samples", "draws"),
        ("num_results", "draws"),
        ("num_chains", "chains"),
        ("progressbar", "progress"),
        ("initvals", "init"),
        ("log_density", "logdensity"),
        ("logp", "logdensity"),
    ],
)
def test_names_from_elsewhere(given, here):
    message = f"^{given} isn't an argument of sample; it is called {here} here$"
    with pytest.raises(TypeError, match=message):
        schuss.sample(logdensity=logdensity, init=np.zeros(2), **{given: 1})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("tune", "ends its tuning by itself"),
        ("warmup", "ends its tuning by itself"),
        ("num_warmup", "ends its tuning by itself"),
        ("cores", "all chains run in one compiled loop"),
        ("target_accept", "finds its steps and lengths by itself"),
        ("step", "finds its steps and lengths by itself"),
        ("nuts_sampler", "NUTS runs beside it with schuss compare"),
        ("model", "schuss.sample(schuss.from_pymc(model))"),
        ("return_inferencedata", "post.to_arviz()"),
    ],
)
def test_what_is_not_needed(given, reason):
    with pytest.raises(
        TypeError, match=f"^{given} isn't an argument of sample; leave it out: "
    ) as e:
        schuss.sample(logdensity=logdensity, init=np.zeros(2), **{given: 1})
    assert reason in str(e.value)


@pytest.mark.parametrize(
    ("call", "given", "meant"),
    [
        (schuss.sample, "drws", "draws"),
        (schuss.sample, "sed", "seed"),
        (schuss.sample, "logdensty", "logdensity"),
        (schuss.trajectory, "step", "steps"),
        (schuss.evidence, "particle", "particles"),
        (schuss.Sampler, "keeps", "keep"),
        (schuss.ESH, "step_sise", "step_size"),
    ],
)
def test_slips(call, given, meant):
    with pytest.raises(TypeError, match=rf"; did you mean {meant}\?$"):
        call(**{given: 1})


def test_the_same_name_may_be_another_elsewhere():
    for call, here in ((schuss.trajectory, "steps"), (schuss.evidence, "particles")):
        with pytest.raises(TypeError, match=f"it is called {here} here"):
            call(num_samples=10)
    with pytest.raises(TypeError, match="it is called step_size here"):
        schuss.ESH(epsilon=0.1)


def test_arguments_without_a_name():
    with pytest.raises(TypeError, match=r"^sample takes target without a name, got 2 "):
        schuss.sample(logdensity, np.zeros(2))
    with pytest.raises(
        TypeError, match=r"^Sampler takes algorithm without a name, got 2 .*steps=,"
    ):
        schuss.Sampler(schuss.ESH(), 100)


def test_signatures_stay_as_they_are():
    assert list(inspect.signature(schuss.sample).parameters)[:3] == [
        "target",
        "logdensity",
        "energy",
    ]
    assert list(inspect.signature(schuss.ESH).parameters)[:2] == ["step_size", "kappa"]
    assert not any(
        p.kind is p.VAR_KEYWORD for p in inspect.signature(schuss.sample).parameters.values()
    )
    assert schuss.sample.__doc__ and schuss.sample.__name__ == "sample"


def test_warnings_point_to_the_caller():
    given = {"engine": "numpy", "progress": False}
    target, sampler = schuss.targets.isotropic(2), schuss.ESH(0.1)
    with pytest.warns(schuss.NotConverged) as caught:
        schuss.sample(target, draws=4, sampler=sampler, **given)
        reference = schuss.Normal(dim=2, sd=30.0)
        flow = {"method": "jarzynski", "steps": 3, "particles": 32, "groups": 2}
        schuss.evidence(target, reference=reference, sampler=sampler, **flow, **given)
    assert [warning.filename for warning in caught] == [__file__, __file__]
