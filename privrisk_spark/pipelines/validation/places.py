"""Where findings would be written, and the versions of lake tables, inspected."""

from __future__ import annotations

from collections.abc import Callable, Collection

from privrisk_spark.pipelines.opening import Inspection
from privrisk_spark.planning.lakes import pin_tables
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.places import ResultPlace


def inspect_places(
    inspection: Inspection,
    policy: Policy,
    output: str | None,
    check: Callable[[Policy, str], ResultPlace],
    reads: Collection[str],
    *,
    given: bool,
) -> Policy | None:
    """Inspect where findings would be written, and return the policy with the versions of its lake tables.

    Parameters
    ----------
    inspection : Inspection
    policy : Policy
    output : str or None
        Where findings would be written.
    check : callable
        Returns the place, or raises.
    reads : collection of str
        Parts of the policy that name the tables that are read.
    given : bool
        Whether the caller gave the table.

    Returns
    -------
    Policy or None
        None if a lake table cannot be opened.
    """
    if output is not None:
        with inspection.at("--output"):
            check(policy, output).check_writable()
            inspection.note("--output", "can be written")
    with inspection.at("table"):
        return pin_tables(policy, reads, given=given).policy
    return None
