"""A first policy for a table: the order of stages, and every Spark action of it.

columns → sample, values, ids → guesses → floors

Two passes over the table. The first counts every column. What the second does rests on it: it lists the values of
columns that have few, counts those of columns that may be ids, and draws a sample, whose share depends on the number of
rows. There is a third where the sample shows that a column may be an id that neither name nor figures told of. What
comes to the driver is bounded by constants of :mod:`privrisk_spark.planning.first_policy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.errors import SchemaError
from privrisk_spark.planning.first_policy.columns import (
    FEW_VALUES,
    SAMPLED_ROWS,
    column_profile,
    has_few,
    key_candidates,
    most_telling,
    naming_columns,
)
from privrisk_spark.planning.first_policy.draft import Draft, Proposed, draft
from privrisk_spark.planning.first_policy.floors import propose_floor
from privrisk_spark.planning.first_policy.roles import (
    guess_roles,
    may_name_individuals,
    person_candidates,
    released_as_they_are,
)
from privrisk_spark.planning.first_policy.tidying import find_cleaning
from privrisk_spark.planning.lakes import pin_tables
from privrisk_spark.planning.readings import Declared
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import parse
from privrisk_spark.policy.values import Reading
from privrisk_spark.results.first_policy import FirstPolicy, FloorTable
from privrisk_spark.results.profile import QUANTILES, Persons, TableProfile
from privrisk_spark.stages.profiling.columns import (
    collect_columns,
    collect_counts,
    collect_values,
    simple_columns,
)
from privrisk_spark.tables.completeness import collect_files_read
from privrisk_spark.tables.opening import read
from privrisk_spark.tables.tidying import tidied
from privrisk_spark.version import __version__


@dataclass(frozen=True, eq=False)
class Profiled:
    """A profile, and the sample it rests on.

    Attributes
    ----------
    sample : dict of column to list of (str or None)
    """

    profile: TableProfile
    sample: dict[str, list[str | None]]


def opened(spark: SparkSession, table: Mapping[str, Any]) -> DataFrame:
    """Open a table that no policy names yet; of CSV and JSON all lines are checked.

    Parameters
    ----------
    table : mapping
        As ``table`` of a policy.
    """
    # Enough of a policy to open its table as a release does.
    policy = parse({"version": 1, "run": {"name": "init"}, "table": dict(table), "columns": _ANY}, releasing=False)
    pinned = pin_tables(policy, ("table",)).policy
    frame = read(spark, pinned.table, key="table", used=())
    collect_files_read(spark, pinned.table, frame, key="table")  # refuses malformed lines
    return frame


_ANY = {"any": {"role": "quasi-identifier", "hierarchy": {"flat": {}}}}


def profile_table(frame: DataFrame) -> Profiled:
    """Profile a table; texts that are numbers or dates once they are cleaned are cleaned and counted again.

    Raises
    ------
    SchemaError
        If it has no columns or no rows, or two columns of one name.
    """
    found = _profile(frame)
    cleaned = {one.name: find_cleaning(one) for one in found.profile.columns}
    readings = {name: Reading.model_validate(read) for name, (read, _) in cleaned.items() if read}
    if readings:
        declared = {name: Declared(f"columns.{name}.read", reading, lenient=True) for name, reading in readings.items()}
        found = _profile(tidied(frame, declared).rows)
    columns = tuple(
        replace(one, read=cleaned[one.name][0], doubt=cleaned[one.name][1]) for one in found.profile.columns
    )
    return replace(found, profile=replace(found.profile, columns=columns))


def _profile(frame: DataFrame) -> Profiled:
    """Profile a table as it is."""
    names = frame.columns
    if not names:
        raise SchemaError("table: it has no columns; its files are empty, or of another format than was read.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(f"table: it has several columns named '{twice[0]}'; rename all but one.")
    counted = collect_columns(frame, quantiles=QUANTILES)
    rows, figures = counted["rows"], counted["columns"]
    if not rows:
        raise SchemaError("table: it has no rows.")
    simple = simple_columns(frame)

    def profiled(sample: Mapping[str, list[str | None]], values: Mapping[str, dict[str, int]]) -> TableProfile:
        columns = (
            column_profile(
                one.name,
                one.dataType.simpleString(),
                rows,
                figures[one.name],
                sample.get(one.name, []),
                values.get(one.name),
            )
            for one in frame.schema.fields
        )
        return TableProfile(rows, max(map(len, sample.values()), default=0), tuple(columns), ())

    def may_be_ids(found: TableProfile) -> list[str]:
        named = person_candidates(guess_roles(found), found)
        return list(dict.fromkeys([*key_candidates(found.columns), *named]))

    # By names and figures alone, as there is no sample yet.
    asked = may_be_ids(profiled({}, {}))
    drawn = collect_values(
        frame,
        listed=[name for name in simple if has_few(figures[name])],
        most_listed=FEW_VALUES,
        counted=asked,
        sampled=simple,
        rows=rows,
        most_sampled=SAMPLED_ROWS,
    )
    sample = {name: drawn.sample.column(place).to_pylist() for place, name in enumerate(simple)}
    found, counts = profiled(sample, drawn.listed), drawn.counted
    guesses = guess_roles(found)
    known = [one.column for one in guesses if one.role == "quasi-identifier"]
    naming = naming_columns(may_name_individuals(guesses), known, released_as_they_are(guesses), sample)
    found = replace(found, naming=naming)
    while True:
        unique = [name for name in key_candidates(found.columns) if name in counts and counts[name][0] == rows]
        found = replace(found, keys=tuple(name for name in names if name in unique))
        more = [name for name in may_be_ids(found) if name not in counts]
        if not more:
            break
        counts = counts | collect_counts(frame, more)
    persons = {name: counts[name] for name in person_candidates(guess_roles(found), found)}
    return Profiled(
        replace(
            found,
            persons=tuple(
                Persons(name, distinct, most, found[name].there / distinct)
                for name, (distinct, most) in persons.items()
                if distinct
            ),
            sets=most_telling(found.columns, sample),
        ),
        sample,
    )


def propose_policy(frame: DataFrame, table: Mapping[str, Any], *, title: str) -> Proposed:
    """Profile a table and propose a policy for it.

    Parameters
    ----------
    table : mapping
        Where it is, as ``table`` of a policy.
    title : str
        Name of the run.
    """
    profiled = profile_table(frame)
    drafted = draft(profiled.profile, profiled.sample)
    if not drafted.proposals:
        raise SchemaError(
            "table: no column was taken for what others may know of a person, so there is nothing to generalize. If "
            "one is, write a policy with it: docs/policy.md."
        )
    floors = _floors(drafted, profiled, table, title)
    ids = drafted.ids
    told = FirstPolicy(
        title, profiled.profile, drafted.told(), ids.record, ids.entity, f"{ids.reason[:1].upper()}{ids.reason[1:]}.",
        floors, __version__,
    )  # fmt: skip
    return Proposed(told, drafted)


def _floors(drafted: Draft, profiled: Profiled, table: Mapping[str, Any], title: str) -> FloorTable:
    policy = parse(drafted.document(table, title, {}, floor=0, output=None), releasing=False)
    sample = {name: profiled.sample[name] for name in policy.quasi_identifiers}
    return propose_floor(policy, sample, table_rows=profiled.profile.rows)


def policy_of(proposed: Proposed, table: Mapping[str, Any]) -> Policy:
    """Return what is proposed as a checked policy; groups of values stand in it as trees.

    Parameters
    ----------
    table : mapping
        Where the table is.
    """
    floor = 0.0 if proposed.told.floors is None else proposed.told.floors.chosen.floor
    document = proposed.draft.document(table, proposed.told.title, {}, floor=floor, output=None)
    return parse(document, releasing=False)
