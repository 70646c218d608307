"""Privacy risk of large tables and anonymized releases, on Apache Spark.

``import privrisk_spark as pr`` loads none of it: a name is loaded when it is first used, and Spark when a session is
needed (:pep:`562`). ``__init__.pyi`` declares the names.
"""

from __future__ import annotations

import ast
import pkgutil
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from privrisk_spark.version import __version__ as __version__

_HOMES = {
    alias.name: node.module or __name__
    for node in ast.parse(pkgutil.get_data(__name__, "__init__.pyi") or b"").body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
"""Module of each public name."""

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'privrisk_spark' has no attribute '{name}'")
    home = _HOMES[name]
    found = import_module(f"{home}.{name}") if home == __name__ else getattr(import_module(home), name)
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
