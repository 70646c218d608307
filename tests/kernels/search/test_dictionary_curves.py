"""Curves over growing dictionaries, against the literal optimum and by hand, and how they are drawn."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import naive
import numpy as np
import pytest
from disclosures import Rows, counts_of, disclosure_of, disclosures, leaf_rows
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.estimated import nested_counts
from privrisk_spark.kernels.search.dictionary_curves import DictionaryCurves, dictionary_curves
from privrisk_spark.reporting.charts import draw
from privrisk_spark.reporting.curve_plots import bound_plot, dictionary_plot

GROUPED = Hierarchy.from_paths("x", [("a", "g"), ("b", "g"), ("c", "h")])
A, B, C = 0, 1, 2
ONE = np.array([[A]], dtype=np.int32)


@given(disclosures(), st.data())
def test_risk_never_rises_with_the_dictionary(case: tuple[list[Hierarchy], Disclosure], data: st.DataObject) -> None:
    """For fixed and for optimal decisions, whether the samples hold the records or not."""
    hierarchies, disclosure = case
    meaning = data.draw(st.sampled_from(["subsumes", "compatible"]))
    axes = [Axis(h.at_depth, h.ancestor, meaning) for h in hierarchies]
    codes = leaf_rows(data.draw, hierarchies, 1, 3)
    codes = np.unique(codes, axis=0).astype(np.int32)
    multiplicity = np.array([data.draw(st.integers(1, 3)) for _ in codes])
    n = data.draw(st.integers(0, 6))
    rows = [[data.draw(st.integers(0, h.n_nodes)) for h in hierarchies] for _ in range(n)]
    vectors = np.unique(np.array(rows, dtype=np.int32).reshape(-1, len(hierarchies)), axis=0).astype(np.int32)
    of_bucket = np.array([[data.draw(st.integers(0, 2)) for _ in range(3)] for _ in vectors]).reshape(-1, 3)
    plan = data.draw(st.sampled_from(["dense", "sorted"]))
    floors = [0.0, 1.0, 2.5]
    found = dictionary_curves(
        disclosure, floors, nested_counts(axes, vectors, of_bucket, plan=plan), codes, multiplicity
    )
    assert found.dictionary_rows.tolist() == np.cumsum(of_bucket.sum(axis=0)).tolist()
    slack = 1 + 1e-12
    for curve in (found.minimal, found.true):
        assert (curve[1:] <= curve[:-1] * slack).all()
    assert (found.true <= found.estimated * slack).all()
    assert (found.minimal <= found.true * slack).all()
    assert found.true[0].tolist() == found.estimated.tolist() == found.minimal[0].tolist()
    assert (np.diff(found.absent) <= 0).all()
    # Against the literal optimum of each record, at the last share.
    parents = [h.parent.tolist() for h in hierarchies]
    whole = [row for row, size in zip(vectors.tolist(), of_bucket.sum(axis=1), strict=True) for _ in range(size)]
    known = [[None if v == h.n_nodes else v for v, h in zip(row, hierarchies, strict=True)] for row in whole]
    for f, floor in enumerate(floors):
        total = 0.0
        infeasible = 0
        for record, times in zip(codes, multiplicity, strict=True):

            def risk(levels: tuple[int, ...], record: Rows = record) -> float:
                here = [int(h.ancestor[c, x]) for h, c, x in zip(hierarchies, record, levels, strict=True)]
                bottom = [int(c) for c in record]
                absent = naive.count(parents, bottom, known, meaning) == 0
                weights = [float(w[v]) for w, v in zip(disclosure.sensitivity.weights, here, strict=True)]
                suppressed = [v == h.root for v, h in zip(here, hierarchies, strict=True)]
                phi = naive.phi(disclosure.sensitivity.form, weights, suppressed)
                return naive.risk(disclosure.model, phi, naive.count(parents, here, known, meaning) + absent, 0)

            depths = [int(d[c]) for d, c in zip(disclosure.code_depth, record, strict=True)]
            best = naive.least_risky(depths, risk, lambda levels, d=depths: float(sum(d) - sum(levels)), floor)
            infeasible += 0 if best is not None else int(times)
            total += int(times) * risk(best if best is not None else tuple(depths))
        assert found.minimal[-1, f] == pytest.approx(total / int(multiplicity.sum()), rel=1e-9)
        assert found.infeasible[f] == infeasible


def by_hand() -> DictionaryCurves:
    """Records a (twice) and c; θ̂ = {a, c} at first, then b, then c again; Φ = 1, so the risk is 1/ρ."""
    axes = [Axis(GROUPED.at_depth, GROUPED.ancestor, "compatible")]
    vectors = np.array([[A], [B], [C]], dtype=np.int32)
    of_bucket = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1]])
    return dictionary_curves(
        disclosure_of([GROUPED], model="II"),
        [2.0, 1.0, 0.0],
        nested_counts(axes, vectors, of_bucket, plan="dense"),
        np.array([[A], [C]], dtype=np.int32),
        np.array([2, 1]),
    )


def test_curves_by_hand() -> None:
    """ρ of (a, c) at the leaves: (1, 1), (1, 1), (1, 2); at g and h: (1, 1), (2, 1), (2, 2); at the root 2, 3, 4."""
    found = by_hand()
    assert found.dictionary_rows.tolist() == [2, 3, 4]
    assert found.minimal == pytest.approx(
        np.array([[1, 1, 1 / 2], [1, (2 / 2 + 1) / 3, 1 / 3], [(2 + 1 / 2) / 3, (2 / 2 + 1 / 2) / 3, 1 / 4]])
    )
    # At floor 1 leaf and group tie in the smallest sample, and the leaf is more useful: the decision stays at the leaf.
    assert found.estimated == pytest.approx(np.array([1, 1, 1 / 2]))
    assert found.true == pytest.approx(
        np.array([[1, 1, 1 / 2], [1, 1, 1 / 3], [(2 + 1 / 2) / 3, (2 + 1 / 2) / 3, 1 / 4]])
    )
    assert found.infeasible.tolist() == [0, 0, 0]
    assert found.absent.tolist() == [0, 0, 0]


def test_the_estimate_may_be_another_dictionary() -> None:
    axes = [Axis(GROUPED.at_depth, GROUPED.ancestor, "compatible")]
    whole = counts_of(axes, np.array([[A], [B], [C]]))
    found = dictionary_curves(
        disclosure_of([GROUPED], model="II"),
        [1.0, 3.0],
        iter([whole]),
        ONE,
        np.array([1]),
        estimate=counts_of(axes, np.array([[A], [B]])),
    )
    assert found.estimated.tolist() == [1 / 2, 1 / 2]
    assert found.true.tolist() == [[1 / 2, 1 / 3]], "a record that cannot reach the floor is suppressed"
    assert found.infeasible.tolist() == [0, 1]


# -------------------------------------------------------------------------------------------- charts


def drawing(svg: str) -> str:
    labels = re.search(r'aria-labelledby="(\S+) (\S+)"', svg)
    assert labels
    for part, name in zip(("title", "desc"), labels.groups(), strict=True):
        assert re.search(rf'<{part} id="{name}">[^<]+</{part}>', svg)
    assert svg.startswith("<svg")
    assert svg.endswith("</svg>")
    assert "<style" not in svg
    return svg


def test_charts_say_what_they_show() -> None:
    curves = by_hand()
    text = drawing(draw(dictionary_plot(curves), prefix="dictionary"))
    assert "With utility at least 2: mean risk 1 with 2 dictionary rows, 0.8333 with 4." in text
    text = drawing(draw(bound_plot(curves), prefix="bound"))
    assert "9 points" in text
    assert "none below the line" in text
    assert "up to 2 times" in text, "at floor 0: 1/2 against 1/4"
    assert draw(dictionary_plot(curves), prefix="dictionary") == draw(
        dictionary_plot(by_hand()), prefix="dictionary"
    ), "the same numbers give the same bytes"


def test_charts_leave_infinite_risks_out_and_say_so() -> None:
    curves = by_hand()
    minimal, estimated, true = curves.minimal.copy(), curves.estimated.copy(), curves.true.copy()
    minimal[0, 0] = estimated[1] = true[0, 1] = math.inf
    true[2, 2] = 3.0
    broken = replace(curves, minimal=minimal, estimated=estimated, true=true)
    assert "1 infinite value is not drawn." in drawing(draw(dictionary_plot(broken), prefix="dictionary"))
    text = drawing(draw(bound_plot(broken), prefix="bound"))
    assert "6 points" in text
    assert "3 with an infinite risk are not drawn." in text
    assert "1 below the line" in text
    nothing = replace(curves, minimal=np.full((3, 3), math.inf), estimated=np.full(3, math.inf))
    assert "9 infinite values are not drawn." in drawing(draw(dictionary_plot(nothing), prefix="dictionary"))
    assert "0 points" in drawing(draw(bound_plot(nothing), prefix="bound"))
