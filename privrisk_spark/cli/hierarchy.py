"""The commands ``privrisk hierarchy show``, ``check`` and ``draw``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privrisk_spark.cli.attempt import attempted
from privrisk_spark.cli.options import LogFormat, Overrides
from privrisk_spark.cli.printing import echo
from privrisk_spark.errors import ConfigError, Fault, listing

if TYPE_CHECKING:
    from privrisk_spark.hierarchies.description import Description
    from privrisk_spark.pipelines.hierarchies import Checked

hierarchy_app = typer.Typer(no_args_is_help=True, help="Look at value generalization hierarchies.")

Source = Annotated[
    str, typer.Argument(metavar="FILE_OR_POLICY", help="A policy, a tree in YAML or JSON, or a file in ARX's format.")
]
Column = Annotated[
    str | None, typer.Option("--column", help="One quasi-identifier of a policy; the column a file is for.")
]
Separator = Annotated[str, typer.Option(help="Between the cells of a file in ARX's format.")]
Values = Annotated[
    bool,
    typer.Option("--values", help="Show values of the table that are outside, or leaves: they are values of records."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")]

_HIDDEN = "the labels come from values of records; --values shows them"


@hierarchy_app.command()
@attempted(None, LogFormat.text)
def show(
    source: Source,
    column: Column = None,
    separator: Separator = ";",
    overrides: Overrides = None,
    values: Values = False,
    as_json: AsJson = False,
) -> None:
    """Print the levels of hierarchies: how many nodes, how many values under one, and examples of labels."""
    from privrisk_spark.api.hierarchies import hierarchies_of
    from privrisk_spark.hierarchies.description import describe

    found = hierarchies_of(source, column=column, separator=separator, overrides=overrides or [])
    told = [describe(one, values=values) for one in found.values()]
    if as_json:
        echo(json.dumps([one.to_dict() for one in told], indent=2, ensure_ascii=False))
        return
    for one in told:
        echo("\n".join(_described(one)))


@hierarchy_app.command()
@attempted(None, LogFormat.text)
def check(
    source: Source,
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="Path of a table; default that of the policy.")
    ] = None,
    column: Column = None,
    separator: Separator = ";",
    form: Annotated[
        str | None, typer.Option("--format", help="Of TABLE; default csv with a header by its name, else parquet.")
    ] = None,
    options: Annotated[
        list[str] | None, typer.Option("--option", metavar="KEY=VALUE", help="How to read TABLE; repeatable.")
    ] = None,
    overrides: Overrides = None,
    values: Values = False,
    as_json: AsJson = False,
) -> None:
    """Hold hierarchies against a table: which of its values they do not hold, counted by Spark.

    Exit code 2 if there are such, and the policy does not suppress them.
    """
    from privrisk_spark.api.hierarchies import check_hierarchies
    from privrisk_spark.hierarchies.description import describe

    wrong = [option for option in options or [] if "=" not in option]
    if wrong:
        raise ConfigError([Fault("--option", f"must be written key=value, such as sep=;. Got {wrong[0]!r}")])
    found = check_hierarchies(
        source,
        table,
        column=column,
        separator=separator,
        overrides=overrides or [],
        form=form,
        options=dict(option.split("=", 1) for option in options or []),
        values=values,
    )
    told = {name: describe(one.hierarchy, values=values) for name, one in found.items()}
    if as_json:
        document = [{**told[name].to_dict(), "table": one.to_dict()} for name, one in found.items()]
        echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        for name, one in found.items():
            echo("\n".join([*_described(told[name]), *_checked(one)]))
    if not all(one.passed for one in found.values()):
        raise typer.Exit(2)


@hierarchy_app.command()
@attempted(None, LogFormat.text)
def draw(
    source: Source,
    output: Annotated[Path, typer.Option("--output", metavar="FILE.svg", help="Where to write the picture.")],
    column: Column = None,
    separator: Separator = ";",
    rows: Annotated[
        int, typer.Option(min=3, max=400, help="Lines of the picture, about; what is more is elided.")
    ] = 40,
    overrides: Overrides = None,
    values: Values = False,
) -> None:
    """Draw a hierarchy as a tree, an SVG picture; where it is wide, it says how much is left out."""
    from privrisk_spark.api.hierarchies import hierarchies_of
    from privrisk_spark.reporting.hierarchy_trees import draw_hierarchy
    from privrisk_spark.storage.documents import write_text

    if output.exists() and not output.read_bytes().lstrip().startswith((b"<svg", b"<?xml")):
        rule = f"must be a new file, or an SVG picture. Got '{output}'. Fix: name another file"
        raise ConfigError([Fault("--output", rule)])
    found = hierarchies_of(source, column=column, separator=separator, overrides=overrides or [])
    if len(found) != 1:
        raise ConfigError([Fault("--column", f"is required, as there are {listing(list(found))}")])
    (hierarchy,) = found.values()
    if not hierarchy.public and not values:
        raise ConfigError([Fault("--values", f"is required: {_HIDDEN.partition(';')[0]}, and would be in the picture")])
    write_text(output, draw_hierarchy(hierarchy, rows=rows) + "\n")
    echo(f"{hierarchy.attribute}: {output}")


def _described(one: Description) -> Iterator[str]:
    """A description as lines."""
    where = "declared" if one.public else "taken from the table"
    yield f"{one.attribute}: {one.leaves:,} values, {where}; {one.height + 1} levels"
    names = max(len(level.name) for level in one.levels)
    yield f"  level  {'name':{names}}  {'nodes':>9}  {'values under one':>17}  labels"
    for level in one.levels:
        under = f"{level.fewest:,}" if level.fewest == level.most else f"{level.fewest:,} to {level.most:,}"
        gap = "…" if level.nodes > len(level.examples) else ""
        shown = [*level.examples[:-1], gap, *level.examples[-1:]] if gap else list(level.examples)
        labels = ", ".join(label for label in shown if label) if level.examples else "(not shown)"
        yield f"  {level.number:>5}  {level.name:{names}}  {level.nodes:>9,}  {under:>17}  {labels}"
    if not all(level.examples for level in one.levels):
        yield f"  labels are not shown: {_HIDDEN}"
    if len(one.depths) > 1:
        steps = ", ".join(f"{values:,} after {depth}" for depth, values in one.depths.items())
        yield f"  branches are of different length; values are suppressed after so many steps: {steps}"
    for label, levels in list(one.repeated.items())[:10]:
        yield f"  the label '{label}' stands on levels {listing([str(level) for level in levels])}"
    if len(one.repeated) > 10:
        yield f"  … {len(one.repeated):,} labels stand on several levels"


def _checked(one: Checked) -> Iterator[str]:
    """What the table holds, as lines."""
    found = one.coverage
    yield f"  table: {found.rows:,} rows, {found.missing:,} without a value"
    if not found.outside_rows:
        yield "  every value is in the hierarchy"
        return
    how = "suppressed, as the policy says" if one.suppressed else "NOT in the hierarchy"
    yield f"  {found.outside_values:,} values in {found.outside_rows:,} rows are {how}"
    for value, rows in one.values:
        yield f"    {value!r} in {rows:,} rows"
    if len(one.values) < found.outside_values:
        more = "the most frequent are shown" if one.values else "--values shows them; they are values of records"
        yield f"    ({more})"
