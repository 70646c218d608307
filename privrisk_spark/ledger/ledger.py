"""Privacy-budget ledger: what has been spent on each table, append-only and exact.

A *lineage* names one table through all its snapshots, together with the unit that is protected. Every
release drawn from the table charges the same lineage, because the losses of two releases of one table add
up, whatever they are called. A run reserves its budget **before** its release key exists, and the
reservation is never given back unless the caller states that nothing left the trusted zone: a crash, a
retry or an unlucky result costs what was reserved. From then on it is held to one draw: to its key and place
before it reads anything, to what it read, and to what it publishes before anybody sees it (docs/charge.md).

Accounting is basic composition: the epsilons add, the deltas add (Dwork and Roth, *The Algorithmic
Foundations of Differential Privacy*, 2014, Theorem 3.16); or, where a reservation asks for it, the tight composition
of all runs (`privrisk_spark.ledger.composition`). Amounts are decimals, kept as text and added as
exact fractions, so that three times 0.1 is 0.3 and a cap of 0.3 admits it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import sqlalchemy as sa

from privrisk_spark.errors import BudgetError
from privrisk_spark.ledger import rows
from privrisk_spark.ledger.account import Account, balance_of
from privrisk_spark.ledger.commitments import binds, commits, confirm, pins, refuse_other_place
from privrisk_spark.ledger.decision import (
    decide,
    on_record,
    refuse_accepted,
    refuse_noted,
    refuse_second_budget,
    refuse_withdrawn,
)
from privrisk_spark.ledger.reconciliation import refuse_forgotten
from privrisk_spark.ledger.records import Balance, Reservation, Run
from privrisk_spark.ledger.request import Request, check_name, lineage_name
from privrisk_spark.ledger.statements import LONGEST_PLACE, LedgerStatements
from privrisk_spark.runs.witnesses import Seen

__all__ = ["Balance", "Ledger", "Reservation", "Run"]


class _UnknownRunError(BudgetError):
    """The lineage has no such run."""


class Ledger(LedgerStatements):
    """Privacy-budget ledger in one SQLite file, or in a PostgreSQL database.

    Parameters
    ----------
    url : str
        ``sqlite:///relative/path`` or ``sqlite:////absolute/path``. The file appears at the first
        reservation: mode 0600, in a directory of mode 0700 if that is missing too. Keep it on a local disk
        (SQLite's locks are not reliable on network file systems), with the vault, and back it up: a lost
        ledger is a lost history.

        ``postgresql+psycopg://role:password@host/database``, with connection parameters of libpq behind a
        ``?``. The ledger appears at the first reservation, in a schema of its own.

        ``env:NAME`` stands for the URL that an environment variable holds.

    Raises
    ------
    InputError
        If the URL names another database, no file or no database, a variable that is not set, or a driver that
        is not installed. No error repeats the URL, which may hold a password.

    Notes
    -----
    Every change is one transaction: writers of a lineage queue for up to 30 s, each sees all earlier
    reservations, and no two can spend the same remainder. Any database failure is an `EngineError`; a caller
    that gets one must not draw, and may repeat the call: a run id is charged once. Balances are replayed from
    the events at every call and compared with the running totals stored beside them, so that a tampered ledger
    is refused, not believed.

    Examples
    --------
    >>> ledger = Ledger("sqlite:////vault/ledger.db")  # doctest: +SKIP
    >>> request = Request(lineage="adult", run_id="2026-11", epsilon="1", delta="1e-9", cap_epsilon="4",
    ...                   cap_delta="1e-7", mechanism={"k": 31})
    >>> ledger.reserve(request).fresh  # doctest: +SKIP
    True
    """

    def create(self) -> None:
        """Create an empty ledger if there is none; `reserve` does so if it may.

        Raises
        ------
        InputError
            If what is there is no ledger, or the role may not create one.
        EngineError
            If the database fails.
        """
        self._storage.create()
        # Refuses a file or schema that is not a ledger of ours.
        with self._storage.transaction(None, read_only=True):
            pass

    def reserve(self, request: Request, *, seen: Seen | None = None) -> Reservation:
        """Charge a run to its lineage, before its release key exists.

        Parameters
        ----------
        seen : Seen, optional
            What output and vault know of the ledger (`privrisk_spark.runs.witnesses.look`), looked up before this call.

        Returns
        -------
        Reservation
            With ``fresh=False`` if the same run was reserved earlier with the same mechanism, epsilon and
            delta; such a retry costs nothing and its cap is not looked at.

        Raises
        ------
        BudgetError
            If the sum over the lineage's counted runs and this one would exceed a cap, a cap was raised,
            the run id was reserved with other parameters (the message names them), or the run was voided; if the
            lineage is of another table or protects another unit; if another lineage of the ledger is of the same table;
            if the ledger has forgotten what output or vault know of the lineage.
        EngineError
            If the database fails; nothing is reserved then.
        """
        if request.accounting == "pld":
            # Composed once before anybody has to wait; in the transaction it is known unless another run came between.
            with suppress(BudgetError):
                decide(self._account(request.lineage), request)
        with self._stated(request.lineage, request.tables, seen) as (connection, account):
            reservation = self._decided(connection, account, request)
            if reservation.fresh:
                head = self._append(connection, account, rows.charge(account, request, reservation.composed_epsilon))
                reservation = replace(reservation, events=len(account.chain) + 1, head=head)
        return reservation

    def would_cost(self, request: Request, *, seen: Seen | None = None) -> Reservation:
        """Return what `reserve` would return, or raise what it would raise, and write nothing.

        A ledger that does not exist yet counts as empty and is not created. Parameters, result and errors
        are those of `reserve`. The answer holds for the moment only: another run may reserve in between.
        """
        if self._storage.exists():
            with self._storage.transaction(lineage_name(request.lineage), read_only=True) as connection:
                account = self._replay(connection, request.lineage)
                self._refuse_forgotten(connection, account, seen)
                return self._decided(connection, account, request)
        account = self._account(request.lineage)
        refuse_forgotten(account, frozenset(), seen or Seen())
        return decide(account, request)

    def bind(self, *, lineage: str, run_id: str, key: str, place: str) -> Reservation:
        """Hold a charged run to one key and one place, before anything private is read for it.

        Parameters
        ----------
        lineage, run_id : str
            As reserved.
        key : str
            Commitment to the release key (`privrisk_spark.runs.keystore.key_commitment`), never the key.
        place : str
            Where the release goes, resolved.

        Returns
        -------
        Reservation
            Binding again to the same changes nothing.

        Raises
        ------
        BudgetError
            If the run was never reserved, is bound to another key or place, or was voided.
        EngineError
            If the database fails; nothing may be read then.
        """
        key, place = check_name("key", key), check_name("output.path", place, longest=LONGEST_PLACE)
        with self._change(lineage, run_id) as (connection, account, run):
            _refuse_uncharged(run)
            if binds(run, key=key, place=place):
                self._append(connection, account, rows.step(account, run, "bound", key_commitment=key, place=place))
            return self._on_record(connection, lineage, run_id)

    def pin(self, *, lineage: str, run_id: str, snapshot: str, files: Sequence[str] = ()) -> Reservation:
        """Hold a bound run to what it read, and its lineage to the files that were read.

        Parameters
        ----------
        lineage, run_id : str
            As reserved.
        snapshot : str
            Identity of the content.
        files : sequence of str
            Identities of all files that were read, as `reserve` has them.

        Returns
        -------
        Reservation
            Pinning again to the same changes nothing.

        Raises
        ------
        BudgetError
            If the run was never reserved, first read other content, or was voided; if another lineage holds a file.
        EngineError
            If the database fails; nothing may be drawn then.
        """
        snapshot = check_name("snapshot", snapshot)
        with self._change(lineage, run_id, tables=files) as (connection, account, run):
            _refuse_uncharged(run)
            refuse_second_budget(account, self._holders(connection, account, files))
            if pins(run, snapshot=snapshot):
                new = rows.new_files(account, files)
                self._append(connection, account, rows.step(account, run, "pinned", snapshot=snapshot, files=new))
            return self._on_record(connection, lineage, run_id)

    def commit(self, *, lineage: str, run_id: str, release: str) -> Reservation:
        """Record what a pinned run publishes, before anybody can see it.

        Parameters
        ----------
        lineage, run_id : str
            As reserved.
        release : str
            Digest of all that will be published.

        Returns
        -------
        Reservation
            In state ``committed``. Committing again to the same changes nothing and is no error.

        Raises
        ------
        BudgetError
            If the run was never reserved, was voided, or is committed to another release.
        EngineError
            If the database fails; nothing may be published then.
        """
        release = check_name("release", release)
        with self._change(lineage, run_id) as (connection, account, run):
            _refuse_uncharged(run)
            if commits(run, release=release):
                event = rows.step(account, run, "committed", snapshot=run.snapshot, release_digest=release)
                self._append(connection, account, event)
            return self._on_record(connection, lineage, run_id)

    def confirm(self, request: Request, *, place: str, release: str) -> Reservation:
        """Hold a release that is published against the ledger; nothing is charged.

        Parameters
        ----------
        request : Request
            What is asked for now.
        place : str
            Where the release lies, resolved.
        release : str
            Its digest.

        Returns
        -------
        Reservation
            In state ``committed``.

        Raises
        ------
        BudgetError
            If the ledger does not know the run, or knows another release of it, or another one is asked for.
        EngineError
            If the database fails.
        """
        place = check_name("output.path", place, longest=LONGEST_PLACE)
        try:
            with self._change(request.lineage, request.run_id) as (_, account, run):
                refuse_noted(run)
                confirm(run, request, place=place, release=release)
                return on_record(account, run)
        except _UnknownRunError:
            raise BudgetError(
                f"output.path holds a release of run id {request.run_id}, which ledger.lineage {request.lineage} does "
                "not know. Name the ledger and lineage it was charged to, or restore the ledger from its latest backup."
            ) from None

    def void(
        self,
        *,
        lineage: str,
        run_id: str,
        reason: str,
        nothing_left_the_zone: bool = False,
        examine: Callable[[Run], None] | None = None,
        seen: Seen | None = None,
    ) -> Balance:
        """Close a reserved run that will not be published; its id can never be reserved again.

        Parameters
        ----------
        lineage, run_id : str
            As reserved.
        reason : str
            Why, for the record. Never a record's value.
        nothing_left_the_zone : bool, default False
            By default the budget **stays spent**: whether and how a run ended is itself an output. Pass
            True only if nothing that depends on the data left the trusted zone: no file, number, log line,
            error text or timing, and no decision made after looking at a result ("the utility was poor") -
            such a decision is an output as well. A run that never opened its snapshot qualifies. Only then
            is the reservation given back. The run must also have ended; whatever it still does, it cannot publish
            any more, as its `commit` will be refused.
        examine : callable, optional
            Called, before a run is closed, with the run as the ledger knows it; what it raises is a refusal.
        seen : Seen, optional
            As `reserve` has it.

        Returns
        -------
        Balance
            Of the lineage, afterwards.

        Raises
        ------
        BudgetError
            If the run was never reserved, or was committed, or was voided earlier without the statement
            that is made now, or it cannot be held against anything; if the ledger has forgotten what output or vault
            know of the lineage. Repeating the same void changes nothing.
        EngineError
            If the database fails; the run then stays as it was.
        """
        reason = check_name("reason", reason)
        with self._change(lineage, run_id, seen) as (connection, account, run):
            _refuse_uncharged(run)
            refuse_withdrawn(run)
            if run.state == "committed":
                raise BudgetError(f"run id {run_id} is committed: what was published cannot be voided.")
            if run.state == "void" and run.counted and nothing_left_the_zone:
                raise BudgetError(
                    f"run id {run_id} was voided with its budget kept as spent; that cannot be taken back."
                )
            if run.state != "void":
                if examine is not None:
                    examine(run)
                event = rows.step(account, run, "void", reason=reason, nothing_left=nothing_left_the_zone)
                self._append(connection, account, event)
            return balance_of(self._replay(connection, lineage))

    def withdraw(self, *, lineage: str, run_id: str, reason: str, place: str, seen: Seen | None = None) -> Reservation:
        """Record that a published release is taken away; what it was charged stays spent.

        Parameters
        ----------
        lineage, run_id : str
            As reserved or noted.
        reason : str
            For the record. Never a record's value.
        place : str
            Where the release is published, resolved.
        seen : Seen, optional
            As `reserve` has it.

        Returns
        -------
        Reservation
            In state ``withdrawn``. Withdrawing again changes nothing.

        Raises
        ------
        BudgetError
            If the lineage does not know the run; if no release of it was published, or at another place; if the ledger
            has forgotten what output or vault know of the lineage.
        EngineError
            If the database fails; nothing may be removed then.
        """
        reason = check_name("reason", reason)
        unknown = (
            f"run id {run_id} is not in ledger.lineage {lineage}, so its release cannot be withdrawn there. Fix: name "
            "the ledger and the lineage that it was charged to. If that ledger is lost for good, charge the release "
            "again with 'privrisk ledger reconcile --accept', and then withdraw it."
        )
        with self._change(lineage, run_id, seen, unknown=unknown) as (connection, account, run):
            if run.state != "withdrawn":
                if run.state not in ("committed", "noted", "accepted"):
                    raise BudgetError(
                        f"run id {run_id} is {run.state} in ledger.lineage {account.lineage}, so no release of it was "
                        "published. Close it with 'privrisk ledger void'."
                    )
                refuse_other_place(run_id, run.place, place)
                event = rows.step(
                    account,
                    run,
                    "withdrawn",
                    reason=reason,
                    snapshot=run.snapshot,
                    place=run.place,
                    release_digest=run.release,
                )
                self._append(connection, account, event)
            return self._on_record(connection, lineage, run_id)

    @contextmanager
    def _change(
        self,
        lineage: str,
        run_id: str,
        seen: Seen | None = None,
        *,
        tables: Sequence[str] = (),
        unknown: str | None = None,
    ) -> Iterator[tuple[sa.Connection, Account, Run]]:
        lineage, run_id = check_name("lineage", lineage), check_name("run_id", run_id)
        refusal = _UnknownRunError(
            unknown or f"run id {run_id} is not reserved in ledger.lineage {lineage}; reserve it before it is closed."
        )
        if not self._storage.exists():
            refuse_forgotten(self._account(lineage), frozenset(), seen or Seen())
            raise refusal
        self._storage.create()
        with self._storage.transaction(lineage_name(lineage), read_only=False, tables=tables) as connection:
            account = self._replay(connection, lineage)
            self._refuse_forgotten(connection, account, seen)
            if run_id not in account.runs:
                raise refusal
            yield connection, account, account.runs[run_id]

    def _decided(self, connection: sa.Connection, account: Account, request: Request) -> Reservation:
        reservation = decide(account, request)
        if reservation.fresh:
            refuse_second_budget(account, self._holders(connection, account, request.tables))
        return reservation

    def _on_record(self, connection: sa.Connection, lineage: str, run_id: str) -> Reservation:
        account = self._replay(connection, lineage)
        return on_record(account, account.runs[run_id])


def _refuse_uncharged(run: Run) -> None:
    """Refuse a run that was noted, or charged again, and can be taken no further."""
    refuse_noted(run)
    refuse_accepted(run)
