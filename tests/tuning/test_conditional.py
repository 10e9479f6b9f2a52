"""Linear models of unknown scales from draws of them, and what is only nearly one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from seeds import shifted

from schuss.targets import funnel
from schuss.targets.posteriors import brownian, eight_schools_centred
from schuss.tuning import conditional, linear_given


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def fitted(x, g):
    return conditional.fit(x, g, np.random.default_rng(0))


def gradient(energy, x):
    return np.asarray(jax.vmap(jax.grad(energy))(x))


def around(middle, spread=1.0, n=400):
    """Points around a place: the gradient is all that matters."""
    return middle + spread * np.random.default_rng(1).standard_normal((n, len(middle)))


LIBRARY = [
    (brownian(), np.full(32, -1.0), (0, 1)),
    (eight_schools_centred(), np.zeros(10), (1,)),
    (funnel(10), np.zeros(10), (0,)),
]


@pytest.mark.parametrize(("target", "middle", "given"), LIBRARY, ids=lambda part: str(part)[:8])
def test_mean_and_covariance_where_no_draw_has_been(target, middle, given):
    """Given what is given, those by the Hessian of the energy, far down the neck and far out."""
    x = around(middle)
    frame = fitted(x, target.gradient(np, x))
    assert frame is not None
    assert tuple(np.flatnonzero(conditional._given(frame))) == given
    rest = np.setdiff1d(np.arange(target.dim), given)
    hessian = jax.jit(jax.hessian(lambda x: target.energy(jnp, x[None])[0]))
    for theta in (-4.0, 3.0):
        z = np.zeros((1, target.dim))
        z[:, given] = theta
        at = frame.forward(np, z)
        precision = np.asarray(hessian(at[0]))[np.ix_(rest, rest)]
        size = 1 / np.sqrt(np.diag(precision))
        # At the mean there is no force on what isn't given.
        force = target.gradient(np, at)[0, rest] * size
        np.testing.assert_allclose(force, 0, atol=1e-6)
        factor = (frame.forward(np, z + np.eye(target.dim)[rest]) - at)[:, rest] / size
        whole = precision * size * size[:, None]
        np.testing.assert_allclose(factor @ whole @ factor.T, np.eye(len(rest)), atol=1e-6)


@pytest.mark.parametrize(("target", "middle", "given"), LIBRARY, ids=lambda part: str(part)[:8])
def test_rounding_errors_do_not_turn_the_map(target, middle, given):
    """Alike directions could be any of their span: the unseen third of the motion, all x of the
    funnel. Runs on one device and on eight, whose draws differ in the last digits, must agree."""
    x = around(middle)
    nearly = x * (1 + 1e-14 * np.random.default_rng(2).standard_normal(x.shape))
    frames = [fitted(part, target.gradient(np, part)) for part in (x, nearly)]
    assert frames[0] is not None and frames[1] is not None
    np.testing.assert_allclose(frames[0].vectors, frames[1].vectors, atol=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_a_scale_that_is_known_well_is_found_beside_another(seed):
    """Twelve groups of six measurements: x = (μ, log τ, log σ, a), log σ known to a tenth."""
    rng = np.random.default_rng(shifted(seed))
    group = np.repeat(np.arange(12), 6)
    measured = 2 + 0.3 * rng.standard_normal(12)[group] + rng.standard_normal(72)

    def energy(x):
        mu, log_tau, log_sigma, a = x[0], x[1], x[2], x[3:]
        miss = jnp.sum((measured - a[group]) ** 2) * jnp.exp(-2 * log_sigma) / 2
        apart = jnp.sum((a - mu) ** 2) * jnp.exp(-2 * log_tau) / 2
        widths = 12 * log_tau + 72 * log_sigma + (log_tau + 1) ** 2 / 2
        return mu**2 / 200 + miss + apart + widths

    x = rng.standard_normal((200, 15)) * [0.15, 0.5, 0.1, *[0.25] * 12] + [2, -1, 0, *[2] * 12]
    frame = fitted(x, gradient(energy, x))
    assert frame is not None and list(np.flatnonzero(conditional._given(frame))) == [1, 2]


def given_scale(scale):
    """Three draws x, measured as 1 with deviation ½, whose own deviation is scale(θ)."""

    def energy(x):
        width = scale(x[0])
        own = jnp.sum((x[1:] / width) ** 2) / 2 + 3 * jnp.log(width)
        return x[0] ** 2 / 2 + own + jnp.sum((x[1:] - 1) ** 2) * 2

    return energy


@pytest.mark.parametrize("rate", linear_given.RATES)
def test_what_is_given_may_be_the_logarithm_of_any_measure_of_scale(rate):
    x = around(np.zeros(4))
    frame = fitted(x, gradient(given_scale(lambda y: jnp.exp(-rate * y / 2)), x))
    assert frame is not None and frame.rate[1, 0] == rate


@pytest.mark.parametrize(
    "scale",
    [jax.nn.softplus, lambda y: jnp.exp(jnp.tanh(y)), lambda y: jnp.sqrt(1 + y**2)],
    ids=["softplus", "tanh", "root"],
)
def test_no_other_function(scale):
    x = around(np.zeros(4))
    assert fitted(x, gradient(given_scale(scale), x)) is None


def heavy(x):
    """A funnel of Student's t with 30 degrees of freedom: nearly normal given y."""
    inner = jnp.sum(jnp.log1p((x[1:] * jnp.exp(-x[0])) ** 2 / 30)) * 15.5
    return x[0] ** 2 / 2 + inner + (len(x) - 1) * x[0]


def test_not_what_is_only_nearly_normal():
    x = around(np.zeros(6))
    assert fitted(x, gradient(heavy, x)) is None


def test_forms_that_cannot_be_made_diagonal_together():
    """Two scales and a constant: refused where all matter, taken where they commute."""
    rng = np.random.default_rng(2)
    roots = rng.standard_normal((3, 4, 4))
    mixed = roots @ roots.swapaxes(1, 2)
    basis = np.linalg.qr(roots[0])[0]
    alike = np.stack([basis * rng.uniform(0.5, 2, 4) @ basis.T for _ in range(3)])

    def energy(forms):
        def at(x):
            inner = jnp.einsum("i,fij,j->f", x[2:], forms, x[2:]) / 2
            scaled = inner[0] + inner[1] * jnp.exp(-2 * x[0]) + inner[2] * jnp.exp(-2 * x[1])
            return (x[0] ** 2 + x[1] ** 2) / 2 + scaled

        return at

    x = around(np.zeros(6))
    assert fitted(x, gradient(energy(mixed), x)) is None
    frame = fitted(x, gradient(energy(alike), x))
    assert frame is not None
    assert conditional.loss(x, gradient(energy(alike), x), frame) < 1e-12


@pytest.mark.parametrize(("spread", "worth"), [(0.05, False), (1.0, True)])
def test_a_scale_that_is_known_well_is_no_reason(spread, worth):
    """Widths that change by a twentieth are nothing to a sampler."""
    x = around(np.zeros(10))
    x[:, 0] *= spread
    assert (fitted(x, funnel(10).gradient(np, x)) is not None) == worth


def test_draws_that_are_not_finite_or_too_few():
    x = around(np.zeros(10))
    g = funnel(10).gradient(np, x)
    x[:10], g[10:20] = np.nan, np.inf
    assert fitted(x, g) is not None
    assert fitted(x[: conditional.least(10) - 1], g[: conditional.least(10) - 1]) is None


@pytest.mark.parametrize(("depth", "known"), [(-6, True), (-13, False)])
def test_forms_that_drown_in_the_neck_are_left_out(depth, known):
    """Where τ = e⁻¹³ the schools' own errors are 10⁻¹⁴ of all force. What is found is right there,
    and elsewhere right or told to be wrong."""
    target = eight_schools_centred()
    x = around(np.zeros(10))
    frame = fitted(x, target.gradient(np, x))
    assert frame is not None
    z = around(np.zeros(10))
    middle = frame.forward(np, z)
    z[:, 1] += depth
    neck = frame.forward(np, z)
    found = fitted(neck, target.gradient(np, neck))
    assert found is not None and not conditional.wrong(neck, target.gradient(np, neck), found)
    assert np.all(found.precision >= 0)
    assert conditional.wrong(middle, target.gradient(np, middle), found) != known


@pytest.mark.statistics
def test_what_was_normal_in_the_middle_is_told_from_farther_out():
    """A funnel with walls at |x| = 20 that no draw of the fit has come to."""

    def walled(x):
        wall = jnp.sum(jnp.where(jnp.abs(x[1:]) > 20, (jnp.abs(x[1:]) - 20) ** 2, 0.0))
        return funnel(10).energy(jnp, x[None])[0] + wall

    near = around(np.zeros(10))
    frame = fitted(near, gradient(walled, near))
    assert frame is not None and not conditional.wrong(near, gradient(walled, near), frame)
    far = around(np.full(10, -6.0), 30.0)
    far[:, 0] = -6.0
    assert conditional.wrong(far, gradient(walled, far), frame)
