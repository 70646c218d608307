"""The table pinned as codes: read once, and everything that follows goes on from the parts in scratch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch, pinned
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.policy import Policy
from privrisk_spark.stages.publishing.measure import InputFacts, input_facts
from privrisk_spark.stages.tables.encode import duplicates, encode, pin, resolve


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
