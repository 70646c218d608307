"""What was looked at before a run, and every fault that was found, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Literal

from privrisk_spark.errors import Fault, InputError, RefusedError
from privrisk_spark.json_values import JsonDocument

Job = Literal["release", "assess", "attack", "share"]
"""What a policy can be run for; a masked release is a release."""


@dataclass(frozen=True)
class Coverage:
    """How much of a column its hierarchy holds.

    Attributes
    ----------
    rows : int
        Of the table.
    missing : int
        Rows without a value.
    outside_rows, outside_values : int
        Rows with a value that the hierarchy does not hold, and the distinct values of them.
    """

    rows: int
    missing: int
    outside_rows: int
    outside_values: int


@dataclass(frozen=True)
class Look:
    """Something that was looked at, and in which nothing was wrong.

    Attributes
    ----------
    key : str
        Of the policy.
    found : str
        What is there, in words.
    """

    key: str
    found: str


@dataclass(frozen=True)
class Validation(JsonDocument):
    """What was looked at before a run, and every fault that was found.

    Attributes
    ----------
    job : {"release", "assess", "attack", "share"}
        What the policy would be run for.
    run_id : str
        The run's id, if it is run with the same policy and date.
    looks : tuple of Look
        In order.
    faults : tuple of Fault
        What must be mended, each with its key.
    refusals : tuple of Fault
        What forbids the run though nothing is to be mended: the privacy budget.
    unknown : tuple of str
        What only the run itself can tell.
    plan : str or None
        What the run would do; None where there are faults.
    """

    job: Job
    run_id: str
    looks: tuple[Look, ...]
    faults: tuple[Fault, ...]
    refusals: tuple[Fault, ...]
    unknown: tuple[str, ...]
    plan: str | None

    json_keys = (
        "valid", "job", "run_id", "faults", "refusals", "looked_at:looks", "unknown", "plan",
    )  # fmt: skip

    @property
    def valid(self) -> bool:
        """Whether there is neither a fault nor a refusal."""
        return not self.faults and not self.refusals

    @property
    def exit_code(self) -> int:
        """What ``privrisk validate`` ends with: 0, 2 if something is to be mended, 1 if the budget forbids the run."""
        return InputError.exit_code if self.faults else RefusedError.exit_code if self.refusals else 0

    def __str__(self) -> str:
        """Return what ``privrisk validate`` prints."""
        count = len(self.faults) + len(self.refusals)
        how = "valid" if self.valid else f"{count} fault{'' if count == 1 else 's'}"
        lines = [f"{self.job}: {how}; nothing was written"]
        lines += [f"  FAULT  {fault}" for fault in (*self.faults, *self.refusals)]
        lines += [f"  ok     {look.key}: {look.found}" for look in self.looks]
        lines += [f"  not known before the run: {one}" for one in self.unknown]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
