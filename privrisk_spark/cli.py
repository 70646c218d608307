"""Command line: ``privrisk release POLICY``, ``privrisk config schema``, ``privrisk synthesize DIRECTORY``."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privrisk_spark import __version__
from privrisk_spark.errors import BusyError, ConfigError, EngineError, Fault, InputError, InternalError, PrivriskError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Measure the privacy risk of tables and publish anonymized releases.",
)
config_app = typer.Typer(no_args_is_help=True, help="About policies.")
app.add_typer(config_app, name="config")


class LogFormat(StrEnum):
    """Form of log lines."""

    text = "text"
    json = "json"


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"privrisk_spark {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    del version


@app.command()
def release(
    policies: Annotated[
        list[Path] | None,
        typer.Argument(metavar="POLICY...", help="YAML files; later ones are merged over earlier ones."),
    ] = None,
    config: Annotated[
        list[Path] | None, typer.Option("--config", help="A policy file, as for spark-submit; repeatable.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a dotted key; repeatable.")
    ] = None,
    date: Annotated[str | None, typer.Option(help="Business date YYYY-MM-DD, for {ds}; default today (UTC).")] = None,
    run_id: Annotated[str | None, typer.Option(help="Run id; default from name, date and policy.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check all, print the plan, write nothing.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Print the plan before running it.")] = False,
    log_format: Annotated[LogFormat, typer.Option(help="Form of log lines.")] = LogFormat.text,
) -> None:
    """Read, encode, count, decide, validate and publish a table as its policy says."""
    from privrisk_spark import config as policies_module
    from privrisk_spark.progress import configure_logging, write_status

    configure_logging(log_format.value)
    vault: Path | None = None
    identity = run_id or ""
    try:
        day = _date(date)
        files = [*(policies or []), *(config or [])]
        if not files:
            raise ConfigError([Fault("", "name a policy file, such as conf/demo.yaml")])
        policy = policies_module.load(files, overrides=overrides or [], date=day)
        identity = policies_module.check_run_id(run_id or policy.run_id(day))
        vault = None if dry_run else Path(policy.output.vault)
        _run(policy, identity, policy.run.date or day, dry_run=dry_run, explain=explain)
    except PrivriskError as error:
        _end(error, vault, identity, write_status)


def _date(text: str | None) -> dt.date:
    if text is None:
        return dt.datetime.now(dt.UTC).date()
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise ConfigError([Fault("--date", f"must be a date YYYY-MM-DD. Got {text!r}")]) from None


def _run(policy: object, run_id: str, day: dt.date, *, dry_run: bool, explain: bool) -> None:
    """Build the session and run; turn what Spark and the file system raise into our errors."""
    try:
        from pyspark.errors import PySparkException
    except ImportError:
        raise InputError("Spark is not installed here: pip install 'privrisk-spark[spark]'.") from None
    try:
        from py4j.protocol import Py4JError
    except ImportError:  # the client of Spark Connect has no py4j, and raises PySparkException only
        Py4JError = PySparkException  # noqa: N806

    from privrisk_spark import pipeline, session
    from privrisk_spark.policy import Policy

    assert isinstance(policy, Policy)
    try:
        spark = session.build(f"privrisk release {policy.run.name}", encrypt=policy.guarantee.kind == "dp")
        if dry_run:
            typer.echo(pipeline.plan_only(spark, policy, run_id=run_id))
            return
        outcome = pipeline.release(spark, policy, run_id=run_id, date=day, announce=typer.echo if explain else None)
    except PrivriskError:
        raise
    except (PySparkException, Py4JError) as error:
        raise pipeline.engine_failure(error) from error
    except OSError as error:
        raise EngineError(f"The file system failed: {error.strerror or type(error).__name__}.") from error
    except Exception as error:
        raise InternalError(f"{type(error).__name__} where none was expected.") from error
    what = "Released" if outcome.fresh else "Already released, nothing done:"
    typer.echo(f"{what} {outcome.manifest['rows']:,} rows, run id {run_id}")
    typer.echo(f"  manifest  {outcome.place.root / 'manifest.json'}")
    typer.echo(f"  data      {outcome.place.root / outcome.manifest['data']['path']}")
    typer.echo(f"  report    {outcome.place.target / 'report.html'}")
    typer.echo(f"  vault     {outcome.place.vault} (never publish: exact risks, decisions, full report)")


def _end(error: PrivriskError, vault: Path | None, run_id: str, write_status: Callable[..., None]) -> None:
    typer.echo(f"privrisk: {error}", err=True)
    if vault is not None and not isinstance(error, BusyError):
        write_status(vault, run_id, phase="failed", code=error.exit_code, message=str(error), remedy=error.remedy)
    if isinstance(error, InternalError) and error.__cause__ is not None:
        trace = error.__cause__.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            typer.echo(f"  at {Path(code.co_filename).name}:{trace.tb_lineno} {code.co_name}", err=True)
            trace = trace.tb_next
    raise typer.Exit(error.exit_code)


@config_app.command("schema")
def schema() -> None:
    """Print the JSON Schema of a policy."""
    from privrisk_spark.config import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


@app.command()
def synthesize(
    directory: Annotated[Path, typer.Argument(help="Where to write; must not exist or be empty.")],
    rows: Annotated[int, typer.Option(min=1, help="Rows of the table.")] = 20_000,
    people: Annotated[int | None, typer.Option(min=1, help="Rows of the register; default 1.74 times rows.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 2026,
) -> None:
    """Write a SYNTHETIC census-like table, a register to attack it with, and hierarchies."""
    from privrisk_spark.synthetic import generate

    try:
        generate(directory, people=people or round(rows * 1.7395), rows=rows, seed=seed)
    except PrivriskError as error:
        typer.echo(f"privrisk: {error}", err=True)
        raise typer.Exit(error.exit_code) from None
    except OSError as error:
        typer.echo(f"privrisk: The file system failed: {error.strerror or type(error).__name__}.", err=True)
        raise typer.Exit(EngineError.exit_code) from None
    typer.echo(f"Synthetic population of {rows:,} rows at {directory}")


def main() -> None:
    """Entry point of ``privrisk``."""
    app(prog_name="privrisk")


if __name__ == "__main__":
    main()
