"""What is loaded on demand: the modules of each privacy model by ``guarantee.kind``, and the extensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, NamedTuple


class Entries(NamedTuple):
    """Objects of one privacy model, each as ``module:name`` below the package.

    These are the type of the guarantee in a policy, the job that releases a table, the texts of its reports, the rules
    that take several keys together, the function that plans what is drawn, and for a release whose columns are not
    generalized the functions that check it before a run, open it and measure it as values.
    """

    policy: str
    job: str
    texts: str
    rules: str | None = None
    plan: str | None = None
    inspect: str | None = None
    open_values: str | None = None
    measure_values: str | None = None


_BY_RISK = "pipelines.release.by_risk:release_by_risk"

MODELS: Final[Mapping[str, Entries]] = {
    "risk": Entries("policy.guarantees:RiskGuarantee", _BY_RISK, "reporting.models.risk:TEXTS"),
    "k-anonymity": Entries(
        "policy.anonymity:KAnonymityGuarantee",
        _BY_RISK,
        "reporting.models.anonymity:TEXTS",
        rules="policy.rules.anonymity:find_anonymity_faults",
    ),
    "masked": Entries(
        "policy.masking:MaskedGuarantee",
        "extensions.perturb.release:release_masked",
        "extensions.perturb.page:TEXTS",
        rules="extensions.perturb.rules:find_masking_faults",
        inspect="extensions.perturb.release:inspect",
        open_values="extensions.perturb.assess:open_masked",
        measure_values="extensions.perturb.assess:measure_masked",
    ),
    "dp": Entries(
        "policy.private:DpGuarantee",
        "pipelines.release.private:release_privately",
        "reporting.models.private:TEXTS",
        rules="policy.rules.private:find_private_faults",
        plan="planning.calibration:mechanism",
    ),
    "as-published": Entries(
        "policy.as_published:AsPublishedGuarantee",
        "pipelines.release.as_published:release_as_published",
        "reporting.models.as_published:TEXTS",
        rules="policy.rules.as_published:find_as_published_faults",
        plan="planning.as_published:as_published",
    ),
}
"""The entries of each ``guarantee.kind``."""


def load(entry: str) -> Any:
    """Import the module of an entry and return the object it names."""
    module, _, name = entry.partition(":")
    return getattr(import_module(f"privrisk_spark.{module}"), name)


@dataclass(frozen=True)
class Extension:
    """An optional subject next to the core.

    Attributes
    ----------
    package : str
        Below ``privrisk_spark.extensions``.
    section : str
        Key of the policy that it declares.
    policy : str
        Class of the section, in the package's module ``policy``.
    job : str
        What its command, ``Validation.job`` and the page are called.
    pipeline : str
        Its module with ``READ``, ``check_output(policy, output)`` and ``inspect(spark, policy, table, inspection)``.
    """

    package: str
    section: str
    policy: str
    job: str
    pipeline: str

    def load(self, module: str, name: str) -> Any:
        """Return a name of one of the package's modules."""
        return load(f"extensions.{self.package}.{module}:{name}")


EXTENSIONS = (
    Extension("attack", "attack", "AttackPolicy", "attack", "pipeline.run"),
    Extension("network", "sharing", "SharingPolicy", "share", "pipeline"),
)
"""Each also has ``rules.find_faults(policy)`` and ``cli``."""
