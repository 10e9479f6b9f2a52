"""NumPy, JAX and PyTorch behind one small protocol."""

from schuss.engines.engine import Engine, Job, Record

__all__ = ["Engine", "Job", "Record", "get"]


def get(name: str, **options) -> Engine:
    """An engine by name: "numpy", "jax" or "torch". Only that library is imported."""
    if name == "numpy":
        from schuss.engines.numpy import Numpy as Chosen
    elif name == "jax":
        from schuss.engines.jax import Jax as Chosen
    elif name == "torch":
        try:
            from schuss.engines.torch import Torch as Chosen
        except ImportError as error:
            raise ImportError(
                "engine='torch' needs PyTorch; install it with pip install 'schuss[torch]'"
            ) from error
    else:
        raise ValueError(f"engine must be 'auto', 'numpy', 'jax' or 'torch', got {name!r}")
    try:
        return Chosen(**options)
    except TypeError as error:
        names = ", ".join(sorted(options))
        raise ValueError(f"{names} only works with engine='torch', not {name!r}") from error
