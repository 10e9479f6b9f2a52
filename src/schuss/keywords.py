"""Keyword arguments that a call doesn't take: what they are called here, or why none is needed."""

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

Given = ParamSpec("Given")
Result = TypeVar("Result")
Class = TypeVar("Class", bound=type)

NEAR = 0.75
"""Similarity of a name to one of ours from which on a slip of the keyboard is assumed."""

ALIKE = {
    ("seed",): "random_seed rng_key random_state rng key prng_key",
    ("draws", "particles", "steps"): "num_samples n_samples num_results samples n_draws num_draws "
    "iter_sampling iterations num_iterations",
    ("chains",): "num_chains n_chains nchains chain_count num_walkers nwalkers",
    ("progress",): "progressbar progress_bar show_progress verbose",
    ("init",): "initvals initval inits init_params init_position initial_position initial_state "
    "current_state start x0 p0 position positions",
    ("logdensity",): "log_density logp logprob log_prob logpdf log_pdf log_prob_fn logdensity_fn "
    "logp_fn log_density_fn target_log_prob_fn lnprob lnpost",
    ("energy",): "potential potential_fn loss",
    ("value_and_grad",): "logp_and_grad value_and_gradient grad gradient logp_dlogp_func",
    ("thin", "every"): "thinning",
    ("sampler", "algorithm"): "kernel algorithm sampler method transition_kernel",
    ("steps",): "num_steps n_steps num_integration_steps",
    ("step_size",): "step stepsize epsilon eps dt",
    ("refresh",): "L momentum_decoherence_length trajectory_length",
    ("metric",): "inverse_mass_matrix mass_matrix",
    ("reference",): "prior base",
    ("particles",): "num_particles n_particles",
    ("checkpoint",): "resume backend",
}
"""Names of ours, and those that the same has elsewhere. The first that a call takes is meant."""

NEEDLESS = {
    "schuss.sample ends its tuning by itself and leaves those draws out": "tune warmup num_warmup "
    "n_warmup warm_up warmup_steps iter_warmup burnin burn_in num_burnin_steps n_tune n_burn "
    "discard_tuned_samples num_adaptation_steps save_warmup",
    "all chains run in one compiled loop": "cores num_cores n_cores n_jobs parallel chain_method "
    "parallel_chains mp_ctx pool threads num_threads blas_cores",
    "schuss.sample finds its steps and lengths by itself, and what is fixed belongs to a sampler, "
    "e.g. schuss.HMC(step_size=0.1, steps=10)": "target_accept target_accept_prob adapt_delta "
    "target_acceptance_rate step step_size stepsize epsilon eps dt init_step_size "
    "num_leapfrog_steps num_integration_steps num_steps max_treedepth max_tree_depth steps "
    "step_scale metric inverse_mass_matrix mass_matrix dense_mass adapt_step_size "
    "adapt_mass_matrix refresh L trajectory_length",
    "schuss samples with ESH dynamics, and NUTS runs beside it with schuss compare": "nuts "
    "nuts_sampler nuts_kwargs nuts_sampler_kwargs",
    "a model comes first, as in schuss.sample(schuss.from_pymc(model)), with schuss.from_numpyro "
    "for NumPyro": "model",
    "the result has post.to_arviz()": "return_inferencedata idata_kwargs trace",
    "a function knows its data itself, as functools.partial(logdensity, data=data) does": "data "
    "args kwargs",
}
"""Why there is no such argument, by names that it has elsewhere."""


def explained(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """A call that explains arguments which it doesn't take; its signature stays as it is."""
    parameters = inspect.signature(function).parameters
    called = function.__qualname__.removesuffix(".__init__")
    free = [name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    known = [name for name in parameters if name != "self"]

    @functools.wraps(function)
    def wrapper(*args: Given.args, **given: Given.kwargs) -> Result:
        for name in given:
            if name not in known:
                raise TypeError(unknown(called, name, known))
        if len(args) > len(free):
            raise TypeError(_crowded(called, len(args), free, known))
        return function(*args, **given)

    return wrapper


def explaining(cls: Class) -> Class:
    """A class whose constructor explains arguments which it doesn't take."""
    settable = cast(type, cls)
    settable.__init__ = explained(settable.__init__)
    return cls


def unknown(called: str, name: str, known: list[str]) -> str:
    """What is said of an argument that a call doesn't take."""
    return f"{name} isn't an argument of {called}; {_remedy(name, known)}"


def _remedy(name: str, known: list[str]) -> str:
    for ours, elsewhere in ALIKE.items():
        here = next((own for own in ours if own in known), None)
        if here and name in elsewhere.split():
            return f"it is called {here} here"
    near = difflib.get_close_matches(name, known, 1, NEAR)
    if near:
        return f"did you mean {near[0]}?"
    for reason, elsewhere in NEEDLESS.items():
        if name in elsewhere.split():
            return f"leave it out: {reason}"
    return f"it takes {', '.join(known)}"


def _crowded(called: str, count: int, free: list[str], known: list[str]) -> str:
    """More arguments without a name than there are places for."""
    places = [name for name in free if name in known]
    named = [f"{name}=" for name in known if name not in places][:5]
    remedy = f"name the others, as {', '.join(named)}…" if named else "leave the others out"
    return (
        f"{called} takes {', '.join(places) or 'nothing'} without a name, got "
        f"{count - len(free) + len(places)} arguments; {remedy}"
    )
