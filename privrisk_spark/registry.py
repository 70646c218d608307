"""The modules of each privacy model, by ``guarantee.kind``; they are imported when a policy or a report needs them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple


class Entries(NamedTuple):
    """Functions and objects of one privacy model, each as ``module:name`` below the package.

    Attributes
    ----------
    policy : str
        Type of the guarantee in a policy.
    job : str
        Function that releases a table and returns the manifest.
    texts : str
        Texts of reports and manifests.
    rules : str or None
        Rules of a policy that take several keys together.
    plan : str or None
        Function that plans what is drawn, from policy and hierarchies.
    """

    policy: str
    job: str
    texts: str
    rules: str | None = None
    plan: str | None = None


MODELS: Final[Mapping[str, Entries]] = {
    "risk": Entries(
        policy="policy.guarantees:RiskGuarantee",
        job="pipelines.release.by_risk:release_by_risk",
        texts="reporting.models.risk:TEXTS",
    ),
    "k-anonymity": Entries(
        policy="policy.anonymity:KAnonymityGuarantee",
        job="pipelines.release.by_risk:release_by_risk",
        texts="reporting.models.anonymity:TEXTS",
        rules="policy.rules.anonymity:find_anonymity_faults",
    ),
    "masked": Entries(
        policy="policy.masking:MaskedGuarantee",
        job="pipelines.release.masked:release_masked",
        texts="reporting.models.masked:TEXTS",
        rules="policy.rules.masking:find_masking_faults",
    ),
    "dp": Entries(
        policy="policy.private:DpGuarantee",
        job="pipelines.release.private:release_privately",
        texts="reporting.models.private:TEXTS",
        rules="policy.rules.private:find_private_faults",
        plan="planning.calibration:mechanism",
    ),
    "as-published": Entries(
        policy="policy.as_published:AsPublishedGuarantee",
        job="pipelines.release.as_published:release_as_published",
        texts="reporting.models.as_published:TEXTS",
        rules="policy.rules.as_published:find_as_published_faults",
        plan="planning.as_published:as_published",
    ),
}
"""The entries of each ``guarantee.kind``."""


def load(entry: str) -> Any:
    """Import a module and return one of its names.

    Parameters
    ----------
    entry : str
        ``module:name`` below the package.

    Returns
    -------
    object
    """
    module, _, name = entry.partition(":")
    return getattr(import_module(f"privrisk_spark.{module}"), name)
