"""Protections and attacks compared: what is beaten by nothing, and figures against loops and the kernels' own."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reproducing import reproduce

from privrisk_spark.extensions.attack.kernels.evidence import Found
from privrisk_spark.extensions.attack.kernels.learned.fitting import Limits, fit
from privrisk_spark.extensions.attack.kernels.learned.training import KnownRecords, found_by
from privrisk_spark.kernels.arrays import FloatArray
from reproduce.compare.claims import Tried, claims
from reproduce.compare.experiment import on_hierarchies, on_numbers
from reproduce.compare.learning import others_found
from reproduce.compare.linking import Shown
from reproduce.compare.masking import masked
from reproduce.compare.numbers import lost, records_found, searched
from reproduce.compare.protecting import Protected, changed, disclosed, private, recoded
from reproduce.compare.results import CompareSizes, pareto
from reproduce.deciding.subject import Subject
from reproduce.generated.clustered import keyed_uniforms
from reproduce.generated.numeric import NumericTable

pytestmark = pytest.mark.usefixtures("no_charts")

SIZES = CompareSizes(rows=120, attributes=3, records=60, columns=4)
SUBJECT = Subject.generated(3, 120, 3)


def tried(lost: float, share: float) -> Tried:
    return Tried("family", f"{lost} {share}", lost, {"distance": Found(10, 10 * share, share, 0.0, 1.0)})


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_the_front_is_what_nothing_beats(points: list[tuple[int, int]]) -> None:
    tables = [tried(float(a), b / 10) for a, b in points]
    front = pareto(tables)

    def beats(one: tuple[int, int], other: tuple[int, int]) -> bool:
        return one[0] <= other[0] and one[1] <= other[1] and one != other

    expected = sorted((a, b) for a, b in points if not any(beats(other, (a, b)) for other in points))
    assert sorted((one.lost, round(10 * one.strongest[1].share)) for one in front) == expected


def test_people_are_found_as_two_loops_find_them() -> None:
    """Of every protected table of a small one: each person of each piece, by differences from paths."""
    subject = SUBJECT
    under = [int(axis.at_depth.shape[1]) - 1 for axis in subject.axes]

    def difference(j: int, a: int, b: int) -> float:
        rows = subject.axes[j].at_depth
        mine, theirs = [n for n in rows[a] if n >= 0], [n for n in rows[b] if n >= 0]
        common = sum(x == y for x, y in zip(mine, theirs, strict=False))
        return 0.0 if common == min(len(mine), len(theirs)) else (under[j] + 1 - common) / under[j]

    tables = [*recoded(subject, 6, (3,)), *disclosed(subject, "I", (0.6,)), *changed(subject, 1, (0.8,))]
    tables += private(subject, 3, (Fraction(2),))
    assert {one.family for one in tables} == {"k-anonymous", "by risk", "changed by chance", "private"}
    people = [tuple(row) for row in subject.nodes.tolist()]
    for table in tables:
        shown = [tuple(row) for row in table.nodes.tolist()]
        of_rows = 0.0
        for record, rows, own in zip(table.record.tolist(), table.rows.tolist(), shown, strict=True):
            apart = [sum(difference(j, a, b) for j, (a, b) in enumerate(zip(own, one, strict=True))) for one in people]
            tied = [i for i, d in enumerate(apart) if d <= min(apart) + 1e-7]
            if record in tied:
                of_rows += rows / sum(int(subject.counts[i]) for i in tied)
        found = Shown(subject, table).rows_found("nearest")
        assert found.correct == pytest.approx(of_rows, abs=1e-9), table.name
        assert found.tried == table.rows.sum()
        total = 0.0
        for record, rows, own in zip(table.record.tolist(), table.rows.tolist(), shown, strict=True):
            known = subject.nodes[record].tolist()
            apart = [sum(difference(j, a, b) for j, (a, b) in enumerate(zip(known, row, strict=True))) for row in shown]
            tied = [i for i, d in enumerate(apart) if d <= min(apart) + 1e-7]
            if own in {shown[i] for i in tied}:
                total += rows / sum(int(table.rows[i]) for i in tied)
        seen = Shown(subject, table)
        absent = 0 if table.absent is None else int(table.absent.sum())
        assert table.rows.sum() + absent == subject.rows
        found = seen.people_found(seen.file("nearest"))
        assert found.correct == pytest.approx(total, abs=1e-9), table.name
        assert found.tried == subject.rows, "whose row is not shown is not found"


def test_a_private_table_lacks_rows_and_they_have_lost_what_suppressed_ones_have() -> None:
    (private_one,) = private(SUBJECT, 3, (Fraction(2),))
    assert private_one.absent is not None
    assert 0 < private_one.absent.sum() < SUBJECT.rows
    root = np.array([axis.ancestor[0, -1] for axis in SUBJECT.axes], dtype=np.int32)
    assert (private_one.nodes == root).all(), "so few rows are published suppressed alone"
    every = np.arange(len(SUBJECT.counts))
    suppressed = Protected("", "", every, SUBJECT.counts, np.tile(root, (len(every), 1)))
    assert Shown(SUBJECT, private_one).lost() == pytest.approx(Shown(SUBJECT, suppressed).lost())
    # Its learned weights are learned from people who are there, and tried on all others.
    learned = Shown(SUBJECT, private_one).others_found(1, training=10)
    assert learned.tried == SUBJECT.rows - 10
    assert list(private(Subject.generated(3, 12, 3), 3, (Fraction(1, 100),))) == []


def test_k_anonymous_tables_give_one_in_k_away_at_most_and_lose_more_with_k() -> None:
    found = on_hierarchies(SUBJECT, SIZES, "I")
    for one in found.tried:
        assert 0 <= one.lost <= 1
        if one.family == "k-anonymous":
            k = int(one.name.rpartition(" ")[2])
            assert one.strongest[1].share <= 1 / k + 1e-9
    best = [one for one in found.tried if one.name.startswith("best")]
    assert [one.lost for one in best] == sorted(one.lost for one in best)
    assert {"levels of the scheme"} <= set(best[0].found)
    # Changing nothing loses nothing, and gives everybody away who is alone.
    (nothing,) = changed(SUBJECT, 1, (1.0,))
    shown = Shown(SUBJECT, nothing)
    assert shown.lost() == 0
    assert shown.people_found(shown.file("nearest")).correct == pytest.approx(len(SUBJECT.counts))


NUMBERS = NumericTable("numbers", 60, 4, 4, 0.5, 0.5)


def scaled(table: FloatArray) -> FloatArray:
    deviation = table.std(axis=0)
    return np.asarray((table - table.mean(axis=0)) / np.where(deviation > 0, deviation, 1))


def test_numbers_lose_what_they_lose_and_are_found_by_the_nearest() -> None:
    values = NUMBERS.values(5)
    assert records_found(values, values).share == 1
    assert lost(values, values) == 0
    for one in masked(values, 5):
        apart = ((scaled(values)[:, None, :] - scaled(one.values)[None, :, :]) ** 2).mean(axis=2)
        near = apart <= apart.min(axis=1)[:, None] + 1e-9
        expected = (near.diagonal() / near.sum(axis=1)).sum()
        assert records_found(values, one.values).correct == pytest.approx(expected, abs=1e-6), one.name
        if one.family in ("rank swapping", "shuffling"):
            np.testing.assert_allclose(np.sort(one.values, axis=0), np.sort(values, axis=0))
        # In the people's units, and from the rows.
        gaps = (values[:, None, :] - one.values[None, :, :]) / values.std(axis=0)
        apart = (gaps**2).mean(axis=2)
        for turned, axis in ((False, 1), (True, 0)):
            near = apart <= apart.min(axis=axis, keepdims=True) + 1e-9
            expected = (near.diagonal() / near.sum(axis=axis)).sum()
            measured = records_found(values, one.values, own=False, turned=turned)
            assert measured.correct == pytest.approx(expected, abs=1e-6), one.name
    found = on_numbers(NUMBERS, 5)
    assert found.front[0].lost == min(one.lost for one in found.tried)


def test_mahalanobis_distance_is_by_the_inverse_of_the_correlations() -> None:
    values = NUMBERS.values(5)
    for one in masked(values, 5):
        if one.family in ("correlated noise", "rank swapping"):
            mine, theirs = scaled(values), scaled(one.values)
            inverse = np.linalg.inv(np.corrcoef(theirs.T))
            gaps = mine[:, None, :] - theirs[None, :, :]
            apart = np.einsum("ijk,kl,ijl->ij", gaps, inverse, gaps)
            expected = (apart.argmin(axis=1) == np.arange(60)).sum()
            assert records_found(values, one.values, whitened=True).correct == pytest.approx(expected), one.name


def test_who_knows_the_method_finds_one_of_the_rows_that_his_own_may_be() -> None:
    """Rows equal to what the masking makes of his own; ranks by a literal loop over all pairs."""
    values = NUMBERS.values(5)
    n = len(values)
    seen = set()
    for one in masked(values, 5):
        if one.told is None:
            continue
        seen.add(one.family)
        if one.family == "rank swapping":
            width = int(float(one.name.split()[2]) * n / 100)
            rank = values.argsort(axis=0).argsort(axis=0)
            shown = one.values.argsort(axis=0).argsort(axis=0)
            fits = [[bool((abs(rank[i] - shown[j]) <= width).all()) for j in range(n)] for i in range(n)]
        else:
            fits = [[bool((one.values[i] == one.values[j]).all()) for j in range(n)] for i in range(n)]
        expected = [fits[i][i] / sum(fits[i]) for i in range(n)]
        np.testing.assert_allclose(one.told, expected, err_msg=one.name)
        if one.name.startswith("MDAV"):
            assert one.told.max() <= 1 / int(one.name.rpartition(" ")[2]) + 1e-12
    assert seen == {
        "microaggregation", "microaggregation by column", "rank swapping", "rounding", "top and bottom coding",
    }  # fmt: skip


def test_weights_are_learned_from_some_and_tried_on_the_others() -> None:
    """One column is noise: who has seen some pairs leaves it out. The kernels, by hand, say the same."""
    values = NUMBERS.values(5)
    shown = values + 0.05 * NUMBERS.values(6)
    shown[:, 0] = NUMBERS.values(7)[:, 0]
    file, known = searched(values, shown)
    each = np.ones(60, dtype=np.int64)
    learned = others_found(file, known, np.arange(60), each, seed=1, training=20)
    assert learned.tried == 40
    assert learned.share > records_found(values, shown).share + 0.2
    drawn = np.sort(np.argsort(keyed_uniforms(1, "learned from", (60,)), kind="stable")[:20])
    records = KnownRecords(known, np.arange(60), each, np.ones(60))
    aggregate = fit("weighted_mean", file, records.only(drawn), Limits(rounds=3, ramps=1, constraints=0)).aggregate
    others = records.only(np.setdiff1d(np.arange(60), drawn))
    assert learned.correct == pytest.approx(found_by(aggregate, file, others).sum())
    # Of people who are alike some may be learned from and some tried; nobody is both.
    some = others_found(file, known[:2], np.arange(2), np.array([3, 4]), seed=1, training=100)
    assert some.tried == 4
    assert others_found(file, known[:1], np.arange(1), np.array([1]), seed=1).tried == 0


def test_claims_are_judged_by_the_figures() -> None:
    def one(family: str, name: str, lost: float, **shares: float) -> Tried:
        by = {key.replace("_", " "): Found(10, 10 * share, share, 0.0, 1.0) for key, share in shares.items()}
        return Tried(family, name, lost, by)

    tables = [
        one("k-anonymous", "best, k = 5", 0.2, distance=0.1, learned_weights=0.15),
        one("by risk", "floor 0.5", 0.3, distance=0.3, learned_weights=0.2),
        one("rank swapping", "rank swapping, 5 %", 0.1, distance=0.4, the_method_is_known=0.9),
    ]
    judged = claims("x", tables)
    verdicts = [claim.verdict for claim in judged]
    assert verdicts == ["in 1 of 2 cases", "holds", "holds", "holds", "does not hold"]
    evidence = [claim.evidence for claim in judged]
    assert "-10.0 to +5.0" in evidence[0]
    assert "+50.0" in evidence[1]
    assert "90 % and 40 %" in evidence[2]
    assert "0.75/k" in evidence[3]
    assert "Of 1 disclosures 1 are beaten" in evidence[4]
    rows = {"distance": Found(10, 1, 0.1, 0.0, 1.0)}, {"distance": Found(10, 2, 0.2, 0.0, 1.0)}
    both = [Tried(one.family, one.name, 0.2, one.found, of) for one, of in zip(tables, rows, strict=False)]
    of_rows = [claim for claim in claims("x", both) if "begins with a row" in claim.claim]
    assert [claim.verdict for claim in of_rows] == ["does not hold"]
    assert (
        "Of 1 disclosures 1 are beaten by a k-anonymous table, in what is lost and in the rows" in of_rows[0].evidence
    )
    apart = [one("k-anonymous", "best, k = 5", 0.2, distance=0.1), one("by risk", "floor 0.5", 0.1, distance=0.2)]
    assert claims("x", apart)[-1].verdict == "not decided: nothing to compare", "neither beats the other"
    mixed = [*apart, one("by risk", "floor 0.9", 0.1, distance=0.05), one("by risk", "floor 0.1", 0.9, distance=0.1)]
    assert claims("x", mixed)[-1].verdict == "in 1 of 2 cases"
    (broken,) = claims("x", [one("k-anonymous", "best, k = 5", 0.2, distance=0.3)])
    assert broken.verdict == "does not hold"


def test_a_run_writes_page_table_and_figures(tmp_path: Path) -> None:
    for place in ("one", "two"):
        ran = reproduce("compare", f"--output={tmp_path / place}", "--quick")
        assert ran.exit_code == 0, ran.output
    document = json.loads((tmp_path / "one" / "compare.json").read_text())
    assert [table["data"] for table in document["tables"]] == ["numbers", "amounts", "generated"]
    for table in document["tables"]:
        assert any(one["front"] for one in table["protected"])
        assert all(0 <= one["found"][one["strongest"]]["share"] <= 1 for one in table["protected"])
    page = (tmp_path / "one" / "compare.html").read_text()
    assert "Beaten by none" in page
    assert "MDAV, k = 3" in page
    assert "What is claimed, and what was found" in page
    # What is only looked up comes after the charts; a plot without a source claims nothing from one.
    for one in (one for table in document["tables"] for one in table["protected"]):
        assert all(0 <= of["share"] <= 1 for of in one["found_from_rows"].values())
        assert len(one["found_from_rows"]) >= 2
    assert "From a row, %" in page
    assert 'id="compare-map-rows"' in page
    assert any(one["family"] == "private" for one in document["tables"][2]["protected"])
    assert page.index('id="claims"') < page.index('id="compare-map"') < page.index('id="compared-numbers"')
    assert "Claimed</b> (" not in page
    assert {claim["data"] for claim in document["claims"]} == {"numbers", "amounts", "generated"}
    for name in ("compare.json", "compare.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
