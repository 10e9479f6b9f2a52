"""Random numbers by name: a generator for a seed and a place, so that nothing has to be saved."""

import contextlib

import torch

from schuss.arguments import mixed


def key(*words: int) -> int:
    """One seed out of several numbers; different numbers give unrelated seeds."""
    # Their count goes in as well: to NumPy trailing zeros are nothing.
    return mixed(len(words), *words)


def generator(device, *words: int) -> torch.Generator:
    """A generator that depends on nothing but the numbers given."""
    return torch.Generator(device).manual_seed(key(*words))


@contextlib.contextmanager
def seeded(seed: int):
    """Weights that are drawn inside come from the seed; what is drawn after doesn't change."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
