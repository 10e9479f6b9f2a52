"""The page `reproduction.md` and `claims.json`: the paper's sentences, then each item's numbers."""

import json
import pathlib
from collections.abc import Sequence

from schuss.paper import store
from schuss.paper.claim import rows, table
from schuss.paper.claims import CLAIMS
from schuss.paper.item import Item
from schuss.whole_file import replacing

HEAD = """# The paper, reproduced

What *Hamiltonian Dynamics with Non-Newtonian Momentum for Rapid Sampling* (Ver Steeg and Galstyan,
2021) says, sentence by sentence, and what its experiments, made again, find. The rule of a verdict
was committed before the run that it judges: rules were written with runs of seed 0 at hand, and
seed 1 is judged, but for neural networks. They are beside the sentences in
[claims.json](reproduction/claims.json). All conditions of a rule met is "holds", some is "holds in
part". Figures come from the results in that folder.

`schuss reproduce all --seed 1` rebuilds what needs no neural network, `schuss reproduce NAME` one
item, `schuss reproduce page` this page.
"""

SPEED = """The paper's public code wasn't run for this table: its time is estimated from the steps
of each item and from seconds a step measured on one core. Its comparison of samplers runs one chain
after the other, which the estimate follows; each item is counted from nothing on both sides. A dash
is where there is nothing to compare with.
"""


def write(items: Sequence[Item], out: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Write both from the results of the items that are in the folder."""
    found = [(item, store.load(folder, item.name)) for item in items]
    stored = [(item, result) for item, result in found if result is not None]
    # A smoke run judges nothing.
    values = {item.name: result.values for item, result in stored if not result.settings.quick}
    told = rows(CLAIMS, values)
    with replacing(folder / "claims.json") as draft:
        draft.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    sections = [HEAD, "## The sentences\n", table(told), "## The items\n", _summary(stored), SPEED]
    sections += [_section(item, result, folder) for item, result in stored]
    where = out / "reproduction.md"
    where.write_text("\n".join(sections))
    return where


def _summary(stored) -> str:
    rows = ["| item | in the paper | seconds | against the public code |", "|---|---|---|---|"]
    ours = theirs = seconds = 0.0
    for item, result in stored:
        if not item.alone:
            seconds += result.seconds
        if result.public_seconds and not item.alone:
            ours, theirs = ours + result.seconds, theirs + result.public_seconds
        link = f"[{item.title}](#{_anchor(item.title)})"
        speed = ratio(result.public_seconds, result.seconds)
        place = item.place + (" (smoke run)" if result.settings.quick else "")
        rows.append(f"| {link} | {place} | {result.seconds:.1f} | {speed} |")
    rows.append(f"| **all but the neural ones** | | {seconds:.1f} | {ratio(theirs, ours)} |")
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
    shown = "".join(f"![{item.title}]({folder.name}/{name})\n\n" for name in result.pictures)
    return (
        f"## {item.title}\n\n*{item.place} of the paper. `schuss reproduce {item.name}`, "
        f"{result.seconds:.1f} s; {how}.*\n\n{shown}<details><summary>Numbers</summary>\n\n"
        f"{item.tell(result.values)}\n\n</details>\n"
    )
