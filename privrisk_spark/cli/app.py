"""Command line: ``release``, ``assess``, ``audit``, ``curves``, ``experiments``, ``ledger``, ``config``, and so on."""

from __future__ import annotations

import datetime as dt
import gc
import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privrisk_spark import __version__
from privrisk_spark.cli.ledger import ledger_app
from privrisk_spark.errors import BusyError, ConfigError, EngineError, Fault, InputError, InternalError, PrivriskError
from privrisk_spark.reporting.guide import section_of, told
from privrisk_spark.reporting.guide import text as guide_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from privrisk_spark.policy.policy import Policy

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Measure the privacy risk of tables and publish anonymized releases.",
)
config_app = typer.Typer(no_args_is_help=True, help="About policies.")
app.add_typer(config_app, name="config")
experiments_app = typer.Typer(no_args_is_help=True, help="Published experiments, run again.")
app.add_typer(experiments_app, name="experiments")
app.add_typer(ledger_app, name="ledger")


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


Policies = Annotated[
    list[Path] | None,
    typer.Argument(metavar="POLICY...", help="YAML files; later ones are merged over earlier ones."),
]
Configs = Annotated[list[Path] | None, typer.Option("--config", help="A policy file, as for spark-submit; repeatable.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a dotted key; repeatable.")
]
Date = Annotated[str | None, typer.Option(help="Business date YYYY-MM-DD, for {ds}; default today (UTC).")]
RunId = Annotated[str | None, typer.Option(help="Run id; default from name, date and policy.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check all, print the plan, write nothing.")]
Explain = Annotated[bool, typer.Option("--explain", help="Print the plan before running it.")]
Log = Annotated[LogFormat, typer.Option(help="Form of log lines.")]


@app.command()
def release(
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    date: Date = None,
    run_id: RunId = None,
    dry_run: DryRun = False,
    explain: Explain = False,
    log_format: Log = LogFormat.text,
) -> None:
    """Read, encode, count, decide, validate and publish a table as its policy says."""
    with _attempt(run_id, log_format) as attempt:
        policy, day = _policy(attempt, [*(policies or []), *(config or [])], overrides, date)
        attempt.status = None if dry_run else Path(policy.places.vault)
        encrypt = policy.guarantee.kind != "risk"
        with _engine(), _session(f"privrisk release {policy.run.name}", encrypt=encrypt, checks=not dry_run) as spark:
            from privrisk_spark.pipelines import plan as dry
            from privrisk_spark.pipelines.release import run as pipeline

            if dry_run:
                typer.echo(dry.plan_only(spark, policy, run_id=attempt.run_id))
                return
            announce = typer.echo if explain else None
            outcome = pipeline.release(spark, policy, run_id=attempt.run_id, date=day, announce=announce)
    what = "Released" if outcome.fresh else "Already released, nothing done:"
    typer.echo(f"{what} {outcome.manifest['rows']:,} rows, run id {attempt.run_id}")
    typer.echo(f"  manifest  {outcome.place.root / 'manifest.json'}")
    typer.echo(f"  data      {outcome.place.root / outcome.manifest['data']['path']}")
    typer.echo(f"  report    {outcome.place.target / 'report.html'}")
    typer.echo(f"  vault     {outcome.place.vault} (never publish: exact risks, decisions, full report)")


@app.command()
def assess(
    output: Annotated[str, typer.Option(metavar="DIR", help="Where to write; never publish it.")],
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    date: Date = None,
    run_id: RunId = None,
    dry_run: DryRun = False,
    explain: Explain = False,
    log_format: Log = LogFormat.text,
) -> None:
    """Measure the risk of a table, alone or against a release and a population. Transforms and publishes nothing.

    Exit code 1 if a threshold of assess.thresholds is missed.
    """
    with _attempt(run_id, log_format) as attempt:
        files = [*(policies or []), *(config or [])]
        policy, day = _policy(attempt, files, overrides, date, releasing=False)
        with _engine():
            from privrisk_spark.pipelines.assess import run as job

            place = job.check_output(policy, output)
            attempt.status = None if dry_run else place
            announce = typer.echo if explain else None
            with _session(f"privrisk assess {policy.run.name}", encrypt=False, checks=False) as spark:
                if dry_run:
                    typer.echo(job.plan_only(spark, policy))
                    return
                result = job.assess(spark, policy, place=place, run_id=attempt.run_id, date=day, announce=announce)
    typer.echo(result.paragraph)
    for verdict in result.verdicts:
        typer.echo(f"  {'met   ' if verdict.passed else 'MISSED'}  {verdict.rule}")
    for name in ("report.html", "measures.json", "assessment.json"):
        typer.echo(f"  {place / name}")
    typer.echo("  never publish them: exact figures about the table")
    if not result.passed:
        raise typer.Exit(1)


@app.command()
def curves(
    output: Annotated[str, typer.Option(metavar="DIR", help="Where to write; never publish it.")],
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    shares: Annotated[int, typer.Option(min=2, max=100, help="Nested samples of the dictionary.")] = 10,
    floors: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="Least utilities; default 5, evenly spaced.")
    ] = None,
    records: Annotated[
        int, typer.Option(min=1, help="Most distinct records to decide; beyond, a sample of them.")
    ] = 20_000,
    date: Date = None,
    run_id: RunId = None,
    dry_run: DryRun = False,
    explain: Explain = False,
    log_format: Log = LogFormat.text,
) -> None:
    """Compute risk over the size of the attacker's dictionary, and true against estimated risk: data and plots."""
    with _attempt(run_id, log_format) as attempt:
        policy, day = _policy(attempt, [*(policies or []), *(config or [])], overrides, date)
        with _engine():
            from privrisk_spark.pipelines import curves as job
            from privrisk_spark.planning.curves import CurveRequest, parse_floors
            from privrisk_spark.planning.places import check_request

            asked = CurveRequest(shares, None if floors is None else parse_floors(floors), records)
            place = check_request(policy, output, files=job.FILES, what="curves")
            attempt.status = None if dry_run else place
            announce = typer.echo if explain else None
            with _session(f"privrisk curves {policy.run.name}", encrypt=False, checks=False) as spark:
                if dry_run:
                    typer.echo(job.plan_only(spark, policy, asked))
                    return
                result = job.curves(
                    spark, policy, asked, place=place, run_id=attempt.run_id, date=day, announce=announce
                )
    typer.echo(f"Curves of {len(result.shares)} dictionary sizes ({result.status}), run id {attempt.run_id}")
    for name in ("curves.html", "curves.csv", "curves.json"):
        typer.echo(f"  {place / name}")
    typer.echo("  never publish them: exact figures about the table")


@app.command()
def audit(
    output: Annotated[str, typer.Option(metavar="DIR", help="Where to write audit.json and audit.html.")],
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    trials: Annotated[int, typer.Option(min=1_000, help="Releases of each adversarial table.")] = 20_000,
    seed: Annotated[
        int, typer.Option(min=0, help="Same seed, same audit. It is public: no release is drawn by it.")
    ] = 1,
    date: Date = None,
    run_id: RunId = None,
    log_format: Log = LogFormat.text,
) -> None:
    """Try to refute the differential privacy of a policy's mechanism by releases of adversarial tables.

    Reads nothing of the policy's table. Exit code 1 if anything is flagged.
    """
    with _attempt(run_id, log_format) as attempt:
        policy, day = _policy(attempt, [*(policies or []), *(config or [])], overrides, date)
        with _engine():
            from privrisk_spark.pipelines import audit as job

            place = job.check_output(policy, output)
            attempt.status = place
            name = f"privrisk audit {policy.run.name}"
            with _session(name, encrypt=False, checks=False, retries=True) as spark:
                result = job.audit(
                    spark, policy, place=place, run_id=attempt.run_id, date=day, trials=trials, seed=seed
                )
    verdict = "passed" if result.passed else "FLAGGED"
    typer.echo(
        f"Audit {verdict}: {len(result.findings)} experiments with {trials:,} releases of each table, seed {seed}"
    )
    for part, text in result.flags:
        typer.echo(f"  {part}: {text}")
    for name in ("audit.html", "audit.json"):
        typer.echo(f"  {place / name}")
    if not result.passed:
        raise typer.Exit(1)


@experiments_app.command("deciding")
def experiments_deciding(
    output: Annotated[str, typer.Option(metavar="DIR", help="Where to write; never publish it.")],
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows of the generated table.")] = 10_000,
    attributes: Annotated[int, typer.Option(min=2, max=10, help="Attributes of the generated table.")] = 7,
    records: Annotated[int, typer.Option(min=1, help="Most distinct records decided for means over a table.")] = 2_000,
    searches: Annotated[int, typer.Option(min=1, help="Records whose lattices are searched one by one.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same figures but for times.")] = 2012,
    date: Date = None,
    log_format: Log = LogFormat.text,
) -> None:
    """Run Fouad's (2012) comparisons of searches and models on generated data, and on a policy's table: data and plots.

    Without a policy nothing is read and Spark is not started.
    """
    from privrisk_spark.experiments.deciding.results import Sizes

    sizes = Sizes(rows, attributes, records, searches, seed)

    _experiments("deciding", sizes, [*(policies or []), *(config or [])], overrides, output, date, log_format)


@experiments_app.command("privacy")
def experiments_privacy(
    output: Annotated[str, typer.Option(metavar="DIR", help="Where to write; never publish it.")],
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows of the smaller generated table.")] = 30_000,
    large: Annotated[int, typer.Option(min=1, help="Rows of the larger one.")] = 1_000_000,
    attributes: Annotated[int, typer.Option(min=2, max=10, help="Attributes of the generated tables.")] = 5,
    records: Annotated[int, typer.Option(min=1, help="Most distinct records Algorithm 6 is evaluated on.")] = 100,
    runs: Annotated[int, typer.Option(min=1, help="Simulated releases per point.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same figures.")] = 2012,
    date: Date = None,
    log_format: Log = LogFormat.text,
) -> None:
    """Run Fouad's (2012) exponential sampling, which guarantees nothing, beside a release with a proof: data and plots.

    Without a policy nothing is read and Spark is not started. Nothing is published, and no budget is charged.
    """
    from privrisk_spark.experiments.privacy.results import PrivacySizes

    sizes = PrivacySizes(rows, large, attributes, records, runs, seed)

    _experiments("privacy", sizes, [*(policies or []), *(config or [])], overrides, output, date, log_format)


@experiments_app.command("adversary")
def experiments_adversary(
    output: Annotated[str, typer.Option(metavar="DIR", help="Where to write; never publish it.")],
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    rows: Annotated[
        int, typer.Option(min=1, max=100_000_000, help="Rows of the generated voter registry.")
    ] = 6_018_999,
    records: Annotated[int, typer.Option(min=1, help="Records of the generated table.")] = 32_561,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same figures but for times.")] = 2015,
    date: Date = None,
    log_format: Log = LogFormat.text,
) -> None:
    """Run the case study of Xia et al. (2015), an attack that is planned: on generated data, and on a policy's table.

    The policy's table must have the quasi-identifiers age, race and sex. Without a policy Spark is not started.
    """
    from privrisk_spark.experiments.adversary.results import AdversarySizes

    sizes = AdversarySizes(rows, records, seed)

    files = [*(policies or []), *(config or [])]
    _experiments("adversary", sizes, files, overrides, output, date, log_format)


def _experiments(
    name: str,
    sizes: object,
    files: list[Path],
    overrides: Sequence[str] | None,
    output: str,
    date: str | None,
    log_format: LogFormat,
) -> None:
    """Run experiments, with Spark where there is a policy, and say where they are."""
    with _attempt(name, log_format) as attempt:
        policy, day = (None, _date(date))
        if files:
            attempt.run_id = ""
            policy, day = _policy(attempt, files, overrides, date)
        elif overrides:
            raise ConfigError([Fault("--set", "changes a policy, and none is named")])
        with _engine():
            from privrisk_spark.experiments import run as runner

            experiment = importlib.import_module(f"privrisk_spark.experiments.{name}.experiment").EXPERIMENT
            place = runner.check_output(experiment, policy, output)
            attempt.status = place
            with (
                nullcontext() if policy is None else _session("privrisk experiments", encrypt=False, checks=False) as s
            ):
                result = runner.run(experiment, s, policy, sizes, place=place, run_id=attempt.run_id, date=day)
    typer.echo(f"Experiments on {len(result.findings.tables)} tables, seed {result.sizes['seed']}")
    for ending in ("html", "csv", "json"):
        typer.echo(f"  {place / f'{name}.{ending}'}")
    if result.private:
        typer.echo("  never publish them: exact figures about the table")


@dataclass
class _Attempt:
    """What is known of a run when it fails: its id, and where its status goes."""

    run_id: str
    status: Path | None = None


@contextmanager
def _attempt(run_id: str | None, log_format: LogFormat) -> Iterator[_Attempt]:
    """Run a command: an error becomes a line, a status and an exit code."""
    from privrisk_spark.runs.progress import configure_logging, write_status

    configure_logging(log_format.value)
    attempt = _Attempt(run_id or "")
    try:
        yield attempt
    except PrivriskError as error:
        _end(error, attempt.status, attempt.run_id, write_status)


def _policy(
    attempt: _Attempt,
    files: Sequence[Path],
    overrides: Sequence[str] | None,
    date: str | None,
    *,
    releasing: bool = True,
) -> tuple[Policy, dt.date]:
    """Read the policy, and settle run id and business date."""
    from privrisk_spark.policy import reading as policies

    day = _date(date)
    if not files:
        raise ConfigError([Fault("", "name a policy file, such as conf/demo.yaml")])
    policy = policies.load(files, overrides=overrides or [], date=day, releasing=releasing)
    attempt.run_id = policies.check_run_id(attempt.run_id or policy.run_id(day))
    return policy, policy.run.date or day


def _date(text: str | None) -> dt.date:
    if text is None:
        return dt.datetime.now(dt.UTC).date()
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise ConfigError([Fault("--date", f"must be a date YYYY-MM-DD. Got {text!r}")]) from None


@contextmanager
def _engine() -> Iterator[None]:
    """Turn what Spark and the file system raise into our errors."""
    try:
        from pyspark.errors import PySparkException
    except ImportError:
        raise InputError("Spark is not installed here: pip install 'privrisk-spark[spark]'.") from None
    try:
        from py4j.protocol import Py4JError
    except ImportError:  # the client of Spark Connect has no py4j, and raises PySparkException only
        Py4JError = PySparkException  # noqa: N806

    try:
        yield
    except PrivriskError:
        raise
    except (PySparkException, Py4JError) as error:
        from privrisk_spark.pipelines.plan import engine_failure

        raise engine_failure(error) from error
    except OSError as error:
        raise EngineError(f"The file system failed: {error.strerror or type(error).__name__}.") from error
    except Exception as error:
        raise InternalError(f"{type(error).__name__} where none was expected.") from error


@contextmanager
def _session(name: str, *, encrypt: bool, checks: bool, retries: bool = False) -> Iterator[SparkSession]:
    """Start Spark, and what a run needs besides: nothing waits for more than it uses."""
    from privrisk_spark.engine import session

    def prepare() -> None:
        try:
            if checks:
                from privrisk_spark.stages.publishing import contracts

                contracts.prepare()
                importlib.import_module("privrisk_spark.reporting.report")
        finally:
            gc.freeze()
            gc.enable()

    # Imports make no garbage worth looking for.
    gc.disable()
    with ThreadPoolExecutor(3) as threads:
        building = threads.submit(session.build, name, encrypt=encrypt, retries=retries)
        try:
            from privrisk_spark.engine import batches
            from privrisk_spark.pipelines.release import run as pipeline  # noqa: F401 - imported while Java starts
        finally:
            # The checks' packages come while Java starts and plans; who needs them first, waits.
            preparing = threads.submit(prepare)
        spark = building.result()
        # The first task finds a worker that has imported what it needs.
        warming = threads.submit(batches.collect_nothing, spark)
        yield spark
    preparing.result()
    warming.result()


def _end(error: PrivriskError, vault: Path | None, run_id: str, write_status: Callable[..., None]) -> None:
    typer.echo(told(error), err=True)
    if vault is not None and not isinstance(error, BusyError):
        section = section_of(error)
        remedy = error.remedy if section is None else f"{error.remedy} Read: privrisk guide {section}."
        write_status(vault, run_id, phase="failed", code=error.exit_code, message=str(error), remedy=remedy)
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
    from privrisk_spark.policy.reading import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


@app.command()
def synthesize(
    directory: Annotated[Path, typer.Argument(help="Where to write; must not exist or be empty.")],
    rows: Annotated[int, typer.Option(min=1, help="Rows of the table.")] = 20_000,
    people: Annotated[int | None, typer.Option(min=1, help="Rows of the register; default 1.74 times rows.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 2026,
) -> None:
    """Write a SYNTHETIC census-like table, a register to attack it with, and hierarchies."""
    from privrisk_spark.experiments.generated.population import generate

    try:
        generate(directory, people=people or round(rows * 1.7395), rows=rows, seed=seed)
    except PrivriskError as error:
        typer.echo(told(error), err=True)
        raise typer.Exit(error.exit_code) from None
    except OSError as error:
        typer.echo(f"privrisk: The file system failed: {error.strerror or type(error).__name__}.", err=True)
        raise typer.Exit(EngineError.exit_code) from None
    typer.echo(f"Synthetic population of {rows:,} rows at {directory}")


@app.command()
def guide(
    section: Annotated[str | None, typer.Argument(metavar="[SECTION]", help="One section; without it, all.")] = None,
) -> None:
    """Print the privacy officer's guide: what a differentially private release promises, how to choose its figures."""
    try:
        typer.echo(guide_text(section), nl=False)
    except PrivriskError as error:
        typer.echo(told(error), err=True)
        raise typer.Exit(error.exit_code) from None


@app.command("prepare-java")
def prepare_java() -> None:
    """Store what Java loads at the start of a run (160 MB in the cache), so that local runs start seconds sooner.

    Takes half a minute, once for each version of Java and Spark; nothing but speed depends on it.
    """
    from privrisk_spark.engine.fast import class_archive

    try:
        archive = class_archive.located()
        if archive is None:
            raise EngineError(
                "Java's classes cannot be stored: it needs Java and pyspark, no Java options in the environment, "
                "and a cache directory (XDG_CACHE_HOME) without blanks in its name."
            )
        class_archive.make(archive)
    except PrivriskError as error:
        typer.echo(told(error), err=True)
        raise typer.Exit(error.exit_code) from None
    typer.echo(f"Java's classes are stored at {archive.directory}")


def main() -> None:
    """Entry point of ``privrisk``."""
    app(prog_name="privrisk")


if __name__ == "__main__":
    main()
