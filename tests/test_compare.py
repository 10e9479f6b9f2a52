"""Samplers compared: costs are counted, estimates are right, and what failed is said."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import schuss
from schuss.cli import app
from schuss.commands.compare import write
from schuss.comparison import compare, table
from schuss.comparison import samplers as known
from schuss.comparison.compare import Comparison, Reference
from schuss.comparison.numbers import curve, plain, rows
from schuss.comparison.outcome import Outcome, Record, prefixes, record
from schuss.comparison.samplers import names, prepare
from schuss.comparison.subject import subject
from schuss.results.verdict import judge
from schuss.targets.gaussian import gaussian
from schuss.targets.target import Truth

MEAN, SCALE = np.array([1.0, -2.0, 0.5]), np.array([1.0, 2.0, 0.5])


def logp(x):
    return -0.5 * jnp.sum(((x - MEAN) / SCALE) ** 2)


def energies(x):
    """A batch (n, 3, 1) at once."""
    return 0.5 * jnp.sum(((x[..., 0] - MEAN) / SCALE) ** 2, axis=-1)


def truth():
    second = MEAN**2 + SCALE**2
    return Truth(MEAN, SCALE**2, second, 2 * SCALE**4 + 4 * MEAN**2 * SCALE**2)


def outcome(name, seed, gradients, seconds=1.0, good=True, **more):
    """A run whose E[x²] is off by 1/√gradients in the first coordinate."""
    x = np.random.default_rng(seed).normal(size=(4, 300, 3))
    if not good:
        x[0] += 9
    away = np.array([1.0, 0.0, 0.0])
    records = [Record(g, truth().second_moment + away / math.sqrt(g), g / 10) for g in gradients]
    verdict = judge(x, (x**2).sum(axis=-1) / 2)
    return Outcome(name, seed, gradients[-1], 4, seconds, tuple(records), verdict, **more)


def comparison(**more):
    given = {
        "name": "a <model> $x",
        "dim": 3,
        "gradients": 1000,
        "reference": Reference(truth(), "Known."),
        "outcomes": {
            "auto": [outcome("auto", 0, [100, 400, 1200]), outcome("auto", 1, [200, 1000])],
            "hmc:0.1": [outcome("hmc:0.1", 0, [500, 1000], good=False)],
            "nuts": [Outcome("nuts", 0, 1500, failure="tuning alone took 1,500 gradients")],
        },
        "seconds": {"auto": 2.0, "hmc:0.1": 1.0, "nuts": 0.5},
        "finished": True,
    }
    return Comparison(**(given | more))


@pytest.mark.parametrize(
    "given",
    [
        {"logdensity": logp, "init": np.zeros(3)},
        {"energy": energies, "init": np.zeros((5, 3, 1))},
        {
            "logdensity": lambda p: logp(jnp.concatenate([p["a"], p["b"]])),
            "init": {"a": np.zeros(1), "b": np.zeros(2)},
        },
        {"logdensity": logp, "init": lambda rng, n: rng.normal(size=(n, 3))},
    ],
    ids=["point", "batch of shapes", "dict", "function"],
)
def test_a_subject_has_flat_energies_and_starts(given):
    about = subject(given)
    assert about.target.dim == 3
    x = np.random.default_rng(0).normal(size=(7, 3))
    expected = 0.5 * (((x - MEAN) / SCALE) ** 2).sum(axis=-1)
    energy, g = about.evaluate(x)
    np.testing.assert_allclose(energy, expected, rtol=1e-12)
    np.testing.assert_allclose(g, (x - MEAN) / SCALE**2, rtol=1e-12)
    with jax.enable_x64(True):
        alone = about.target.energy(jnp, jnp.asarray(x))
    np.testing.assert_allclose(alone, expected, rtol=1e-12)
    rng = np.random.default_rng(1)
    for n in (1, 4, 8):
        assert about.target.start(rng, n).shape == (n, 3)


def test_many_positions_are_evaluated_in_parts():
    about = subject({"target": schuss.targets.get("isotropic")})
    x = np.random.default_rng(0).normal(size=(1500, about.target.dim))
    np.testing.assert_allclose(about.evaluate(x)[0], (x**2).sum(axis=1) / 2, rtol=1e-12)


def test_a_record_by_hand():
    """Weighted moments exactly; the ESS of independent draws within 5 sd (10 % at n = 4000)."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(4, 1000, 3)) + MEAN, rng.random((4, 1000))
    found = record(123, x, w)
    flat = x.reshape(-1, 3)
    np.testing.assert_allclose(
        found.second_moment, np.average(flat**2, axis=0, weights=w.reshape(-1)), rtol=1e-12
    )
    assert found.gradients == 123
    assert record(1, x).ess == pytest.approx(4000, rel=0.15)
    doubled = np.repeat(x, 2, axis=1)
    assert record(1, doubled).ess == pytest.approx(4000, rel=0.15)


def test_looks_end_with_all_and_see_the_budget():
    costs = np.arange(10, 1010, 10)
    found = prefixes(costs, 705, 5)
    assert found[0] == 5
    assert found[-1] == 100
    assert 70 in found
    assert prefixes(costs[:1], 1, 5).tolist() == [1]


def test_bias_is_taken_within_the_budget():
    found = comparison()
    scale = truth().second_variance[0]
    first, second = found.outcomes["auto"]
    assert found.b2max(first) == pytest.approx(1 / 400 / scale)
    assert found.b2max(second) == pytest.approx(1 / 1000 / scale)
    assert math.isnan(found.b2max(found.outcomes["nuts"][0]))
    assert math.isnan(comparison(gradients=50).b2max(first))
    assert math.isnan(comparison(reference=Reference(None, "")).b2max(first))


def test_rows_are_medians():
    auto, hmc, nuts = rows(comparison())
    assert (auto.gradients, auto.ess_per_1000, auto.trusted, auto.runs) == (1100, 100, 2, 2)
    assert (hmc.trusted, hmc.runs) == (0, 1)
    assert nuts.failure.startswith("tuning alone")
    assert math.isnan(nuts.gradients)


def test_curves_over_seeds_by_hand():
    x, middle, low, high = curve(comparison(), "auto", "ess")
    assert x.tolist() == [200, 400, 1000, 1200]
    assert low.tolist() == [10, 20, 40, 100]
    assert high.tolist() == [20, 40, 100, 120]
    assert middle.tolist() == [15, 30, 70, 110]
    assert len(curve(comparison(), "nuts", "ess")[0]) == 0


def test_samplers_by_name():
    assert names("auto, nuts,auto,hmc:0.1") == ["auto", "nuts", "hmc:0.1"]
    for text, told in [
        ("", "samplers must name one of"),
        ("foo", "got 'foo'"),
        ("auto:0.1", "finds its own step"),
        ("ula:-1", "the step of ula must be a positive number"),
    ]:
        with pytest.raises(ValueError, match=told):
            names(text)


def test_numbers_are_json(tmp_path):
    write(comparison(), tmp_path / "c.json")
    found = json.loads((tmp_path / "c.json").read_text())
    wanted = {"target", "sampler", "seed", "gradients", "b2max", "flagged", "seconds"}
    assert len(found["rows"]) == 4
    assert all(wanted <= set(row) for row in found["rows"])
    assert [row["flagged"] for row in found["rows"]] == [False, False, True, True]
    assert found["rows"][3]["reasons"] == ["tuning alone took 1,500 gradients"]
    assert found["rows"][3]["b2max"] is None


@pytest.mark.parametrize("known_truth", [True, False])
def test_the_page_needs_nothing_else(tmp_path, known_truth):
    found = comparison() if known_truth else comparison(reference=Reference(None, "None known."))
    write(found, tmp_path / "c.html")
    text = (tmp_path / "c.html").read_text()
    assert "a &lt;model&gt; $x" in text
    assert "<model>" not in text
    assert "http://" not in text
    assert "https://" not in text
    assert text.count("data:image/png;base64,") == 1
    assert "2 of 2 ok" in text
    assert "NOT converged" in text
    assert "nuts: tuning alone took 1,500 gradients." in text
    assert found.reference.words in text
    assert "nuts adapts over 100 draws" in text
    assert "Fixed samplers have" in text
    write(found, tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes()[1:4] == b"PNG"


def test_an_interrupted_comparison_keeps_what_there_is(monkeypatch, tmp_path):
    def prepared(name, about, gradients):
        def run(seed):
            if name == "nuts":
                raise KeyboardInterrupt
            return outcome(name, seed, [500])

        return run

    monkeypatch.setattr(known, "prepare", prepared)
    target = gaussian(SCALE**2)
    found = compare({"target": target}, ["auto", "nuts", "ula"], 500, seeds=2)
    assert not found.finished
    assert [len(found.outcomes[name]) for name in ("auto", "nuts", "ula")] == [2, 0, 0]
    assert [row.sampler for row in rows(found)] == ["auto"]
    assert found.reference.truth is target.truth


def test_a_sampler_that_fails_leaves_the_others(monkeypatch):
    def prepared(name, about, gradients):
        if name == "nuts":
            raise ImportError("nuts needs blackjax, which isn't installed")

        def run(seed):
            if name == "ula":
                raise ValueError("it broke")
            return outcome(name, seed, [500])

        return run

    monkeypatch.setattr(known, "prepare", prepared)
    found = compare({"target": gaussian(SCALE**2)}, ["nuts", "ula", "esh"], 500)
    assert found.finished
    assert [row.failure for row in rows(found)] == [
        "nuts needs blackjax, which isn't installed",
        "it broke",
        "",
    ]
    assert table.notes(found)[:2] == [
        "nuts: nuts needs blackjax, which isn't installed.",
        "ula: it broke.",
    ]


def test_a_reference_takes_the_place_of_the_truth(monkeypatch):
    """A long run's moments, exactly, unless its verdict fails."""
    from results.runs import posterior

    post = posterior(draws=2000)
    monkeypatch.setattr(known, "prepare", lambda name, *_: lambda seed: outcome(name, seed, [500]))
    monkeypatch.setattr(known, "reference_run", lambda *_: post)
    arguments = {"logdensity": logp, "init": np.zeros(3)}
    found = compare(arguments, ["auto"], 500).reference
    flat = post.x.reshape(-1, 6)
    assert found.truth is not None
    np.testing.assert_allclose(found.truth.second_moment, (flat**2).mean(axis=0))
    np.testing.assert_allclose(found.truth.second_variance, (flat**2).var(axis=0))
    assert "No truth is known: b²max is against another auto run of 5,000 gradients" in found.words
    apart = post.x.copy()
    apart[0] += 9
    monkeypatch.setattr(known, "reference_run", lambda *_: posterior(x=apart))
    found = compare(arguments, ["auto"], 500).reference
    assert found.truth is None
    assert "its verdict fails" in found.words


def test_a_fixed_sampler_spends_its_budget():
    """HMC on a Gaussian; 16 000 leapfrogs, E[x²] within 6 sd at an ESS of 150 or more."""
    about = subject({"logdensity": logp, "init": MEAN})
    found = prepare("hmc:0.35", about, 16_000)(0)
    assert found.gradients == 16_000
    assert found.records[-1].gradients == 16_000
    assert found.ess > 150
    assert found.b2max(truth())[-1] < 36 / found.ess


def test_the_tuned_sampler_is_followed():
    """E[x²] within 6 sd; nothing is recorded twice, and the last record is the result."""
    about = subject({"logdensity": logp, "init": np.zeros(3)})
    found = prepare("auto", about, 6000)(0)
    spent = [one.gradients for one in found.records]
    assert spent == sorted(set(spent))
    assert len(spent) > 4
    assert spent[-1] == found.gradients >= 6000
    assert found.verdict is not None
    assert found.verdict.converged
    assert found.b2max(truth())[-1] < 36 / found.ess
    assert not found.note


def test_a_run_that_ends_while_it_tunes_is_not_called_exact(monkeypatch):
    from results.runs import posterior

    about = subject({"logdensity": logp, "init": np.zeros(3)})
    monkeypatch.setattr(known, "_sampled", lambda *_, **__: posterior(exact=False))
    assert "before its exact phase" in prepare("auto", about, 600)(0).note
    assert not prepare("unadjusted", about, 600)(0).note


@pytest.mark.slow
def test_a_peer_counts_its_gradients_and_keeps_its_draws():
    """MCLMC with its tuner: two gradients a step; E[x²] within 6 sd of an ESS of 300 or more."""
    from schuss import peers

    chain = peers.mclmc(gaussian(SCALE**2), 8000, keep=True)
    run = chain(3)
    assert run.draws is not None
    assert run.gradients[-1] >= 8000
    assert run.gradients[-1] - run.tuning == 2 * len(run.draws)
    np.testing.assert_allclose(run.second_moment[-1], (run.draws**2).mean(axis=0), rtol=1e-10)
    size = record(1, run.draws[None]).ess
    assert size > 300
    centred = Truth(0 * MEAN, SCALE**2, SCALE**2, 2 * SCALE**4)
    assert peers.bias(run, centred)[-1] < 36 / size + 0.02


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["nuts", "mams", "nutpie"])
def test_other_peers_sample_what_they_should(name):
    """E[x²] within 6 sd of the run's own ESS."""
    found = prepare(name, subject({"logdensity": logp, "init": np.zeros(3)}), 20_000)(0)
    assert 19_000 < found.gradients < 25_000
    assert found.ess > 300
    assert found.b2max(truth())[-1] < 36 / found.ess
    assert found.verdict is not None
    assert found.verdict.converged


@pytest.mark.slow
def test_the_command_from_end_to_end(tmp_path):
    out = tmp_path / "c.html"
    words = ["compare", "eight-schools", "--gradients", "8000", "--samplers", "auto,ula"]
    result = CliRunner().invoke(app, [*words, "--out", str(out)], env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    assert "auto" in result.output
    assert "Samplers on eight-schools" in out.read_text()


def test_plain_numbers_are_finite():
    json.dumps(plain(comparison()), allow_nan=False)
