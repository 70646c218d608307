"""The table pinned as codes: read once, and everything that follows goes on from the parts in scratch."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch, pinned
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.policy import Policy
from privrisk_spark.stages.tables.encode import duplicates, encode, pin, resolve
from privrisk_spark.stages.tables.facts import InputFacts, input_facts
from privrisk_spark.stages.tables.unknown_values import refuse_values, write_unknown_values


@dataclass(frozen=True, eq=False)
class Pinned:
    """The table as it was read.

    Attributes
    ----------
    encoded : Batches
        ENCODED, resolved.
    facts : InputFacts
    """

    encoded: Batches
    facts: InputFacts


def collect_pinned(
    scratch: Scratch,
    table: DataFrame,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    *,
    blocks: bool = False,
    repeated: bool = True,
) -> Pinned:
    """Encode the table into scratch, and measure it on the way.

    Parameters
    ----------
    scratch : Scratch
    table : DataFrame
    policy, hierarchies
        As :func:`privrisk_spark.stages.tables.encode.encode` takes them.
    blocks : bool
        Add the ``block`` of each record.
    repeated : bool
        Count the records whose id another has; else none are reported.
    """
    directory = scratch.directory("encoded")
    coded = encode(table, policy, hierarchies, blocks=blocks)
    weights = policy.weight_columns
    parts = scratch.collect_parts(pin(coded, directory, k=len(hierarchies), n_weights=len(weights)))
    names = [part["name"] for part in parts]
    rows = pinned(scratch.spark, directory, names, coded.schema)
    again = 0
    if repeated:
        of_task = duplicates(scratch.spark, names, sum(part["rows"] for part in parts), directory).frame().toArrow()
        if sum(of_task.column(0).to_pylist()):
            # Equal 64-bit fingerprints are almost surely equal ids; make sure before saying so.
            ids = rows.frame().select(schemas.RECORD_ID).where(F.col(schemas.RECORD_ID).isNotNull())
            again = ids.count() - ids.distinct().count()
    weighed = [*weights, *([policy.table.weight] if policy.table.weight else [])]
    return Pinned(
        resolve(rows, hierarchies, policy.quasi_identifiers, dictionary=False),
        input_facts(parts, again, list(hierarchies), weighed),
    )


def collect_codes(
    scratch: Scratch, table: DataFrame, policy: Policy, hierarchies: dict[str, Hierarchy], place: Path
) -> tuple[Batches, int]:
    """Pin the table as codes, refuse values nobody can decide on, and count its rows."""
    found = collect_pinned(scratch, table, policy, hierarchies, repeated=False)

    def set_aside(name: str) -> int:
        listed = scratch.path / "unknown_values"
        values = write_unknown_values(table, name, hierarchies[name], listed)
        shutil.rmtree(place / "unknown_values", ignore_errors=True)
        listed.rename(place / "unknown_values")
        return values

    refuse_values(policy, found.facts, set_aside, listed_in=place / "unknown_values")
    return found.encoded, found.facts.rows
