"""A table of every quantity: where it lies, how well that is known, and the verdict above it."""

import dataclasses
import html
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from schuss.diagnostics.vectorised import fast_ess, rank_ess_and_rhat
from schuss.results.verdict import Verdict

COLUMNS = ("mean", "sd", "5%", "50%", "95%", "ess", "rhat", "mcse")
QUANTILES = (0.05, 0.5, 0.95)
SHOWN, HEAD, WORST = 30, 12, 8


@dataclasses.dataclass(frozen=True)
class Summary:
    """Rows of `COLUMNS`, one for each number in the draws; printing it shows the verdict first."""

    names: tuple[str, ...]
    values: np.ndarray  # (rows, 8)
    verdict: Verdict
    lines: tuple[str, ...] = ()  # words about the run, under the verdict

    def __getitem__(self, name: str) -> dict[str, float]:
        """One row, by the name of the quantity."""
        if name not in self.names:
            near = ", ".join(self.names[:5])
            raise KeyError(f"no row is called {name!r}; the first ones are {near}")
        row = self.values[self.names.index(name)]
        return dict(zip(COLUMNS, row.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.names)

    def to_frame(self):
        """The table as a pandas DataFrame, in full."""
        import pandas

        return pandas.DataFrame(self.values, index=list(self.names), columns=list(COLUMNS))

    def worst(self, count: int) -> list[int]:
        """Rows with the largest R-hat and the smallest ESS, worst first.

        A constant row comes last: something that can't vary is usually meant.
        """
        ess, rhat = self.values[:, 5], self.values[:, 6]
        badness = np.nan_to_num(rhat, nan=1.0, posinf=1e6) - 1 + 1 / np.maximum(ess, 1.0)
        return np.argsort(np.where(self.values[:, 1] > 0, -badness, 1.0), kind="stable")[
            :count
        ].tolist()

    def shown(self) -> list[int | None]:
        """Rows to print: all, or the first and the worst with None for what is left out."""
        if len(self.names) <= SHOWN:
            return list(range(len(self.names)))
        rest = [i for i in self.worst(HEAD + WORST) if i >= HEAD][:WORST]
        return [*range(HEAD), None, *rest]

    def __str__(self) -> str:
        cells = [["", *COLUMNS]]
        for i in self.shown():
            if i is None:
                left = len(self.names) - HEAD - WORST
                cells.append([f"… {left} more; the worst of the rest:", *[""] * len(COLUMNS)])
            else:
                cells.append([self.names[i], *formatted(self.values[i])])
        first = max(len(row[0]) for row in cells if row[0][:1] != "…")
        widths = [max(len(row[k]) for row in cells) for k in range(1, len(cells[0]))]
        table = [
            "  ".join([row[0].ljust(first), *map(str.rjust, row[1:], widths)]) for row in cells
        ]
        lines = [str(self.verdict), *self.lines, "", *(line.rstrip() for line in table)]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        said = html.escape("\n".join([str(self.verdict), *self.lines]))
        return f"<pre>{said}</pre>{self.table()}"

    def table(self) -> str:
        """The rows shown, as an HTML table."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ("", *COLUMNS))
        rows = []
        for i in self.shown():
            if i is None:
                left = len(self.names) - HEAD - WORST
                rows.append(
                    f'<tr class="gap"><td colspan="{len(COLUMNS) + 1}">… {left} more; the worst of '
                    f"the rest:</td></tr>"
                )
                continue
            cells = "".join(f"<td>{cell}</td>" for cell in formatted(self.values[i]))
            rows.append(f"<tr><th>{html.escape(self.names[i])}</th>{cells}</tr>")
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def summarise(
    draws: Mapping[str, np.ndarray],
    verdict: Verdict,
    *,
    weights: np.ndarray | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Sequence[Any]] | None = None,
    lines: Sequence[str] = (),
) -> Summary:
    """The table of named `draws` (chains, draws, *shape), weighted by `weights` (chains, draws)."""
    names, tables = [], []
    for name, values in draws.items():
        labels = element_names(name, values.shape[2:], (dims or {}).get(name), coords or {})
        if not labels:
            continue
        names += labels
        flat = np.asarray(values, np.float64).reshape(*values.shape[:2], -1)
        tables.append(_rows(np.moveaxis(flat, 0, 1), None if weights is None else weights.T))
    values = np.concatenate(tables) if tables else np.empty((0, len(COLUMNS)))
    return Summary(tuple(names), values, verdict, tuple(lines))


def element_names(
    name: str,
    shape: Sequence[int],
    dims: Sequence[str] | None = None,
    coords: Mapping[str, Sequence[Any]] | None = None,
) -> list[str]:
    """ "theta" for a number, "theta[0, 2]" for an entry, with the coordinates' labels if known."""
    if not shape:
        return [name]
    axes = []
    for k, size in enumerate(shape):
        dim = dims[k] if dims is not None and k < len(dims) else None
        known = (coords or {}).get(dim) if dim is not None else None
        axes.append(list(known) if known is not None and len(known) == size else list(range(size)))
    return [f"{name}[{', '.join(map(str, place))}]" for place in itertools.product(*axes)]


def quantiles(x: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """Quantiles of the columns of `x` (n, columns), with weights `w` (n,); (columns, 3)."""
    if w is None:
        return np.quantile(x, QUANTILES, axis=0).T
    used = w > 0
    x, w = x[used], w[used]
    order = np.argsort(x, axis=0)
    mass = w[order]
    middle = (np.cumsum(mass, axis=0) - mass / 2) / mass.sum(axis=0)
    ordered = np.take_along_axis(x, order, axis=0)
    columns = zip(middle.T, ordered.T, strict=True)
    return np.array([np.interp(QUANTILES, *column) for column in columns])


def formatted(row: np.ndarray) -> list[str]:
    """Cells of a row, with the decimals that its sd deserves."""
    sd = row[1]
    places = 2 - round(math.log10(sd)) if 0 < sd < math.inf else 3
    form = "{:.3e}"
    if places <= 7 and np.abs(row[:5]).max() < 1e7:
        form = f"{{:.{max(places, 0)}f}}"
    # Adding zero turns the −0.0 that rounding leaves into 0.0.
    cells = [form.format(float(form.format(value)) + 0.0) for value in row[:5]]
    rhat = f"{row[6]:.3f}" if row[6] < 100 else f"{row[6]:.0e}"
    return [*cells, f"{row[5]:.0f}", rhat, f"{row[7]:.2g}"]


def _rows(x: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """`COLUMNS` of `x` (draws, chains, columns); nan where a column isn't finite."""
    draws, chains, columns = x.shape
    table = np.full((columns, len(COLUMNS)), np.nan)
    good = np.isfinite(x).all(axis=(0, 1))
    if not good.any():
        return table
    x = x if good.all() else x[:, :, good]
    share = np.full((draws, chains), 1 / (draws * chains)) if w is None else w / w.sum()
    mean = np.einsum("tc,tci->i", share, x)
    # n/(n − 1) for equal weights.
    correction = 1 / max(1 - float((share**2).sum()), 1e-12) if draws * chains > 1 else math.nan
    sd = np.sqrt(correction * np.einsum("tc,tci->i", share, (x - mean) ** 2))
    sd = np.where((x == x[:1, :1]).all(axis=(0, 1)), 0.0, sd)
    flat = x.reshape(draws * chains, -1)
    part = np.full((flat.shape[1], len(COLUMNS)), np.nan)
    part[:, 0], part[:, 1] = mean, sd
    part[:, 2:5] = quantiles(flat, None if w is None else w.reshape(-1))
    if draws >= 4:
        part[:, 5], part[:, 6] = rank_ess_and_rhat(x, w)
        effective = fast_ess(x, w)
        part[:, 7] = np.where(sd > 0, sd / np.sqrt(np.maximum(effective, 1e-12)), 0.0)
    table[good] = part
    return table
