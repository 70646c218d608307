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
    """

    package: str
    section: str
    policy: str
    job: str

    def load(self, module: str, name: str) -> Any:
        """Return a name of one of the package's modules.

        Parameters
        ----------
        module, name : str
        """
        return getattr(import_module(f"privrisk_spark.extensions.{self.package}.{module}"), name)


EXTENSIONS = (
    Extension("attack", "attack", "AttackPolicy", "attack"),
    Extension("network", "sharing", "SharingPolicy", "share"),
)
"""Each has ``rules.find_faults(policy)``, ``validation.inspect(inspection, spark, policy, *, table, output)``, ``cli``."""
