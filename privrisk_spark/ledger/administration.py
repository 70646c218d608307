"""The ledger that a policy names, and what an officer does with it.

The officer reserves a run, gives one up, or states that a table moved or that a ledger is lost for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from privrisk_spark.errors import BudgetError, ConfigError, Fault
from privrisk_spark.ledger.identity import table_identity
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.reconciliation import Lost
from privrisk_spark.ledger.records import Balance, Reservation, Run
from privrisk_spark.ledger.request import Request, lineage_name
from privrisk_spark.ledger.urls import file_of
from privrisk_spark.ledger.verdict import places_named
from privrisk_spark.policy.policy import LedgerPolicy, Policy
from privrisk_spark.runs.keystore import destroy_key
from privrisk_spark.runs.vaults import vault_at
from privrisk_spark.runs.witnesses import Seen, look
from privrisk_spark.runs.workplace import output_at
from privrisk_spark.storage.directories import is_directory, is_there, names_in, resolved
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.locks import is_locked

__all__ = ["accept", "claim_vault_of_ledger", "ledger_of", "move", "reserve", "seen_of", "void"]


def ledger_of(policy: Policy) -> LedgerPolicy:
    """Return the ledger of a policy.

    Raises
    ------
    ConfigError
        If it names none.
    """
    if policy.ledger is None:
        raise ConfigError([Fault("ledger", "is not in the policy: only guarantee.kind 'dp' spends a budget")])
    return policy.ledger


def seen_of(policy: Policy) -> Seen:
    """Return what output and vault of a policy know of its ledger."""
    return Seen() if policy.output is None else look(output_at(policy.output.path), vault_at(policy.output.vault))


def claim_vault_of_ledger(policy: Policy) -> None:
    """Mark the vault before a ledger file is made in it: releases refuse a vault that has files and no marker.

    Raises
    ------
    PlaceError
        If the directory of the vault holds files of other programs.
    """
    file = file_of(ledger_of(policy).url)
    if file is None or policy.output is None:
        return
    vault = vault_at(policy.output.vault)
    if Location("file", "", str(resolved(file))).lies_in(vault.location):
        vault.claim()


def reserve(policy: Policy, request: Request) -> Reservation:
    """Charge a run to its lineage now; the release of this run id is then charged nothing more.

    Parameters
    ----------
    policy : Policy
        Of the run.

    Raises
    ------
    BudgetError
        If the budget does not allow it; see `Ledger.reserve`.
    InputError, EngineError
        If the ledger's URL is refused; if the ledger fails.
    """
    seen = seen_of(policy)
    claim_vault_of_ledger(policy)
    return Ledger(ledger_of(policy).url).reserve(request, seen=seen)


def void(policy: Policy, run_id: str, *, reason: str, nothing_left_the_zone: bool) -> Balance:
    """Close a reserved run that will not be published, and destroy its key.

    Parameters
    ----------
    policy : Policy
        Names ledger, lineage and vault; the rest may have changed since. Where the run publishes, the ledger knows.
    nothing_left_the_zone : bool
        The caller's statement of `Ledger.void`. What lies at the run's place is held against it.

    Raises
    ------
    BudgetError
        If the run is committed, or, with the statement, its place holds anything of it, is not on this machine, or a
        run is at work there; and as `Ledger.void`.
    InputError, EngineError
        If the policy or the ledger's URL is refused; if the ledger fails.
    """
    ledger = ledger_of(policy)
    vault = vault_at(policy.places.vault)

    def examine(run: Run) -> None:
        """Hold the statement against the place that the ledger has the run at; before that nothing was read for it."""
        if not nothing_left_the_zone or run.place is None:
            return
        root = Path(run.place)
        if not is_directory(root):
            raise BudgetError(
                f"run id {run_id} publishes at '{root}', which is not on this machine, so that the statement cannot be "
                "held against it; void it there, or without --nothing-left-the-zone, and its budget stays spent."
            )
        places = (root / "releases" / run_id, root / "withdrawn" / f"{run_id}.json")
        if any(map(is_there, places)) or any(name.startswith(f".staging-{run_id}~") for name in names_in(root)):
            raise BudgetError(
                f"'{root}' holds files of run id {run_id}, so that something did leave the trusted zone; void it "
                "without --nothing-left-the-zone, and its budget stays spent."
            )
        if is_locked(root) or is_locked(vault.path):
            raise BudgetError(
                f"a run is at work on '{root}' or output.vault, and what it will do cannot be stated; wait until it "
                "has ended."
            )

    balance = Ledger(ledger.url).void(
        lineage=ledger.lineage,
        run_id=run_id,
        reason=reason,
        nothing_left_the_zone=nothing_left_the_zone,
        examine=examine,
        seen=seen_of(policy),
    )
    destroy_key(vault.keys, run_id, lineage=lineage_name(ledger.lineage))
    return balance


def move(policy: Policy, *, reason: str, beside: Sequence[str] = ()) -> str:
    """Record that the policy's table is the one its lineage is of; returns the lineage.

    Parameters
    ----------
    beside : sequence of str
        Other lineages that are of this table, too, and whose losses are counted apart.

    Raises
    ------
    BudgetError
        As `Ledger.move`.
    """
    ledger, table = ledger_of(policy), table_identity(policy)
    unit = table.unit if policy.guarantee.private else None
    claim_vault_of_ledger(policy)
    Ledger(ledger.url).move(
        lineage=ledger.lineage,
        table=table.table,
        files=table.files,
        unit=unit,
        reason=reason,
        beside=beside,
        seen=seen_of(policy),
    )
    return ledger.lineage


def accept(url: str, places: Sequence[str], *, lineage: str, reason: str) -> tuple[Lost, ...]:
    """Charge again what is published and known of a lineage whose events were lost for good; returns it, run by run.

    Parameters
    ----------
    url : str
        Of the ledger.
    places : sequence of str
        All outputs and vaults of the lineage.

    Raises
    ------
    ConfigError
        If a place is no directory.
    InputError, CheckError, EngineError
        As `Ledger.accept` and `privrisk_spark.runs.witnesses.look`.
    """
    return Ledger(url).accept(lineage=lineage, reason=reason, seen=look(*places_named(places)))
