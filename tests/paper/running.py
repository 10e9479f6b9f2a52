"""Compute an item as the command would, and check what every item promises."""

import contextlib
import json

import pytest

from schuss.paper import samplers


def run(item, settings):
    """The values as they would be read from the file; parts are announced as often as said."""
    done = []
    values = item.compute(settings, done.append)
    assert len(done) == item.parts(settings)
    return json.loads(json.dumps(values, allow_nan=False))


@contextlib.contextmanager
def few_samplers():
    """All samplers but two are ULA by another name: to compile each takes seconds.

    `test_samplers.py` runs every one of them.
    """
    real = samplers.run

    def run(name, *args):
        made = name if name in ("ESH-leap", "ULA 0.1") else "ULA 0.1"
        return real(made, *args)._replace(name=name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samplers, "run", run)
        yield
