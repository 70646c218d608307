"""One table, one budget; what is told to a ledger beside charges, and what it is held against."""

from __future__ import annotations

import multiprocessing
from typing import Any

import pytest
from ledgers import InFile, OnServer, bind, publish, reserve, would_cost

from privrisk_spark.errors import BudgetError
from privrisk_spark.ledger.ledger import Ledger, Reservation

Place = InFile | OnServer


def note(ledger: Ledger, run_id: str = "n1", **other: Any) -> Reservation:
    return ledger.note(**{"lineage": "adult", "run_id": run_id, "what": "risk", "place": "/out"} | other)


def move(ledger: Ledger, **other: Any) -> None:
    ledger.move(**{"lineage": "adult", "table": "one", "reason": "x"} | other)


# ------------------------------------------------------------------------------------------------ one table, one budget


def test_a_table_has_one_budget_whatever_its_lineage_is_called(ledger: Ledger):
    reserve(ledger, table="one", epsilon="4")
    for act in (
        lambda: reserve(ledger, lineage="census", table="one"),
        lambda: would_cost(ledger, lineage="census", delta="0", cap_delta="0", table="one"),
        lambda: reserve(ledger, lineage="census", table="new", files=("one",)),
        lambda: note(ledger, lineage="census", table="one"),
        lambda: ledger.would_note(lineage="census", run_id="n1", what="risk", place="/o", table="one"),
    ):  # fmt: skip
        with pytest.raises(
            BudgetError,
            match=r"census: the policy's table, or a file of it, is that of the lineage 'adult', and a table",
        ):
            act()
    assert ledger.lineages() == ("adult",)
    assert reserve(ledger, lineage="census", table="two").fresh
    with pytest.raises(BudgetError, match="that of the lineage 'adult'"):
        move(ledger, lineage="census", table="one")
    assert reserve(ledger, table="one", epsilon="4").fresh is False, "a retry costs nothing"


def test_a_second_budget_is_stated_and_shown(ledger: Ledger):
    reserve(ledger, table="one", epsilon="4")
    with pytest.raises(BudgetError, match=r"--beside: the ledger has no lineage 'elsewhere'. It has 'adult'"):
        move(ledger, lineage="census", beside=["elsewhere"])
    move(ledger, lineage="Census", beside=["Adult"], reason="of persons")
    move(ledger, lineage="census", beside=["adult"], reason="again")
    assert reserve(ledger, lineage="census", table="one").spent_epsilon == 1
    assert [(one.state, one.reason) for one in ledger.balance("census").statements] == [("moved", "of persons")]
    # Both know of it, and a third does not.
    assert reserve(ledger, "r2", epsilon="0", table="one").fresh
    with pytest.raises(BudgetError, match="that of the lineage 'adult', 'census'"):
        reserve(ledger, lineage="third", table="one")


def first(url: str, lineage: str, barrier: Any, results: Any) -> None:
    ledger = Ledger(url)
    barrier.wait()
    try:
        results.put(reserve(ledger, lineage=lineage, table="one").fresh)
    except BudgetError:
        results.put(False)


def test_two_lineages_that_begin_at_once_are_not_both_of_the_table(ledger: Ledger, place: Place):
    ledger.create()
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(4), context.Queue()
    workers = [context.Process(target=first, args=(place.url, f"l{i}", barrier, results)) for i in range(4)]
    for worker in workers:
        worker.start()
    won = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    assert sum(won) == 1


def test_reserve_of_a_file_of_another_lineage_is_refused(ledger: Ledger):
    reserve(ledger, table="directory", files=("a", "b"))
    asked: dict[str, Any] = {"lineage": "census", "table": "one file", "files": ("b",)}
    for act in (
        lambda: reserve(ledger, **asked),
        lambda: note(ledger, **asked),
        lambda: ledger.would_note(run_id="n1", what="risk", place="/o", **asked),
        lambda: move(ledger, beside=["adult", "adult"], **asked | {"lineage": "third", "files": ("c", "d")}) or reserve(
            ledger, lineage="fourth", files=("d",)
        ),
    ):  # fmt: skip
        with pytest.raises(
            BudgetError, match=r"the policy's table, or a file of it, is that of the lineage '(adult|third)'"
        ):
            act()
    assert reserve(ledger, "r2", table="one file", files=("b",)).fresh, "the lineage that holds the file may spend"


def test_reserve_of_a_table_that_grows_keeps_its_lineage(ledger: Ledger, place: Place):
    for day, files in enumerate((("mon",), ("mon", "tue"), ("tue", "wed"))):
        assert reserve(ledger, f"r{day}", epsilon="1", table="daily", files=files).fresh
    for file in ("mon", "tue", "wed"):
        with pytest.raises(BudgetError, match="is that of the lineage 'adult'"):
            reserve(ledger, lineage="census", table="other", files=(file,))
    told = place.run("SELECT files FROM events ORDER BY sequence")
    assert told == [('["mon"]',), ('["tue"]',), ('["wed"]',)], "each file is told once"


def test_pin_of_a_file_of_another_lineage_is_refused(ledger: Ledger):
    """A reservation without Spark does not know the files of a catalog's table; the run that reads it does."""
    reserve(ledger, table="path", files=("a",))
    reserve(ledger, lineage="census", table="catalog")
    ledger.bind(lineage="census", run_id="r1", key="k", place="/o")
    with pytest.raises(
        BudgetError, match=r"census: the policy's table, or a file of it, is that of the lineage 'adult'"
    ):
        ledger.pin(lineage="census", run_id="r1", snapshot="s", files=("b", "a"))
    assert [run.state for run in ledger.balance("census").runs] == ["bound"]
    ledger.pin(lineage="census", run_id="r1", snapshot="s", files=("b",))
    with pytest.raises(BudgetError, match="is that of the lineage 'census'"):
        reserve(ledger, "r2", table="path", files=("b",))


# ------------------------------------------------------------------------------------------------- what is protected


def test_losses_of_rows_and_of_persons_do_not_add_up(ledger: Ledger):
    reserve(ledger, unit="row", table="one")
    for unit in ("person id", "person household"):
        with pytest.raises(BudgetError, match=rf"adult protects 'row' \(table.entity_id\).* Got '{unit}'"):
            reserve(ledger, "r2", unit=unit, table="one")
    with pytest.raises(BudgetError, match="losses of another unit do not add up"):
        move(ledger, unit="person id")
    assert reserve(ledger, "r2", unit="row", table="one").fresh
    move(ledger, lineage="persons", unit="person id", beside=["adult"])
    assert reserve(ledger, lineage="persons", unit="person id", table="one").fresh


def test_the_column_of_a_person_may_get_another_name_by_statement(ledger: Ledger):
    reserve(ledger, unit="person id", table="one")
    with pytest.raises(BudgetError, match="Got 'person pid'"):
        reserve(ledger, "r2", unit="person pid", table="one")
    move(ledger, unit="person pid", reason="renamed")
    assert reserve(ledger, "r2", unit="person pid", table="one").fresh


def test_a_lineage_whose_unit_nobody_said_takes_the_first_one(ledger: Ledger):
    reserve(ledger)
    reserve(ledger, "r2", unit="row")
    with pytest.raises(BudgetError, match="protects 'row'"):
        reserve(ledger, "r3", unit="person id")


# -------------------------------------------------------------------------------------------------------- the notes


def test_a_note_binds_no_cap(ledger: Ledger):
    note(ledger)
    assert ledger.balance("adult").cap_epsilon is None
    assert reserve(ledger, epsilon="3").cap_epsilon == 4
    publish(ledger)


def test_a_note_after_charges_repeats_the_cap(ledger: Ledger):
    reserve(ledger, epsilon="3")
    note(ledger)
    with pytest.raises(BudgetError, match=r"cap.epsilon must be at most 4"):
        reserve(ledger, "r2", cap_epsilon="5")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"what": "as-published"}, "guarantee.kind"),
        ({"place": "/elsewhere"}, "output.path"),
        ({"table": "two"}, "table"),
        ({"what": "as-published", "place": "/elsewhere"}, "guarantee.kind, output.path"),
    ],
)
def test_two_releases_are_not_one_note(ledger: Ledger, change: dict[str, str], named: str):
    noted = note(ledger, table="one")
    assert (noted.state, noted.fresh) == ("noted", False)
    move(ledger, table="two")
    assert note(ledger, table="one").events == 2
    for act in (ledger.note, ledger.would_note):
        with pytest.raises(BudgetError, match=rf"run id n1 was noted for another release .* What differs: {named}\."):
            act(**{"lineage": "adult", "run_id": "n1", "what": "risk", "place": "/out", "table": "one"} | change)


def test_a_note_is_refused_before_anything_is_written(ledger: Ledger, place: Place):
    asked: dict[str, Any] = {"lineage": "adult", "run_id": "r1", "what": "risk", "place": "/out", "table": "one"}
    ledger.would_note(**asked)
    assert not place.exists()
    reserve(ledger, table="one")
    with pytest.raises(BudgetError, match=r"run id r1 of ledger.lineage adult is charged"):
        ledger.would_note(**asked)
    with pytest.raises(BudgetError, match="of another table"):
        ledger.would_note(**asked | {"run_id": "n1", "table": "two"})
    ledger.would_note(**asked | {"run_id": "n1"})
    assert [run.run_id for run in ledger.balance("adult").runs] == ["r1"]
    bind(ledger)
