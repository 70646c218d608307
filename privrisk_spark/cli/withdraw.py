"""The command ``privrisk withdraw``; no Spark is started."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

import typer

from privrisk_spark.cli.attempt import told_errors
from privrisk_spark.cli.ledger_options import Date, Overrides, Policies, read
from privrisk_spark.cli.printing import echo


@told_errors()
def withdraw(
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID", help="The run id of the release.")],
    policies: Policies,
    reason: Annotated[str, typer.Option(help="Why, for the ledger; never a record's value.")],
    overrides: Overrides = None,
    date: Date = None,
) -> None:
    """Take a published release away from its output, and what it left in the vault.

    The output keeps a tombstone, and its current release is the one before. A budget that was charged stays spent. The
    run id cannot be used again. If the command is stopped, run it again: it completes what is left.
    """
    from privrisk_spark.pipelines import withdrawal

    policy, run, _ = read(policies, overrides, date, run_id)
    done = withdrawal.withdraw(policy, run, reason=reason, today=dt.datetime.now(dt.UTC).date())
    what = "Withdrew" if done.fresh else "Withdrawn before:"
    echo(f"{what} run id {done.run_id} from '{done.place}'.")
    if done.epsilon is not None:
        echo(f"  epsilon {done.epsilon} and delta {done.delta} stay spent")
    if done.lake is not None:
        echo(
            f"  output.lake '{done.lake}' still holds its rows: publish a release in its place, then remove the old "
            "files (Delta: VACUUM; Iceberg: expire_snapshots and remove_orphan_files)"
        )
    if done.catalog is not None:
        echo(f"  output.catalog '{done.catalog}' may still hold its rows: publish a release in its place, or drop it")
    echo("  copies that readers made are not reached")
