"""The pieces of the estimate against brute force, quadrature and exact sums."""

import math

import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize, special, stats
from seeds import shifted

from schuss.coordinates import Bounded, Level, through
from schuss.engines.jax import Jax, precision
from schuss.engines.numpy import Numpy
from schuss.evidence import adapt
from schuss.evidence.bridge import log_ratio
from schuss.evidence.groups import by_group, combine, difference, interval
from schuss.evidence.modes import apart_anywhere, most_apart, parting, separation
from schuss.evidence.moves import Mover, Space
from schuss.evidence.references import Normal, Prior, Uniform
from schuss.evidence.resample import systematic
from schuss.evidence.smc import _resample
from schuss.evidence.temperature import LAST, conditional_ess, increment, log_weights
from schuss.evidence.tempered import Tempered
from schuss.targets import gaussian


@pytest.mark.parametrize(
    "reference", [Normal(mean=[1.0, -2.0], sd=[0.5, 2.0]), Uniform([-1.0, 0.0], [1.0, 3.0])]
)
def test_references_are_normalised_and_drawn_from(reference):
    """∫ p₀ = 1 by quadrature; means and variances of 40 000 draws within five standard errors."""
    reach = ((-12, 12), (-16, 16)) if isinstance(reference, Normal) else ((-1, 1), (0, 3))
    total = integrate.dblquad(
        lambda b, a: math.exp(-reference.energy(np, np.array([[a, b]]))[0]), *reach[0], *reach[1]
    )[0]
    assert total == pytest.approx(1, abs=1e-6)
    x = reference.sample(np.random.default_rng(shifted(0)), 40_000)
    if isinstance(reference, Normal):
        mean, sd = reference.mean, reference.sd
    else:
        mean = (reference.lower + reference.upper) / 2
        sd = (reference.upper - reference.lower) / math.sqrt(12)
        assert np.all((x > reference.lower) & (x < reference.upper))
    assert np.all(np.abs(x.mean(axis=0) - mean) < 5 * sd / 200)
    assert np.all(np.abs(x.var(axis=0) / sd**2 - 1) < 5 * math.sqrt(2) / 200)


def test_the_normal_gradient_is_that_of_its_energy():
    reference = Normal(mean=[1.0, -2.0, 0.0], sd=[0.5, 2.0, 1.0])
    x = np.random.default_rng(0).standard_normal((4, 3))
    with precision(np.float64):
        expected = jax.grad(lambda z: reference.energy(jnp, z).sum())(jnp.asarray(x))
    np.testing.assert_allclose(reference.gradient(np, x), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Normal(), "dim is missing"),
        (lambda: Normal(dim=2, sd=-1.0), "sd must be positive"),
        (lambda: Normal(dim=2, sd=[1.0, 1.0, 1.0]), r"shape \(2,\)"),
        (lambda: Normal(dim=0), "dim must be"),
        (lambda: Normal(dim=2, mean=math.inf), "finite"),
        (lambda: Uniform(0.0, 1.0), "dim is missing"),
        (lambda: Uniform([0.0, 1.0], [1.0, 1.0]), "lower must be below upper"),
        (lambda: Uniform(-math.inf, 1.0, dim=2), "finite"),
        (lambda: Uniform([0.0, 1.0], [1.0, 2.0, 3.0]), r"shape \(3,\)"),
        (lambda: Prior(1.0, lambda rng, n: None), "log_density must be callable"),  # pyright: ignore
    ],
)
def test_references_refuse_what_is_none(make, match):
    with pytest.raises((ValueError, TypeError), match=match):
        make()


def test_frames_of_the_path_against_autodiff():
    """Energy and gradient in z of a E₀ + b E in a box, from `through`, against jax.grad."""
    lower, upper = np.array([-1.0, 0.0]), np.array([1.0, 3.0])
    z = 3 * np.random.default_rng(0).standard_normal((5, 2))
    weights = np.tile([0.3, 0.7], (5, 1))

    def target(x):
        return (x**4).sum(axis=-1), 4 * x**3

    def reference(x):
        return (x**2).sum(axis=-1) / 2, x

    box = Bounded(lower, upper)
    energy, g = through(np, Tempered(target, reference, np), (Level(weights), box))(z)

    def whole(z):
        share = 1 / (1 + jnp.exp(-z))
        x = lower + (upper - lower) * share
        log_det = jnp.log(share * (1 - share)).sum(axis=-1)
        total = 0.3 * (x**2).sum(axis=-1) / 2 + 0.7 * (x**4).sum(axis=-1) - log_det
        return total.sum(), total

    with precision(np.float64):
        expected, values = jax.jit(jax.grad(whole, has_aux=True))(z)
    np.testing.assert_allclose(energy, values, rtol=1e-12)
    np.testing.assert_allclose(g, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(box.inverse(np, box.forward(np, z)), z, rtol=1e-9)


def test_frames_stay_within_the_array_standard():
    xp = array_api_strict
    z, ends = xp.asarray([[0.5, -40.0]]), (xp.asarray([0.0, 0.0]), xp.asarray([1.0, 2.0]))
    box, level = Bounded(*ends), Level(xp.asarray([[0.25, 0.75]]))
    assert level.forward(xp, z).shape == (1, 4)
    assert level.inverse(xp, level.forward(xp, z)).shape == (1, 2)
    assert math.isfinite(float(box.potential(xp, z)[0]))
    assert box.pull(xp, z, z).shape == (1, 2)


def test_conditional_ess_by_hand():
    logs = np.log([1.0, 2.0, 3.0])
    assert conditional_ess(logs + 900) == pytest.approx(36 / (3 * 14))
    assert conditional_ess(np.array([-np.inf, -np.inf])) == 0
    np.testing.assert_array_equal(
        log_weights(np.array([1.0, np.nan, np.inf]), 0.5), [-0.5, -np.inf, -np.inf]
    )


def test_the_next_temperature_has_the_conditional_ess_that_was_asked_for():
    gap = 1e6 * np.random.default_rng(0).standard_normal(500) ** 2
    delta = increment(gap, 1.0, 0.8)
    assert 0 < delta < 1e-4
    assert conditional_ess(log_weights(gap, delta)) == pytest.approx(0.8, abs=1e-6)
    # Half of the way at most, until the rest is easy.
    gap = np.random.default_rng(0).standard_normal(500)
    assert conditional_ess(log_weights(0.5 * gap, 1.0)) < LAST
    assert increment(0.5 * gap, 1.0, 0.5) == 0.5
    assert increment(0.01 * gap, 0.3, 0.5) == 0.3
    # Particles without density are lost at once, whatever the step.
    half = np.where(gap > 0, np.inf, 0.01 * gap)
    assert increment(half, 1.0, 0.8) == 1.0


@pytest.mark.parametrize("kind", ["gaussian", "heavy", "outlier", "walls", "twins"])
def test_the_next_temperature_against_a_bracketed_root(kind):
    """Brent's method on the plain formula, to nine digits of Δβ."""
    rng = np.random.default_rng(1)
    gap = {
        "gaussian": 40 * rng.standard_normal(400) + 1e5,
        "heavy": rng.standard_cauchy(400) ** 2,
        "outlier": np.append(rng.standard_normal(400) * 20, 1e200),
        "walls": np.where(rng.random(400) < 0.3, np.inf, 50 * rng.standard_normal(400)),
        "twins": np.repeat([0.0, 100.0], 200),
    }[kind]
    kept = gap[np.isfinite(gap)]

    def short(log_delta):
        w = np.exp(-math.exp(log_delta) * (kept - kept.min()))
        return w.sum() ** 2 / (len(kept) * (w @ w)) - 0.85

    # What loses a single particle of 401 needn't be small.
    bracket = (-30.0 if kind == "outlier" else -60.0, 0.0)
    expected = optimize.root_scalar(short, bracket=bracket, xtol=1e-13).root
    assert math.log(increment(gap, 1.0, 0.85)) == pytest.approx(expected, abs=1e-9)


def test_no_step_is_left_where_a_density_is_infinite():
    assert increment(np.array([0.0, -np.inf]), 1.0, 0.85) < 1e-30
    assert increment(np.array([0.0, 1e308, -1e308]), 1.0, 0.85) < 1e-30
    assert increment(np.array([np.nan, np.inf]), 0.5, 0.85) == 0.5


def test_systematic_resampling_counts_are_right_and_unbiased():
    """Counts are the floor or the ceiling of n w; their mean over the uniform number is n w."""
    weights = np.array([0.1, 0.0, 0.45, 0.25, 0.2])
    grid = (np.arange(1000) + 0.5) / 1000
    counts = np.stack([np.bincount(systematic(3 * weights, 7, u), minlength=5) for u in grid])
    assert np.all(np.abs(counts - 7 * weights) < 1)
    np.testing.assert_allclose(counts.mean(axis=0), 7 * weights, atol=2e-3)


@pytest.mark.parametrize("share", [0.5, 0.1])
@pytest.mark.parametrize("direction", ["coordinate", "diagonal"])
def test_two_modes_are_found(direction, share):
    """Ten sd apart, alike and unlike in size; the separation is half of that, to about .2."""
    rng = np.random.default_rng(0)
    axis = np.eye(6)[2] if direction == "coordinate" else np.ones(6) / math.sqrt(6)
    side = np.where(rng.random(1000) < share, -1.0, 1.0)
    x = rng.standard_normal((1000, 6)) + 5 * side[:, None] * axis
    where, apart, _ = most_apart(x, rng.uniform(0.5, 1.0, 1000))
    # The diagonal is found to a few degrees, and modes parted all the same.
    assert apart == pytest.approx(5, abs=0.6)
    assert abs(np.corrcoef(where, side)[0, 1]) > 0.9


def test_a_mode_along_a_coordinate_is_not_missed():
    """A fifth of the draws: the kurtosis is 3, and few draws in 100 dimensions hide the rest."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 100))
    x[:13, 7] += 20.0
    where, apart, _ = apart_anywhere(x, np.ones(64))
    np.testing.assert_array_equal(where, x[:, 7])
    # Thirteen draws tell their sd to a fifth.
    assert apart == pytest.approx(10, abs=4)


def test_what_is_one_place_is_not_called_two():
    rng = np.random.default_rng(0)
    assert separation(rng.standard_normal(20_000), np.ones(20_000)) == pytest.approx(1.32, abs=0.05)
    assert separation(rng.random(20_000), np.ones(20_000)) == pytest.approx(math.sqrt(3), abs=0.05)
    # A particle far off in one of 1000 coordinates is no mode.
    x = rng.standard_normal((512, 1000))
    x[:8] += 30.0
    assert most_apart(x, np.ones(512)).apart < 2
    assert most_apart(np.ones((8, 2)), np.ones(8)).apart == 0


def test_the_parting_is_the_best_of_all():
    """Against all cuts, with unequal weights."""
    rng = np.random.default_rng(0)
    where, w = np.sort(rng.standard_normal(50)), rng.random(50)

    def between(k):
        sums = w[:k].sum(), w[k:].sum()
        means = np.average(where[:k], weights=w[:k]), np.average(where[k:], weights=w[k:])
        return sums[0] * sums[1] * (means[0] - means[1]) ** 2

    assert parting(where, w) == max(range(1, 50), key=between)
    assert parting(np.zeros(3), np.array([0.0, 1.0, 0.0])) == 0


def test_states_by_group():
    values = np.arange(3 * 4 * 2).reshape(3, 4, 2)
    found = by_group(values, 2)
    assert found.shape == (2, 6, 2)
    # Particle 2 is the first of the second group: its three states come first.
    np.testing.assert_array_equal(found[1, :3], values[:, 2])


def test_bennett_against_a_gaussian_integral():
    """log Z₁/Z₀ = log sd₁/sd₀ within five standard errors (.01 each), with unequal numbers."""
    rng = np.random.default_rng(shifted(0))
    sd = 1.5

    def logs(x):
        return x**2 / 2 - x**2 / (2 * sd**2)

    before, after = rng.standard_normal((2, 20_000)), sd * rng.standard_normal((2, 5000))
    np.testing.assert_allclose(log_ratio(logs(before), logs(after)), math.log(sd), atol=0.05)
    # States without density before the step count for nothing: half of them, log ½.
    lost = np.where(rng.random((1, 20_000)) < 0.5, -np.inf, 0.0)
    found = log_ratio(lost, np.zeros((1, 20_000)))
    assert found == pytest.approx(math.log(0.5), abs=0.05)


@pytest.mark.parametrize("case", ["near", "far", "lost", "flat", "unequal", "one-sided"])
def test_bennett_against_a_bracketed_root(case):
    """Brent's method on the plain sums."""
    rng = np.random.default_rng(0)
    before, after = rng.standard_normal(300) - 3, rng.standard_normal(300) - 2
    if case == "far":
        before, after = 5 * before - 200, 5 * after + 200
    elif case == "one-sided":  # Newton alone walks there in hundreds of steps
        before, after = before - 300, after[:20] + 300
    elif case == "lost":
        before = np.where(rng.random(300) < 0.4, -np.inf, before)
    elif case == "flat":
        before, after = np.zeros(300), np.zeros(300)
    elif case == "unequal":
        after = after[:50]
    offset = math.log(len(after) / len(before))

    def balance(r):
        return special.expit(before - r + offset).sum() - special.expit(r - after - offset).sum()

    expected = optimize.root_scalar(balance, bracket=(-400.0, 400.0), xtol=1e-13, rtol=1e-14).root
    found = log_ratio(np.stack([before, before]), np.stack([after, after]))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_moves_are_launched_before_any_is_waited_for():
    """And leave what moves one at a time would."""
    calls = []

    class Told(Numpy):
        def collect(self, job, state, kept, first, count, collection):
            calls.append("launch")
            return super().collect(job, state, kept, first, count, collection)

        def to_numpy(self, array):
            calls.append("wait")
            return super().to_numpy(array)

    target, reference = gaussian([0.5, 2.0, 1.0]), Normal(dim=3, sd=2.0)
    x = reference.sample(np.random.default_rng(0), 16)

    def mover(engine):
        like = engine.asarray(x)
        grad_fn = engine.value_and_grad(lambda z: (target.energy(np, z), z / [0.5, 2.0, 1.0]), like)
        space = Space(engine, grad_fn, reference.grad_fn(engine, like), (), like)
        return Mover(space, x, 0.25, np.ones((16, 3)), np.full(16, 0.5), 3, None)

    places = mover(Told()).moves([4, 2, 3])
    assert calls[:3] == ["launch"] * 3 and "launch" not in calls[3:]
    alone = mover(Numpy())
    single = [alone.moves([steps]) for steps in (4, 2, 3)]
    for part, one in zip(places, zip(*single, strict=True), strict=True):
        np.testing.assert_array_equal(part, np.concatenate(one))
    gap = target.energy(np, places.x.reshape(-1, 3)) - reference.energy(np, places.x.reshape(-1, 3))
    np.testing.assert_allclose(places.gap.reshape(-1), gap, rtol=1e-9, atol=1e-9)


def test_many_states_are_resampled_in_the_order_that_all_of_them_have():
    """More than tell the direction: every state's number of copies is within one of n w.

    In an order along the modes' direction the larger mode has its share to 1/n; at random it would
    be off by .02, ten times as much.
    """
    rng = np.random.default_rng(0)
    side = rng.random((6, 512)) < 0.7
    x = rng.standard_normal((6, 512, 3)) * 0.1 + np.where(side, 5.0, -5.0)[..., None]
    weights = rng.uniform(0.5, 1.0, (6, 512))
    picked = _resample(x, x, weights, 1, rng)
    assert picked.shape == (512, 3)
    share = weights[side].sum() / weights.sum()
    assert abs((picked[:, 0] > 0).mean() - share) <= 1 / 512


def test_groups_by_hand():
    logs = np.array([-3.0, -2.5, -2.8, -3.3])
    value, error = combine(logs + 800)
    z = np.exp(logs)
    assert value == pytest.approx(math.log(z.mean()) + 800)
    without = np.log([np.delete(z, g).mean() for g in range(4)])
    assert error == pytest.approx(math.sqrt(3 / 4 * ((without - without.mean()) ** 2).sum()))
    off, spread = difference(logs, logs - 1)
    assert off == pytest.approx(1)
    assert spread == pytest.approx(0, abs=1e-12)
    low, high = interval(2.0, 0.5, 7, 0.95)
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 7, 2.0, 0.5))
    assert combine(np.full(4, -np.inf)) == (-math.inf, math.inf)


def test_rules_move_the_right_way():
    assert adapt.next_step(1.0, adapt.ACCEPTANCE, 100) == pytest.approx(1.0)
    assert adapt.next_step(1.0, 0.99, 100) > 1 > adapt.next_step(1.0, 0.5, 100) > 0.3
    assert adapt.next_step(50.0, 1.0, 100) == adapt.LENGTH * 10 / 2
    # An autoregression of coefficient ½ has τ = 3: 2000 pairs, τ to about ±.2.
    rng, x = np.random.default_rng(0), np.zeros((100, 200))
    x[0] = rng.standard_normal(200)
    for t in range(1, 100):
        x[t] = 0.5 * x[t - 1] + math.sqrt(0.75) * rng.standard_normal(200)
    assert adapt.correlation_time(x) == pytest.approx(3, abs=0.5)
    assert adapt.correlation_time(np.ones((4, 8))) == 1
    assert adapt.correlation_time(1e-9 * x) == 1
    x, w = rng.standard_normal((3, 3000, 30)) + 50, rng.random((3, 3000))  # more than one block
    flat, share = x.reshape(-1, 30), w.reshape(-1) / w.sum()
    np.testing.assert_allclose(
        adapt.spread(x, w, np.ones(30)) ** 2, np.diag(np.cov(flat.T, aweights=share, ddof=0)), 1e-9
    )
    sd = adapt.spread(np.array([[[0.0, 1.0], [2.0, 1.0]]]), np.ones((1, 2)), np.full(2, 9.0))
    np.testing.assert_allclose(sd, [1.0, 9.0])


def test_the_reference_of_functions_has_autodiff():
    prior = Prior(lambda x: -jnp.sum(x**2), lambda rng, n: rng.standard_normal((n, 3)))
    engine, x = Jax(), np.ones((2, 3))
    with precision(np.float64):
        energy, g = prior.grad_fn(engine, engine.asarray(x))(engine.asarray(x))
    np.testing.assert_allclose(energy, [3.0, 3.0])
    np.testing.assert_allclose(g, 2 * x)
