"""What a command is to sample: `model.py:logp`, or the name of a target.

A file is imported with its folder on `sys.path`. What is named in it may be a log-density of one
position (or an energy, if that is said), a `Target`, a `Model`, a `pymc.Model` or a NumPyro model
whose arguments have defaults.
"""

import contextlib
import dataclasses
import importlib
import importlib.util
import inspect
import pathlib
import sys
import traceback
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from schuss import adapters, targets
from schuss.model import Model
from schuss.targets.target import Target


class LoadError(ValueError):
    """What was named can't be sampled, and why."""


@dataclasses.dataclass(frozen=True)
class Loaded:
    """Arguments of `schuss.sample`: `target`, or `logdensity` or `energy`, and perhaps `init`."""

    name: str
    arguments: dict[str, Any]


def load(what: str, *, energy: bool = False) -> Loaded:
    """The target of a name, or what stands behind `FILE.py:NAME`; functions are log-densities.

    With `energy` a function is an energy −log p. A function comes with the file's `init` (a point,
    a batch, a dict of arrays or a function that draws starts) where it has one.
    """
    file, colon, name = what.rpartition(":")
    if not colon or "/" in name or "\\" in name:
        if what.endswith(".py"):
            raise LoadError(f"{what} lacks the name of what to sample; pass e.g. {what}:logp")
        return _registered(what, energy)
    path = pathlib.Path(file)
    if not path.is_file():
        raise LoadError(f"{file or what} isn't a file; pass one that exists, e.g. model.py:logp")
    module = _imported(path)
    if name not in vars(module):
        raise LoadError(f"{file} has nothing called {name!r}; {_there(module)}")
    return _recognised(what, vars(module)[name], module, energy)


def member(what: str) -> Any:
    """What stands behind `FILE.py:NAME` or `package.module:NAME`; files beside it can be imported.

    A module is looked for in the working directory, too.
    """
    file, _, name = what.rpartition(":")
    path = pathlib.Path(file)
    if path.suffix == ".py":
        if not path.is_file():
            raise LoadError(f"{file} isn't a file; pass one that exists, e.g. model.py:Energy")
        module = _imported(path)
    else:
        try:
            with _beside(pathlib.Path("module.py")):
                module = importlib.import_module(file)
        except ImportError as error:
            raise LoadError(f"{file} can't be imported: {error}; pass FILE.py:NAME") from error
    if name not in vars(module):
        raise LoadError(f"{file} has nothing called {name!r}; name a class or a function in it")
    return vars(module)[name]


def parse_init(text: str) -> np.ndarray:
    """A start from "0, 1.5, -2" or from a .npy file."""
    if text.endswith(".npy"):
        try:
            array = np.load(text, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise LoadError(f"init can't be read from {text} ({error}); pass a .npy file") from None
    else:
        try:
            array = np.asarray([float(part) for part in text.split(",")])
        except ValueError:
            raise LoadError(
                f"init must be numbers between commas or a .npy file, got {text!r}; pass e.g. "
                '--init "0,0,0"'
            ) from None
    if array.dtype.kind not in "fiu":
        raise LoadError(f"init must hold real numbers, got dtype {array.dtype} in {text}")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _registered(name: str, energy: bool) -> Loaded:
    known = targets.TARGETS | targets.posteriors.POSTERIORS
    if name.replace("_", "-") not in known:
        raise LoadError(
            f"{name!r} is neither FILE.py:NAME nor a target; pass e.g. model.py:logp, or one of "
            f"{', '.join(known)}"
        )
    if energy:
        raise LoadError(f"--energy is for functions, but {name} is a target; leave it out")
    return Loaded(name, {"target": targets.get(name)})


def _imported(path: pathlib.Path) -> types.ModuleType:
    """The module of a file, under a name that hides no other module."""
    name = f"_loaded_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LoadError(f"{path} isn't a Python file; pass one that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _beside(path):
            spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise LoadError(f"{path} can't be imported: {_told(error, path)}") from error
    return module


@contextlib.contextmanager
def _beside(path: pathlib.Path) -> Iterator[None]:
    """The file's folder on `sys.path`, as when Python runs it."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _told(error: Exception, path: pathlib.Path) -> str:
    """An error in a user's file in a line, with the place in the file where it came about."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if pathlib.Path(f.filename).resolve() == path.resolve()]
    lines = [f.lineno for f in own]
    if isinstance(error, SyntaxError):
        lines = [error.lineno]
    where = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {error.args[0] if error.args else ''}{where}"


def _there(module: types.ModuleType) -> str:
    """What else could have been meant."""
    found = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and name != "init"
        and (_own_function(value, module) or isinstance(value, Target | Model) or _is_pymc(value))
    ]
    return f"there is {', '.join(found)}" if found else "it defines no function or model"


def _own_function(value: Any, module: types.ModuleType) -> bool:
    return callable(value) and getattr(value, "__module__", None) == module.__name__


def _recognised(what: str, value: Any, module: types.ModuleType, energy: bool) -> Loaded:
    if inspect.isroutine(value) and _is_numpyro(value):
        value = _numpyro(what, value)
    elif inspect.isfunction(value) and not _required(value):
        value = _made(what, value)
    if _is_pymc(value):
        value = adapters.from_pymc(value)
    if isinstance(value, Target | Model):
        if energy:
            raise LoadError(f"--energy is for functions, but {what} is a model; leave it out")
        return Loaded(value.name, {"target": value})
    if not callable(value) or inspect.isclass(value):
        kind = "a class" if inspect.isclass(value) else f"of type {type(value).__name__}"
        raise LoadError(
            f"{what} is {kind}; name a log-density function, a schuss Target or Model, a PyMC "
            "model or a NumPyro function"
        )
    name = str(getattr(value, "__name__", type(value).__name__))
    arguments = {"energy" if energy else "logdensity": value}
    if "init" in vars(module):
        arguments["init"] = vars(module)["init"]
    return Loaded(name, arguments)


def _is_pymc(value: Any) -> bool:
    pymc = sys.modules.get("pymc")
    return pymc is not None and isinstance(value, pymc.Model)


def _is_numpyro(function: Any) -> bool:
    """Whether a function has NumPyro's sample statements in it."""
    numpyro = sys.modules.get("numpyro")
    code = getattr(inspect.unwrap(function), "__code__", None)
    if numpyro is None or code is None:
        return False
    known = getattr(inspect.unwrap(function), "__globals__", {})
    through = any(known.get(name) is numpyro for name in code.co_names)
    return ("sample" in code.co_names and through) or any(
        known.get(name) is numpyro.sample for name in code.co_names
    )


def _numpyro(what: str, function: Any) -> Model:
    missing = _required(function)
    if missing:
        name = function.__name__
        raise LoadError(
            f"{what} is a NumPyro model that needs {', '.join(missing)}; write e.g. posterior = "
            f"schuss.from_numpyro({name}, {', '.join(missing)}) in the file and name posterior"
        )
    return adapters.from_numpyro(function)


def _required(function: Any) -> list[str]:
    """Parameters without a default."""
    plain = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty and parameter.kind not in plain
    ]


def _made(what: str, function: Any) -> Any:
    """What a function without parameters returns, where that is a model."""
    if inspect.signature(function).parameters:
        return function
    value = function()
    if isinstance(value, Target | Model) or _is_pymc(value):
        return value
    raise LoadError(
        f"{what} takes no position and returned a {type(value).__name__}; a log-density takes "
        "one, e.g. def logp(x): …"
    )
