"""The paper's sentences: rows follow from rules and results, and page and data agree."""

import json
import pathlib

import pytest

from schuss.paper import ITEMS, NEURAL, page, store
from schuss.paper.claim import VERDICTS, Finding, claim, judged, rows, table, verdict
from schuss.paper.claims import CLAIMS

DOCS = pathlib.Path(__file__).parents[2] / "docs"
KEYS = ["section", "sentence", "rule", "found", "error", "verdict", "command"]
KNOWN = [item.name for item in (*ITEMS, *NEURAL)]


def kept():
    return json.loads((DOCS / "reproduction" / "claims.json").read_text())


def test_verdicts_follow_from_conditions():
    assert verdict([True, True]) == "holds"
    assert verdict([True, False]) == "holds in part"
    assert verdict([False]) == "does not hold"
    with pytest.raises(ValueError, match=r"^met must name at least one condition"):
        verdict([])


def test_a_claim_without_its_results_is_not_tried():
    @claim("0", "The sky is blue.", rule="Above 1.", items="one two")
    def blue(one, two):
        return Finding(f"{one + two}", "exact", [one + two > 1])

    assert judged(blue, {"one": 1.0})["verdict"] == "not tried"
    row = judged(blue, {"one": 1.0, "two": 2.0})
    assert list(row) == KEYS
    assert (row["found"], row["verdict"]) == ("3.0", "holds")
    assert row["command"] == "schuss reproduce one two"


def test_claims_are_many_and_each_is_said_once():
    assert len(CLAIMS) >= 45
    assert len({known.sentence for known in CLAIMS}) == len(CLAIMS)
    for known in CLAIMS:
        assert set(known.items) <= set(KNOWN), known.sentence
        assert known.rule.endswith((".", ".)")) and known.sentence


def test_page_and_data_agree():
    """The table on the page is that of the data, the data what the rules make of the results."""
    there = kept()
    assert table(there) in (DOCS / "reproduction.md").read_text()
    folder = DOCS / "reproduction"
    found = {name: store.load(folder, name) for name in KNOWN}
    values = {name: result.values for name, result in found.items() if result is not None}
    assert rows(CLAIMS, values) == there


def test_rows_are_whole():
    for row in kept():
        assert list(row) == KEYS
        assert row["verdict"] in VERDICTS
        assert all(isinstance(cell, str) and cell for cell in row.values())
        assert "nan" not in row["found"], row


def test_what_is_outside_of_folds_is_short():
    """At most 120 words in a section, tables apart."""
    text = (DOCS / "reproduction.md").read_text()
    for section in text.split("\n## "):
        outside = section.split("<details>")[0]
        there = [line for line in outside.splitlines() if not line.startswith(("|", "!", "#"))]
        assert len(" ".join(there).split()) <= 120, there


def test_without_results_nothing_is_judged(tmp_path):
    folder = tmp_path / "reproduction"
    folder.mkdir()
    where = page.write((), tmp_path, folder)
    there = json.loads((folder / "claims.json").read_text())
    assert {row["verdict"] for row in there} == {"not tried"}
    assert f"{len(CLAIMS)} were not tried" in where.read_text()
