"""The commands ``privrisk ledger reserve``, ``void`` and ``create``, which write."""

from __future__ import annotations

from typing import Annotated

import typer

from privrisk_spark.cli.attempt import told_errors
from privrisk_spark.cli.ledger_options import AnyPolicies, Date, Overrides, Policies, RunId, Url, place, read
from privrisk_spark.cli.ledger_texts import totals
from privrisk_spark.cli.printing import echo


@told_errors()
def reserve(policies: Policies, run_id: RunId = None, overrides: Overrides = None, date: Date = None) -> None:
    """Charge a run now; releasing under the same run id then costs nothing more.

    Reserving again is free, with other parameters refused. What is reserved stays spent whether or not the release is
    ever made; see void.
    """
    from privrisk_spark.ledger import administration
    from privrisk_spark.planning.cost import run_cost

    policy, run, day = read(policies, overrides, date, run_id)
    made = administration.reserve(policy, run_cost(policy, run, day))
    if made.fresh:
        echo(f"Reserved epsilon {made.epsilon} and delta {made.delta} for run id {run} of lineage {made.lineage}.")
        echo(f"  release it with --run-id {run}, the same policy and the same date")
    else:
        echo(f"Run id {run} of lineage {made.lineage} is {made.state} already; nothing was charged.")
    echo(f"  spent   epsilon {made.spent_epsilon} of {made.cap_epsilon}, delta {made.spent_delta} of {made.cap_delta}")
    if made.composed_epsilon is not None:
        echo(
            f"  by privacy-loss distributions epsilon {made.composed_epsilon} of {made.cap_epsilon} at delta "
            f"{made.cap_delta} (tested; this binds)"
        )


@told_errors()
def void(
    policies: Policies,
    run_id: Annotated[str, typer.Option(help="The run, as it was reserved.")],
    reason: Annotated[str, typer.Option(help="Why, for the record; never a record's value.")],
    nothing_left_the_zone: Annotated[
        bool,
        typer.Option(
            "--nothing-left-the-zone",
            help="Your statement, kept in the ledger, that nothing that depends on the data left the trusted zone: no "
            "file, number, log line, error text or timing, and no decision made after looking at a result. Only then "
            "is the budget given back.",
        ),
    ] = False,
    overrides: Overrides = None,
    date: Date = None,
) -> None:
    """Close a reserved run that will not be released; its id cannot be used again, and its key is destroyed.

    The budget stays spent, because whether and how a run ended is an output too, unless you state that nothing left the
    trusted zone. A run that never opened its table qualifies; one given up because its result was poor does not.
    Refused for what is committed, which may be seen already, and where the statement cannot be true: the ledger knows
    the place the run was begun for, whatever output.path says now.
    """
    from privrisk_spark.ledger import administration

    policy, run, _ = read(policies, overrides, date, run_id)
    balance = administration.void(policy, run, reason=reason, nothing_left_the_zone=nothing_left_the_zone)
    kept = "its budget was given back" if nothing_left_the_zone else "its budget stays spent"
    echo(f"Voided run id {run} of lineage {balance.lineage}; {kept}.")
    echo(totals(balance))


@told_errors()
def create(
    policies: AnyPolicies = None,
    url: Url = None,
    overrides: Overrides = None,
    date: Date = None,
) -> None:
    """Create an empty ledger if there is none; a reservation does so if its role may.

    On PostgreSQL run this as the database's owner, and grant what it prints to the role that releases: it can then read
    and append, and nothing else.
    """
    from privrisk_spark.ledger.administration import claim_vault_of_ledger
    from privrisk_spark.ledger.ledger import Ledger

    policy, address = place(policies, url, overrides, date)
    if policy is not None:
        claim_vault_of_ledger(policy)
    ledger = Ledger(address)
    ledger.create()
    echo("The ledger is there.")
    if ledger.grants:
        echo("As its owner, let a role release (here one named pipeline):")
        for grant in ledger.grants:
            echo("  " + grant.format(role="pipeline"))
