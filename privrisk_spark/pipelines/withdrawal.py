"""Taking a published release away: from its output, and what it left in the vault; what it was charged stays spent.

The steps, each of which may be the last one of a process that is killed; to withdraw again takes all of them again:

1. The ledger, if the policy names one, gets the event ``withdrawn``. From here on nothing is drawn for the run.
2. The output gets a tombstone. From here on the release is withdrawn: the next run there removes what is left of it.
3. The release, and its place in the manifest of the whole output, go.
4. The vault loses what the run left, but for what later releases must know of it.
"""

from __future__ import annotations

import datetime as dt

from privrisk_spark.errors import InputError, listing, nearest
from privrisk_spark.ledger.administration import seen_of
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.records import Reservation
from privrisk_spark.ledger.request import lineage_name
from privrisk_spark.pipelines.release.lake_output import lake_of
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.withdrawal import Withdrawal
from privrisk_spark.runs.keystore import destroy_key
from privrisk_spark.runs.progress import read_status, write_status
from privrisk_spark.runs.vaults import vault_at
from privrisk_spark.runs.witnesses import Witness, record_witness
from privrisk_spark.runs.workplace import Workplace, output_at

__all__ = ["withdraw"]


def withdraw(policy: Policy, run_id: str, *, reason: str, today: dt.date) -> Withdrawal:
    """Take a published release away; the output keeps a tombstone, and the ledger its charge.

    Parameters
    ----------
    policy : Policy
        Names output, vault and ledger.
    run_id : str
    reason : str
        For the ledger. Never a record's value.
    today : date

    Raises
    ------
    InputError
        If the output has no release of the run id.
    RefusedError
        If the ledger does not know the release, or has forgotten what output or vault know.
    EngineError
        If a file system or database fails, or another run is at work; to withdraw again then completes it.
    """
    place = Workplace(output_at(policy.places.path), vault_at(policy.places.vault), run_id)
    withdrawn = place.output.withdrawn(run_id) is not None
    # In a store a release is current before it has a manifest of its own; holding the store gives it one.
    if not withdrawn and not place.released and (place.output.current() or {}).get("run_id") == run_id:
        with place.output.held():
            pass
    fresh = place.released
    if not fresh and not withdrawn:
        there = [name for name, _ in place.output.manifests()]
        known = f" It has {listing(there)}." if there else ""
        raise InputError(f"RUN_ID: '{place.output}' has no release of run id {run_id}{nearest(run_id, there)}.{known}")
    with place.held():
        made = _tell_ledger(policy, place, reason)
        stone = place.output.withdraw(run_id, today)
        assert stone is not None
        place.vault.forget(place.slug)
        lineage = None if not policy.guarantee.private or policy.ledger is None else policy.ledger.lineage
        destroy_key(place.vault.keys, run_id, lineage=None if lineage is None else lineage_name(lineage))
        status = read_status(place.vault.status, run_id)
        others = status.get("phase") == "published" and status.get("message") != f"release at {place.target}"
        if status.get("run_id") == run_id and not others:
            write_status(
                place.vault.status, run_id, phase="withdrawn", code=0, message=f"withdrawn from {place.target}"
            )
    table = lake_of(policy)
    held = table is not None and table.holds(stone["release_digest"])
    charged = made if made is not None and made.epsilon else None
    return Withdrawal(
        run_id,
        str(place.target),
        fresh,
        None if charged is None else charged.epsilon,
        None if charged is None else charged.delta,
        str(table.location) if table is not None and held else None,
        policy.places.catalog,
    )


def _tell_ledger(policy: Policy, place: Workplace, reason: str) -> Reservation | None:
    """Record the withdrawal, and keep in the vault what the ledger ended in."""
    if policy.ledger is None:
        return None
    ledger, lineage = Ledger(policy.ledger.url), policy.ledger.lineage
    known = {run.run_id: run.state for run in ledger.balance(lineage).runs}
    if not policy.guarantee.private and place.run_id not in known:
        return None  # released before the policy named a ledger
    if known.get(place.run_id) == "void":
        return None  # closed already: the ledger has no release of it to take back
    made = ledger.withdraw(
        lineage=lineage, run_id=place.run_id, reason=reason, place=str(place.output), seen=seen_of(policy)
    )
    cost = str(made.epsilon), str(made.delta)
    record_witness(place.vault, Witness(made.lineage, made.run_id, str(place.output), made.events, made.head, *cost))
    return made
