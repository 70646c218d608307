"""The commands ``privrisk ledger …``: look at a privacy budget, plan with it, reserve and void; no Spark is started."""

from __future__ import annotations

import datetime as dt
import json
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privrisk_spark.errors import ConfigError, EngineError, Fault, InternalError, PrivriskError, listing, nearest
from privrisk_spark.reporting.guide import told

if TYPE_CHECKING:
    from privrisk_spark.ledger.ledger import Balance
    from privrisk_spark.planning.budget import Forecast
    from privrisk_spark.policy.policy import Policy

ledger_app = typer.Typer(
    no_args_is_help=True,
    help="The privacy budget of a table: what its releases have spent, what one more would cost.",
)

Policies = Annotated[list[Path], typer.Argument(metavar="POLICY...", help="YAML files, as for release.")]
AnyPolicies = Annotated[
    list[Path] | None, typer.Argument(metavar="[POLICY...]", help="YAML files, as for release; or --url.")
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a dotted key; repeatable.")
]
Date = Annotated[
    dt.datetime | None,
    typer.Option(formats=["%Y-%m-%d"], metavar="YYYY-MM-DD", help="Business date, for {ds}; default today (UTC)."),
]
RunId = Annotated[str | None, typer.Option(help="Run id; default from name, date and policy, as for release.")]
Url = Annotated[
    str | None,
    typer.Option(help="A ledger without a policy; env:NAME takes the URL, and its password, from the environment."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON; amounts are texts, as they are exact.")]


@ledger_app.command()
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
    with _ended():
        from privrisk_spark.ledger.ledger import Ledger
        from privrisk_spark.planning.budget import balance_document, tighter

        policy, address = _place(policies, url, overrides, date)
        ledger = Ledger(address)
        if policy is not None:
            if lineage is not None:
                raise ConfigError([Fault("--lineage", "goes with --url; a policy names its lineage itself")])
            assert policy.ledger is not None
            lineage = policy.ledger.lineage
        known = ledger.lineages()
        if lineage is None:
            balances = [ledger.balance(name) for name in known]
            if as_json:
                typer.echo(json.dumps([balance_document(balance) for balance in balances], indent=2))
            else:
                typer.echo(_overview(balances))
            return
        if policy is None and lineage not in known:
            rule = f"is not in the ledger{nearest(lineage, known)}; it holds {listing(known) or 'none'}"
            raise ConfigError([Fault("--lineage", f"{rule}. Got {lineage!r}")])
        balance = ledger.balance(lineage)
        closer = tighter(balance)
        document = {**balance_document(balance), "tighter": closer}
        typer.echo(json.dumps(document, indent=2) if as_json else _statement(balance, closer))


@ledger_app.command()
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
    with _ended():
        from privrisk_spark.planning import budget

        policy, run = _read(policies, overrides, date, run_id)
        found = budget.forecast(policy, run)
        typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else _prospect(found))
        if found.refusal is not None:
            raise found.refusal


@ledger_app.command()
def reserve(policies: Policies, run_id: RunId = None, overrides: Overrides = None, date: Date = None) -> None:
    """Charge a run now; releasing under the same run id then costs nothing more.

    Reserving again is free, with other parameters refused. What is reserved stays spent whether or not the release is
    ever made; see void.
    """
    with _ended():
        from privrisk_spark.planning import budget

        policy, run = _read(policies, overrides, date, run_id)
        made = budget.reserve(policy, run)
    if made.fresh:
        typer.echo(
            f"Reserved epsilon {made.epsilon} and delta {made.delta} for run id {run} of lineage {made.lineage}."
        )
        typer.echo(f"  release it with --run-id {run}, the same policy and the same date")
    else:
        typer.echo(f"Run id {run} of lineage {made.lineage} is {made.state} already; nothing was charged.")
    typer.echo(
        f"  spent   epsilon {made.spent_epsilon} of {made.cap_epsilon}, delta {made.spent_delta} of {made.cap_delta}"
    )


@ledger_app.command()
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
    Refused for what is published, and where the statement cannot be true.
    """
    with _ended():
        from privrisk_spark.planning import budget

        policy, run = _read(policies, overrides, date, run_id)
        balance = budget.void(policy, run, reason=reason, nothing_left_the_zone=nothing_left_the_zone)
    kept = "its budget was given back" if nothing_left_the_zone else "its budget stays spent"
    typer.echo(f"Voided run id {run} of lineage {balance.lineage}; {kept}.")
    typer.echo(_totals(balance))


@ledger_app.command()
def create(
    policies: AnyPolicies = None,
    url: Url = None,
    overrides: Overrides = None,
    date: Date = None,
) -> None:
    """Create an empty ledger, which the first reservation does by itself where its role may.

    On PostgreSQL run this as the database's owner, and grant what it prints to the role that releases: it can then read
    and append, and nothing else.
    """
    with _ended():
        from privrisk_spark.ledger.ledger import Ledger

        _, address = _place(policies, url, overrides, date)
        ledger = Ledger(address)
        ledger.create()
    typer.echo("The ledger is there.")
    if ledger.grants:
        typer.echo("As its owner, let a role release (here one named pipeline):")
        for grant in ledger.grants:
            typer.echo("  " + grant.format(role="pipeline"))


@contextmanager
def _ended() -> Iterator[None]:
    """Turn an error into one line and an exit code, as every command does."""
    try:
        try:
            yield
        except PrivriskError:
            raise
        except OSError as error:
            raise EngineError(f"The file system failed: {error.strerror or type(error).__name__}.") from None
        except Exception as error:
            # Not its text: it may quote the ledger's URL.
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(where.filename).name}:{where.lineno}"
            raise InternalError(f"{type(error).__name__} at {place} where none was expected.") from None
    except PrivriskError as error:
        typer.echo(told(error), err=True)
        raise typer.Exit(error.exit_code) from None


def _read(
    files: Sequence[Path], overrides: Sequence[str] | None, date: dt.datetime | None, run_id: str | None
) -> tuple[Policy, str]:
    from privrisk_spark.policy import reading

    day = dt.datetime.now(dt.UTC).date() if date is None else date.date()
    policy = reading.load(files, overrides=overrides or [], date=day)
    return policy, reading.check_run_id(run_id or policy.run_id(day))


def _place(
    files: Sequence[Path] | None, url: str | None, overrides: Sequence[str] | None, date: dt.datetime | None
) -> tuple[Policy | None, str]:
    """Return the policy, if one is named, and the ledger's URL."""
    if bool(files) == (url is not None):
        raise ConfigError([Fault("", "name either a policy file, such as conf/adult-dp.yaml, or --url")])
    if url is not None:
        if overrides:
            raise ConfigError([Fault("--set", "changes a policy, and none is named")])
        return None, url
    from privrisk_spark.planning.budget import ledger_of

    policy, _ = _read(files or [], overrides, date, None)
    return policy, ledger_of(policy).url


def _totals(balance: Balance) -> str:
    from privrisk_spark.planning.budget import balance_document, table

    document = balance_document(balance)
    rows = [["", "epsilon", "delta"]]
    rows += [[name, *(document[kind][name] or "none yet" for kind in ("epsilon", "delta"))] for name in
             ("spent", "cap", "left")]  # fmt: skip
    return table(rows)


def _closer(tighter: dict[str, Any] | None) -> list[str]:
    """The tighter figure as a line."""
    if tighter is None:
        return []
    runs = "1 release" if tighter["runs"] == 1 else f"{tighter['runs']} releases"
    return [
        f"  by privacy-loss distributions {runs} cost epsilon {tighter['epsilon']:g} at delta {tighter['delta']} "
        "(tested; the sums bind)"
    ]


def _statement(balance: Balance, tighter: dict[str, Any] | None) -> str:
    from privrisk_spark.planning.budget import table

    lines = [f"Lineage {balance.lineage}", _totals(balance), *_closer(tighter)]
    if not balance.runs:
        return "\n".join([*lines, "No run was ever reserved."])
    rows = [["run id", "state", "charged", "epsilon", "delta", "reserved (UTC)", "closed (UTC)", "reason"]]
    for run in balance.runs:
        times = [(moment or "")[:19].replace("T", " ") for moment in (run.reserved_at, run.closed_at)]
        charged = "yes" if run.counted else "no"
        rows.append([run.run_id, run.state, charged, str(run.epsilon), str(run.delta), *times, run.reason or ""])
    return "\n".join([*lines, "", table(rows)])


def _prospect(found: Forecast) -> str:
    from privrisk_spark.planning.budget import table

    document = found.to_dict()
    rows = [["", "epsilon", "delta"]]
    for label, name in (("this run", "cost"), ("spent", "spent"), ("cap", "cap"), ("left", "left"),
                        ("left after", "left_after")):  # fmt: skip
        rows.append([label, *(document[kind][name] or "refused" for kind in ("epsilon", "delta"))])
    fits, state = found.releases_that_fit, document["state"]
    included = ", this one included" if state == "new" else ""
    lines = [f"Lineage {found.balance.lineage}, run id {found.run_id}", table(rows)]
    lines += _closer(found.tighter)
    if state in ("reserved", "committed"):
        lines.append(f"This run id is {state} already: running it costs nothing more.")
    what = "1 release like this one fits" if fits == 1 else f"{fits} releases like this one fit"
    return "\n".join([*lines, f"{what} in what is left{included}."])


def _overview(balances: Sequence[Balance]) -> str:
    from privrisk_spark.planning.budget import balance_document, table

    if not balances:
        return "No run was ever reserved."
    rows = [["lineage", "runs", "epsilon spent", "cap", "left", "delta spent", "cap", "left"]]
    for balance in balances:
        document = balance_document(balance)
        amounts = [str(document[kind][name]) for kind in ("epsilon", "delta") for name in ("spent", "cap", "left")]
        rows.append([balance.lineage, str(len(balance.runs)), *amounts])
    return table(rows)
