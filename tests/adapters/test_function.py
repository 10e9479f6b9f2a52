"""NumPy functions that return a log-density and its gradient."""

import numpy as np
import pytest

import schuss

SCALES = np.array([1.0, 2.0, 3.0])


def gaussian(x):
    return -np.sum((x / SCALES) ** 2, axis=-1) / 2, -x / SCALES**2


@pytest.mark.parametrize("batched", [False, True])
def test_energies_are_minus_log_densities(batched):
    model = schuss.from_value_and_grad(gaussian, 3, batched=batched)
    x = np.random.default_rng(0).normal(size=(5, 3))
    energies, gradients = model.value_and_grad(x)
    np.testing.assert_allclose(energies, np.sum((x / SCALES) ** 2, axis=-1) / 2, rtol=1e-15)
    np.testing.assert_allclose(gradients, x / SCALES**2, rtol=1e-15)
    assert (model.name, model.dim, model.logdensity) == ("gaussian", 3, None)


def test_names():
    x = np.arange(12.0).reshape(2, 2, 3)

    def values(**settings):
        return schuss.from_value_and_grad(gaussian, 3, **settings).constrain(x)

    assert list(values()) == ["x"]
    np.testing.assert_array_equal(values()["x"], x)
    np.testing.assert_array_equal(values(names=["a", "b", "c"])["b"], x[..., 1])
    shaped = values(names={"mu": (), "theta": (2, 1)})
    np.testing.assert_array_equal(shaped["theta"], x[..., 1:, None])
    wide = values(names={"s": (3,), "total": ()}, constrain=lambda x: [*np.exp(x), x.sum()])
    np.testing.assert_array_equal(wide["s"], np.exp(x))
    np.testing.assert_array_equal(wide["total"], x.sum(-1))
    assert values(constrain=lambda x: x[:2])["x"].shape == (2, 2, 2)


def test_starts():
    rng = np.random.default_rng
    wide = schuss.from_value_and_grad(gaussian, 3).start(rng(0), 200)
    assert wide.shape == (200, 3) and 1.9 < np.abs(wide).max() <= 2
    near = schuss.from_value_and_grad(gaussian, 3, start=[5.0, 6.0, 7.0]).start(rng(0), 200)
    # 5 sigma of the mean and of the deviation of 600 numbers.
    assert abs((near - [5.0, 6.0, 7.0]).mean()) < 5 * 0.1 / 600**0.5
    assert abs((near - [5.0, 6.0, 7.0]).std() - 0.1) < 5 * 0.1 / 1200**0.5
    own = schuss.from_value_and_grad(gaussian, 3, start=lambda rng, chains: np.ones((chains, 3)))
    np.testing.assert_array_equal(own.start(rng(0), 2), np.ones((2, 3)))


def test_starts_avoid_what_is_not_finite():
    def half(x):
        return (-x @ x / 2, -x) if x[0] > 0 else (-np.inf, np.full(3, np.nan))

    assert np.all(schuss.from_value_and_grad(half, 3).start(np.random.default_rng(0), 50)[:, 0] > 0)
    nowhere = schuss.from_value_and_grad(lambda x: (np.nan, x), 3)
    with pytest.raises(ValueError, match=r"for 2 of 2 chains; pass start="):
        nowhere.start(np.random.default_rng(0), 2)


def test_wrong_answers_are_refused():
    def energies(fn, **settings):
        schuss.from_value_and_grad(fn, 3, **settings).value_and_grad(np.zeros((2, 3)))

    with pytest.raises(TypeError, match=r"must return a pair, log p and its gradient, got float"):
        energies(lambda x: 0.0)
    with pytest.raises(ValueError, match=r"a gradient of shape \(3,\), got \(\) and \(2,\)"):
        energies(lambda x: (0.0, np.zeros(2)))
    with pytest.raises(ValueError, match=r"log p of shape \(2,\) .* got \(\) and \(2, 3\)"):
        energies(lambda x: (0.0, x), batched=True)


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="fn must be a function"):
        schuss.from_value_and_grad(3, 3)
    with pytest.raises(ValueError, match="dim must be a whole number"):
        schuss.from_value_and_grad(gaussian, 0)
    with pytest.raises(ValueError, match=r"names must stand for the 3 coordinates .* got 2"):
        schuss.from_value_and_grad(gaussian, 3, names=["a", "b"])
    with pytest.raises(ValueError, match="names that differ"):
        schuss.from_value_and_grad(gaussian, 3, names=["a", "b", "a"])
    with pytest.raises(ValueError, match=r"start must be .* got shape \(2,\)"):
        schuss.from_value_and_grad(gaussian, 3, start=np.zeros(2))
    with pytest.raises(TypeError, match="constrain must be a function"):
        schuss.from_value_and_grad(gaussian, 3, constrain=1)
    odd = schuss.from_value_and_grad(gaussian, 3, names=["a"], constrain=lambda x: x)
    with pytest.raises(ValueError, match="the 3 values that constrain returns"):
        odd.constrain(np.zeros((1, 1, 3)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"names": 3}, "names must be a list of names that differ, got 3"),
        ({"names": {"a": 3}}, r"names must have shapes such as \(\) and \(8,\), got {'a': 3}"),
        ({"start": "here"}, "start must hold real numbers in rows of one length, got 'here'"),
        ({"start": [[0.0], [1.0, 2.0]]}, "start must hold real numbers in rows of one length"),
        ({"start": lambda rng: np.zeros(3)}, r"start must be a function of \(rng, chains\)"),
        (
            {"start": lambda rng, chains: np.zeros(chains)},
            r"start\(rng, 4\) must return shape \(4, 3\), got \(4,\)",
        ),
        (
            {"constrain": lambda x: None},
            "what constrain returns must hold real numbers in rows of one length, got",
        ),
    ],
)
def test_wrong_settings_are_refused_before_the_run(settings, message, monkeypatch):
    from schuss.sampling import sample

    monkeypatch.setattr(sample, "over_devices", lambda *_: pytest.fail("the run began"))
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        schuss.sample(schuss.from_value_and_grad(gaussian, 3, **settings))
