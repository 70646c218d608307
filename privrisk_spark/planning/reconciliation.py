"""A ledger held against itself, and against outputs and vaults; nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privrisk_spark.errors import CheckError, ConfigError, Fault, InputError
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.reconciliation import Finding, reconcile
from privrisk_spark.ledger.request import lineage_name
from privrisk_spark.ledger.urls import file_of
from privrisk_spark.runs.witnesses import look

__all__ = ["Verdict", "hold_against", "verify"]


@dataclass(frozen=True)
class Verdict:
    """What came of it.

    Attributes
    ----------
    events : dict of str to int
        How many events each whole lineage has.
    broken : dict of str to str
        Lineages that are not whole: the first event that is not what was written, and what would do.
    findings : tuple of Finding
        In which the ledger and the places do not agree.
    """

    events: dict[str, int]
    broken: dict[str, str]
    findings: tuple[Finding, ...] = ()

    @property
    def refusal(self) -> CheckError | None:
        """Why the ledger is not to be believed; None if nothing speaks against it."""
        contradicting = [finding for finding in self.findings if finding.contradicts]
        if not self.broken and not contradicting:
            return None
        return CheckError(
            f"the ledger is not to be believed: lineages that are not whole: {len(self.broken)}, contradictions: "
            f"{len(contradicting)}. Restore it from its latest backup before the next release."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "events": self.events,
            "broken": self.broken,
            "findings": [
                {
                    "kind": finding.kind,
                    "lineage": finding.lineage,
                    "run_id": finding.run_id,
                    "place": finding.place,
                    "what": finding.what,
                    "contradicts": finding.contradicts,
                }
                for finding in self.findings
            ],
        }


def verify(url: str) -> Verdict:
    """Replay all lineages of a ledger, and hold every event against its hash.

    Raises
    ------
    InputError, EngineError
        If there is no ledger, or it cannot be read.
    """
    file = file_of(url)
    if file is not None and not file.exists():
        raise InputError(f"there is no ledger at '{file}'; restore it, or mend the URL.")
    accounts, broken = Ledger(url).histories()
    counts = {name: len(account.chain) for name, account in accounts.items()}
    return Verdict(counts, {name: str(error) for name, error in broken.items()})


def hold_against(url: str, places: Sequence[Path]) -> Verdict:
    """Hold a ledger against outputs and vaults.

    Raises
    ------
    ConfigError
        If a place is no directory.
    InputError, EngineError
        If the ledger cannot be read.
    CheckError
        If a file of a place is damaged.
    """
    faults = [Fault("PLACE", f"'{place}' is no directory") for place in places if not place.is_dir()]
    if faults:
        raise ConfigError(faults)
    # Before the ledger is read: what they know of it then, it held already.
    seen = look(*places)
    accounts, broken = Ledger(url).histories()
    whole = {lineage_name(name): account for name, account in accounts.items()}
    torn = {lineage_name(name) for name in broken}
    findings = reconcile(whole, seen, [str(place.resolve()) for place in places])
    return Verdict(
        {name: len(account.chain) for name, account in accounts.items()},
        {name: str(error) for name, error in broken.items()},
        tuple(one for one in findings if one.lineage is None or lineage_name(one.lineage) not in torn),
    )
