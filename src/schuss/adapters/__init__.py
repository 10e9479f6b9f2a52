"""Models from elsewhere as `schuss.model.Model`: a file per library, imported when it is used."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from schuss.keywords import explained
from schuss.model import Model


@explained
def from_pymc(model: Any) -> Model:
    """A model from a `pymc.Model`, over its free variables without their bounds.

    Draws carry the names, shapes, dims and coords of the PyMC model, deterministics among them.
    The data are those the model holds now: after `pm.set_data`, call this again.
    """
    from schuss.adapters import pymc

    return pymc.from_pymc(model)


def from_numpyro(model: Callable, *args, **kwargs) -> Model:
    """A model from a NumPyro function, with the arguments it would be called with.

    Draws carry the names of the sample sites and of the deterministic ones; plates are their dims.
    """
    from schuss.adapters import numpyro

    return numpyro.from_numpyro(model, *args, **kwargs)


@explained
def from_value_and_grad(
    fn: Callable,
    dim: int,
    *,
    names: Sequence[str] | Mapping[str, Sequence[int]] | None = None,
    start: Any = None,
    constrain: Callable | None = None,
    batched: bool = False,
) -> Model:
    """A model from a NumPy function of a position (dim,) → log p and its gradient ∂ log p/∂x.

    The sign is that of the LOG-density: large where the probability is. An energy, or a loss, is
    minus that, as is its gradient; nothing here can tell the two apart. A gradient that clearly
    contradicts its values where chains start is refused. Where the function fails, let it return
    −inf for log p: such positions are never taken.

    With `batched=True` it takes (chains, dim) and returns log p (chains,) and gradients
    (chains, dim). `names` gives the coordinates' names, or names with shapes, as in
    `{"mu": (), "theta": (8,)}`. `constrain` turns one position (dim,) into the values which `names`
    speaks of, where they are other than the position. `start` is a position (dim,) to start chains
    around, or a function (rng, chains) → (chains, dim); by default each coordinate is uniform
    between −2 and 2.
    """
    from schuss.adapters import function

    return function.from_value_and_grad(
        fn, dim, names=names, start=start, constrain=constrain, batched=batched
    )


@explained
def from_pytree(
    *, logdensity: Callable | None = None, energy: Callable | None = None, init: Any
) -> Model:
    """A model from a JAX function of one position: a dict, or a nest of dicts, lists and tuples.

    Give a log-density or an energy, −log p. `init` is one position, without a chain axis; chains
    start around it, with deviation 0.1. Draws are named by their keys, joined with dots.
    """
    from schuss.adapters import pytree

    return pytree.from_pytree(logdensity=logdensity, energy=energy, init=init)


__all__ = ["from_numpyro", "from_pymc", "from_pytree", "from_value_and_grad"]
