"""Rules of a run whose machines share no disk: what its tasks write and read goes through an object store."""

from __future__ import annotations

from collections.abc import Iterable

from privrisk_spark.errors import Fault
from privrisk_spark.policy.policy import Lineage, Policy
from privrisk_spark.storage.locations import is_remote


def impossible_apart(policy: Policy, key: str) -> Iterable[Fault]:
    """Yield what cannot be done where tasks hand parts to each other in a store.

    Parameters
    ----------
    key : str
        Which names the store.
    """
    if policy.history is not None and not _history_in_stores(policy):
        yield Fault(
            key,
            "with history it needs output.vault, and every vault that history names, in an object store: workers read "
            "what they hold",
        )


def _history_in_stores(policy: Policy) -> bool:
    """Whether machines without a shared disk reach all that the policy's history needs; a manifest is read by one."""
    entries = () if isinstance(policy.history, Lineage) else policy.history or ()
    vaults = [entry for entry in entries if not entry.endswith(".json")]
    vaults += [] if policy.output is None else [policy.output.vault]
    return all(is_remote(vault) for vault in vaults)
