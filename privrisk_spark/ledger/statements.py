"""What is told to a ledger beside charges: releases that are not private, tables that moved, and what was lost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import sqlalchemy as sa

from privrisk_spark.errors import BudgetError
from privrisk_spark.ledger import rows
from privrisk_spark.ledger.account import Account
from privrisk_spark.ledger.chain import COLUMN, link
from privrisk_spark.ledger.decision import (
    on_record,
    refuse_accepted,
    refuse_other_table,
    refuse_second_budget,
    refuse_withdrawn,
)
from privrisk_spark.ledger.reading import LedgerReading
from privrisk_spark.ledger.reconciliation import Lost, lost_by, refuse_forgotten
from privrisk_spark.ledger.records import Reservation, Run
from privrisk_spark.ledger.request import canonical, check_name, is_lineage, lineage_name
from privrisk_spark.ledger.storage import events
from privrisk_spark.runs.witnesses import Seen

__all__ = ["LONGEST_PLACE", "LedgerStatements"]

LONGEST_PLACE: Final = 4096


class LedgerStatements(LedgerReading):
    """What can be told to a ledger without a reservation; `privrisk_spark.ledger.ledger.Ledger` adds those.

    Parameters
    ----------
    url : str
        As `Ledger` has it.
    """

    def note(
        self,
        *,
        lineage: str,
        run_id: str,
        what: str,
        place: str,
        table: str | None = None,
        files: Sequence[str] = (),
        seen: Seen | None = None,
    ) -> Reservation:
        """Record a release of the table that is not private, before anybody can see it; nothing is charged.

        Parameters
        ----------
        what : str
            Its kind of guarantee.
        place : str
            Where the release goes, resolved.
        table, files, seen
            As `Ledger.reserve` has them.

        Returns
        -------
        Reservation
            Of no cost. Noting the same release again changes nothing.

        Raises
        ------
        BudgetError
            If the run id is that of a charged run, or of another release that was noted; if the lineage is of another
            table, or another lineage is of this one; if the ledger has forgotten what output or vault know of it.
        EngineError
            If the database fails.
        """
        tables = frozenset((*([] if table is None else [table]), *files))
        lineage, run_id = check_name("lineage", lineage), check_name("run_id", run_id)
        what, place = check_name("what", what), check_name("output.path", place, longest=LONGEST_PLACE)
        with self._stated(lineage, tables, seen) as (connection, account):
            if self._refuse_note(connection, account, run_id, what=what, place=place, tables=tables):
                self._append(
                    connection, account, rows.note(account, run_id, what, place=place, table=table, files=files)
                )
            noted = self._replay(connection, lineage)
            return on_record(noted, noted.runs[run_id])

    def would_note(
        self,
        *,
        lineage: str,
        run_id: str,
        what: str,
        place: str,
        table: str | None = None,
        files: Sequence[str] = (),
        seen: Seen | None = None,
    ) -> None:
        """Raise what `note` would raise, and write nothing, so that a run can be refused before it does its work."""
        tables = frozenset((*([] if table is None else [table]), *files))
        lineage, run_id = check_name("lineage", lineage), check_name("run_id", run_id)
        if not self._storage.exists():
            refuse_forgotten(self._account(lineage), frozenset(), seen or Seen())
            return
        with self._storage.transaction(lineage_name(lineage), read_only=True) as connection:
            account = self._replay(connection, lineage)
            self._refuse_forgotten(connection, account, seen)
            self._refuse_note(connection, account, run_id, what=what, place=place, tables=tables)

    def move(
        self,
        *,
        lineage: str,
        table: str,
        reason: str,
        files: Sequence[str] = (),
        unit: str | None = None,
        beside: Sequence[str] = (),
        seen: Seen | None = None,
    ) -> None:
        """Record the statement that the table of a lineage is at another place now, or that it has other lineages, too.

        Parameters
        ----------
        table : str
            Identity of the table there.
        reason : str
            For the record. Never a record's value.
        files : sequence of str
            As `Ledger.reserve` has it.
        unit : str, optional
            What releases of it protect, under the name its column has now.
        beside : sequence of str
            Other lineages of the ledger that are of the same table: their losses are counted apart from now on, so that
            nobody is promised what all lineages cost together.
        seen : Seen, optional
            As `Ledger.reserve` has it.

        Raises
        ------
        BudgetError
            If the ledger knows no table of the lineage and none is beside it; if another lineage is of the table and
            was not named, or one that was named is not in the ledger; if the unit is of another kind; if the ledger
            has forgotten what output or vault know.
        """
        table, reason = check_name("table", table), check_name("reason", reason)
        named = frozenset(lineage_name(one) for one in beside)
        if not named and not self._account(lineage).tables:
            raise BudgetError(
                f"ledger.lineage {lineage_name(lineage)} is not bound to a table yet: its next reservation binds it."
            )
        tables = (table, *files)
        with self._stated(lineage, tables, seen) as (connection, account):
            holders = self._holders(connection, account, tables)
            # Which files a table of a catalog has is not known here, so any lineage of the ledger may be named.
            known = {lineage_name(name) for name in self._names(connection) if is_lineage(name)}
            if named - known:
                raise BudgetError(
                    f"--beside: the ledger has no lineage {', '.join(map(repr, sorted(named - known)))}. It has "
                    f"{', '.join(map(repr, sorted(known))) or 'none'}."
                )
            refuse_second_budget(account, holders - named)
            _refuse_other_kind(account, unit)
            new = named - account.beside
            if new or not account.tables.issuperset(tables) or (unit is not None and unit not in account.units):
                event = rows.move(account, table, reason, files=files, unit=unit, beside=sorted(new))
                self._append(connection, account, event)

    def accept(self, *, lineage: str, reason: str, seen: Seen) -> tuple[Lost, ...]:
        """Record that events of a lineage are lost for good, and charge again what is published and known of them.

        Parameters
        ----------
        reason : str
            For the record. Never a record's value.
        seen : Seen
            All that outputs and vaults of the lineage know.

        Returns
        -------
        tuple of Lost
            What was charged, run by run. It is charged even above the cap, which then refuses everything.

        Raises
        ------
        InputError
            If a manifest does not say what its release costs.
        EngineError
            If the database fails; nothing is recorded then.
        """
        lineage, reason = check_name("lineage", lineage), check_name("reason", reason)
        self._storage.create()
        with self._storage.transaction(lineage_name(lineage), read_only=False) as connection:
            found = lost_by(self._replay(connection, lineage), self._known_runs(connection), seen)
            for lost in found:
                account = self._replay(connection, lineage)
                self._append(connection, account, rows.accept(account, lost, reason))
            self._replay(connection, lineage)
        return tuple(found)

    @contextmanager
    def _stated(
        self, lineage: str, tables: Collection[str], seen: Seen | None
    ) -> Iterator[tuple[sa.Connection, Account]]:
        """Open the ledger to write to a lineage, unless it has forgotten something of it."""
        if seen is not None and not self._storage.exists():
            # A ledger that is lost is not begun again under what is published by it.
            refuse_forgotten(self._account(lineage), frozenset(), seen)
        self._storage.create()
        with self._storage.transaction(lineage_name(lineage), read_only=False, tables=tables) as connection:
            account = self._replay(connection, lineage)
            self._refuse_forgotten(connection, account, seen)
            yield connection, account

    def _refuse_note(
        self,
        connection: sa.Connection,
        account: Account,
        run_id: str,
        *,
        what: str,
        place: str,
        tables: Collection[str],
    ) -> bool:
        """Tell whether a note is to be written, or refuse it."""
        run = account.runs.get(run_id)
        if run is not None:
            refuse_withdrawn(run)
            refuse_accepted(run)
            if run.state != "noted":
                raise BudgetError(f"run id {run_id} of ledger.lineage {account.lineage} is charged; use a new run id.")
            _refuse_other_note(run, what=what, place=place, tables=tables)
            return False
        refuse_other_table(account, tables)
        refuse_second_budget(account, self._holders(connection, account, tables))
        return True

    def _refuse_forgotten(self, connection: sa.Connection, account: Account, seen: Seen | None) -> None:
        if seen is not None:
            refuse_forgotten(account, self._known_runs(connection), seen)

    def _known_runs(self, connection: sa.Connection) -> frozenset[str]:
        return frozenset(connection.execute(sa.select(events.c.run_id).distinct()).scalars())

    def _append(self, connection: sa.Connection, account: Account, event: Mapping[str, object]) -> str:
        whole = {"lineage": account.lineage, **event}
        head = link(account.head, whole)
        connection.execute(events.insert(), {"sequence": len(account.chain) + 1, **whole, COLUMN: head})
        return head


def _refuse_other_note(run: Run, *, what: str, place: str, tables: Collection[str]) -> None:
    """Refuse to take a release for one that was noted under its run id."""
    agrees = {
        "guarantee.kind": run.mechanism == canonical(rows.noted(what)),
        "output.path": run.place == place,
        "table": run.table is None or not tables or run.table in tables,
    }
    found = [name for name, same in agrees.items() if not same]
    if found:
        raise BudgetError(
            f"run id {run.run_id} was noted for another release that is not private; use a new run id. What differs: "
            f"{', '.join(found)}."
        )


def _refuse_other_kind(account: Account, unit: str | None) -> None:
    """Refuse to move from rows to persons or back: that is no other name of one thing."""
    kinds = {known.partition(" ")[0] for known in account.units}
    if unit is not None and kinds and unit.partition(" ")[0] not in kinds:
        raise BudgetError(
            f"ledger.lineage {account.lineage} protects {' or '.join(map(repr, sorted(account.units)))}, and losses of "
            f"another unit do not add up with its. Got {unit!r} (table.entity_id). Take a lineage of its own, with "
            "'privrisk ledger move --beside'."
        )
