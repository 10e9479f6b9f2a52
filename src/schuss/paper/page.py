"""The page `reproduction.md`: for each item its picture, its numbers and a paragraph."""

import pathlib
from collections.abc import Sequence

from schuss.paper import store
from schuss.paper.item import Item

HEAD = """# The paper, reproduced

Each section rebuilds one table or figure of *Hamiltonian Dynamics with Non-Newtonian Momentum for
Rapid Sampling* (Ver Steeg and Galstyan, 2021) from nothing: `schuss reproduce NAME`, or
`schuss reproduce all`. This page is written by the same command, from the results beside it.

The paper's public code wasn't run for this page: its time is estimated from the steps of each item
and from seconds per step measured on one core. Its comparison of samplers runs one chain after the
other, which the estimate follows, and one such run serves several figures, while here each item is
counted from nothing, on both sides. A dash is where there is nothing to compare with. The neural
items come by their own names only; those of CIFAR-10 and MNIST, and the joint model, want a GPU and
`--data PATH`.
"""


def write(items: Sequence[Item], out: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Write the page from the results of the items that are in the folder."""
    found = [(item, store.load(folder, item.name)) for item in items]
    stored = [(item, result) for item, result in found if result is not None]
    sections = [HEAD, _summary(stored)]
    sections += [_section(item, result, folder) for item, result in stored]
    where = out / "reproduction.md"
    where.write_text("\n".join(sections))
    return where


def _summary(stored) -> str:
    rows = [
        "| item | in the paper | verdict | seconds | against the public code |",
        "|---|---|---|---|---|",
    ]
    ours = theirs = 0.0
    for item, result in stored:
        if result.public_seconds and not item.alone:
            ours, theirs = ours + result.seconds, theirs + result.public_seconds
        link = f"[{item.title}](#{_anchor(item.title)})"
        speed = ratio(result.public_seconds, result.seconds)
        verdict = "smoke run" if result.settings.quick else item.verdict(result.values)
        rows.append(f"| {link} | {item.place} | {verdict} | {result.seconds:.1f} | {speed} |")
    rows.append(f"| **all but the neural ones** | | | {ours:.1f} | {ratio(theirs, ours)} |")
    return "\n".join(rows) + "\n"


def ratio(public: float, seconds: float) -> str:
    """How this compares with the time of the paper's public code."""
    if not public:
        return "–"
    times = public / max(seconds, 1e-9)
    return f"{times:.0f} × faster" if times >= 1 else "compilation is most of it"


def _anchor(title: str) -> str:
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -")
    return kept.replace(" ", "-")


def _section(item: Item, result: store.Result, folder: pathlib.Path) -> str:
    used = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    used = result.values.get("machine", used)
    how = f"seed {result.settings.seed}{', quick' if result.settings.quick else ''}; {used}"
    shown = "\n\n".join(f"![{item.title}]({folder.name}/{name})" for name in result.pictures)
    return (
        f"## {item.title}\n\n*{item.place} of the paper. `schuss reproduce {item.name}`, "
        f"{result.seconds:.1f} s; {how}.*\n\n{shown}\n\n{item.tell(result.values)}\n"
    )
