"""Privacy risk of large tables and anonymized releases, on Apache Spark.

``import privrisk_spark as pr`` loads none of it: a name is loaded when it is first used, and Spark when a session is
needed (:pep:`562`).
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privrisk_spark import errors as errors
    from privrisk_spark.api import (
        Assessed,
        Attacked,
        Audited,
        Composed,
        Curves,
        Experimented,
        ExperimentedAll,
        Fitted,
        Page,
        Plan,
        Policy,
        Released,
        Shared,
        Suggested,
        Validation,
        Withdrawal,
        all_experiments,
        approve,
        assess,
        attack,
        audit,
        compose,
        curves,
        dates,
        experiment,
        file,
        fit,
        flat,
        identifier,
        insensitive,
        intervals,
        load,
        mask,
        mask_table,
        order,
        plan,
        profile,
        quasi_identifier,
        release,
        sensitive,
        share,
        suggest_policy,
        tree,
        validate,
        weight,
        withdraw,
    )

__version__ = "0.1.0"

__all__ = [
    "Assessed",
    "Attacked",
    "Audited",
    "Composed",
    "Curves",
    "Experimented",
    "ExperimentedAll",
    "Fitted",
    "Page",
    "Plan",
    "Policy",
    "Released",
    "Shared",
    "Suggested",
    "Validation",
    "Withdrawal",
    "all_experiments",
    "approve",
    "assess",
    "attack",
    "audit",
    "compose",
    "curves",
    "dates",
    "errors",
    "experiment",
    "file",
    "fit",
    "flat",
    "identifier",
    "insensitive",
    "intervals",
    "load",
    "mask",
    "mask_table",
    "order",
    "plan",
    "profile",
    "quasi_identifier",
    "release",
    "sensitive",
    "share",
    "suggest_policy",
    "tree",
    "validate",
    "weight",
    "withdraw",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'privrisk_spark' has no attribute '{name}'")
    found = import_module("privrisk_spark.errors") if name == "errors" else getattr(_api(), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})


def _api() -> Any:
    return import_module("privrisk_spark.api")


class _Package(ModuleType):
    """The package, in which ``audit`` is the function, also once the subpackage of that name is loaded."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute, but not what the import system sets when it has loaded ``privrisk_spark.audit``."""
        if not (name == "audit" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
