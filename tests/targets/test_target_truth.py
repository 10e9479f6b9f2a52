"""Truth, samples and starts against each other, quadrature and closed forms."""

import math

import numpy as np
import pytest
from scipy import stats
from seeds import shifted

from schuss.targets import (
    TARGETS,
    banana,
    double_well,
    gaussian,
    get,
    isotropic,
    mixture,
    necks,
    quartic,
    rings,
    valley,
)

SIZE = 200_000
BOXES = {
    "mog": (2, 2),
    "toy-mog": (3, 3),
    "scg": (6, 6),
    "valley": (9, 1),
    "deep-well": (1, 1),
    "rings": (6, 6),
    "quartic": (5, 5),
    "coupled-quartic": (5, 5),
    "banana": (80, 200),
    "two-moons": (6, 6),
    "double-well": (5, 9),
    "pinwheel": (4.5, 4.5),
}
LIGHT = {
    "funnel": 1,
    "neck-rotated-5": 0,
    "neck-rotated-10": 0,
    "neck-two-parents": 2,
    "neck-two-funnels": 0,
    "neck-sheared": 1,
}
"""First coordinates whose fourth moment a sample shows; all of them on other targets."""


def test_samples_have_the_true_moments(target):
    """5 standard errors each: about one false alarm in 3000 runs of the file.

    The children of a funnel have tails too heavy for the sample mean of their squares, so only the
    coordinates without a share of them are compared here.
    """
    x = target.sample(np.random.default_rng(shifted(2)), SIZE)
    assert x.shape == (SIZE, target.dim)
    assert x.dtype == np.float64
    seen = slice(0, LIGHT.get(target.name, target.dim))
    truth = target.truth
    near = 5 / math.sqrt(SIZE)
    mean_error = np.abs(x.mean(axis=0) - truth.mean)[seen]
    assert np.all(mean_error < near * np.sqrt(truth.variance)[seen])
    second_error = np.abs((x**2).mean(axis=0) - truth.second_moment)[seen]
    assert np.all(second_error < near * np.sqrt(truth.second_variance)[seen])
    np.testing.assert_allclose(
        truth.variance, truth.second_moment - truth.mean**2, rtol=1e-6, atol=1e-9
    )
    spread = (x**2 - truth.second_moment) ** 2
    spread_error = np.abs(spread.mean(axis=0) - truth.second_variance)[seen]
    assert np.all(spread_error < near * spread.std(axis=0)[seen])
    energy = target.energy(np, x)
    assert abs(energy.mean() - truth.energy) < near * energy.std()


@pytest.mark.parametrize("name", BOXES)
def test_moments_by_quadrature(name):
    """A midpoint grid much finer than the target, coded apart from the library's."""
    target = get(name)
    half = BOXES[name]
    n = 1200
    a, b = (h * ((2 * np.arange(n) + 1) / n - 1) for h in half)
    x = np.stack([np.repeat(a, n), np.tile(b, n)], axis=-1)
    e = target.energy(np, x)
    p = np.exp(-e) * (4 * half[0] * half[1] / n**2)
    z = p.sum()
    truth = target.truth
    assert math.log(z) == pytest.approx(truth.log_z, abs=1e-8)
    assert (p @ e) / z == pytest.approx(truth.energy, rel=1e-7)
    for power, want in (
        (1, truth.mean),
        (2, truth.second_moment),
        (4, truth.second_variance + truth.second_moment**2),
    ):
        np.testing.assert_allclose((p @ x**power) / z, want, rtol=1e-7, atol=1e-9)


def test_roller_coaster_by_quadrature():
    """Gauss–Legendre, which doesn't mind the seam of x at 2π."""
    target = get("roller-coaster")
    node, weight = np.polynomial.legendre.leggauss(200)
    x = math.pi * (node[:, None] + 1)
    e = target.energy(np, x)
    p = weight * math.pi * np.exp(-e)
    truth = target.truth
    assert math.log(p.sum()) == pytest.approx(truth.log_z, abs=1e-9)
    p = p / p.sum()
    assert p @ e == pytest.approx(truth.energy, abs=1e-9)
    np.testing.assert_allclose(p @ x, truth.mean, rtol=1e-8)
    np.testing.assert_allclose(p @ x**2, truth.second_moment, rtol=1e-8)
    np.testing.assert_allclose(target.energy(np, x + 2 * math.pi), e, rtol=1e-12)
    rng = np.random.default_rng(shifted(0))
    assert np.all((target.sample(rng, 1000) >= 0) & (target.sample(rng, 1000) < 2 * math.pi))


def log_normal(x, variance):
    return -(x**2 / variance + np.log(2 * math.pi * variance)) / 2


def mog_log_density(x):
    corner = math.sqrt(0.125)
    centres = [(0.5, 0), (corner, corner), (0, 0.5), (-corner, corner)]
    centres += [(-a, -b) for a, b in centres]
    return np.log(sum(np.exp(log_normal(x - m, 0.075**2).sum(axis=-1)) for m in centres) / 8)


def scg_log_density(x):
    along, across = (x[:, 0] - x[:, 1]) / math.sqrt(2), (x[:, 0] + x[:, 1]) / math.sqrt(2)
    return log_normal(along, 1.0) + log_normal(across, 0.01)


def icg_log_density(x):
    return log_normal(x, 0.01 + 0.99 * np.arange(50) / 49).sum(axis=-1)


def funnel_log_density(x):
    rest = log_normal(x[:, 1:], np.exp(-x[:, :1])).sum(axis=-1)
    return log_normal(x[:, 0], 9.0) + rest


@pytest.mark.parametrize(
    ("name", "log_density"),
    [
        ("mog", mog_log_density),
        ("scg", scg_log_density),
        ("icg", icg_log_density),
        ("funnel", funnel_log_density),
    ],
)
def test_paper_targets_are_as_defined(name, log_density):
    """E + log Z is −log p, with p written out by hand."""
    target = get(name)
    x = target.sample(np.random.default_rng(6), 100)
    got = target.energy(np, x) + target.truth.log_z
    np.testing.assert_allclose(got, -log_density(x), rtol=1e-9, atol=1e-9)


def test_funnel_moments_by_quadrature():
    """E[x_i²] and E[x_i⁴] given y, averaged over y on a grid."""
    y = np.linspace(-60, 60, 20_001)
    p = np.exp(log_normal(y, 9.0)) * (y[1] - y[0])
    truth = get("funnel").truth
    second, fourth = p @ np.exp(-y), 3 * (p @ np.exp(-2 * y))
    np.testing.assert_allclose(truth.second_moment[1:], second, rtol=1e-9)
    np.testing.assert_allclose(truth.variance[1:], second, rtol=1e-9)
    np.testing.assert_allclose(truth.second_variance[1:], fourth - second**2, rtol=1e-9)


def both_sides(slope, sd):
    """E[e^{−slope |v|}] for v ~ N(0, sd²)."""
    return 2 * math.exp((slope * sd) ** 2 / 2) * stats.norm.cdf(-slope * sd)


# E[z²] and E[z⁴]/3 of a child: E[e^{2ℓ}] and E[e^{4ℓ}] in closed form; E[ℓ]; parents, children.
CLOSED_NECKS = {
    "neck-quadratic": (math.exp(4) / 3, math.exp(8) / math.sqrt(17), 0.0, [2.0], 2),
    "neck-rotated-5": (math.exp(4.5), math.exp(18), 0.0, [3.0], 4),
    "neck-rotated-10": (math.exp(4.5), math.exp(18), 0.0, [3.0], 9),
    "neck-absolute": (
        math.exp(2) * both_sides(1, 3),
        math.exp(4) * both_sides(2, 3),
        1 - 1.5 * math.sqrt(2 / math.pi),
        [3.0],
        5,
    ),
    "neck-two-parents": (math.exp(4.5), math.exp(18), 0.0, [math.sqrt(4.5)] * 2, 6),
    "neck-two-funnels": (math.exp(4.5), math.exp(18), 0.0, [3.0, 3.0], 6),
    "neck-sheared": (math.exp(4.5), math.exp(18), 0.0, [3.0], 5),
}


@pytest.mark.parametrize("name", CLOSED_NECKS)
def test_neck_truth_in_closed_form(name):
    """Before a rotation; E|x|² and E[E] in any basis."""
    square, fourth, scale, sds, children = CLOSED_NECKS[name]
    truth = get(name).truth
    second = np.array([sd**2 for sd in sds] + [square] * children)
    if name == "neck-sheared":
        second[1] += 9
    assert np.abs(truth.mean).max() < 1e-9
    assert truth.second_moment.sum() == pytest.approx(second.sum(), rel=1e-9)
    assert truth.energy == pytest.approx((len(sds) + children) / 2 + children * scale, abs=1e-9)
    if not necks.SHAPES[name].rotated:
        np.testing.assert_allclose(truth.second_moment, second, rtol=1e-9)
        kept = np.array([3 * sd**4 for sd in sds] + [3 * fourth] * children)
        if name == "neck-sheared":  # E[(v + z)⁴], and E[v² e^v] is (9 + 81) e^{4.5}
            kept[1] += 3 * 81 + 6 * (9 + 81) * math.exp(4.5)
        np.testing.assert_allclose(truth.second_variance, kept - second**2, rtol=1e-9)


@pytest.mark.parametrize("name", ["neck-rotated-5", "neck-rotated-10", "neck-two-funnels"])
def test_rotated_neck_moments(name):
    """x_i = q·v + √a e^{v/2} z, or with b e^w too, and E[v² e^v] = (9 + 81) e^{4.5}."""
    target, e = get(name), math.exp(4.5)
    q = necks.parents(name, np.eye(target.dim)) ** 2
    share = 1 - q.sum(axis=1, keepdims=True)
    if name == "neck-two-funnels":
        group = (necks._basis(necks.SHAPES[name])[:, 2:5] ** 2).sum(axis=1, keepdims=True)
        share = np.concatenate([group, share - group], axis=1)
    total, width = q.sum(axis=1), share.sum(axis=1)
    second = 9 * total + e * width
    cross = e * (9 * total * width + 81 * (q * share).sum(axis=1))
    squared = e**4 * (share**2).sum(axis=1) + e**2 * (width**2 - (share**2).sum(axis=1))
    fourth = 243 * total**2 + 6 * cross + 3 * squared
    np.testing.assert_allclose(target.truth.second_moment, second, rtol=1e-9)
    np.testing.assert_allclose(target.truth.second_variance, fourth - second**2, rtol=1e-9)


def necks_by_definition(name, y):
    """log p of positions before the rotation, with SciPy."""
    sds = CLOSED_NECKS[name][3]
    v, z = y[:, : len(sds)], y[:, len(sds) :]
    log_sd = {
        "neck-quadratic": lambda: 2 - v[:, :1] ** 2 / 2,
        "neck-absolute": lambda: 1 - np.abs(v[:, :1]) / 2,
        "neck-two-parents": lambda: (v[:, :1] + v[:, 1:]) / 2,
        "neck-two-funnels": lambda: v[:, [0, 0, 0, 1, 1, 1]] / 2,
    }.get(name, lambda: v / 2)()
    mean = np.zeros_like(z)
    if name == "neck-sheared":
        mean[:, 0] = v[:, 0]
    given = stats.norm.logpdf(z, mean, np.exp(log_sd)).sum(axis=-1)
    return stats.norm.logpdf(v, 0, sds).sum(axis=-1) + given


@pytest.mark.parametrize("name", CLOSED_NECKS)
def test_necks_are_as_defined(name):
    """E + log Z is −log p; the basis is orthogonal and its first columns give the parents."""
    target = get(name)
    x = target.sample(np.random.default_rng(6), 100)
    y = x
    if necks.SHAPES[name].rotated:
        basis = necks._basis(necks.SHAPES[name])
        np.testing.assert_allclose(basis @ basis.T, np.eye(target.dim), atol=1e-12)
        assert np.all(basis != 0)
        y = x @ basis
    got = target.energy(np, x) + target.truth.log_z
    np.testing.assert_allclose(got, -necks_by_definition(name, y), rtol=1e-9, atol=1e-9)
    found = necks.parents(name, x[:, None])
    np.testing.assert_allclose(found[:, 0], y[:, : found.shape[-1]], atol=1e-12)


@pytest.mark.parametrize("name", ["neck-quadratic", "neck-absolute", "neck-rotated-5"])
def test_necks_far_away_are_finite(name):
    target = get(name)
    far = 1000.0 * np.eye(target.dim) + 1
    assert np.all(np.isfinite(target.energy(np, np.concatenate([far, -far]))))
    assert np.all(np.isfinite(target.gradient(np, np.concatenate([far, -far]))))


@pytest.mark.parametrize("name", [n for n in TARGETS if get(n).whiten is not None])
def test_whitening_gives_standard_normals(name):
    """Moments of every coordinate and every product of two; 6 sigma, for up to 1275 products."""
    target = get(name)
    z = target.whiten(target.sample(np.random.default_rng(shifted(3)), SIZE))
    near = 6 / math.sqrt(SIZE)
    assert np.abs(z.mean(axis=0)).max() < near
    second = z.T @ z / SIZE - np.eye(target.dim)
    assert np.abs(second).max() < near * math.sqrt(2)
    assert np.abs((z**4).mean(axis=0) - 3).max() < near * math.sqrt(96)


@pytest.mark.parametrize(
    ("name", "bandwidth"), [("mog", 0.502), ("scg", 2.79), ("icg", 98.9), ("funnel", 38.8)]
)
def test_median_squared_distance(name, bandwidth):
    """The paper's bandwidths; the median of 2000 samples is good to about 1 %, 3 % on the SCG."""
    target = get(name)
    x = target.sample(np.random.default_rng(4), 2000)
    x = x if target.whiten is None else target.whiten(x)
    square = (x**2).sum(axis=-1)
    distance = square[:, None] + square[None, :] - 2 * x @ x.T
    median = np.median(distance[np.triu_indices(2000, 1)])
    assert median == pytest.approx(bandwidth, rel=0.04)


@pytest.mark.parametrize(
    ("name", "mean", "sd"),
    [
        ("mog", (0, 0), 1),
        ("scg", (0, 0), 1),
        ("scg-bias", (-2, 2), 1),
        ("icg", (0,) * 50, 1),
        ("funnel", (0,) * 20, 1),
        ("rings", (0, 0), 2),
        ("toy-mog", (0, 0), 2 / math.sqrt(3)),
    ],
)
def test_starts(name, mean, sd):
    """5 standard errors of 20 000 draws."""
    x = get(name).start(np.random.default_rng(shifted(5)), 20_000)
    assert np.abs(x.mean(axis=0) - mean).max() < 5 * sd / math.sqrt(20_000)
    assert np.abs(x.std(axis=0) / sd - 1).max() < 5 / math.sqrt(2 * 20_000)


def test_fixed_starts():
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(get("mog-prior").start(rng, 3), [[0, 0.5]] * 3)
    want = [[-4, 0.4], [4, -0.4], [-4, 0.4]]
    np.testing.assert_array_equal(get("valley").start(rng, 3), want)


def test_quartic_bias_of_unweighted_states():
    """E[E] under e^{−E} and under e^{−E/2}, as scaled-time states of divisor d sample it."""
    target = get("coupled-quartic")
    side = np.linspace(-8, 8, 801)
    x = np.stack([np.repeat(side, 801), np.tile(side, 801)], axis=-1)
    e = target.energy(np, x)
    p = np.exp(-e / 2)
    assert (p @ e) / p.sum() == pytest.approx(1.479, abs=1e-3)
    assert target.truth.energy == pytest.approx(0.781, abs=1e-3)
    assert quartic(3).truth.energy == 0.75


def test_double_well_mean():
    assert double_well(1).truth.mean[0] == pytest.approx(-0.4825, abs=1e-4)
    assert double_well(1).sample(np.random.default_rng(0), 7).shape == (7, 1)


def test_icg_rotated_has_the_spectrum_of_icg():
    rotated, plain = get("icg-rotated"), get("icg")
    precision = rotated.gradient(np, np.eye(50))
    np.testing.assert_allclose(
        np.sort(1 / np.linalg.eigvalsh(precision)), plain.truth.variance, rtol=1e-9
    )
    assert np.abs(precision - np.diag(np.diag(precision))).max() > 1
    assert rotated.truth.log_z == pytest.approx(plain.truth.log_z, abs=1e-9)


def test_mixture_weights():
    """The unequal mixture's density is the weighted sum of its components'."""
    target = mixture([[0.0, 0.0, 1.0], [2.0, 0.0, 0.0]], 0.5, weights=[1, 3])
    x = np.random.default_rng(0).standard_normal((5, 3))
    apart = [((x - m) ** 2).sum(axis=-1) for m in ([0, 0, 1], [2, 0, 0])]
    norm = (2 * math.pi * 0.25) ** 1.5
    density = (np.exp(-2 * apart[0]) + 3 * np.exp(-2 * apart[1])) / (4 * norm)
    np.testing.assert_allclose(target.energy(np, x), -np.log(density), rtol=1e-12)
    np.testing.assert_allclose(target.truth.mean, [1.5, 0, 0.25])
    assert target.truth.energy is None


def test_funnel_far_away_is_finite():
    z = np.array([[1000.0] + [1.0] * 19, [-1000.0] + [1.0] * 19])
    target = get("funnel")
    assert np.all(np.isfinite(target.energy(np, z)))
    assert np.all(np.isfinite(target.gradient(np, z)))


@pytest.mark.parametrize("y", [-60.0, -26.0, -3.0, 24.0, 26.0, 90.0])
def test_funnel_has_no_mass_beyond_its_clamp(y):
    """∫ e^(−E) dx is √(2π) e^(−y²/18) wherever y is: the trapezoid rule is exact here."""
    width = math.exp(-np.clip(y, -25, 25) / 2)
    x = width * np.linspace(-12, 12, 401)
    target = TARGETS["funnel"](2)
    log_p = -target.energy(np, np.stack([np.full_like(x, y), x], axis=-1)) + y**2 / 18
    assert np.exp(log_p).sum() * (x[1] - x[0]) == pytest.approx(math.sqrt(2 * math.pi))


def test_funnel_sample_can_be_clamped():
    y = TARGETS["funnel"](y_limit=1.0).sample(np.random.default_rng(0), 1000)[:, 0]
    assert np.abs(y).max() == 1.0


def test_registry_names_its_targets(target):
    assert get(target.name).name == target.name


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: get("mug"), "mog"),
        (lambda: gaussian([1.0, -1.0]), "covariance"),
        (lambda: gaussian([[1.0, 2.0], [2.0, 1.0]]), "covariance"),
        (lambda: gaussian(np.ones((2, 3))), "covariance"),
        (lambda: isotropic(0), "dim"),
        (lambda: mixture([1.0, 2.0], 1.0), "means"),
        (lambda: mixture([[1.0], [2.0]], 0.0), "sd"),
        (lambda: mixture([[1.0], [2.0]], 1.0, [1.0]), "weights"),
        (lambda: TARGETS["funnel"](dim=1), "dim"),
        (lambda: quartic(0), "dim"),
        (lambda: double_well(0), "dim"),
        (lambda: double_well(2, tilt=math.nan), "tilt"),
        (lambda: valley(0.0), "positive"),
        (lambda: rings((0.1,)), "radii"),
        (lambda: banana(sd=0.0), "sd"),
        (lambda: TARGETS["pinwheel"](arms=0), "arms"),
    ],
)
def test_bad_arguments_are_refused(build, word):
    with pytest.raises(ValueError, match=word):
        build()
