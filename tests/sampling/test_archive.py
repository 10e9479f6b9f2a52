"""What is kept of chains that complete at different times, against plain lists."""

import numpy as np
import pytest

from schuss.sampling.archive import FIELDS, Archive
from schuss.sampling.field import Rows
from schuss.tuning import metric

CHAINS, DIM = 3, 2
RATES = np.array([1.0, 0.7, 0.3])
"""How often a state of each chain is complete."""


def blocks(sizes, seed=0):
    """Rows with ragged completions; the metric is one, so that z = x."""
    rng = np.random.default_rng(seed)
    for n in sizes:
        z, g = rng.standard_normal((2, n, CHAINS, DIM))
        energy, error, acceptance = rng.standard_normal((3, n, CHAINS))
        complete = rng.random((n, CHAINS)) < RATES
        yield Rows(metric.unit(DIM), z, g, energy, error, acceptance, complete)


def listed(rows):
    """All complete states of each chain, one by one: field → chain → (n, …)."""
    found = {name: [[] for _ in range(CHAINS)] for name in FIELDS}
    for block in rows:
        values = dict(
            zip(
                FIELDS,
                (block.z, block.pull, block.energy, block.error, block.acceptance),
                strict=True,
            )
        )
        for t in range(len(block.energy)):
            for k in range(CHAINS):
                if block.complete[t, k]:
                    for name in FIELDS:
                        found[name][k].append(values[name][t, k])
    return found


def filled(sizes, thin=1, limit=None):
    archive, rows = Archive(CHAINS, DIM, thin, limit), list(blocks(sizes))
    for block in rows:
        archive.add(block)
    return archive, listed(rows)


def assert_holds(archive, everything, thin):
    """Every thin-th state of each chain, and nothing else."""
    for name in FIELDS:
        for k in range(CHAINS):
            want = np.array(everything[name][k][thin - 1 :: thin])
            got = archive.chain(name, k)
            assert len(got) == len(want)
            if len(want):
                np.testing.assert_allclose(got, want, rtol=1e-15)
    counts = [len(chain) for chain in everything["energy"]]
    np.testing.assert_array_equal(archive.counts, counts)
    assert archive.size == min(counts) // thin
    for name in FIELDS:
        stacked = archive.stack(name)
        assert stacked.shape[:2] == (archive.size, CHAINS)
        for k in range(CHAINS):
            np.testing.assert_array_equal(stacked[:, k], archive.chain(name, k)[: archive.size])
        np.testing.assert_array_equal(archive.stack(name, 2), stacked[2:])


def test_empty():
    archive = Archive(CHAINS, DIM)
    assert archive.size == 0 and archive.chains == CHAINS
    assert archive.stack("x").shape == (0, CHAINS, DIM)
    assert archive.stack("energy").shape == (0, CHAINS)


@pytest.mark.parametrize("thin", [1, 2, 3, 7])
def test_every_so_many_th_of_ragged_chains(thin):
    """Whatever the blocks: of one row, with none complete, longer than thin or shorter."""
    archive, everything = filled([1, 1, 5, 2, 30, 1, 64, 3], thin)
    assert_holds(archive, everything, thin)


def test_what_was_stacked_is_stacked_anew_after_more():
    rows = list(blocks([20, 20]))
    archive = Archive(CHAINS, DIM)
    archive.add(rows[0])
    archive.stack("x")
    archive.add(rows[1])
    assert_holds(archive, listed(rows), 1)


@pytest.mark.parametrize("thin", [1, 3])
@pytest.mark.parametrize("limit", [5, 16])
def test_a_limit_doubles_the_distance(thin, limit):
    sizes = [7, 50, 1, 90, 200, 33]
    archive, everything = filled(sizes, thin, limit)
    assert archive.size <= limit
    assert archive.thin > thin and archive.thin % thin == 0
    assert np.log2(archive.thin // thin) % 1 == 0
    assert 2 * (archive.size + 1) > limit
    assert_holds(archive, everything, archive.thin)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_moments_are_of_all_states(offset):
    """Also far from zero, where the squares of x would have lost all digits of the variance."""
    rows = [block._replace(z=block.z + offset) for block in blocks([7, 50, 90])]
    archive = Archive(CHAINS, DIM, 3, limit=8)
    for block in rows:
        archive.add(block)
    moments = archive.moments()
    for k, chain in enumerate(listed(rows)["x"]):
        np.testing.assert_allclose(moments.mean[k], np.mean(chain, axis=0), rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(moments.variance[k], np.var(chain, axis=0), rtol=1e-6)
        assert moments.states[k] == len(chain)


@pytest.mark.parametrize("limit", [None, 9])
@pytest.mark.parametrize("name", FIELDS)
def test_an_interruption_loses_the_rows_at_hand_and_no_others(monkeypatch, name, limit):
    """While any of the fields is written, or while every second state goes."""
    archive, everything = filled([7, 12], limit=limit)
    thin, before = archive.thin, archive.moments()
    write = Archive._write

    def interrupted(self, field, *given):
        if field == name:
            raise KeyboardInterrupt
        write(self, field, *given)

    monkeypatch.setattr(Archive, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        archive.add(next(blocks([40], seed=1)))
    assert_holds(archive, everything, thin)
    for one, other in zip(archive.moments(), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_thinned_and_cut():
    archive, everything = filled([10, 80, 40])
    assert_holds(archive.thinned(4), everything, 4)
    rest = archive.cut(5)
    later = {name: [chain[5:] for chain in chains] for name, chains in everything.items()}
    assert_holds(rest, later, 1)
    assert_holds(rest.thinned(2), later, 2)
    assert_holds(archive, everything, 1)


@pytest.mark.parametrize("part", [lambda a: a.thinned(1), lambda a: a.cut(0)])
@pytest.mark.parametrize("first", [0, 1])
def test_what_shares_memory_goes_on_by_itself(part, first):
    """Either may be added to first, and neither sees what became of the other.

    What is added is a few states of the slowest chain, for which there is room already.
    """
    rows = [*blocks([40]), *blocks([20], seed=1)]
    others = list(blocks([20], seed=2))
    for block in (rows[1], others[0]):
        block.complete[:, :2] = False
    archive = Archive(CHAINS, DIM)
    archive.add(rows[0])
    pair = (archive, part(archive))
    more = (rows[1], others[0])
    for k in (first, 1 - first):
        pair[k].add(more[k])
    for k in range(2):
        assert_holds(pair[k], listed([rows[0], more[k]]), 1)


def test_chains_side_by_side_are_not_copied():
    archive, _ = filled([10, 80])
    assert np.shares_memory(archive.stack("x"), archive.stack("x", 3))


@pytest.mark.parametrize(("thin", "limit"), [(1, None), (3, None), (2, 10)])
def test_packed_and_unpacked_it_goes_on_as_it_would_have(thin, limit):
    rows = list(blocks([20, 31, 64, 5]))
    whole, part = Archive(CHAINS, DIM, thin, limit), Archive(CHAINS, DIM, thin, limit)
    for block in rows:
        whole.add(block)
    for block in rows[:2]:
        part.add(block)
    again = Archive.unpack(part.pack("p"), "p")
    part.add(rows[2])  # what was packed doesn't depend on what became of it
    for block in rows[2:]:
        again.add(block)
    same(again, whole)


def test_rows_that_were_stored_elsewhere_come_before_the_rest():
    rows = list(blocks([20, 31, 64, 5]))
    whole, part = Archive(CHAINS, DIM, 2), Archive(CHAINS, DIM, 2)
    for block in rows:
        whole.add(block)
    for block in rows[:3]:
        part.add(block)
    size = part.size
    stored = {name: np.swapaxes(part.stack(name), 0, 1) for name in FIELDS}
    packed = part.pack("p", skip=size)
    assert all(len(packed[f"p.x.{k}"]) == len(part.chain("x", k)) - size for k in range(CHAINS))
    again = Archive.unpack(packed, "p", stored)
    again.add(rows[3])
    same(again, whole)


def same(a, b):
    assert (a.thin, a.limit, a.size) == (b.thin, b.limit, b.size)
    for name in FIELDS:
        for k in range(CHAINS):
            np.testing.assert_array_equal(a.chain(name, k), b.chain(name, k))
    for x, y in zip(a.moments(), b.moments(), strict=True):
        np.testing.assert_array_equal(x, y)
