"""Protections and attacks compared: what is beaten by nothing, and figures against loops and the kernels' own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.experiments.compare.experiment import on_hierarchies, on_numbers
from privrisk_spark.experiments.compare.linking import Shown
from privrisk_spark.experiments.compare.numbers import generated, lost, masked, records_found
from privrisk_spark.experiments.compare.protecting import changed, disclosed, recoded
from privrisk_spark.experiments.compare.results import CompareSizes, Tried, pareto
from privrisk_spark.experiments.deciding.subject import Subject
from privrisk_spark.kernels.linkage.evidence import Found

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
    assert {one.family for one in tables} == {"k-anonymous", "by risk", "changed by chance"}
    for table in tables:
        shown = [tuple(row) for row in table.nodes.tolist()]
        total = 0.0
        for record, rows, own in zip(table.record.tolist(), table.rows.tolist(), shown, strict=True):
            known = subject.nodes[record].tolist()
            apart = [sum(difference(j, a, b) for j, (a, b) in enumerate(zip(known, row, strict=True))) for row in shown]
            tied = [i for i, d in enumerate(apart) if d <= min(apart) + 1e-7]
            if own in {shown[i] for i in tied}:
                total += rows / sum(int(table.rows[i]) for i in tied)
        seen = Shown(subject, table)
        assert table.rows.sum() == subject.rows
        assert seen.people_found(seen.file("nearest")).correct == pytest.approx(total, abs=1e-9), table.name


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


def test_numbers_lose_what_they_lose_and_are_found_by_the_nearest() -> None:
    values = generated(5, 60, 4)
    assert np.corrcoef(generated(5, 4000, 3).T)[0, 1] == pytest.approx(0.5, abs=0.05)
    assert records_found(values, values).share == 1
    assert lost(values, values) == 0
    tables = list(masked(values, 5))
    assert {one.family for one in tables} == {"microaggregation", "noise", "rank swapping", "rounding"}
    for one in tables:
        mine = (values - values.mean(axis=0)) / values.std(axis=0)
        theirs = (one.values - one.values.mean(axis=0)) / np.where(
            one.values.std(axis=0) > 0, one.values.std(axis=0), 1
        )
        apart = ((mine[:, None, :] - theirs[None, :, :]) ** 2).mean(axis=2)
        near = apart <= apart.min(axis=1)[:, None] + 1e-9
        expected = (near.diagonal() / near.sum(axis=1)).sum()
        assert records_found(values, one.values).correct == pytest.approx(expected, abs=1e-6), one.name
        if one.family == "rank swapping":
            np.testing.assert_allclose(np.sort(one.values, axis=0), np.sort(values, axis=0))
    found = on_numbers(SIZES)
    assert found.front[0].lost == min(one.lost for one in found.tried)


def test_a_run_writes_page_table_and_figures(tmp_path: Path) -> None:
    sizes = ["--rows=120", "--attributes=3", "--records=60", "--columns=4"]
    for place in ("one", "two"):
        ran = CliRunner().invoke(app, ["experiments", "compare", f"--output={tmp_path / place}", *sizes])
        assert ran.exit_code == 0, ran.output
    document = json.loads((tmp_path / "one" / "compare.json").read_text())
    assert [table["data"] for table in document["tables"]] == ["numbers", "generated"]
    for table in document["tables"]:
        assert any(one["front"] for one in table["protected"])
        assert all(0 <= one["found"][one["strongest"]]["share"] <= 1 for one in table["protected"])
    page = (tmp_path / "one" / "compare.html").read_text()
    assert "Beaten by none" in page
    assert "MDAV, k = 3" in page
    for name in ("compare.json", "compare.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
