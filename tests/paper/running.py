"""Compute an item as the command would, and check what every item promises."""

import json


def run(item, settings):
    """The values as they would be read from the file; parts are announced as often as said."""
    done = []
    values = item.compute(settings, done.append)
    assert len(done) == item.parts(settings)
    return json.loads(json.dumps(values, allow_nan=False))
