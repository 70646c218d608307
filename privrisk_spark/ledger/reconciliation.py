"""A ledger held against what vaults and outputs know of it.

No database and no files here: histories and what was seen come in, refusals and findings go out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from privrisk_spark.errors import BudgetError, InputError
from privrisk_spark.ledger.account import Account
from privrisk_spark.ledger.amounts import stored_amount
from privrisk_spark.ledger.records import Run
from privrisk_spark.ledger.request import is_lineage, lineage_name, same_lineage
from privrisk_spark.runs.witnesses import PrivateRelease, Seen, Witness

__all__ = ["Finding", "Lost", "lost_by", "reconcile", "refuse_forgotten"]

Kind = Literal[
    "rolled back", "unknown", "another release", "another cost", "withdrawn", "without a release", "accepted"
]


@dataclass(frozen=True)
class Finding:
    """Something in which the ledger and a place do not agree.

    Attributes
    ----------
    kind : {'rolled back', 'unknown', 'another release', 'another cost', 'withdrawn', 'without a release', 'accepted'}
    lineage : str or None
        None if nobody knows it.
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
        """Whether the ledger cannot be right; a charge without a release, and what was accepted, are only told."""
        return self.kind not in ("without a release", "accepted")


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
        if same_lineage(witness.lineage, mine) and not _held(account, witness) and witness.head not in account.accepted:
            raise BudgetError(
                f"ledger.lineage {account.lineage}: output.vault knows event {witness.events} of it, from run id "
                f"{witness.run_id}, and the ledger does not hold that event: it was deleted, cut, rolled back or "
                f"replaced. {_RESTORE}"
            )
    for release in seen.releases:
        if not _known(account, known_runs, release, seen):
            raise BudgetError(
                f"ledger.lineage {account.lineage}: output.path holds the private release of run id {release.run_id}, "
                f"whose charge the ledger does not know: it was deleted, cut, rolled back or replaced. {_RESTORE}"
            )
        run = account.runs.get(release.run_id) if same_lineage(_lineage_of(release, seen), mine) else None
        wrong = None if run is None else _other_cost(run, release)
        if wrong is not None:
            raise BudgetError(f"ledger.lineage {account.lineage}: run id {release.run_id}: {wrong}")


_RESTORE = (
    "Restore it from its latest backup; 'privrisk ledger reconcile' tells all it lacks. If that is lost for good, "
    "'privrisk ledger reconcile --accept' charges again what is published and known of it, and goes on."
)


@dataclass(frozen=True)
class Lost:
    """A run of which places know more than the ledger.

    Attributes
    ----------
    place : str
        Where it publishes.
    cost : tuple of Fraction
        epsilon and delta that the ledger is to charge: nothing if it has the run as charged.
    known : bool
        Whether somebody knows what the run cost.
    heads : frozenset of str
        Hashes its vault knows and the ledger does not hold.
    release : str or None
        Digest of what is published, if that is one release.
    """

    run_id: str
    place: str
    cost: tuple[Fraction, Fraction]
    known: bool
    heads: frozenset[str]
    release: str | None

    @property
    def about(self) -> str:
        """What tells it from anything else that is known of the run."""
        return hashlib.sha256("".join([*sorted(self.heads), self.release or ""]).encode()).hexdigest()[:16]


def lost_by(account: Account, known_runs: frozenset[str], seen: Seen) -> list[Lost]:
    """Return what a lineage's ledger has forgotten, run by run, in order.

    Parameters
    ----------
    account, known_runs, seen
        As :func:`refuse_forgotten` has them. A release whose lineage nobody knows is one of this lineage.

    Raises
    ------
    InputError
        If a manifest does not say what its release costs.
    """
    mine = lineage_name(account.lineage)
    heads: dict[str, list[Witness]] = {}
    for witness in seen.witnesses:
        if same_lineage(witness.lineage, mine) and not _held(account, witness) and witness.head not in account.accepted:
            heads.setdefault(witness.run_id, []).append(witness)
    published: dict[str, dict[str, PrivateRelease]] = {}
    for release in seen.releases:
        given_back = same_lineage(_lineage_of(release, seen), mine) and _given_back(account, release)
        if given_back or not _known(account, known_runs, release, seen):
            published.setdefault(release.run_id, {})[release.digest] = release
    found = []
    for run_id in sorted({*heads, *published}):
        witnesses, releases = heads.get(run_id, []), list(published.get(run_id, {}).values())
        # Two releases of one run are two draws; a witness tells of the run what its release does.
        drawn = [_amounts(one.epsilon, one.delta) for one in releases]
        told = [_amounts(one.epsilon, one.delta) for one in witnesses]
        if None in drawn:
            raise InputError(
                f"the manifest of run id {run_id} at '{releases[drawn.index(None)].place}' does not say what the "
                "release costs (guarantee.parameters.accounting.basic); restore it from a copy."
            )
        costs = [_sum(drawn), *(one for one in told if one is not None)]
        charged = run_id in account.runs and account.runs[run_id].counted
        found.append(
            Lost(
                run_id=run_id,
                place=(releases or witnesses)[0].place,
                cost=_NOTHING if charged else (max(cost[0] for cost in costs), max(cost[1] for cost in costs)),
                known=charged or bool(releases) or None not in told,
                heads=frozenset(one.head for one in witnesses),
                release=releases[0].digest if len(releases) == 1 else None,
            )
        )
    return found


_NOTHING: Final = (Fraction(0), Fraction(0))


def _sum(costs: Sequence[tuple[Fraction, Fraction] | None]) -> tuple[Fraction, Fraction]:
    whole = [cost for cost in costs if cost is not None]
    return sum((cost[0] for cost in whole), Fraction(0)), sum((cost[1] for cost in whole), Fraction(0))


def _amounts(epsilon: str | None, delta: str | None) -> tuple[Fraction, Fraction] | None:
    found = [stored_amount(text) if text is not None else None for text in (epsilon, delta)]
    return None if found[0] is None or found[1] is None else (found[0], found[1])


def _given_back(account: Account, release: PrivateRelease) -> bool:
    """Whether the ledger has given back what was charged for a release that is published."""
    run = account.runs.get(release.run_id)
    accepted = {one.release for one in account.runs.values() if one.state == "accepted"}
    return run is not None and run.state == "void" and not run.counted and release.digest not in accepted


def _known(account: Account, known_runs: frozenset[str], release: PrivateRelease, seen: Seen) -> bool:
    lineage = _lineage_of(release, seen)
    if lineage is None:
        return release.run_id in known_runs
    return not same_lineage(lineage, lineage_name(account.lineage)) or release.run_id in account.runs


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
        account = _account_of(accounts, witness.lineage)
        if account is not None and witness.head in account.accepted:
            yield Finding(
                "accepted",
                witness.lineage,
                witness.run_id,
                witness.place,
                f"the vault knows event {witness.events} of the lineage, which was lost; that was accepted.",
            )
        elif account is None or not _held(account, witness):
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

    named = [_account_of(accounts, lineage)] if lineage is not None else accounts.values()
    runs = [account.runs[release.run_id] for account in named if account and release.run_id in account.runs]
    if not runs:
        return found(
            "unknown",
            "the release is published, and the ledger knows no charge of it. Name the ledger it was charged to, or "
            "restore this one from its latest backup; if that is lost for good, have it charged again with --accept.",
        )
    states = ("withdrawn", "accepted") if release.withdrawn else ("committed", "accepted")
    known = [run for run in runs if run.state in states and (release.withdrawn or _is_of(run, release))]
    if known:
        wrong = [_other_cost(run, release) for run in known]
        # Without a lineage, runs of several lineages may have the id; one of them is the release's.
        return found("another cost", wrong[0]) if wrong[0] is not None and None not in wrong else None
    again = [run for account in named if account for run in account.runs.values() if run.state == "accepted"]
    if any(run.release == release.digest for run in again):
        return found("accepted", "the release is published, and its budget had been given back; it is charged again.")
    run = runs[0]
    if release.withdrawn and run.state == "void":
        if run.counted:
            return None
        return found(
            "another release",
            "the release was published until it was withdrawn, and its budget was given back. Charge it again with "
            "--accept.",
        )
    if run.state == "withdrawn" or release.withdrawn:
        what = "and the ledger does not hold that" if release.withdrawn else "and it is still there"
        return found("withdrawn", f"the release was withdrawn, {what}. Withdraw it again, which completes it.")
    if run.state in ("committed", "accepted"):
        return found(
            "another release",
            "what is published is not the release the ledger has as committed: it was changed after publication, or "
            "made elsewhere. Restore it from a copy, or withdraw it.",
        )
    return found(
        "another release",
        f"the release is published, and the ledger has its run as {run.state}, though it is always committed first. "
        "Restore the ledger from its latest backup, or withdraw the release if the run was voided.",
    )


def _is_of(run: Run, release: PrivateRelease) -> bool:
    """Tell whether a release is the one that the ledger has of a run, as far as the ledger knows it."""
    return run.release in (None, release.digest)


def _other_cost(run: Run, release: PrivateRelease) -> str | None:
    """Say in what the charge of a run differs from what its manifest states; None if it covers that."""
    if release.withdrawn and not _is_of(run, release):
        return None  # it was changed before it was withdrawn, and nobody reads it any more
    stated = _amounts(release.epsilon, release.delta)
    charged = run.cost
    if run.state not in ("committed", "accepted", "withdrawn") or stated == charged:
        return None
    if stated is None:
        return (
            "the manifest of the published release does not state its cost (guarantee.parameters.accounting.basic). "
            "Restore it from a copy."
        )
    # Of a run that was charged again for all that is known of it, a release may cost less.
    if run.state == "accepted" and stated[0] <= charged[0] and stated[1] <= charged[1]:
        return None
    return (
        f"the manifest of the published release states epsilon {release.epsilon} and delta {release.delta}, and the "
        f"ledger charged epsilon {run.epsilon} and delta {run.delta}: the ledger or the manifest was rewritten. "
        "Restore both from a backup."
    )


def _of_charge(account: Account, run: Run, places: Sequence[str]) -> Finding | None:
    if not run.counted or run.state in ("void", "accepted", "withdrawn"):
        return None
    if run.place is not None and run.place not in places:
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


def _account_of(accounts: Mapping[str, Account], lineage: str) -> Account | None:
    return next((account for name, account in accounts.items() if same_lineage(lineage, name)), None)


def _held(account: Account, witness: Witness) -> bool:
    return account.chain[witness.events - 1 : witness.events] == [witness.head] and witness.events > 0


def _lineage_of(release: PrivateRelease, seen: Seen) -> str | None:
    """Return the lineage of a release, if its vault or its manifest tells; the vault is where nobody else may write."""
    of = [one.lineage for one in seen.witnesses if (one.run_id, one.place) == (release.run_id, release.place)]
    # Two lineages may have begun runs of one id for one place; one of them published.
    if not of or any(same_lineage(one, release.lineage) for one in of):
        return release.lineage if is_lineage(release.lineage) else None
    return of[0]
