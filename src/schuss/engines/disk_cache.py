"""Compiled steps of the library's own on disk, by JAX's persistent cache.

What is stored knows nothing of the user's functions. The folder is `$SCHUSS_CACHE_DIR`, by default
`~/.cache/schuss`; an empty value switches it off, and so does a persistent cache of the user's own,
which then serves.
"""

import contextlib
import hashlib
import os
import pathlib
import platform
from collections.abc import Iterator

import jax
from jax.experimental.compilation_cache import compilation_cache

FOLDER = "SCHUSS_CACHE_DIR"

SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


@contextlib.contextmanager
def on_disk() -> Iterator[None]:
    """Compilations within are read from disk, or written there; others aren't."""
    folder = None if jax.config.jax_compilation_cache_dir else _folder()
    if folder is None:
        yield
        return
    wanted = SETTINGS | {"jax_compilation_cache_dir": folder}
    before = {name: getattr(jax.config, name) for name in wanted}
    try:
        _configure(wanted)
        yield
    finally:
        _configure(before)


def _configure(settings: dict) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def _folder() -> str | None:
    """One for each kind of processor, since code for another one may not run; None where none is.

    A home may be shared by different machines.
    """
    given = os.environ.get(FOLDER)
    if given == "":
        return None
    base = pathlib.Path(given or os.environ.get("XDG_CACHE_HOME") or "~/.cache/").expanduser()
    folder = (base if given else base / "schuss") / _processor()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, RuntimeError):
        return None
    return str(folder) if os.access(folder, os.W_OK) else None


def _processor() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))})
    words = "\n".join([platform.machine(), platform.processor(), *flags])
    return hashlib.sha256(words.encode()).hexdigest()[:16]
