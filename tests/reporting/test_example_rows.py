"""Fictitious rows of a public report: in the shares of its levels, and without a value of the table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.reporting.example_rows import blurred, fictitious_rows
from privrisk_spark.results.release import AttributeLevels

PATHS = [(f"Planted{i}{j}", f"Region {i}") for i in "abc" for j in range(5)]
NAMES = ("as it is", "region", "suppressed")


def rows(public: bool, levels: tuple[int, ...]) -> list[tuple[str | None, str | None]]:
    tree = replace(Hierarchy.from_paths("city", PATHS), public=public)
    pairs = fictitious_rows({"city": tree}, [AttributeLevels("city", 2, NAMES, levels)])
    assert all(pair.risk_before is None and pair.risk_after is None for pair in pairs)
    return [(pair.before[0], pair.after[0]) for pair in pairs]


@pytest.mark.parametrize("public", [True, False])
def test_no_leaf_is_ever_shown(public: bool) -> None:
    """Planted: a value released as it is, shown with its label."""
    for levels in ((4, 0, 0), (1, 2, 1), (0, 4, 0), (0, 0, 4)):
        for before, after in rows(public, levels):
            assert before == "xxxxxxxx9"
            assert "Planted" not in str(after)


def test_inner_labels_are_shown_only_if_the_policy_wrote_them() -> None:
    assert {after for _, after in rows(True, (0, 4, 0))} <= {"Region a", "Region b", "Region c"}
    assert {after for _, after in rows(False, (0, 4, 0))} == {"xxxxxx x"}
    assert {after for _, after in rows(False, (0, 0, 4))} == {"*"}


def test_levels_come_in_their_shares() -> None:
    found = [after for _, after in rows(True, (50, 25, 25))]
    assert sorted(("exact" if one == "xxxxxxxx9" else "root" if one == "*" else "region") for one in found) == [
        "exact",
        "exact",
        "region",
        "root",
    ]
    assert rows(True, (50, 25, 25)) == rows(True, (50, 25, 25))
    assert rows(True, (0, 0, 0)) == []


def test_shapes_tell_no_character_and_little_of_a_length() -> None:
    assert blurred("Ulm-1970 é年") == "xxx-9999 xx"
    assert blurred("a" * 40) == "xxxxxxxxxxx…"
    assert blurred(None) is None
