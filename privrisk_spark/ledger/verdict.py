"""A ledger held against itself, and against outputs and vaults; nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from privrisk_spark.errors import CheckError, ConfigError, Fault, InputError
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.reconciliation import Finding, reconcile
from privrisk_spark.ledger.request import lineage_name, same_lineage
from privrisk_spark.ledger.urls import file_of
from privrisk_spark.runs.outputs import Output
from privrisk_spark.runs.witnesses import Looked, look
from privrisk_spark.runs.workplace import output_at
from privrisk_spark.storage.directories import is_directory, is_there
from privrisk_spark.storage.locations import is_remote

__all__ = ["Verdict", "hold_against", "places_named", "verify"]


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
    looked : tuple of Looked
        What was looked at besides the ledger.
    """

    events: dict[str, int]
    broken: dict[str, str]
    findings: tuple[Finding, ...] = ()
    looked: tuple[Looked, ...] = ()

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

    @property
    def document(self) -> dict[str, Any]:
        """The verdict for JSON."""
        found = [{**asdict(one), "contradicts": one.contradicts} for one in self.findings]
        return {**asdict(self), "findings": found}


def verify(url: str) -> Verdict:
    """Replay all lineages of a ledger, and hold every event against its hash.

    Raises
    ------
    InputError, EngineError
        If there is no ledger, or it cannot be read.
    """
    file = file_of(url)
    if file is not None and not is_there(file):
        raise InputError(f"there is no ledger at '{file}'; restore it, or mend the URL.")
    accounts, broken = Ledger(url).histories()
    counts = {name: len(account.chain) for name, account in accounts.items()}
    return Verdict(counts, {name: str(error) for name, error in broken.items()})


def hold_against(url: str, places: Sequence[str]) -> Verdict:
    """Hold a ledger against outputs and vaults.

    Parameters
    ----------
    places : sequence of str
        Directories, and outputs in object stores.

    Raises
    ------
    ConfigError
        If a place is no directory.
    InputError, EngineError
        If the ledger cannot be read.
    CheckError
        If a file of a place is damaged.
    """
    named = places_named(places)
    # Before the ledger is read: what they know of it then, it held already.
    seen = look(*named)
    accounts, broken = Ledger(url).histories()
    whole = {lineage_name(name): account for name, account in accounts.items()}
    findings = reconcile(whole, seen, [one.place for one in seen.looked])
    return Verdict(
        {name: len(account.chain) for name, account in accounts.items()},
        {name: str(error) for name, error in broken.items()},
        # What a history that is not whole holds, nobody knows.
        tuple(one for one in findings if not any(same_lineage(one.lineage, name) for name in broken)),
        seen.looked,
    )


def places_named(texts: Sequence[str]) -> list[Path | Output]:
    """Return the outputs and vaults that a command names.

    Parameters
    ----------
    texts : sequence of str
        Directories, and URIs of outputs in object stores.

    Raises
    ------
    ConfigError
        Naming each that is none.
    """
    found: list[Path | Output] = []
    faults = []
    for text in texts:
        if is_remote(text):
            found.append(output_at(text, key="PLACE"))
            continue
        found.append(Path(text))
        if not is_directory(Path(text)):
            faults.append(Fault("PLACE", f"'{text}' is no directory"))
    if faults:
        raise ConfigError(faults)
    return found
