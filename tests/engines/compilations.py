"""How often XLA has compiled something in this process."""

import jax

_SECONDS = []


def compilations() -> int:
    """So many times since this file was imported."""
    return len(_SECONDS)


def _note(event, seconds, **_):
    if event == "/jax/core/compile/backend_compile_duration":
        _SECONDS.append(seconds)


jax.monitoring.register_event_duration_secs_listener(_note)
