"""A sentence of the paper, the rule by which it is judged, and the verdict that follows.

A rule is a list of conditions on what was measured, written down before the run: all of them met
is "holds", some "holds in part", none "does not hold". A claim whose results aren't there is "not
tried".
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

VERDICTS = {
    "holds": "hold",
    "holds in part": "hold in part",
    "does not hold": "do not hold",
    "not tried": "were not tried",
}
"""And what several sentences do."""
NOTHING = "–"


class Finding(NamedTuple):
    """The figure, its error or how it is known, and which conditions of the rule are met."""

    found: str
    error: str
    met: Sequence[Any]


@dataclasses.dataclass(frozen=True)
class Claim:
    """`judge` takes the values of the `items` in their order; None where nothing measures it yet.

    `command` rebuilds what the judgement rests on.
    """

    section: str
    sentence: str
    rule: str
    items: tuple[str, ...]
    command: str
    judge: Callable[..., Finding] | None = None


def claim(
    section: str, sentence: str, *, rule: str, items: str
) -> Callable[[Callable[..., Finding]], Claim]:
    """Make a claim of the function that judges it; `items` are names with spaces between."""

    def made(judge: Callable[..., Finding]) -> Claim:
        return Claim(
            section, sentence, rule, tuple(items.split()), f"schuss reproduce {items}", judge
        )

    return made


def untried(section: str, sentence: str, *, rule: str, command: str) -> Claim:
    """A claim that nothing here has measured, with the command that would."""
    return Claim(section, sentence, rule, (), command)


def in_module(names: Mapping[str, Any]) -> tuple[Claim, ...]:
    """The claims of a module, in the order in which it defines them."""
    return tuple(value for value in names.values() if isinstance(value, Claim))


def verdict(met: Sequence[Any]) -> str:
    """What follows from the conditions of a rule."""
    if not len(met):
        raise ValueError("met must name at least one condition; got none")
    if all(met):
        return "holds"
    return "holds in part" if any(met) else "does not hold"


def judged(claim: Claim, results: Mapping[str, Any]) -> dict[str, str]:
    """The row of a claim, from the values of items by their names."""
    row = {"section": claim.section, "sentence": claim.sentence, "rule": claim.rule}
    if claim.judge is None or any(results.get(name) is None for name in claim.items):
        outcome = {"found": NOTHING, "error": NOTHING, "verdict": "not tried"}
    else:
        found = claim.judge(*(results[name] for name in claim.items))
        outcome = {"found": found.found, "error": found.error, "verdict": verdict(found.met)}
    return row | outcome | {"command": claim.command}


def rows(claims: Iterable[Claim], results: Mapping[str, Any]) -> list[dict[str, str]]:
    """Of all claims."""
    return [judged(claim, results) for claim in claims]


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """The rows in Markdown, counted first."""
    counts = [f"{sum(row['verdict'] == v for row in rows)} {verb}" for v, verb in VERDICTS.items()]
    lines = [
        f"Of {len(rows)} sentences {', '.join(counts)}.",
        "",
        "| § | the paper's sentence | we find | error | verdict | command |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [row["section"], f"“{row['sentence']}”", row["found"], row["error"]]
        cells = [cell.replace("|", "\\|") for cell in cells]
        cells += [f"**{row['verdict']}**", f"`{row['command']}`"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
