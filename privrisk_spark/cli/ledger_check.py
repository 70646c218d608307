"""The commands ``privrisk ledger verify``, ``reconcile`` and ``move``: whether the ledger is to be believed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privrisk_spark.cli.attempt import told_errors
from privrisk_spark.cli.ledger_options import AnyPolicies, AsJson, Date, Overrides, Policies, Url, place, read

if TYPE_CHECKING:
    from privrisk_spark.planning.reconciliation import Verdict


def verify(
    policies: AnyPolicies = None,
    url: Url = None,
    overrides: Overrides = None,
    date: Date = None,
    as_json: AsJson = False,
) -> None:
    """Hold every event of the ledger against its hash and those before it; ends with 1 if one is not what was written.

    What was cut off its end, nothing in the ledger tells: see reconcile.
    """
    with told_errors():
        from privrisk_spark.planning import reconciliation

        _, address = place(policies, url, overrides, date)
        _tell(reconciliation.verify(address), as_json)


def reconcile(
    places: Annotated[
        list[Path], typer.Argument(metavar="PLACE...", help="Directories of output.path and output.vault.")
    ],
    ledger: Annotated[
        str, typer.Option(help="URL of the ledger; env:NAME takes it, and its password, from the environment.")
    ],
    as_json: AsJson = False,
) -> None:
    """Hold the ledger against what was published and what the vaults know of it; nothing is written.

    Ends with 1 if a private release is published that the ledger does not know, or knows another release of, or if a
    vault knows an event that the ledger does not hold. Charges without a release are only told.
    """
    with told_errors():
        from privrisk_spark.planning import reconciliation

        _tell(reconciliation.hold_against(ledger, places), as_json)


def move(
    policies: Policies,
    reason: Annotated[str, typer.Option(help="Why, for the record; never a record's value.")],
    overrides: Overrides = None,
    date: Date = None,
) -> None:
    """State that the policy's table is the one its lineage is of, which is at another place now; kept in the ledger."""
    with told_errors():
        from privrisk_spark.planning.budget import move as moved

        policy, _, day = read(policies, overrides, date, None)
        lineage = moved(policy, day, reason=reason)
    typer.echo(f"Lineage {lineage} is of the table at this place, too.")


def _tell(verdict: Verdict, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(verdict.to_dict(), indent=2))
    else:
        for name, events in verdict.events.items():
            typer.echo(f"Lineage {name}: {events} events, each has its hash.")
        for name, fault in verdict.broken.items():
            typer.echo(f"Lineage {name} is broken: {fault}")
        for finding in verdict.findings:
            lineage = "lineage not known" if finding.lineage is None else f"lineage {finding.lineage}"
            typer.echo(f"{finding.kind}: run id {finding.run_id} ({lineage}, '{finding.place}'): {finding.what}")
    if verdict.refusal is not None:
        raise verdict.refusal
