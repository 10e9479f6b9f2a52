"""Rows of a hierarchical map, each a small robust least-squares problem, all solved at once.

Given what sets its place and its width, row j has the residual

    R_j = (x_j − m_j − Σ b_jk (x_k − c_k)) e^(−a_j) − g_j e^(a_j),    a_j = s_j + Σ C_jk z_k,

which is zero where it is standard normal. Damped Gauss–Newton steps make Σ log(1 + R²) or
Σ √(1 + R²) small.
"""

from typing import NamedTuple

import numpy as np

SMALL = 1e-4
"""A row whose loss a step changes by no more than this is done."""


class Rows(NamedTuple):
    """Rows to be fitted: x, g and known log widths (rows, n), what sets their places and widths.

    The latter are the same for all rows, (n, k), or each row's own, (rows, n, k).
    """

    x: np.ndarray
    g: np.ndarray
    known: np.ndarray
    place: np.ndarray
    width: np.ndarray

    def draws(self, part: slice) -> "Rows":
        """The same rows of some draws."""
        own = (a[:, part] for a in self[:3])
        return Rows(*own, *(columns[..., part, :] for columns in self[3:]))

    def rows(self, part: np.ndarray) -> "Rows":
        """Some of the rows."""
        own = (a[part] for a in self[:3])
        return Rows(*own, *(a if a.ndim == 2 else a[part] for a in self[3:]))

    def residual(self, theta: np.ndarray) -> np.ndarray:
        """R (rows, n) at the parameters m, s, b, C, and y and log λ where they are."""
        return self._parts(theta)[0]

    def _parts(self, theta):
        """As the frame has it; the last two parameters, y and log λ, may be missing."""
        q, r = self.place.shape[-1], self.width.shape[-1]
        b, c, data = np.split(theta[:, 2:], [q, q + r], axis=1)
        a = np.clip(self.known + theta[:, 1, None] + _along(self.width, c), -60, 60)
        place = theta[:, 0, None] + _along(self.place, b)
        share, offset = 1.0, 0.0
        if data.shape[1]:
            share = 1 / (1 + np.exp(np.minimum(data[:, 1, None] + 2 * a, 60)))
            offset = data[:, 0, None] - place
            place = place + (1 - share) * offset
        grow = np.exp(a) * np.sqrt(share)
        ahead, pull = (self.x - place) / grow, self.g * grow
        return ahead - pull, ahead + pull, grow, share, offset

    def normal(self, theta: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """JᵀWJ/n (rows, p, p) and JᵀWR/n (rows, p), J the residual's derivatives by theta.

        A column of J is a factor, one of those by place, by width, by y and by log λ, times what
        it is multiplied by.
        """
        r, total, grow, share, offset = self._parts(theta)
        q, k = self.place.shape[-1], self.width.shape[-1]
        factors = [-share / grow, -share * (2 * (1 - share) * offset / grow + total)]
        columns = [_with_one(self.place), _with_one(self.width)]
        order = [0, *range(2, 2 + q), 1, *range(2 + q, 2 + q + k)]
        if theta.shape[1] > len(order):
            by_weight = -(1 - share) * (share * offset / grow - 0.5 * total)
            factors += [-(1 - share) / grow, by_weight]
            columns += [np.ones((r.shape[1], 1))] * 2
            order += [len(order), len(order) + 1]
        factors = [np.clip(factor, -1e60, 1e60) for factor in factors]
        square = np.minimum(r * r, 1e200)
        weight = (1 + square) ** {"log": -1.0, "root": -0.5}[kind] / r.shape[1]
        weighted = [weight * factor for factor in factors]
        ends = np.cumsum([0, *(part.shape[-1] for part in columns)])
        size = int(ends[-1])
        normal, slope = np.empty((len(r), size, size)), np.empty((len(r), size))
        for i, (mine, left) in enumerate(zip(weighted, columns, strict=True)):
            here = slice(ends[i], ends[i + 1])
            slope[:, here] = _sums(mine * r, left)
            for j in range(i, len(columns)):
                there = slice(ends[j], ends[j + 1])
                block = _products(mine * factors[j], left, columns[j])
                normal[:, here, there] = block
                normal[:, there, here] = np.swapaxes(block, 1, 2)
        at = np.argsort(order)
        return normal[:, at[:, None], at], slope[:, at]


def robust(r: np.ndarray, kind: str) -> np.ndarray:
    """log(1 + r²), or √(1 + r²) − 1 for the kind "root"."""
    square = np.minimum(r * r, 1e200)
    return np.log1p(square) if kind == "log" else np.sqrt(1 + square) - 1


def solve(
    rows: Rows,
    theta: np.ndarray,
    kinds: tuple[str, ...],
    iterations: int,
    free: np.ndarray | None = None,
) -> np.ndarray:
    """Minimise the losses one after the other from `theta` (rows, parameters) on.

    Damped Gauss–Newton steps; `free` (rows, parameters) says what may move.
    """
    free = np.ones(theta.shape) if free is None else free
    for kind in kinds:
        theta = _descend(rows, theta, kind, iterations, free)
    return theta


def held_out(rows: Rows) -> np.ndarray:
    """R (rows, n) on either half of the draws when the other half is fitted."""
    n = rows.x.shape[1]
    parts = (slice(0, n // 2), slice(n // 2, n))
    found = np.empty(rows.x.shape)
    start = np.zeros((len(rows.x), 2 + rows.place.shape[-1] + rows.width.shape[-1]))
    for train, test in (parts, parts[::-1]):
        theta = solve(rows.draws(train), start, ("log",), 10)
        found[:, test] = rows.draws(test).residual(theta)
    return found


def held_out_loss(rows: Rows) -> np.ndarray:
    """The mean of log(1 + R²) on either half of the draws when the other half is fitted."""
    half = rows.x.shape[1] // 2
    each = robust(held_out(rows), "log")
    return (each[:, :half].mean(axis=1) + each[:, half:].mean(axis=1)) / 2


def _descend(rows, theta, kind, iterations, free):
    """One loss made small; rows that are done are left out of the steps that remain."""
    theta, going = theta.copy(), np.arange(len(theta))
    damping, identity = np.full(len(theta), 1e-2), np.eye(theta.shape[1])
    loss = robust(rows.residual(theta), kind).mean(axis=1)
    for _ in range(iterations):
        normal, slope = rows.normal(theta[going], kind)
        normal = normal * (free[:, :, None] * free[:, None])
        diagonal = np.diagonal(normal, axis1=1, axis2=2) * damping[:, None] + 1e-12
        damped = normal + identity * diagonal[..., None]
        move = -np.linalg.solve(damped, (slope * free)[..., None])[..., 0]
        # A width changes by no more than a factor of e at once.
        move[:, 1] = np.clip(move[:, 1], -1, 1)
        trial = theta[going] + move * free
        value = robust(rows.residual(trial), kind).mean(axis=1)
        better = np.isfinite(value) & (value < loss)
        theta[going[better]] = trial[better]
        on = ~(np.abs(loss - value) <= SMALL)
        loss = np.where(better, value, loss)[on]
        damping = np.clip(np.where(better, damping / 5, damping * 5), 1e-6, 1e6)[on]
        if not on.all():
            rows, free, going = rows.rows(on), free[on], going[on]
        if not len(going):
            break
    return theta


def _with_one(columns):
    """A column of ones before the others."""
    return np.concatenate([np.ones((*columns.shape[:-1], 1)), columns], axis=-1)


def _along(columns, coefficients):
    """Σ_k columns_k · coefficients_k, (rows, n)."""
    if columns.ndim == 2:
        return coefficients @ columns.T
    return (columns @ coefficients[..., None])[..., 0]


def _sums(weight, columns):
    """Σ_n weight · columns_k, (rows, k)."""
    if columns.ndim == 2:
        return weight @ columns
    return (weight[:, None] @ columns)[:, 0]


def _products(weight, left, right):
    """Σ_n weight · left_i · right_j, (rows, i, j)."""
    if left.ndim == right.ndim == 2:
        pairs = left[:, :, None] * right[:, None]
        shape = (len(weight), left.shape[1], right.shape[1])
        return (weight @ pairs.reshape(len(left), -1)).reshape(shape)
    return np.swapaxes(left * weight[..., None], -1, -2) @ right
