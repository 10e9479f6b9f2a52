"""Centred hierarchies: a few parents that set where the other coordinates lie and how wide.

    p_j = m_j + Σ_k b_jk (x_k − c_k)        a_j = s_j + Σ_k C_jk z_k
    h_j = 1/(1 + λ_j e^(2a_j))              x_j = h_j p_j + (1 − h_j) y_j + e^(a_j) √h_j z_j

This is the normal N(p_j, e^(2a_j)) that the parents give coordinate j, times N(y_j, 1/λ_j), what
data of its own say of it: where the parents make it narrow it follows them, where they leave it
free it follows the data, and λ = 0 is x_j = p_j + e^(a_j) z_j. The parents k come in an order,
and each one's own row has only those before it, so that the log-determinant is Σ_j (a_j +
½ log h_j). Places follow a parent as it is in the target, widths follow it in the coordinates of
the kernel, where it has unit width.
"""

from typing import Any, NamedTuple


class Hierarchical(NamedTuple):
    """Arrays of one row for each coordinate and one column for each parent."""

    centre: Any  # m (dim,)
    log_scale: Any  # s (dim,)
    follow: Any  # b (dim, parents)
    spread: Any  # C (dim, parents)
    anchor: Any  # y (dim,)
    weight: Any  # λ (dim,)
    origin: Any  # c (parents,)
    parents: Any  # (parents, dim), a one in each row; a row of zeros is no parent

    meaning = "widths and places are set by {}"

    @property
    def leaders(self):
        """The parents, (dim,) of bool."""
        return (self.parents != 0).any(axis=0)

    def forward(self, xp, z):
        """x(z)."""
        heads = z @ self.parents.T
        rows = self.rows(xp, _lift(xp, self, heads), heads)
        return rows.place + rows.width * z

    def inverse(self, xp, x):
        """z(x)."""
        above = x @ self.parents.T
        rows = self.rows(xp, above, _drop(xp, self, above))
        return (x - rows.place) / rows.width

    def potential(self, xp, z):
        """−Σ_j log of the width, up to a constant."""
        a, share = self._shares(xp, z @ self.parents.T)
        return -xp.sum(a - self.log_scale + 0.5 * xp.log(share), axis=-1)

    def pull(self, xp, z, g):
        """∂E/∂z: first along x with the parents' pull on the rest, then along the widths."""
        heads = z @ self.parents.T
        rows = self.rows(xp, _lift(xp, self, heads), heads)
        own, weights = self.parents @ self.follow, rows.share @ self.parents.T
        known = g @ self.parents.T
        start = known + (rows.share * g) @ self.follow - (weights * known) @ own
        total = _backwards(xp, start, lambda later, i: own[later, i] * weights[..., later])
        total = g + (total - known) @ self.parents
        along = rows.width * total
        return along + ((rows.bend(z) * total - rows.share) @ self.spread) @ self.parents

    def push(self, xp, z, g):
        """∂E/∂x from ∂E/∂z: `pull` undone."""
        heads = z @ self.parents.T
        rows = self.rows(xp, _lift(xp, self, heads), heads)
        bend = rows.bend(z) / rows.width
        own, weights = self.parents @ self.spread, bend @ self.parents.T
        known = g @ self.parents.T
        start = known - (bend * g - rows.share) @ self.spread + (weights * known) @ own
        along = _backwards(xp, start, lambda later, i: -own[later, i] * weights[..., later])
        total = (g + (along - known) @ self.parents) / rows.width
        return total - ((rows.share * total) @ self.follow) @ self.parents

    def rows(self, xp, above, heads) -> "Rows":
        """Place and width of every coordinate from the parents' x and z."""
        a, share = self._shares(xp, heads)
        offset = self.anchor - self.centre - (above - self.origin) @ self.follow.T
        return Rows(self.anchor - share * offset, xp.exp(a) * xp.sqrt(share), share, offset)

    def _shares(self, xp, heads):
        a = self.log_scale + heads @ self.spread.T
        return a, 1 / (1 + self.weight * xp.exp(2 * a))


class Rows(NamedTuple):
    """Where coordinates lie and how wide, the parents' share h in it, and y − p."""

    place: Any
    width: Any
    share: Any
    offset: Any

    def bend(self, z):
        """∂x/∂a at fixed z: 2h(1 − h)(y − p) + h e^a √h z."""
        return self.share * (2 * (1 - self.share) * self.offset + self.width * z)


def _lift(xp, frame: Hierarchical, heads):
    """The parents' x from their z, one after the other."""
    above = []
    for i, row in enumerate(_own(xp, frame, above, [heads[..., k] for k in _count(heads)])):
        above.append(row.place + row.width * heads[..., i])
    return xp.stack(above, axis=-1)


def _drop(xp, frame: Hierarchical, above):
    """The parents' z from their x, one after the other."""
    heads = []
    for i, row in enumerate(_own(xp, frame, [above[..., k] for k in _count(above)], heads)):
        heads.append((above[..., i] - row.place) / row.width)
    return xp.stack(heads, axis=-1)


def _own(xp, frame: Hierarchical, above: list, heads: list):
    """Each parent's place and width in turn, from as much of the others as has been filled in."""
    rows = [frame.parents @ part for part in frame[:6]]
    for i in range(frame.parents.shape[0]):
        centre, log_scale, follow, spread, anchor, weight = (part[i, ...] for part in rows)
        a, place = log_scale, centre
        for k in range(i):
            a = a + spread[k] * heads[k]
            place = place + follow[k] * (above[k] - frame.origin[k])
        share = 1 / (1 + weight * xp.exp(2 * a))
        offset = anchor - place
        yield Rows(anchor - share * offset, xp.exp(a) * xp.sqrt(share), share, offset)


def _count(heads):
    return range(heads.shape[-1])


def _backwards(xp, start, weight):
    """t with t_i = start_i + Σ_{l>i} weight(l, i) t_l."""
    known = {}
    for i in reversed(_count(start)):
        known[i] = start[..., i] + sum(weight(later, i) * t for later, t in known.items())
    return xp.stack([known[i] for i in _count(start)], axis=-1)
