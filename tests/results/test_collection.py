"""Verdicts of all experiments in one word each."""

from __future__ import annotations

import json

import pytest

from privrisk_spark.results.collection import Collection, Judged, Part


@pytest.mark.parametrize(
    ("verdict", "word"),
    [
        ("holds", "holds"),
        ("confirmed", "holds"),
        ("confirmed in part", "in part"),
        ("not confirmed", "does not hold"),
        ("does not hold", "does not hold"),
        ("does not hold with 5 rows suppressed", "in part"),
        ("in 3 of 4 cases", "in part"),
        ("", "not judged"),
        ("nothing to compare", "not judged"),
    ],
)
def test_a_verdict_is_one_of_four_words(verdict: str, word: str) -> None:
    assert Judged.of("s", "c", "d", verdict, "e").word == word


DOCUMENT = {
    "claims": [
        {"source": "A", "claim": "a", "data": "t", "verdict": "holds", "evidence": "x"},
        {"source": "A", "claim": "b", "data": "t", "verdict": "in 1 of 2 cases", "evidence": "y"},
    ],
    "plots": [
        {"figure": "Fig. 1", "claim": "b", "data": "t", "found": "told above"},
        {"figure": "Fig. 2", "claim": "c", "data": "t", "found": "z"},
        {"figure": "", "claim": "", "data": "t", "found": "no claim"},
    ],
}


def part(**changes: object) -> Part:
    given = {"seconds": 1.0, "private": False, "why_not": "", **changes}
    return Part.of("one", "One", DOCUMENT, **given)  # type: ignore[arg-type]


def test_claims_of_charts_follow_those_that_are_judged_and_are_told_once() -> None:
    assert [(claim.claim, claim.word) for claim in part().claims] == [
        ("a", "holds"), ("b", "in part"), ("c", "not judged"),
    ]  # fmt: skip
    assert [part().counted(word) for word in ("holds", "in part", "does not hold", "not judged")] == [1, 1, 0, 1]


def test_what_did_not_hold_is_listed_and_a_users_table_makes_it_private() -> None:
    found = Collection("2026-01-02", "0", False, (part(), part(private=True)))
    assert [claim.claim for _, claim in found.failed] == ["b", "b"]
    assert found.private
    assert not Collection("2026-01-02", "0", False, (part(),)).private
    assert json.loads(json.dumps(found.to_dict()))["experiments"][0]["claims"][1]["word"] == "in part"
