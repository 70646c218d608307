"""What a privacy-budget ledger is stored in: one table of events, whatever the database.

The rules are in `privrisk_spark.ledger.account` and the same everywhere; a storage only says where the events
lie, how writers of one lineage wait for each other, and what keeps an event from being changed. Of the events the
database itself demands three things: none is changed or removed, those of a lineage are numbered 1, 2, 3, …, and a run
has each state once.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Final, Protocol

import sqlalchemy as sa

__all__ = ["Storage", "events", "metadata"]

metadata: Final = sa.MetaData()

events: Final = sa.Table(
    "events",
    metadata,
    sa.Column("sequence", sa.Integer, nullable=False),
    sa.Column("lineage", sa.Text, nullable=False),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("epsilon", sa.Text, nullable=False),
    sa.Column("delta", sa.Text, nullable=False),
    sa.Column("cap_epsilon", sa.Text, nullable=False),
    sa.Column("cap_delta", sa.Text, nullable=False),
    sa.Column("spent_epsilon_before", sa.Text, nullable=False),
    sa.Column("spent_epsilon_after", sa.Text, nullable=False),
    sa.Column("spent_delta_before", sa.Text, nullable=False),
    sa.Column("spent_delta_after", sa.Text, nullable=False),
    sa.Column("mechanism", sa.Text, nullable=False),
    sa.Column("mechanism_digest", sa.Text, nullable=False),
    sa.Column("snapshot", sa.Text),
    sa.Column("nothing_left_the_zone", sa.Boolean, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("created_at", sa.Text, nullable=False),
    # What holds a run to one draw.
    sa.Column("asked", sa.Text),
    sa.Column("key_commitment", sa.Text),
    sa.Column("place", sa.Text),
    sa.Column("release_digest", sa.Text),
    # Which table the lineage is of, and the event's own hash (`privrisk_spark.ledger.chain`).
    sa.Column("table_identity", sa.Text),
    sa.Column("chain", sa.Text),
    # What a reservation was held against the cap with, where the sums do not bind.
    sa.Column("composed_epsilon", sa.Text),
    # What the releases of the lineage protect.
    sa.Column("unit", sa.Text),
    # Identities of files of the table that the lineage did not hold before, as a JSON list.
    sa.Column("files", sa.Text),
    sa.PrimaryKeyConstraint("lineage", "sequence", name="events_one_per_number"),
    sa.UniqueConstraint("lineage", "run_id", "state", name="events_one_per_state"),
)


class Storage(Protocol):
    """Where the events of a ledger lie.

    Attributes
    ----------
    grants : tuple of str
        What the owner of the ledger grants to another ``{role}`` that uses it; empty where files have owners instead.
    """

    grants: tuple[str, ...]

    def exists(self) -> bool:
        """Tell whether there is a ledger.

        Raises
        ------
        EngineError
            If the database or file system does not say.
        """

    def create(self) -> None:
        """Create an empty ledger if there is none; if several processes do so at once, all use one.

        Raises
        ------
        InputError
            If what is there is something else, or the role may not create it.
        EngineError
            If it cannot be created.
        """

    def transaction(
        self, lineage: str | None, *, read_only: bool, tables: Collection[str] = ()
    ) -> AbstractContextManager[sa.Connection]:
        """Open an existing ledger for one transaction: committed when the block ends, rolled back when it raises.

        Parameters
        ----------
        lineage : str or None
            The lineage that is written. What a writer reads of it cannot change before the commit.
        tables : collection of str
            Identities of tables and files. If there are any, no other writer changes which lineage holds which table.
        read_only : bool
            False waits for other writers, for up to 30 s.

        Returns
        -------
        context manager of sqlalchemy.Connection

        Raises
        ------
        InputError
            If what is there is something else, or the role may not use it.
        EngineError
            If the database fails in any way, or is no longer append-only.
        """
