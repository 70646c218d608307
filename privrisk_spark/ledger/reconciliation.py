"""A ledger held against what vaults and outputs know of it.

No database and no files here: histories and what was seen come in, refusals and findings go out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from privrisk_spark.errors import BudgetError
from privrisk_spark.ledger.account import Account
from privrisk_spark.ledger.records import Run
from privrisk_spark.ledger.request import lineage_name
from privrisk_spark.runs.witnesses import PrivateRelease, Seen, Witness

__all__ = ["Finding", "reconcile", "refuse_forgotten"]

Kind = Literal["rolled back", "unknown", "another release", "without a release"]


@dataclass(frozen=True)
class Finding:
    """Something in which the ledger and a place do not agree.

    Attributes
    ----------
    kind : {'rolled back', 'unknown', 'another release', 'without a release'}
    lineage : str or None
        None if nobody knows it.
    run_id : str
    place : str
        Where the run publishes.
    what : str
        What was found, and what would do.
    """

    kind: Kind
    lineage: str | None
    run_id: str
    place: str
    what: str

    @property
    def contradicts(self) -> bool:
        """Whether the ledger cannot be right; a charge without a release is only told."""
        return self.kind != "without a release"


def refuse_forgotten(account: Account, known_runs: frozenset[str], seen: Seen) -> None:
    """Refuse to charge a lineage whose ledger has forgotten something of it.

    Parameters
    ----------
    account : Account
        Of the lineage.
    known_runs : frozenset of str
        Run ids of all lineages of the ledger.
    seen : Seen
        What output and vault know.

    Raises
    ------
    BudgetError
        Naming the run.
    """
    mine = lineage_name(account.lineage)
    for witness in seen.witnesses:
        if lineage_name(witness.lineage) == mine and not _held(account, witness):
            raise BudgetError(
                f"ledger.lineage {account.lineage}: output.vault knows event {witness.events} of it, from run id "
                f"{witness.run_id}, and the ledger does not hold that event: it was deleted, cut, rolled back or "
                f"replaced. {_RESTORE}"
            )
    for release in seen.releases:
        lineage = _lineage_of(release, seen)
        if lineage is None:
            known = release.run_id in known_runs
        else:
            known = lineage_name(lineage) != mine or release.run_id in account.runs
        if not known:
            raise BudgetError(
                f"ledger.lineage {account.lineage}: output.path holds the private release of run id {release.run_id}, "
                f"whose charge the ledger does not know: it was deleted, cut, rolled back or replaced. {_RESTORE}"
            )


_RESTORE = (
    "Restore it from its latest backup; 'privrisk ledger reconcile' tells all it lacks. If it is lost, begin a new "
    "lineage whose cap is what was left of this one."
)


def reconcile(accounts: Mapping[str, Account], seen: Seen, places: Sequence[str]) -> Iterator[Finding]:
    """Name everything in which a ledger and some places do not agree.

    Parameters
    ----------
    accounts : mapping of str to Account
        All of the ledger, by `lineage_name`.
    seen : Seen
        What the places know.
    places : sequence of str
        The places, resolved: a charge can be seen to have no release only where its place is one of them.
    """
    for witness in seen.witnesses:
        account = accounts.get(lineage_name(witness.lineage))
        if account is None or not _held(account, witness):
            yield Finding(
                "rolled back",
                witness.lineage,
                witness.run_id,
                witness.place,
                f"the vault knows event {witness.events} of the lineage, and the ledger does not hold it: the ledger "
                "was deleted, cut, rolled back or replaced. Restore it from its latest backup.",
            )
    for release in seen.releases:
        finding = _of_release(accounts, release, _lineage_of(release, seen))
        if finding is not None:
            yield finding
    released = {(release.run_id, release.place) for release in seen.releases}
    for account in accounts.values():
        for run in account.runs.values():
            finding = _of_charge(account, run, places)
            if finding is not None and (run.run_id, run.place) not in released:
                yield finding


def _of_release(accounts: Mapping[str, Account], release: PrivateRelease, lineage: str | None) -> Finding | None:
    def found(kind: Kind, what: str) -> Finding:
        return Finding(kind, lineage, release.run_id, release.place, what)

    named = [accounts.get(lineage_name(lineage))] if lineage is not None else accounts.values()
    runs = [account.runs[release.run_id] for account in named if account and release.run_id in account.runs]
    if not runs:
        return found(
            "unknown",
            "the release is published, and the ledger knows no charge of it. Name the ledger it was charged to, or "
            "restore this one from its latest backup; until then, count its epsilon and delta as spent.",
        )
    if any(run.state == "committed" and run.release in (None, release.digest) for run in runs):
        return None
    run = runs[0]
    if run.state == "committed":
        return found(
            "another release",
            "what is published is not the release the ledger has as committed: it was changed after publication, or "
            "made elsewhere. Restore it from a copy, or withdraw it.",
        )
    if run.state == "reserved" and run.before_commitments:
        return None
    return found(
        "another release",
        f"the release is published, and the ledger has its run as {run.state}, though it is always committed first. "
        "Restore the ledger from its latest backup, or withdraw the release if the run was voided.",
    )


def _of_charge(account: Account, run: Run, places: Sequence[str]) -> Finding | None:
    if not run.counted or run.state == "void" or (run.place is not None and run.place not in places):
        return None
    if run.state == "committed" and run.place is None:
        return None
    ways = {
        "committed": "Run it again under its run id, which costs nothing and makes the same release, or leave it: what "
        "was committed may have been seen and stays spent.",
    }
    usual = "Run it again under its run id, which costs nothing, or void it."
    return Finding(
        "without a release",
        account.lineage,
        run.run_id,
        run.place or "",
        f"the run is charged ({run.state}), and no release of it is there. {ways.get(run.state, usual)}",
    )


def _held(account: Account, witness: Witness) -> bool:
    return account.chain[witness.events - 1 : witness.events] == (witness.head,) and witness.events > 0


def _lineage_of(release: PrivateRelease, seen: Seen) -> str | None:
    """Return the lineage of a release, if its vault or its manifest tells."""
    of = [one.lineage for one in seen.witnesses if (one.run_id, one.place) == (release.run_id, release.place)]
    return of[0] if of else release.lineage
