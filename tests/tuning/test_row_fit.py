"""The small least-squares problems of hierarchical maps, against differences and known answers."""

import numpy as np
import pytest

from schuss.tuning.row_fit import Rows, robust, solve

ROWS, DRAWS = 3, 40


def rows(rng, own, parents=2):
    """Random rows with columns of their own or the same for all."""
    shape = (ROWS, DRAWS, parents) if own else (DRAWS, parents)
    x, g, known = rng.normal(size=(3, ROWS, DRAWS))
    return Rows(x, g, 0.3 * known, *rng.normal(size=(2, *shape)))


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("data", [0, 2])
@pytest.mark.parametrize("kind", ["log", "root"])
def test_normal_equations(own, data, kind):
    """JᵀWJ and JᵀWR with J by central differences: 10⁻⁷ of what a wrong column would change."""
    rng = np.random.default_rng([own, data, kind == "log"])
    problem, step = rows(rng, own), 1e-5
    theta = 0.5 * rng.normal(size=(ROWS, 6 + data))
    columns = []
    for move in step * np.eye(theta.shape[1]):
        ahead, behind = (problem.residual(theta + sign * move) for sign in (1, -1))
        columns.append((ahead - behind) / (2 * step))
    jacobian, r = np.stack(columns, axis=-1), problem.residual(theta)
    weight = (1 + r**2) ** {"log": -1.0, "root": -0.5}[kind] / DRAWS
    normal, slope = problem.normal(theta, kind)
    np.testing.assert_allclose(
        normal, np.einsum("rn,rni,rnj->rij", weight, jacobian, jacobian), rtol=1e-6, atol=1e-7
    )
    np.testing.assert_allclose(
        slope, np.einsum("rn,rn,rni->ri", weight, r, jacobian), rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize("kind", ["log", "root"])
def test_slope_is_that_of_the_loss(kind):
    """Gauss and Newton's slope is the gradient of the mean loss, up to its factor."""
    rng = np.random.default_rng(1)
    problem, theta, step = rows(rng, own=False), 0.5 * rng.normal(size=(ROWS, 6)), 1e-5
    factor = {"log": 2.0, "root": 1.0}[kind]
    for i, move in enumerate(step * np.eye(6)):
        ahead, behind = (
            robust(problem.residual(theta + sign * move), kind).mean(axis=1) for sign in (1, -1)
        )
        slope = problem.normal(theta, kind)[1][:, i]
        np.testing.assert_allclose((ahead - behind) / (2 * step), factor * slope, atol=1e-7)


def test_columns_of_all_rows_are_those_of_each():
    rng = np.random.default_rng(2)
    shared, theta = rows(rng, own=False), 0.5 * rng.normal(size=(ROWS, 6))
    each = shared._replace(
        place=np.repeat(shared.place[None], ROWS, axis=0),
        width=np.repeat(shared.width[None], ROWS, axis=0),
    )
    for one, other in zip(shared.normal(theta, "log"), each.normal(theta, "log"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    some = np.asarray([2, 0])
    for problem in (shared, each):
        np.testing.assert_array_equal(
            problem.rows(some).residual(theta[some]), problem.residual(theta)[some]
        )
        np.testing.assert_allclose(
            problem.draws(slice(5, 20)).residual(theta), problem.residual(theta)[:, 5:20]
        )


def test_known_map_is_found():
    """Normals whose place and width a parent sets: no residual is left, and no row waits for one
    that is done from the start."""
    rng = np.random.default_rng(3)
    parent, z = rng.normal(size=200), rng.normal(size=(ROWS, 200))
    truth = np.asarray([[0.5, 0.2, 1.0, 0.7], [-1.0, -0.4, -0.5, 0.0], [0.0, 0.0, 0.0, 0.0]])
    width = np.exp(truth[:, 1, None] + truth[:, 3, None] * parent)
    x = truth[:, 0, None] + truth[:, 2, None] * parent + width * z
    problem = Rows(x, z / width, np.zeros_like(x), parent[:, None], parent[:, None])
    found = solve(problem, np.zeros((ROWS, 4)), ("log", "root"), 40)
    np.testing.assert_allclose(found, truth, atol=0.02)


def test_what_is_not_free_stays():
    rng = np.random.default_rng(4)
    problem, free = rows(rng, own=False), np.ones((ROWS, 6))
    free[0, 2:], free[1, 4] = 0, 0
    start = 0.1 * rng.normal(size=(ROWS, 6))
    moved = solve(problem, start, ("log",), 10, free)
    np.testing.assert_array_equal(moved[free == 0], start[free == 0])
    assert (moved[free == 1] != start[free == 1]).all()
