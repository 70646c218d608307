"""The commands ``privrisk ledger verify``, ``reconcile`` and ``move``: whether the ledger is to be believed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from privrisk_spark.cli.attempt import told_errors
from privrisk_spark.cli.ledger_options import AnyPolicies, AsJson, Date, Overrides, Policies, Url, place, read
from privrisk_spark.cli.ledger_texts import accepted
from privrisk_spark.cli.printing import echo
from privrisk_spark.errors import ConfigError, Fault

if TYPE_CHECKING:
    from privrisk_spark.ledger.verdict import Verdict


@told_errors()
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
    from privrisk_spark.ledger import verdict

    _, address = place(policies, url, overrides, date)
    _tell(verdict.verify(address), as_json)


@told_errors()
def reconcile(
    places: Annotated[
        list[str], typer.Argument(metavar="PLACE...", help="What output.path and output.vault are, or were.")
    ],
    ledger: Annotated[
        str, typer.Option(help="URL of the ledger; env:NAME takes it, and its password, from the environment.")
    ],
    accept: Annotated[
        str | None,
        typer.Option(
            metavar="LINEAGE",
            help="Your statement, kept in the ledger, that events of this lineage are lost for good: what is published "
            "and known of its runs is charged again. Name all its outputs and vaults.",
        ),
    ] = None,
    reason: Annotated[str | None, typer.Option(help="With --accept: why, for the record.")] = None,
    as_json: AsJson = False,
) -> None:
    """Hold the ledger against what was published and what the vaults know of it; without --accept nothing is written.

    Ends with 1 if a private release is published that the ledger does not know, knows another release of, or charged
    another amount for, or if a vault knows an event that the ledger does not hold. Charges without a release, and what
    was accepted, are only told.
    """
    from privrisk_spark.ledger import verdict

    if (accept is None) != (reason is None):
        raise ConfigError([Fault("--accept", "needs --reason, and --reason goes with --accept")])
    if accept is not None and reason is not None:
        from privrisk_spark.ledger import administration

        lost = administration.accept(ledger, places, lineage=accept, reason=reason)
        for line in accepted(lost, accept):
            echo(line, err=as_json)
    _tell(verdict.hold_against(ledger, places), as_json)


@told_errors()
def move(
    policies: Policies,
    reason: Annotated[str, typer.Option(help="Why, for the record; never a record's value.")],
    beside: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LINEAGE",
            help="Another lineage that is of this table, too; repeatable. The table then has two budgets.",
        ),
    ] = None,
    overrides: Overrides = None,
    date: Date = None,
) -> None:
    """State that the policy's table is the one its lineage is of, at another place or under another name now.

    So is the column of its persons (table.entity_id). Statements are kept in the ledger, and show lists them.
    """
    from privrisk_spark.ledger.administration import move as moved

    policy, _, _ = read(policies, overrides, date, None)
    lineage = moved(policy, reason=reason, beside=beside or [])
    echo(f"Lineage {lineage} is of the table at this place, too.")


def _tell(verdict: Verdict, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(verdict.document, indent=2))
    else:
        for name, events in verdict.events.items():
            echo(f"Lineage {name}: {events} events, each has its hash.")
        for name, fault in verdict.broken.items():
            echo(f"Lineage {name} is broken: {fault}")
        for one in verdict.looked:
            what = f"{one.releases} private releases, {one.witnesses} charges kept"
            if not one.releases and not one.witnesses:
                what = "neither a private release nor a charge, so it knows nothing"
            echo(f"Looked at '{one.place}': {what}.")
        for finding in verdict.findings:
            lineage = "lineage not known" if finding.lineage is None else f"lineage {finding.lineage}"
            echo(f"{finding.kind}: run id {finding.run_id} ({lineage}, '{finding.place}'): {finding.what}")
    if verdict.refusal is not None:
        raise verdict.refusal
