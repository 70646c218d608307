"""Rules of a release in directories that are named after values."""

from __future__ import annotations

from collections.abc import Iterable

from privrisk_spark.errors import Fault, listing, nearest
from privrisk_spark.policy.policy import Output, Policy

KEY = "output.partition_by"


def impossible_partitions(policy: Policy, output: Output) -> Iterable[Fault]:
    """Yield what a release cannot be partitioned by, or partitioned for.

    Parameters
    ----------
    output : Output
        Of the policy.
    """
    if not output.partition_by:
        return
    released = [name for name in policy.columns if name in {*policy.quasi_identifiers, *policy.kept_columns}]
    for i, name in enumerate(output.partition_by):
        at = f"{KEY}.{i}"
        if name in output.partition_by[:i]:
            yield Fault(at, f"names '{name}' a second time; name each column once")
        elif name not in policy.columns:
            yield Fault(at, f"'{name}' is not among columns{nearest(name, released)}; released are {listing(released)}")
        elif name not in released:
            yield Fault(
                at, f"'{name}' is not released, so no directory can be named after it; released are {listing(released)}"
            )
        elif name.startswith((".", "_")):
            yield Fault(at, f"'{name}' makes names of directories that readers take for hidden; choose another column")
    refusals = {
        "names all released columns, and the files must hold one at least; leave one out": set(released)
        <= set(output.partition_by),
        f"needs output.format: parquet, as CSV is written as files alone, and it is '{output.format}'": output.format
        != "parquet",
        "must be left out with output.lake: the table holds the published files as they are, and these would lack "
        "columns; output.lake.date_column partitions it": output.lake is not None,
    }
    reasons = [reason for reason, applies in refusals.items() if applies]
    if reasons:
        yield Fault(KEY, "; ".join(reasons))
