"""Verdicts of all experiments in one word each."""

from __future__ import annotations

import json

import pytest

from privrisk_spark.errors import InternalError
from reproduce.summary import Collection, Judged, LeftOut, Part


@pytest.mark.parametrize(
    ("verdict", "word"),
    [
        ("holds", "holds"),
        ("does not hold", "does not hold"),
        ("in 3 of 4 cases", "in part"),
        ("not decided: nothing to compare", "not decided"),
    ],
)
def test_a_verdict_is_one_of_four_words(verdict: str, word: str) -> None:
    assert Judged.of("s", "c", "d", verdict, "e").word == word


@pytest.mark.parametrize("verdict", ["", "confirmed", "not decided"])
def test_word_of_a_text_that_is_no_verdict_is_a_bug(verdict: str) -> None:
    with pytest.raises(InternalError, match="is no verdict"):
        Judged.of("s", "c", "d", verdict, "e")


DOCUMENT = {
    "claims": [
        {"source": "A", "claim": "a", "data": "t", "verdict": "holds", "evidence": "x"},
        {"source": "A", "claim": "b", "data": "t", "verdict": "in 1 of 2 cases", "evidence": "y"},
        {"source": "A", "claim": "c", "data": "t", "verdict": "not decided: too few rows", "evidence": "z"},
    ],
}


def part(**changes: object) -> Part:
    given = {"seconds": 1.0, "private": False, "why_not": "", **changes}
    return Part.of("one", "One", DOCUMENT, **given)  # type: ignore[arg-type]


def test_part_counts_its_claims_by_word() -> None:
    assert [(claim.claim, claim.word) for claim in part().claims] == [
        ("a", "holds"), ("b", "in part"), ("c", "not decided"),
    ]  # fmt: skip
    assert [part().counted(word) for word in ("holds", "in part", "does not hold", "not decided")] == [1, 1, 0, 1]


def test_what_did_not_hold_is_listed_and_a_users_table_makes_it_private() -> None:
    found = Collection("2026-01-02", "0", False, (part(), part(private=True)), (LeftOut("A", "d", "No data."),))
    assert [claim.claim for _, claim in found.failed] == ["b", "b"]
    assert found.private
    assert found.to_dict()["not_run_again"] == [{"source": "A", "what": "d", "why": "No data."}]
    assert not Collection("2026-01-02", "0", False, (part(),), ()).private
    assert json.loads(json.dumps(found.to_dict()))["experiments"][0]["claims"][1]["word"] == "in part"
