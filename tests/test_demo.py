"""The demonstration, small: its numbers, its words and its picture."""

import io

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from schuss import ESH, ULA, demo, diagnostics, plotting, targets, trajectory
from schuss.diagnostics import Interval

SMALL = demo.Size(chains=100, gradients=40, exact=1000, every=20, traced=10)


@pytest.fixture(scope="module")
def comparison():
    return demo.compare(SMALL)


def printed(shown):
    console = Console(file=io.StringIO(), width=80)
    console.print(shown)
    return console.file.getvalue()


def test_mmd_is_that_of_the_samples(comparison):
    """The last value again, from the samples and the exact ones drawn by the same seed."""
    exact = targets.mog_prior().sample(np.random.default_rng(0), SMALL.exact)
    for result in comparison.results:
        assert len(result.mmd) == len(comparison.checkpoints) == 4
        assert result.samples.shape == (SMALL.chains, 2)
        assert result.mmd[-1].value == pytest.approx(diagnostics.mmd2(result.samples, exact))
        assert result.path.shape == (SMALL.traced + 1, 2)
        assert result.microseconds > 0


def test_what_a_chain_gives():
    """ESH a random moment of its time so far, as a path that ends there would; others the end."""
    given = {"chains": 20, "seed": 3, "engine": "numpy"}
    target = targets.mog_prior()
    path = trajectory(target, **given, sampler=ESH(), steps=30)
    short = trajectory(target, **given, sampler=ESH(), steps=10)
    np.testing.assert_allclose(
        demo._one_per_chain(path, 10, 5), short.ergodic_sample(20, seed=5), rtol=1e-12
    )
    path = trajectory(target, **given, sampler=ULA(), steps=30)
    np.testing.assert_array_equal(demo._one_per_chain(path, 10, 5), path.x[10])


def test_all_start_in_one_mode(comparison):
    for result in comparison.results:
        np.testing.assert_allclose(result.path[0], [0.0, 0.5])
        assert result.mmd[0].value == pytest.approx(comparison.results[0].mmd[0].value)
    assert comparison.results[0].mmd[0].value == pytest.approx(mmd_of_the_start(), abs=0.03)


def mmd_of_the_start(sd=0.075, b=0.5):
    """MMD² of a point in one mode, in closed form; 1000 exact samples give it to ±.006."""
    angle = np.pi / 4 * np.arange(8)
    means = 0.5 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    apart = np.sum((means[:, None] - means) ** 2, axis=-1)

    def kernel(square, variance):
        return np.mean(b / (b + variance) * np.exp(-square / (2 * (b + variance))))

    to_exact, within = kernel(apart[2], sd**2), kernel(apart, 2 * sd**2)
    return (1 + within - 2 * to_exact) / np.sqrt(2 * np.pi * b)


def test_esh_is_ahead(comparison):
    """After 40 gradients MMD² is .01 for ESH and over .03 elsewhere, each to ±.01."""
    esh, *rivals = comparison.results
    assert esh.mmd[-1].value < min(rival.mmd[-1].value for rival in rivals)


def test_same_seed_same_numbers(comparison):
    again = demo.compare(SMALL)
    for one, other in zip(comparison.results, again.results, strict=True):
        assert one.mmd == other.mmd
        assert one.ess == other.ess


def test_table_fits_a_terminal(comparison):
    text = printed(demo.table(comparison))
    assert "…  " not in text.replace(" … ", "")
    for result in comparison.results:
        assert result.name in text
        assert f"{result.mmd[-1].value:.4f}" in text


def test_verdict_in_words():
    def result(name, algorithm, values, ess):
        mmd = [Interval(value, value, value) for value in values]
        nothing = np.zeros((2, 2))
        return demo.Result(name, algorithm, mmd, ess, 1.0, nothing, nothing, np.ones(2))

    size = demo.Size(gradients=20)
    esh = result("ESH", ESH(), [1.0, 0.1, 0.001], 0.06)
    slow = result("slow", ULA(), [1.0, 0.5, 0.1], 0.02)
    late = result("late", ULA(), [1.0, 0.5, 0.0015], 0.01)
    full = demo.Comparison(size, [0, 10, 20], 0.001, [esh, slow, late])
    assert demo.verdict(full) == (
        "By MMD² ESH can't be told from exact samples after 20 gradients, late after 20; slow not "
        "within 20. ESH has 3.0 times the effective samples per gradient of slow, the best of the "
        "others. MMD² sees where the mass is, and hardly how wide each mode: what un-adjusted "
        "steps do to that takes a closer look."
    )
    turned = full._replace(results=[slow._replace(name="ESH"), late])
    assert demo.verdict(turned).startswith(
        "By MMD² ESH can still be told from exact samples after 20"
    )


def test_picture(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "Size", lambda: SMALL)
    console = Console(file=io.StringIO(), width=80)
    out = tmp_path / "new folder" / "demo.png"
    demo.run(out, console)
    assert str(out) in console.file.getvalue()
    with Image.open(out) as picture:
        assert picture.size == (1260, 900)
        pixels = np.asarray(picture.convert("RGB")).reshape(-1, 3)
    for name in ("ESH", "ULA", "MALA", "HMC", "NoseHoover", "Unscaled"):
        colour = plotting.look(name).colour
        wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        assert np.sum(np.all(pixels == wanted, axis=1)) > 100, name
