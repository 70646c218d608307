"""The reading side of a ledger: balances and whole histories, replayed from the events at every call."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeGuard

import sqlalchemy as sa

from privrisk_spark.ledger.account import Account, BrokenHistoryError, balance_of, beside_of, held_by, replay
from privrisk_spark.ledger.records import Balance
from privrisk_spark.ledger.request import is_lineage, lineage_name
from privrisk_spark.ledger.storage import events
from privrisk_spark.ledger.urls import storage_of

__all__ = ["LedgerReading"]


class LedgerReading:
    """What can be read of a ledger; `privrisk_spark.ledger.ledger.Ledger` adds what is written.

    Parameters
    ----------
    url : str
        As `Ledger` has it.
    """

    def __init__(self, url: str) -> None:
        self._storage = storage_of(url)

    @property
    def grants(self) -> tuple[str, ...]:
        """SQL the ledger's owner runs so that another ``{role}`` can use it; empty for a file."""
        return self._storage.grants

    def lineages(self) -> tuple[str, ...]:
        """Return the names of all lineages of the ledger, in alphabetical order; none without a ledger.

        What stands in the place of a name and is none, `histories` tells; no policy can name it.

        Raises
        ------
        EngineError
            If the database fails.
        """
        if not self._storage.exists():
            return ()
        with self._storage.transaction(None, read_only=True) as connection:
            return tuple(sorted(name for name in self._names(connection) if _is_spelled(name)))

    def balance(self, lineage: str) -> Balance:
        """Return what a lineage has spent; all zero, without a cap, if the ledger does not know it.

        Parameters
        ----------
        lineage : str
            The lineage.

        Raises
        ------
        EngineError
            If the database fails or its totals do not follow from its events.
        """
        return balance_of(self._account(lineage))

    def histories(self) -> tuple[dict[str, Account], dict[str, BrokenHistoryError]]:
        """Return all lineages as they replay, and those that do not.

        Returns
        -------
        accounts : dict of str to Account
            By name.
        broken : dict of str to BrokenHistoryError
            By name, quoted where it is none: the first event that is not what was written.

        Raises
        ------
        EngineError
            If the database fails, or is no longer append-only.
        """
        accounts, broken = {}, {}
        for name in self.lineages():
            try:
                accounts[name] = self._account(name)
            except BrokenHistoryError as error:
                broken[name] = error
        return accounts, broken | self._nameless()

    def _account(self, lineage: str) -> Account:
        if not self._storage.exists():
            return replay(lineage_name(lineage), ())
        with self._storage.transaction(lineage_name(lineage), read_only=True) as connection:
            return self._replay(connection, lineage)

    def _replay(self, connection: sa.Connection, lineage: str) -> Account:
        name = lineage_name(lineage)
        # Not by the columns' types, which SQLite does not enforce.
        every = sa.select(sa.text("*")).select_from(events)
        found = connection.execute(every.where(events.c.lineage == name).order_by(events.c.sequence)).mappings()
        return replay(name, ({**row} for row in found))

    def _names(self, connection: sa.Connection) -> list[object]:
        """Whatever stands in the place of a lineage's name."""
        # Not by the column's type, which SQLite does not hold anybody to.
        found = sa.select(sa.text("lineage")).select_from(events).distinct()
        return list(connection.execute(found).scalars())

    def _nameless(self) -> dict[str, BrokenHistoryError]:
        """Return what stands in the place of a name and is none, with its first event."""
        if not self._storage.exists():
            return {}
        found = {}
        with self._storage.transaction(None, read_only=True) as connection:
            for name in self._names(connection):
                if not _is_spelled(name):
                    of = sa.type_coerce(events.c.lineage, sa.types.NullType()) == name
                    first = connection.execute(sa.select(sa.func.min(events.c.sequence)).where(of)).scalar_one()
                    found[ascii(name)] = BrokenHistoryError(first, "has a name of its lineage that is none")
        return found

    def _holders(self, connection: sa.Connection, account: Account, tables: Collection[str]) -> frozenset[str]:
        """Return the other lineages of a table or of a file of it, without those stated to be beside this one."""
        if not tables:
            return frozenset()
        mine, wanted = lineage_name(account.lineage), frozenset(tables)
        holders, beside = set(), set(account.beside)
        told = sa.select(
            events.c.lineage, events.c.state, events.c.mechanism, events.c.table_identity, events.c.files
        ).where(sa.or_(events.c.table_identity.is_not(None), events.c.files.is_not(None)))
        for row in connection.execute(told.where(events.c.lineage != mine)).mappings():
            if not is_lineage(row["lineage"]):
                continue
            if not wanted.isdisjoint(held_by({**row})):
                holders.add(lineage_name(row["lineage"]))
            if row["state"] == "moved" and mine in beside_of(row["mechanism"]):
                beside.add(lineage_name(row["lineage"]))
        return frozenset(holders - beside)


def _is_spelled(name: object) -> TypeGuard[str]:
    """Tell whether what stands in the place of a name is one, spelled as the ledger does: no other is looked up."""
    return is_lineage(name) and lineage_name(name) == name
