"""Privacy-budget ledger: what has been spent on each table, append-only and exact.

A *lineage* names one table through all its snapshots, together with the unit that is protected. Every
release drawn from the table charges the same lineage, because the losses of two releases of one table add
up, whatever they are called. A run reserves its budget **before** its release key exists, and the
reservation is never given back unless the caller states that nothing left the trusted zone: a crash, a
retry or an unlucky result costs what was reserved.

Accounting is basic composition: the epsilons add, the deltas add (Dwork and Roth, *The Algorithmic
Foundations of Differential Privacy*, 2014, Theorem 3.16). Amounts are decimals, kept as text and added as
exact fractions, so that three times 0.1 is 0.3 and a cap of 0.3 admits it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal

import sqlalchemy as sa

from privrisk_spark.errors import BudgetError, InputError
from privrisk_spark.ledger.account import Account, Balance, Reservation, Run, balance_of, decide, on_record, replay
from privrisk_spark.ledger.amounts import decimal_of
from privrisk_spark.ledger.postgresql import LedgerServer
from privrisk_spark.ledger.request import Request, check_name, check_request
from privrisk_spark.ledger.sqlite import LedgerFile
from privrisk_spark.ledger.storage import Storage, events

__all__ = ["Balance", "Ledger", "Reservation", "Run"]

_FILE: Final = "sqlite:///"
_SERVER: Final = "postgresql+psycopg://"
_REFERENCE: Final = "env:"


class Ledger:
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
    >>> ledger.reserve(lineage="adult", run_id="2026-11", epsilon="1", delta="1e-9", cap_epsilon="4",
    ...                cap_delta="1e-7", mechanism={"k": 31}).fresh  # doctest: +SKIP
    True
    """

    def __init__(self, url: str) -> None:
        self._storage = _storage_of(url)

    @property
    def grants(self) -> tuple[str, ...]:
        """SQL the ledger's owner runs so that another ``{role}`` can use it; empty for a file."""
        return self._storage.grants

    def create(self) -> None:
        """Create an empty ledger if there is none; `reserve` does so by itself where it may.

        Raises
        ------
        InputError
            If what is there is no ledger, or the role may not create one.
        EngineError
            If the database fails.
        """
        self._storage.create()
        with self._storage.transaction(None, read_only=True):
            pass

    def lineages(self) -> tuple[str, ...]:
        """Return the names of all lineages that ever reserved, in alphabetical order; none without a ledger.

        Returns
        -------
        tuple of str

        Raises
        ------
        EngineError
            If the database fails.
        """
        if not self._storage.exists():
            return ()
        with self._storage.transaction(None, read_only=True) as connection:
            return tuple(sorted(connection.execute(sa.select(events.c.lineage).distinct()).scalars()))

    def reserve(
        self,
        *,
        lineage: str,
        run_id: str,
        epsilon: str | Decimal,
        delta: str | Decimal,
        cap_epsilon: str | Decimal,
        cap_delta: str | Decimal,
        mechanism: Mapping[str, object],
    ) -> Reservation:
        """Charge a run to its lineage, before its release key exists.

        Parameters
        ----------
        lineage : str
            The table through all its snapshots. Two products of one table share one lineage.
        run_id : str
            The run; one draw of randomness.
        epsilon, delta : str or decimal.Decimal
            What the run costs, non-negative, delta below 1. A certificate that is no finite decimal is
            rounded up by the caller. Floats are refused: 0.1 is not one.
        cap_epsilon, cap_delta : str or decimal.Decimal
            What the lineage may spend in all. They must equal the recorded cap or be lower; the lower one
            is then recorded with the reservation. Raising a cap is refused: whoever relied on the old
            promise would be left with less protection than was stated.
        mechanism : mapping
            JSON-able record of everything that fixes the draw (parameters, code version, and the snapshot
            if it is known by now). Never a key or a seed. Its digest tells a retry from another release.

        Returns
        -------
        Reservation
            With ``fresh=False`` if the same run was reserved earlier with the same mechanism, epsilon and
            delta; such a retry costs nothing and its cap is not looked at.

        Raises
        ------
        BudgetError
            If the sum over the lineage's counted runs and this one would exceed a cap, a cap was raised,
            the run id was reserved with other parameters, or the run was voided.
        InputError
            If an argument is malformed.
        EngineError
            If the database fails; nothing is reserved then.
        """
        request = check_request(lineage, run_id, epsilon, delta, cap_epsilon, cap_delta, mechanism)
        self._storage.create()
        with self._storage.transaction(request.lineage, read_only=False) as connection:
            account = self._replay(connection, request.lineage)
            reservation = decide(account, request)
            if reservation.fresh:
                self._append(connection, account, _reserved(account, request))
        return reservation

    def would_cost(
        self,
        *,
        lineage: str,
        run_id: str,
        epsilon: str | Decimal,
        delta: str | Decimal,
        cap_epsilon: str | Decimal,
        cap_delta: str | Decimal,
        mechanism: Mapping[str, object],
    ) -> Reservation:
        """Return what `reserve` would return, or raise what it would raise, and write nothing.

        A ledger that does not exist yet counts as empty and is not created. Parameters, result and errors
        are those of `reserve`. The answer holds for the moment only: another run may reserve in between.
        """
        request = check_request(lineage, run_id, epsilon, delta, cap_epsilon, cap_delta, mechanism)
        return decide(self._account(request.lineage), request)

    def commit(self, *, lineage: str, run_id: str, snapshot: str) -> Reservation:
        """Record that the release of a reserved run was published.

        Parameters
        ----------
        lineage, run_id : str
            As reserved.
        snapshot : str
            Identity of the immutable snapshot the release was drawn from.

        Returns
        -------
        Reservation
            In state ``committed``. Committing again with the same snapshot changes nothing and is no error.

        Raises
        ------
        BudgetError
            If the run was never reserved, was voided, or was committed on another snapshot.
        EngineError
            If the database fails; the run then stays reserved, and its budget spent.
        """
        lineage, run_id = check_name("lineage", lineage), check_name("run_id", run_id)
        snapshot = check_name("snapshot", snapshot)
        with self._change(lineage, run_id) as (connection, account, run):
            if run.state == "void":
                raise BudgetError(f"run id {run_id} was voided and cannot be committed; use a new run id.")
            if run.state == "committed" and run.snapshot != snapshot:
                raise BudgetError(
                    f"run id {run_id} was committed on another snapshot; a release of this one needs a new run id."
                )
            if run.state == "reserved":
                self._append(connection, account, _closed(account, run, "committed", snapshot=snapshot))
        return on_record(account, run, state="committed", snapshot=snapshot)

    def void(self, *, lineage: str, run_id: str, reason: str, nothing_left_the_zone: bool = False) -> Balance:
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
            is the reservation given back. The run must also have ended: a run that is still executing could
            publish afterwards (its `commit` will then be refused, but by then the data are out).

        Returns
        -------
        Balance
            Of the lineage, afterwards.

        Raises
        ------
        BudgetError
            If the run was never reserved, or was committed, or was voided earlier without the statement
            that is made now. Repeating the same void changes nothing.
        EngineError
            If the database fails; the run then stays as it was.
        """
        lineage, run_id, reason = (
            check_name("lineage", lineage),
            check_name("run_id", run_id),
            check_name("reason", reason),
        )
        with self._change(lineage, run_id) as (connection, account, run):
            if run.state == "committed":
                raise BudgetError(f"run id {run_id} is committed: what was published cannot be voided.")
            if run.state == "void" and run.counted and nothing_left_the_zone:
                raise BudgetError(
                    f"run id {run_id} was voided with its budget kept as spent; that cannot be taken back."
                )
            if run.state == "reserved":
                event = _closed(account, run, "void", reason=reason, nothing_left=nothing_left_the_zone)
                self._append(connection, account, event)
            return balance_of(self._replay(connection, lineage))

    def balance(self, lineage: str) -> Balance:
        """Return what a lineage has spent; all zero, without a cap, if the ledger does not know it.

        Parameters
        ----------
        lineage : str
            The lineage.

        Returns
        -------
        Balance

        Raises
        ------
        EngineError
            If the database fails or its totals do not follow from its events.
        """
        return balance_of(self._account(check_name("lineage", lineage)))

    @contextmanager
    def _change(self, lineage: str, run_id: str) -> Iterator[tuple[sa.Connection, Account, Run]]:
        unknown = BudgetError(
            f"run id {run_id} is not reserved in ledger.lineage {lineage}; reserve it before it is closed."
        )
        if not self._storage.exists():
            raise unknown
        with self._storage.transaction(lineage, read_only=False) as connection:
            account = self._replay(connection, lineage)
            if run_id not in account.runs:
                raise unknown
            yield connection, account, account.runs[run_id]

    def _account(self, lineage: str) -> Account:
        if not self._storage.exists():
            return replay(lineage, ())
        with self._storage.transaction(lineage, read_only=True) as connection:
            return self._replay(connection, lineage)

    def _replay(self, connection: sa.Connection, lineage: str) -> Account:
        rows = sa.select(events).where(events.c.lineage == lineage).order_by(events.c.sequence)
        found = connection.execute(rows).mappings()
        return replay(lineage, ({**row} for row in found), gapless=self._storage.gapless)

    def _append(self, connection: sa.Connection, account: Account, event: Mapping[str, object]) -> None:
        number = {"sequence": account.last + 1} if self._storage.gapless else {}
        connection.execute(events.insert(), {"lineage": account.lineage, **number, **event})


def _reserved(account: Account, request: Request) -> dict[str, object]:
    return {
        "run_id": request.run_id,
        "state": "reserved",
        "epsilon": str(decimal_of(request.epsilon)),
        "delta": str(decimal_of(request.delta)),
        "cap_epsilon": str(decimal_of(request.cap_epsilon)),
        "cap_delta": str(decimal_of(request.cap_delta)),
        **_totals(account, account.epsilon + request.epsilon, account.delta + request.delta),
        "mechanism": request.mechanism,
        "mechanism_digest": request.digest,
        "nothing_left_the_zone": False,
        "created_at": _now(),
    }


def _closed(
    account: Account,
    run: Run,
    state: Literal["committed", "void"],
    *,
    snapshot: str | None = None,
    reason: str | None = None,
    nothing_left: bool = False,
) -> dict[str, object]:
    back = (Fraction(run.epsilon), Fraction(run.delta)) if nothing_left else (Fraction(0), Fraction(0))
    return {
        "run_id": run.run_id,
        "state": state,
        "epsilon": str(run.epsilon),
        "delta": str(run.delta),
        "cap_epsilon": str(decimal_of(account.cap_epsilon or Fraction(0))),
        "cap_delta": str(decimal_of(account.cap_delta or Fraction(0))),
        **_totals(account, account.epsilon - back[0], account.delta - back[1]),
        "mechanism": run.mechanism,
        "mechanism_digest": run.mechanism_digest,
        "snapshot": snapshot,
        "nothing_left_the_zone": nothing_left,
        "reason": reason,
        "created_at": _now(),
    }


def _totals(account: Account, epsilon: Fraction, delta: Fraction) -> dict[str, str]:
    return {
        "spent_epsilon_before": str(decimal_of(account.epsilon)),
        "spent_epsilon_after": str(decimal_of(epsilon)),
        "spent_delta_before": str(decimal_of(account.delta)),
        "spent_delta_after": str(decimal_of(delta)),
    }


def _storage_of(url: str) -> Storage:
    # No message repeats the URL or a part of it: it may hold a password, in its place or, mistyped, in another.
    if url.startswith(_REFERENCE):
        url = os.environ.get(url.removeprefix(_REFERENCE), "")
        if not url:
            raise InputError("ledger.url names an environment variable that is not set; write env:NAME of one that is.")
    if url.startswith(_FILE):
        return LedgerFile(_path_of(url.removeprefix(_FILE)))
    if not url.startswith(_SERVER):
        raise InputError(f"ledger.url must start with {_FILE} or {_SERVER}, or be env:NAME of a variable that does.")
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        parsed = None
    if parsed is None or not parsed.database:
        raise InputError(
            f"ledger.url must name a database, as {_SERVER}role:password@host:port/database; write : / ? # [ ] @ and % "
            "in a password as %3A %2F %3F %23 %5B %5D %40 and %25."
        )
    return LedgerServer(parsed)


def _path_of(name: str) -> Path:
    if not name or name.endswith("/") or name.startswith((":memory:", "file:")) or "?" in name or "\0" in name:
        raise InputError(
            "ledger.url must name a file, as sqlite:///relative/path or sqlite:////absolute/path, without "
            "options; a ledger in memory would forget what was spent."
        )
    return Path(name)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
