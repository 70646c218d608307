"""The extensions: which package adds which section of the policy and which job. Each is loaded when it is used."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


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
        """Return a name of one of the package's modules.

        Parameters
        ----------
        module, name : str
        """
        return getattr(import_module(f"privrisk_spark.extensions.{self.package}.{module}"), name)


EXTENSIONS = (
    Extension("attack", "attack", "AttackPolicy", "attack", "pipeline.run"),
    Extension("network", "sharing", "SharingPolicy", "share", "pipeline"),
)
"""Each also has ``rules.find_faults(policy)`` and ``cli``."""
