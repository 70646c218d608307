"""Privacy risk of large tables and anonymized releases, on Apache Spark.

``import privrisk_spark as pr`` loads none of it: a name is loaded when it is first used, and Spark when a session is
needed (:pep:`562`).
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from privrisk_spark.version import __version__ as __version__

# isort: off
if TYPE_CHECKING:
    from privrisk_spark import errors as errors
    from privrisk_spark.api.assessing import Assessed as Assessed, assess as assess
    from privrisk_spark.api.attacking import Attacked as Attacked, attack as attack
    from privrisk_spark.api.auditing import Audited as Audited, audit as audit
    from privrisk_spark.api.builders import (
        dates as dates,
        file as file,
        flat as flat,
        identifier as identifier,
        insensitive as insensitive,
        intervals as intervals,
        mask as mask,
        order as order,
        quasi_identifier as quasi_identifier,
        sensitive as sensitive,
        tree as tree,
        weight as weight,
    )
    from privrisk_spark.api.composing import Composed as Composed, compose as compose
    from privrisk_spark.api.dictionary_curves import Curves as Curves, curves as curves
    from privrisk_spark.api.dry_run import plan as plan, validate as validate
    from privrisk_spark.api.experimenting import (
        Experimented as Experimented,
        ExperimentedAll as ExperimentedAll,
        all_experiments as all_experiments,
        experiment as experiment,
    )
    from privrisk_spark.api.fitting import Fitted as Fitted, approve as approve, fit as fit
    from privrisk_spark.api.masking import mask_table as mask_table
    from privrisk_spark.api.policies import Policy as Policy, load as load
    from privrisk_spark.api.releasing import Released as Released, release as release, withdraw as withdraw
    from privrisk_spark.api.sharing import Shared as Shared, share as share
    from privrisk_spark.api.suggesting import (
        Suggested as Suggested,
        profile as profile,
        suggest_policy as suggest_policy,
    )
    from privrisk_spark.api.workspace import session as session
    from privrisk_spark.results.page import Page as Page
    from privrisk_spark.results.plan import Plan as Plan
    from privrisk_spark.results.validation import Validation as Validation
    from privrisk_spark.results.withdrawal import Withdrawal as Withdrawal
# isort: on

_MODULES = {
    "errors": "errors",
    "api.assessing": "Assessed assess",
    "api.attacking": "Attacked attack",
    "api.auditing": "Audited audit",
    "api.builders": "dates file flat identifier insensitive intervals mask order "
    "quasi_identifier sensitive tree weight",
    "api.composing": "Composed compose",
    "api.dictionary_curves": "Curves curves",
    "api.dry_run": "plan validate",
    "api.experimenting": "Experimented ExperimentedAll all_experiments experiment",
    "api.fitting": "Fitted approve fit",
    "api.masking": "mask_table",
    "api.policies": "Policy load",
    "api.releasing": "Released release withdraw",
    "api.sharing": "Shared share",
    "api.suggesting": "Suggested profile suggest_policy",
    "api.workspace": "session",
    "results.page": "Page",
    "results.plan": "Plan",
    "results.validation": "Validation",
    "results.withdrawal": "Withdrawal",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'privrisk_spark' has no attribute '{name}'")
    module = import_module(f"privrisk_spark.{_HOMES[name]}")
    found = module if name == "errors" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the public names."""
    return [*__all__, "__version__"]


class _Package(ModuleType):
    """The package, in which ``audit`` is the function, also once the subpackage of that name is loaded."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute, but not what the import system sets when it has loaded ``privrisk_spark.audit``."""
        if not (name == "audit" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
