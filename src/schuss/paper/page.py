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
seed 1 is judged (2 for Table 1), but for neural networks. They are beside the sentences in
[claims.json](reproduction/claims.json). All conditions of a rule met is "holds", some is "holds in
part". Figures come from the results in that folder.

`schuss reproduce all --seed 1` rebuilds what needs no neural network, `schuss reproduce NAME` one
item, `schuss reproduce page` this page.
"""


def write(items: Sequence[Item], out: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Write both from the results of the items that are in the folder."""
    found = [(item, store.load(folder, item.name)) for item in items]
    stored = [(item, result) for item, result in found if result is not None]
    # A smoke run judges nothing.
    values = {item.name: result.values for item, result in stored if not result.settings.quick}
    claims = rows(CLAIMS, values)
    with replacing(folder / "claims.json") as draft:
        draft.write_text(json.dumps(claims, indent=1, ensure_ascii=False) + "\n")
    sections = [HEAD, "## The sentences\n", table(claims), "## The items\n", _summary(stored)]
    sections += [_section(item, result, folder) for item, result in stored]
    where = out / "reproduction.md"
    where.write_text("\n".join(sections))
    return where


def _summary(stored) -> str:
    lines = ["| item | in the paper | seconds |", "|---|---|---|"]
    for item, result in stored:
        link = f"[{item.title}](#{_anchor(item.title)})"
        place = item.place + (" (smoke run)" if result.settings.quick else "")
        lines.append(f"| {link} | {place} | {result.seconds:.1f} |")
    seconds = sum(result.seconds for item, result in stored if not item.alone)
    lines.append(f"| **all but the neural ones** | | {seconds:.1f} |")
    return "\n".join(lines) + "\n\nSeconds are of one processor; of neural items, on the clock.\n"


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
