"""Jaro similarity of labels: the definition, the rules for ⊥, nulls and unknown values, counts by it."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Jaro
from strategies import several_hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting import similarity
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts, SortedCounts, dense_cells, incidence
from privrisk_spark.kernels.counting.similarity import node_similarity, similar

TEXT = st.text(alphabet="aab bcä字", max_size=9)
LABELS = st.lists(st.none() | TEXT, max_size=7)
THRESHOLDS = st.sampled_from([1e-6, 0.5, 0.75, 0.8, 1.0])


@given(TEXT, TEXT)
def test_the_library_has_the_definition(a: str, b: str) -> None:
    assert Jaro.similarity(a, b) == pytest.approx(naive.jaro(a, b), abs=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "value"),
    [
        # Six of six match, TH is one transposition: (1 + 1 + 5/6) / 3.
        ("MARTHA", "MARHTA", 17 / 18),
        # D, I, O, N match within max(5, 8)//2 - 1 = 3: (4/5 + 4/8 + 1) / 3.
        ("DIXON", "DICKSONX", 23 / 30),
        # D, W?, A, N, E: the W has none: (4/6 + 4/5 + 1) / 3.
        ("DWAYNE", "DUANE", 37 / 45),
        # abc, bca: three places differ, 3 // 2 = 1 transposition would need a window of 2, but it is 0: no match.
        ("abc", "bca", 0.0),
        ("", "", 1.0),
        ("", "a", 0.0),
    ],
)
def test_worked_values(a: str, b: str, value: float) -> None:
    assert naive.jaro(a, b) == pytest.approx(value)
    assert Jaro.similarity(a, b) == pytest.approx(value)


@given(LABELS, LABELS, THRESHOLDS, st.sampled_from([1, 4, 2**22]))
def test_similar_is_its_definition_in_blocks_of_any_size(
    x: list[str | None], t: list[str | None], threshold: float, pairs: int
) -> None:
    usual = similarity._PAIRS_AT_ONCE
    similarity._PAIRS_AT_ONCE = pairs
    try:
        found = similar(x, t, threshold)
    finally:
        similarity._PAIRS_AT_ONCE = usual
    want = [
        [int(a is b if a is None or b is None else naive.jaro(a, b) >= threshold - 1e-12) for b in t] for a in x
    ]  # fmt: skip
    assert found.toarray().tolist() == np.array(want, dtype=np.int64).reshape(len(x), len(t)).tolist()
    assert found.nnz == found.toarray().sum(), "no zero is stored"
    assert found.has_sorted_indices


def test_a_similarity_equal_to_the_threshold_reaches_it() -> None:
    """Seven of ten match in order: (.7 + .7 + 1) / 3 is .8 but for rounding; with six it is .733."""
    assert similar(["abcdefghij"], ["abcdefgxyz", "abcdefwxyz"], 0.8).toarray().tolist() == [[1, 0]]


def test_scores_are_not_rounded_up_to_the_threshold() -> None:
    """17/18 lies below this threshold by less than half a unit of 32-bit precision."""
    assert similar(["MARTHA"], ["MARHTA"], 17 / 18 + 1e-9).nnz == 0


@pytest.mark.parametrize("threshold", [0, -0.1, 1.01, float("nan")])
def test_thresholds_out_of_range_are_refused(threshold: float) -> None:
    with pytest.raises(InputError, match="the threshold must be above 0 and at most 1"):
        similar(["a"], ["a"], threshold)


def test_bottom_is_consistent_with_everything_and_an_unknown_value_with_bottom_alone() -> None:
    found = node_similarity(["ann", "anna", "*", None, "*"], 0.8)
    assert found.toarray().tolist() == [
        [1, 1, 0, 0, 1, 0],
        [1, 1, 0, 0, 1, 0],
        # A label that reads like ⊥ is a label.
        [0, 0, 1, 0, 1, 0],
        [0, 0, 0, 1, 1, 0],
        [1, 1, 1, 1, 1, 1],
    ]


@given(several_hierarchies(), THRESHOLDS, st.data())
def test_counts_by_resemblance_are_the_naive_count(
    hierarchies: list[Hierarchy], threshold: float, data: st.DataObject
) -> None:
    relations, axes = [], []
    for h in hierarchies:
        meaning = data.draw(st.sampled_from(["similar", "similar", "compatible", "subsumes", "lacking"]))
        wildcard = data.draw(st.booleans())
        if meaning == "similar":
            axes.append(Axis(h.at_depth, h.ancestor, "similar", similarity=node_similarity(h.labels, threshold)))
            relations.append(lambda x, t, h=h: naive.resembles(h.labels, x, t, threshold))
        elif meaning == "lacking":
            axes.append(Axis(h.at_depth, h.ancestor, "similar", known=False))
            relations.append(lambda x, t: True)
        else:
            axes.append(Axis(h.at_depth, h.ancestor, meaning, wildcard=wildcard))
            relations.append(
                lambda x, t, h=h, m=meaning, w=wildcard: naive.consistent(h.parent.tolist(), x, t, m, wildcard=w)
            )
    rows = np.array(
        [[data.draw(st.integers(0, h.n_nodes)) for h in hierarchies] for _ in range(data.draw(st.integers(1, 8)))],
        dtype=np.int32,
    )
    vectors, multiplicity = np.unique(rows, axis=0, return_counts=True)
    counts = DenseCounts.roll_up(axes, vectors.astype(np.int32), multiplicity)
    assert counts.monotone == all(a.consistency != "similar" or not a.known for a in axes)
    known = [[None if t == h.n_nodes else int(t) for t, h in zip(row, hierarchies, strict=True)] for row in rows]
    for _ in range(3):
        codes = [data.draw(st.integers(0, h.n_leaves)) for h in hierarchies]
        depths = [int(axis.code_depth[code]) for axis, code in zip(axes, codes, strict=True)]
        for levels in naive.lattice(depths):
            nodes = [int(h.ancestor[code, x]) for h, code, x in zip(hierarchies, codes, levels, strict=True)]
            got = counts.consistent([np.array([code], dtype=np.int32) for code in codes], levels, depths)
            assert got.tolist() == [naive.count_any(relations, nodes, known)], levels
    present = [np.unique(vectors[:, i]).astype(np.int32) if a.known else np.zeros(1, np.int32)
               for i, a in enumerate(axes)]  # fmt: skip
    assert dense_cells(axes, present) >= len(counts.cube)


def names() -> tuple[Hierarchy, Axis]:
    hierarchy = Hierarchy.from_paths("name", [("martha", "m"), ("marhta", "m"), ("jones", "j")])
    return hierarchy, Axis(
        hierarchy.at_depth, hierarchy.ancestor, "similar", similarity=node_similarity(hierarchy.labels)
    )


def test_labels_alike_share_a_class() -> None:
    hierarchy, axis = names()
    present = np.arange(hierarchy.n_nodes + 1, dtype=np.int32)
    classes, matrix = incidence(axis, present)
    assert classes[hierarchy.find("martha")] == classes[hierarchy.find("marhta")] != classes[hierarchy.find("jones")]
    assert matrix.shape == (5, hierarchy.n_nodes + 1)


def test_the_sorted_plan_refuses_labels() -> None:
    _, axis = names()
    with pytest.raises(InputError, match="'sorted' cannot count attributes that are 'similar'; use 'dense'"):
        SortedCounts.group([axis], np.zeros((1, 1), dtype=np.int32), np.ones(1, dtype=np.int64))


@pytest.mark.parametrize("rows", [None, 4])
def test_similar_needs_its_matrix(rows: int | None) -> None:
    hierarchy, axis = names()
    given_ = None if rows is None else axis.similarity[:rows]  # type: ignore[index]
    with pytest.raises(InputError, match="needs a similarity matrix of shape"):
        Axis(hierarchy.at_depth, hierarchy.ancestor, "similar", similarity=given_)
