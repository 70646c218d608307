"""Trust of the thesis' tables and rules by hand, of walks by dense matrices; and what decisions owe to it."""

from __future__ import annotations

import importlib.util

import naive_sharing
import numpy as np
import pytest

from privrisk_spark.extensions.network.kernels.access import lagrangian
from privrisk_spark.extensions.network.kernels.graph import Graph
from privrisk_spark.extensions.network.kernels.trust import Exposure
from reproduce.sharing import trusting
from reproduce.sharing.limits import entries_of
from reproduce.sharing.sample import Profiles, Sample, mixed
from reproduce.sharing.trusting import (
    BASELINE,
    CRITERIA,
    EXPOSURES,
    PERCEIVED,
    PROPAGATED,
    RESTART,
    STATED,
    by_criteria,
    by_relation,
    by_same_attributes,
    relation_of,
    sensitivity_to_trust,
    stated_by,
    trusts,
)

EDGES = [(0, 1), (1, 2), (3, 4)]
GRAPH = Graph.of_edges(6, *(np.array([edge[end] for edge in EDGES], np.int32) for end in (0, 1)))
"""0 and 2 have a common friend, 3 and 4 are friends, 5 has nobody."""

VALUES = np.array([[1, 2, 3], [1, 2, 0], [1, 5, 3], [-1, 2, 3], [-1, 2, 3], [0, 5, 3]], dtype=np.int16)
PROFILES = Profiles(VALUES, np.array([1, 3, 9]))
U, V = np.array([0, 0, 3, 0, 3, 2]), np.array([1, 2, 4, 3, 5, 5])
HAND = Sample(GRAPH, PROFILES, 1, U, V)


def test_relations() -> None:
    assert relation_of(HAND).tolist() == [0, 1, 0, 2, 2, 2]


def test_the_rule_of_section_7_4_1_wants_two_known_and_equal_values() -> None:
    """Attributes 0 and 1, of least height: 0 and 1 have both in common; of 3 and 4 one is unknown."""
    assert by_same_attributes(HAND).tolist() == [1, -1, -1, -1, -1, -1]


def test_table_7_3_takes_the_criterion_that_most_name() -> None:
    """Friends 62 %; a common friend 6 %; the same value of attribute 0 4 %, of attribute 1 2 %; else nothing."""
    assert by_criteria(HAND).tolist() == [0.62, 0.06, 0.62, 0.02, 0.0, 0.02]
    assert dict(CRITERIA)["prior knowledge of a user"] == 62


def test_table_7_4_takes_always_less_never() -> None:
    np.testing.assert_allclose(by_relation(HAND), [0.71, 0.42, 0.71, -0.31, -0.31, -0.31])


def test_tables_are_as_printed() -> None:
    assert [sum(shares) for shares in PERCEIVED.values()] == [100, 100, 100] == [sum(s for _, s in CRITERIA)] * 3


def test_stated_trust_is_of_friends_as_often_as_the_table_says() -> None:
    star = Graph.of_edges(4001, np.zeros(4000, np.int32), np.arange(1, 4001, dtype=np.int32))
    whom, trust = stated_by(Sample(star, PROFILES, 3, U, V), 0)
    assert len(set(whom.tolist())) == len(whom)
    assert (trust == 1).sum() / 4000 == pytest.approx(0.74, abs=0.02)
    assert (trust == -1).sum() / 4000 == pytest.approx(0.03, abs=0.01)


def test_stated_and_propagated_trust_are_sums_over_walks() -> None:
    """``Σ_k a (1 - a)^k`` times what is stated, after k steps of the row-stochastic walk, by dense matrices."""
    found = dict(trusts(HAND))
    stated = np.zeros((6, 6))
    for user in range(6):
        whom, trust = stated_by(HAND, user)
        stated[user, whom] = trust
    assert found[STATED].tolist() == stated[U, V].tolist()
    walks = RESTART * np.linalg.inv(np.eye(6) - (1 - RESTART) * naive_sharing.walk(6, EDGES))
    np.testing.assert_allclose(found[PROPAGATED], (stated @ walks)[U, V], atol=1e-5)


SAMPLE = mixed(150, 4, 60, 2)


def test_one_class_trust_is_of_those_like_the_listed_and_needs_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    there = dict(trusts(SAMPLE))[trusting.ONE_CLASS]
    assert set(there.tolist()) <= {-1.0, 0.0, 1.0}
    assert {-1.0, 1.0} <= set(there.tolist())
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(trusting, "find_spec", lambda _: None)
    assert trusting.ONE_CLASS not in dict(trusts(SAMPLE))


def test_decisions_are_compared_value_by_value() -> None:
    found = sensitivity_to_trust(SAMPLE)
    by_kind = dict(trusts(SAMPLE))
    assert [(one.trust, one.exposure) for one in found.decided] == [(kind, f) for kind in by_kind for f in EXPOSURES]
    base = lagrangian(entries_of(SAMPLE, by_kind[BASELINE[0]], Exposure()), trusting.TRADE_OFF)
    base = base.reshape(SAMPLE.levels.shape)
    for one in found.decided:
        entries = entries_of(SAMPLE, by_kind[one.trust], EXPOSURES[one.exposure])
        mine = lagrangian(entries, trusting.TRADE_OFF).reshape(SAMPLE.levels.shape)
        pairs = [[mine[p, j] != base[p, j] for j in range(4) if SAMPLE.levels[p, j]] for p in range(len(SAMPLE.u))]
        assert one.changed == pytest.approx(sum(map(sum, pairs)) / sum(map(len, pairs)))
        assert one.changed_pairs == pytest.approx(sum(map(any, pairs)) / len(pairs))
        assert one.utility == pytest.approx(mine.sum(dtype=int) / SAMPLE.levels.sum(dtype=int))
        # At the same utility nothing costs less than the optimum, but for the one level that is rounded.
        assert one.excess > -0.01
    same = next(one for one in found.decided if (one.trust, one.exposure) == BASELINE)
    assert (same.changed, same.changed_pairs, same.moved, same.excess) == (0, 0, 0, 0)
    assert max(one.excess for one in found.decided) > 0.01
    assert found.friends + found.others + found.strangers == found.pairs == len(SAMPLE.u)
    of_kind = {one.trust: one for one in found.trusted}
    assert of_kind[trusting.PERCEIVED_TRUST].friends == pytest.approx(0.71)


def test_a_loss_that_is_scaled_changes_nothing_at_equal_utility() -> None:
    """Half the f everywhere: another trade-off, but the same order."""
    entries = entries_of(SAMPLE, SAMPLE.common.astype(np.float64), Exposure())
    half = entries_of(SAMPLE, SAMPLE.common.astype(np.float64), Exposure())
    half = type(half)(half.loss / 2, half.utility, half.tops)
    for share in (0.2, 0.5, 0.8):
        assert trusting._ordered(entries, half, share) == (0.0, 0.0)
