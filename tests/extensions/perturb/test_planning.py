"""What masks of a policy become: what is arranged and what is not, segments, transition matrices, what is proved."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from privrisk_spark.extensions.perturb import planning as masking
from privrisk_spark.extensions.perturb.planning import Arranged, Segment, in_blocks, mask_plan, segments_of, transitions
from privrisk_spark.policy.masking import Microaggregation, Pram, RankSwapping, Shuffle
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import parse

AGGREGATED = {"method": "microaggregation", "k": 3}


def policy(**columns: dict[str, Any]) -> Policy:
    return parse(
        {
            "version": 1,
            "run": {"name": "t"},
            "table": {"path": "in/t"},
            "columns": columns,
            "guarantee": {"kind": "masked"},
            "output": {"path": "out", "vault": "vault"},
        }
    )


def quasi(mask: dict[str, Any]) -> dict[str, Any]:
    return {"role": "quasi-identifier", "mask": mask}


def test_columns_that_name_no_group_are_aggregated_together_if_they_are_quasi_identifiers() -> None:
    plan = mask_plan(
        policy(
            age=quasi(AGGREGATED),
            pay={"role": "sensitive", "mask": AGGREGATED},
            zip=quasi(AGGREGATED),
            rent=quasi({**AGGREGATED, "group": "x"}),
            area=quasi({**AGGREGATED, "algorithm": "univariate"}),
        )
    )
    assert [one.columns for one in plan.arranged] == [("age", "zip"), ("pay",), ("rent",), ("area",)]
    assert len({one.label for one in plan.arranged}) == 4
    assert [one.together for one in plan.arranged] == [True, True, True, False]
    assert plan.numbers == ("age", "pay", "zip", "rent", "area")
    assert plan.proved_k is None, "rent and area are in no group with the others"


def test_k_is_proved_where_one_group_has_all_quasi_identifiers() -> None:
    noise = {"role": "sensitive", "mask": {"method": "noise", "share": 0.1}}
    assert mask_plan(policy(age=quasi(AGGREGATED), zip=quasi(AGGREGATED), pay=noise)).proved_k == 3
    assert mask_plan(policy(age=quasi({**AGGREGATED, "algorithm": "univariate"}), pay=noise)).proved_k == 3
    assert mask_plan(policy(age=quasi(AGGREGATED), sex=quasi({"method": "none"}))).proved_k is None


def test_known_columns_are_looked_at_as_numbers_though_they_stay() -> None:
    plan = mask_plan(
        policy(
            age=quasi({"method": "none"}),
            pay={"role": "sensitive", "mask": {"method": "shuffle", "known": ["age"]}},
            sex=quasi({"method": "pram", "invariant": {"keep": 0.5}}),
        )
    )
    assert plan.numbers == ("age", "pay")
    assert list(plan.masks) == ["pay", "sex"]


MDAV = Arranged("a", ("x", "y"), (), Microaggregation(method="microaggregation", k=3))
SINGLE = Arranged("u", ("x",), (), Microaggregation(method="microaggregation", k=3, algorithm="univariate"))
SWAP = Arranged("r", ("x",), (), RankSwapping(method="rank-swapping", percent=5))
SHUFFLE = Arranged("s", ("x",), (), Shuffle(method="shuffle"))


@pytest.mark.parametrize("one", [MDAV, SINGLE, SWAP, SHUFFLE], ids=lambda one: one.label)
@pytest.mark.parametrize("rows", [1, 7, 100, 1001])
def test_segments_cover_every_rank_once(one: Arranged, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("EXACT_ROWS", 100), ("BLOCK_ROWS", 20), ("SEGMENT_ROWS", 50)):
        monkeypatch.setattr(masking, name, value)
    patterns = {0: rows, 1: 40} if one.together else {0: rows}
    found = segments_of(one, patterns)
    assert found[0].begin == 0
    assert found[-1].end == sum(patterns.values())
    assert all(before.end == after.begin and before.begin < before.end for before, after in pairwise(found))
    if one.together and rows > 100:
        assert {segment.end - segment.begin for segment in found if segment.pattern == 0} <= {20, 21}
        assert in_blocks(one, patterns)
    elif one.together:
        assert len(found) == 2
        assert not in_blocks(one, patterns)


def test_patterns_of_few_records_are_suppressed() -> None:
    assert segments_of(MDAV, {2: 2, 0: 9, 1: 3}) == (
        Segment(0, 9, 0),
        Segment(9, 12, 1),
        Segment(12, 14, 2, suppressed=True),
    )


def test_an_invariant_matrix_keeps_the_shares_and_no_category_less_than_asked() -> None:
    mask = Pram.model_validate({"method": "pram", "invariant": {"keep": 0.7}})
    names, matrix = transitions(mask, {"m": 30, "f": 60, "d": 10})
    assert names == ["d", "f", "m"]
    shares = np.array([0.1, 0.6, 0.3])
    np.testing.assert_allclose(shares @ matrix, shares, rtol=1e-14)
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    assert (np.diag(matrix) >= 0.7).all()


def test_a_given_matrix_is_put_in_the_order_of_its_categories() -> None:
    given = {"m": {"m": 0.9, "f": 0.1}, "f": {"f": 1.0}}
    names, matrix = transitions(Pram.model_validate({"method": "pram", "matrix": given}), {})
    assert names == ["f", "m"]
    assert matrix.tolist() == [[1.0, 0.0], [0.1, 0.9]]


def test_a_matrix_of_two_stages_draws_back_what_the_first_has_changed() -> None:
    """Of 3 f and 1 m, half of the f become m: 3 of 8 are f, all of them truly; of 5 m 3 were f, and 2 were m.

    So an f stays f with 1/2 + 1/2 · 3/5 = 4/5, and an m is drawn as f with 3/5.
    """
    given = {"f": {"f": 0.5, "m": 0.5}, "m": {"m": 1.0}}
    mask = Pram.model_validate({"method": "pram", "matrix": given, "two_stage": True})
    names, matrix = transitions(mask, {"f": 3, "m": 1})
    assert names == ["f", "m"]
    np.testing.assert_allclose(matrix, [[0.8, 0.2], [0.6, 0.4]], rtol=1e-14)
    np.testing.assert_allclose(np.array([0.75, 0.25]) @ matrix, [0.75, 0.25], rtol=1e-14)
    # Without a row there is nothing to keep.
    assert transitions(mask, {})[1].tolist() == [[0.5, 0.5], [0.0, 1.0]]
    assert "two_stage" not in Pram.model_validate({"method": "pram", "matrix": given}).declared()
