"""Rows of a hierarchical map, each a small robust least-squares problem, all solved at once.

Given what sets its place and its width, row j has the residual

    R_j = (x_j − m_j − Σ b_jk (x_k − c_k)) e^(−a_j) − g_j e^(a_j),    a_j = s_j + Σ C_jk z_k,

which is zero where it is standard normal. Damped Gauss–Newton steps make Σ log(1 + R²) or
Σ √(1 + R²) small.
"""

from typing import NamedTuple

import numpy as np


class Rows(NamedTuple):
    """Rows to be fitted: x, g and known log widths (rows, n), what sets their places and widths."""

    x: np.ndarray
    g: np.ndarray
    known: np.ndarray
    place: np.ndarray
    width: np.ndarray

    def draws(self, part: slice) -> "Rows":
        """The same rows of some draws."""
        return Rows(*(a[:, part] for a in self))

    def rows(self, part: np.ndarray) -> "Rows":
        """Some of the rows."""
        return Rows(*(a[part] for a in self))

    def residual(self, theta: np.ndarray) -> np.ndarray:
        """R (rows, n) at the parameters m, s, b, C, and y and log λ where they are."""
        return self._parts(theta)[0]

    def _parts(self, theta):
        """As the frame has it; the last two parameters, y and log λ, may be missing."""
        q, r = self.place.shape[-1], self.width.shape[-1]
        b, c, data = np.split(theta[:, 2:], [q, q + r], axis=1)
        a = self.known + theta[:, 1, None] + (self.width @ c[..., None])[..., 0]
        a = np.clip(a, -60, 60)
        place = theta[:, 0, None] + (self.place @ b[..., None])[..., 0]
        share, offset = np.ones_like(a), np.zeros_like(a)
        if data.shape[1]:
            share = 1 / (1 + np.exp(np.minimum(data[:, 1, None] + 2 * a, 60)))
            offset = data[:, 0, None] - place
            place = place + (1 - share) * offset
        grow = np.exp(a) * np.sqrt(share)
        ahead, pull = (self.x - place) / grow, self.g * grow
        return ahead - pull, ahead + pull, grow, share, offset

    def jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The residual and its derivatives by m, s, b, C, and y and log λ where they are."""
        r, total, grow, share, offset = self._parts(theta)
        mine = 1 - share
        by_place = (-share / grow)[..., None]
        by_width = (-share * (2 * mine * offset / grow + total))[..., None]
        columns = [by_place, by_width, by_place * self.place, by_width * self.width]
        if theta.shape[1] > sum(column.shape[-1] for column in columns):
            by_weight = -mine * (share * offset / grow - 0.5 * total)
            columns += [(-mine / grow)[..., None], by_weight[..., None]]
        return r, np.concatenate(columns, axis=-1)


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
    identity = np.eye(theta.shape[1])
    free = np.ones(theta.shape) if free is None else free
    n = rows.x.shape[1]
    for kind in kinds:
        damping, idle = np.full(len(theta), 1e-2), 0
        loss = robust(rows.residual(theta), kind).mean(axis=1)
        for _ in range(iterations):
            r, jac = rows.jacobian(theta)
            jac = np.clip(jac * free[:, None], -1e60, 1e60)
            square = np.minimum(r * r, 1e200)
            weight = (1 + square) ** {"log": -1.0, "root": -0.5}[kind]
            weighted = np.swapaxes(jac * weight[..., None], 1, 2)
            normal, slope = weighted @ jac / n, weighted @ r[..., None] / n
            diagonal = np.diagonal(normal, axis1=1, axis2=2) * damping[:, None] + 1e-12
            move = -np.linalg.solve(normal + identity * diagonal[..., None], slope)[..., 0]
            # A width changes by no more than a factor of e at once.
            move[:, 1] = np.clip(move[:, 1], -1, 1)
            trial = theta + move * free
            value = robust(rows.residual(trial), kind).mean(axis=1)
            better = np.isfinite(value) & (value < loss)
            idle = 0 if np.any(loss - value > 1e-5) else idle + 1
            theta = np.where(better[:, None], trial, theta)
            loss = np.where(better, value, loss)
            damping = np.clip(np.where(better, damping / 5, damping * 5), 1e-6, 1e6)
            if idle == 2:
                break
    return theta
