"""Errors and their exit codes.

A user's mistake, a refusal and an engine failure are different exceptions, because a scheduler must tell "mend the
policy" (2) and "do not publish" (1) from "try again" (3). A message names the key or column, the rule, what was given
and what would do; it never holds a record's value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def printable(text: str) -> str:
    """Return a text with control characters as escapes: names of columns may hold codes that steer a terminal.

    Line ends and tabs stay. Escapes are those of JSON, so that a JSON document stays one.
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a policy, or with what it names.

    Attributes
    ----------
    path : str
        Dotted key path, such as ``decision.utility_at_least``.
    rule : str
        What is wrong and what is allowed, without a final full stop.
    guide : str or None
        Section of the privacy officer's guide that explains the rule, where the path does not say it.
    """

    path: str
    rule: str
    guide: str | None = None

    json_keys = ("key:path", "message:__str__")

    def __str__(self) -> str:
        """Return the fault as one line."""
        return f"{self.path}: {self.rule}." if self.path else f"{self.rule}."


class PrivriskError(Exception):
    """Base of every error this package raises on purpose.

    Attributes
    ----------
    exit_code : int
        What the process ends with: 1 refused, 2 policy or input error, 3 engine failure.
    remedy : str
        What to do next, for ``status.json``.
    """

    exit_code = 3
    remedy = "Run again with the same run id; if it fails again, report it with the log."

    def __str__(self) -> str:
        """Return the message, without control characters."""
        return printable(super().__str__())


class InputError(PrivriskError, ValueError):
    """The policy, a hierarchy or the data is not acceptable; running again unchanged cannot help.

    Parameters
    ----------
    said : str or sequence of Fault
        The message, or at least one fault, whose lines are the message.

    Attributes
    ----------
    faults : tuple of Fault
        One without a path for a message.
    """

    exit_code = 2
    remedy = "Mend what the message names and run again."

    def __init__(self, said: str | Sequence[Fault]) -> None:
        self.faults = (Fault("", said.removesuffix(".")),) if isinstance(said, str) else tuple(said)
        super().__init__(said if isinstance(said, str) else " | ".join(map(str, self.faults)))


class ConfigError(InputError):
    """The policy is wrong; carries all faults at once.

    Parameters
    ----------
    faults : sequence of Fault
        At least one.
    """

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(faults)
        if len(self.faults) > 1:
            self.args = (f"{len(self.faults)} faults in the policy: {self}",)


class PlaceError(ConfigError):
    """A run must not write to a place; not even its status is written there."""


class OverlapError(PlaceError):
    """A run would write where it reads."""


class SchemaError(InputError):
    """The table or dictionary lacks a column, has an unusable type, or holds rows the policy does not allow."""


class MissingError(SchemaError):
    """A table or dictionary, or the version of it that is asked for, does not exist, or not yet."""


class HierarchyError(InputError):
    """A value generalization hierarchy is refused, or a value of the table is outside it."""


class InfeasibleError(InputError):
    """No disclosure satisfies the asked threshold."""


class RefusedError(PrivriskError):
    """The run was understood and refused: a check failed or the budget does not allow it."""

    exit_code = 1
    remedy = "Do not retry: nothing was published. Read the checks in the vault, or the ledger."


class CheckError(RefusedError):
    """An error-level check of the input or release contract failed."""


class BudgetError(RefusedError):
    """The privacy budget of the lineage does not allow the release."""


class ReleasedError(RefusedError):
    """A release of the run id is published already, and another one is asked for."""

    remedy = (
        "The release that is published stays as it is, and so does its status. To publish another one, use a new run "
        "id; to get this one, ask for it as it was released."
    )


class WithdrawnError(RefusedError):
    """The release of the run id was withdrawn, and the id cannot be used again."""

    remedy = "Use a new run id."


class EngineError(PrivriskError):
    """Spark, a file system or a database failed; running again may help."""


class IncompleteError(EngineError):
    """The table has not arrived whole yet."""

    remedy = "Run again with the same run id when the table is complete."


class BusyError(EngineError):
    """Another run holds the output or the vault; its status is left alone."""


class InternalError(PrivriskError):
    """A bug of this package."""

    remedy = "This is a bug of privrisk_spark: please report the message and the version."


def nearest(given: str, allowed: Sequence[str]) -> str:
    """Return a hint ``" (did you mean 'x'?)"`` for a misspelt name, or an empty string."""
    close = get_close_matches(given, list(allowed), n=1, cutoff=0.6)
    return f" (did you mean '{close[0]}'?)" if close else ""


def listing(names: Sequence[str], *, most: int = 12) -> str:
    """Return names for a message, cut after ``most`` of them."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, … ({len(names)} in all)"
