"""The commands ``privrisk experiments …``."""

from __future__ import annotations

from typing import Annotated

import typer

from privrisk_spark.cli.experiments_run import run_collection, run_experiments
from privrisk_spark.cli.options import (
    Configs,
    Date,
    EngineOption,
    Log,
    LogFormat,
    Overrides,
    Policies,
    PrivateOutput,
    Quiet,
    Verbose,
)

experiments_app = typer.Typer(no_args_is_help=True, help="Published experiments, run again.")


@experiments_app.command("deciding")
def experiments_deciding(
    output: PrivateOutput,
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
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Run Fouad's (2012) comparisons of searches and models on generated data, and on a policy's table: data and plots.

    Without a policy nothing is read and Spark is not started.
    """
    sizes = {"rows": rows, "attributes": attributes, "records": records, "searches": searches, "seed": seed}

    run_experiments("deciding", sizes, [*(policies or []), *(config or [])], overrides, output, date, log_format)


@experiments_app.command("privacy")
def experiments_privacy(
    output: PrivateOutput,
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
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Run Fouad's (2012) exponential sampling, which guarantees nothing, beside a release with a proof: data and plots.

    Without a policy nothing is read and Spark is not started. Nothing is published, and no budget is charged.
    """
    sizes = {"rows": rows, "large": large, "attributes": attributes, "records": records, "runs": runs, "seed": seed}

    run_experiments("privacy", sizes, [*(policies or []), *(config or [])], overrides, output, date, log_format)


@experiments_app.command("adversary")
def experiments_adversary(
    output: PrivateOutput,
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
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Run the case study of Xia et al. (2015), an attack that is planned: on generated data, and on a policy's table.

    The policy's table must have the quasi-identifiers age, race and sex. Without a policy Spark is not started.
    """
    sizes = {"rows": rows, "records": records, "seed": seed}

    files = [*(policies or []), *(config or [])]
    run_experiments("adversary", sizes, files, overrides, output, date, log_format)


@experiments_app.command("recoding")
def experiments_recoding(
    output: PrivateOutput,
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows of the generated table.")] = 10_000,
    attributes: Annotated[int, typer.Option(min=2, max=10, help="Attributes of the generated table.")] = 7,
    records: Annotated[int, typer.Option(min=1, help="Most distinct records decided for means over a table.")] = 2_000,
    suppressed: Annotated[int, typer.Option(min=0, max=100, help="Rows that may be suppressed, in per cent.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same figures but for times.")] = 2012,
    date: Date = None,
    log_format: Log = LogFormat.text,
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Run every algorithm of k-anonymization on generated data, and on a policy's table: cost, time, risk, claims.

    Without a policy nothing is read and Spark is not started. Nothing is published.
    """
    sizes = {"rows": rows, "attributes": attributes, "records": records, "suppressed": suppressed, "seed": seed}

    run_experiments("recoding", sizes, [*(policies or []), *(config or [])], overrides, output, date, log_format)


@experiments_app.command("compare")
def experiments_compare(
    output: PrivateOutput,
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows of the generated table over hierarchies.")] = 2_000,
    attributes: Annotated[int, typer.Option(min=2, max=10, help="Attributes of it.")] = 5,
    records: Annotated[int, typer.Option(min=2, help="Records of the generated table of numbers.")] = 1_080,
    columns: Annotated[int, typer.Option(min=1, max=50, help="Columns of it.")] = 13,
    suppressed: Annotated[int, typer.Option(min=0, max=100, help="Rows that may be suppressed, in per cent.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same figures.")] = 2008,
    quick: Annotated[bool, typer.Option("--quick", help="Small generated tables, whatever sizes say.")] = False,
    date: Date = None,
    log_format: Log = LogFormat.text,
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Attack every way to protect a table: what is found over what is lost, on generated data and a policy's table.

    Without a policy nothing is read and Spark is not started. Nothing is published.
    """
    sizes = {"suppressed": suppressed, "seed": seed}
    if not quick:
        sizes |= {"rows": rows, "attributes": attributes, "records": records, "columns": columns}

    files = [*(policies or []), *(config or [])]
    run_experiments("compare", sizes, files, overrides, output, date, log_format, quick=quick)


@experiments_app.command("dictionaries")
def experiments_dictionaries(
    output: PrivateOutput,
    rows: Annotated[int, typer.Option(min=20, help="Rows of the generated table; a tenth is released.")] = 40_000,
    attributes: Annotated[int, typer.Option(min=2, max=10, help="Attributes of it.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same figures.")] = 2006,
    quick: Annotated[bool, typer.Option("--quick", help="A small table, whatever sizes say.")] = False,
    date: Date = None,
    log_format: Log = LogFormat.text,
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
) -> None:
    """Run what Lebanon et al. (2006) and Fouad (2012) show of risk by the attacker's dictionary, and by rule.

    Nothing is read and Spark is not started. ``privrisk curves`` does this for a policy's table.
    """
    sizes = {"seed": seed} if quick else {"rows": rows, "attributes": attributes, "seed": seed}

    run_experiments("dictionaries", sizes, [], None, output, date, log_format, quick=quick)


@experiments_app.command("examples")
def experiments_examples(
    output: PrivateOutput,
    date: Date = None,
    log_format: Log = LogFormat.text,
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
) -> None:
    """Compute the worked examples of the sources again: what is printed beside what is found."""
    run_experiments("examples", {}, [], None, output, date, log_format)


@experiments_app.command("sharing")
def experiments_sharing(
    output: PrivateOutput,
    users: Annotated[int, typer.Option(min=100, max=10_000_000, help="Users of the generated network.")] = 50_000,
    pairs: Annotated[int, typer.Option(min=10, help="Pairs decided for, about.")] = 1_000,
    attributes: Annotated[
        int, typer.Option(min=2, max=90, help="Most attributes of a profile; multiples of 10 below are tried as well.")
    ] = 70,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same figures but for times.")] = 2012,
    quick: Annotated[bool, typer.Option("--quick", help="A small network, whatever sizes say.")] = False,
    date: Date = None,
    log_format: Log = LogFormat.text,
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Run chapter 7 of Fouad (2012) on a generated social network: what members show each other, claimed beside found.

    Nothing is read and Spark is not started. The thesis has 500,000 users and 50,000 pairs.
    """
    sizes = {"seed": seed} if quick else {"users": users, "pairs": pairs, "attributes": attributes, "seed": seed}

    run_experiments("sharing", sizes, [], None, output, date, log_format, quick=quick)


@experiments_app.command("all")
def experiments_all(
    output: PrivateOutput,
    policies: Policies = None,
    config: Configs = None,
    overrides: Overrides = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, to see that all of it runs.")] = False,
    date: Date = None,
    log_format: Log = LogFormat.text,
    quiet: Quiet = False,  # noqa: ARG001 - acts when it is read
    verbose: Verbose = False,  # noqa: ARG001 - acts when it is read
    engine: EngineOption = None,  # noqa: ARG001 - acts when it is read
) -> None:
    """Run every experiment, one after the other: one page of what was claimed beside what was found.

    A run that was stopped goes on where it was. Without a policy nothing is read and Spark is not started.
    """
    run_collection([*(policies or []), *(config or [])], overrides, output, date, log_format, quick=quick)
