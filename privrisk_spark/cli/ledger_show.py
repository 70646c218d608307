"""The commands ``privrisk ledger show`` and ``plan``, which only look."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from privrisk_spark.cli.attempt import told_errors
from privrisk_spark.cli.ledger_options import AnyPolicies, AsJson, Date, Overrides, Policies, RunId, Url, place, read
from privrisk_spark.cli.ledger_texts import overview, prospect, statement
from privrisk_spark.cli.printing import echo
from privrisk_spark.errors import ConfigError, EngineError, Fault, listing, nearest


@told_errors()
def show(
    policies: AnyPolicies = None,
    url: Url = None,
    lineage: Annotated[
        str | None, typer.Option(help="With --url: the lineage to show; without it, all are listed.")
    ] = None,
    overrides: Overrides = None,
    date: Date = None,
    as_json: AsJson = False,
) -> None:
    """Show what a lineage has spent, its cap, what is left, and every run with its state."""
    from privrisk_spark.ledger.account import balance_of
    from privrisk_spark.ledger.administration import ledger_of
    from privrisk_spark.ledger.budget import balance_document, tighter
    from privrisk_spark.ledger.ledger import Ledger
    from privrisk_spark.ledger.request import lineage_name

    policy, address = place(policies, url, overrides, date)
    ledger = Ledger(address)
    if policy is not None:
        if lineage is not None:
            raise ConfigError([Fault("--lineage", "goes with --url; a policy names its lineage itself")])
        assert policy.ledger is not None
        lineage = policy.ledger.lineage
    if lineage is None:
        accounts, broken = ledger.histories()
        balances = [balance_of(account) for account in accounts.values()]
        if as_json:
            echo(json.dumps([balance_document(balance) for balance in balances], indent=2))
        else:
            echo(overview(balances))
        if broken:
            # Those that are whole are told all the same.
            raise EngineError(
                f"{len(broken)} lineages of the ledger are not whole: {', '.join(broken)}; 'privrisk ledger "
                "verify' tells which event of each is not what was written."
            )
        return
    known = ledger.lineages()
    if policy is None and lineage_name(lineage) not in map(lineage_name, known):
        rule = f"is not in the ledger{nearest(lineage, known)}; it holds {listing(known) or 'none'}"
        raise ConfigError([Fault("--lineage", f"{rule}. Got {lineage!r}")])
    balance = ledger.balance(lineage)
    of_policy = None if policy is None else ledger_of(policy)
    closer = tighter(
        balance,
        accounting=None if of_policy is None else of_policy.accounting,
        cap=None if of_policy is None else of_policy.cap.delta,
    )
    document = {**balance_document(balance), "tighter": closer}
    echo(json.dumps(document, indent=2) if as_json else statement(balance, closer))


@told_errors()
def plan(
    policies: Policies,
    run_id: RunId = None,
    overrides: Overrides = None,
    date: Date = None,
    as_json: AsJson = False,
) -> None:
    """Say what a run of the policy would cost, what would be left, and how many such releases fit; write nothing.

    Ends with 1 if the budget does not allow the run, so that a schedule can ask before it starts a cluster.
    """
    from privrisk_spark.ledger import administration, budget
    from privrisk_spark.ledger.ledger import Ledger
    from privrisk_spark.planning.cost import run_cost

    policy, run, day = read(policies, overrides, date, run_id)
    request, seen = run_cost(policy, run, day), administration.seen_of(policy)
    found = budget.forecast(Ledger(administration.ledger_of(policy).url), request, seen=seen)
    echo(json.dumps(found.document, indent=2) if as_json else prospect(found))
    if found.refusal is not None:
        raise found.refusal
