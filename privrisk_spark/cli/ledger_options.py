"""Arguments and options of ``privrisk ledger …``, and the policy and ledger they name; no Spark is started."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from privrisk_spark.errors import ConfigError, Fault

if TYPE_CHECKING:
    from privrisk_spark.policy.policy import Policy

Policies = Annotated[list[str], typer.Argument(metavar="POLICY...", help="YAML files, as for release.")]
AnyPolicies = Annotated[
    list[str] | None, typer.Argument(metavar="[POLICY...]", help="YAML files, as for release; or --url.")
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


def read(
    files: Sequence[str], overrides: Sequence[str] | None, date: dt.datetime | None, run_id: str | None
) -> tuple[Policy, str, dt.date]:
    """Return the policy, the run's id and its business date."""
    from privrisk_spark.policy import reading

    day = dt.datetime.now(dt.UTC).date() if date is None else date.date()
    # A release may have been made by proposals that nobody had confirmed.
    policy = reading.load(files, overrides=[*(overrides or []), "undecided=[]"], date=day)
    return policy, reading.check_run_id(policy.run_id(day) if run_id is None else run_id), policy.run.date or day


def place(
    files: Sequence[str] | None, url: str | None, overrides: Sequence[str] | None, date: dt.datetime | None
) -> tuple[Policy | None, str]:
    """Return the policy, if one is named, and the ledger's URL."""
    if bool(files) == (url is not None):
        raise ConfigError([Fault("", "name either a policy file, such as conf/adult-dp.yaml, or --url")])
    if url is not None:
        if overrides:
            raise ConfigError([Fault("--set", "changes a policy, and none is named")])
        return None, url
    from privrisk_spark.ledger.administration import ledger_of

    policy, _, _ = read(files or [], overrides, date, None)
    return policy, ledger_of(policy).url
