"""The table materialized as codes: it is read once, and everything that follows goes on from the parts in scratch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch, in_chunks, materialized
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.engine.value_codes import resolve
from privrisk_spark.errors import SchemaError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.numeric.fingerprint import sampled
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.values import BLANKS
from privrisk_spark.results.facts import InputFacts
from privrisk_spark.runs.places import ResultPlace
from privrisk_spark.runs.progress import LOGGER
from privrisk_spark.tables.coverage import refuse_values, write_unknown_values
from privrisk_spark.tables.encode import duplicates, encode, materialize
from privrisk_spark.tables.record_ids import collect_numbered, told_apart


@dataclass(frozen=True, eq=False)
class Materialized:
    """The table as it was read.

    Attributes
    ----------
    encoded : Batches
        ENCODED, resolved.
    """

    encoded: Batches
    facts: InputFacts


def collect_materialized(
    scratch: Scratch,
    table: DataFrame,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    *,
    blocks: bool = False,
    repeated: bool = True,
    given: bool = False,
) -> Materialized:
    """Encode the table into scratch, and measure it on the way.

    Parameters
    ----------
    policy, hierarchies
        As :func:`privrisk_spark.tables.encode.encode` takes them.
    blocks : bool
        Add the ``block`` of each record.
    repeated : bool
        Count the records whose id another has; else none are reported.
    given : bool
        Whether the caller gave the table, so that it is not the policy's files.
    """
    directory = scratch.directory("encoded")
    coded = encode(table, policy, hierarchies, blocks=blocks, given=given, contents=True)
    if policy.table.record_id is None:
        coded, repeated = collect_numbered(scratch, coded, blocks=blocks), False  # no two are the same
    weights = policy.weight_columns
    parts = scratch.collect_parts(
        materialize(coded, directory, k=len(hierarchies), n_weights=len(weights), ids=repeated)
    )
    names = [part["name"] for part in parts]
    rows = materialized(scratch.spark, directory, names, coded.schema)
    again = 0
    if repeated:
        of_task = duplicates(scratch.spark, names, sum(part["rows"] for part in parts), directory).frame().toArrow()
        if sum(of_task.column(0).to_pylist()):
            # Equal 64-bit fingerprints are almost surely equal ids; make sure before saying so.
            ids = rows.frame().select(schemas.RECORD_ID).where(F.col(schemas.RECORD_ID).isNotNull())
            again = ids.count() - ids.distinct().count()
    if policy.table.entity_id is not None and not policy.guarantee.private:
        _warn_of_variants(collect_id_variants(rows, rows=sum(part["rows"] for part in parts)), policy.table.entity_id)
    weighed = [*weights, *([policy.table.weight] if policy.table.weight else [])]
    facts = input_facts(parts, again, list(hierarchies), weighed)
    if policy.guarantee.private and (facts.null_ids or facts.duplicate_ids):
        rows = Batches.of_frame(scratch.write_frame(told_apart(rows), "told-apart"))
    return Materialized(resolve(rows, hierarchies, policy.quasi_identifiers, dictionary=False), facts)


def collect_id_variants(encoded: Batches, *, rows: int) -> int:
    """Count the ids of individuals that differ from another id only by case or by blanks at the ends.

    Parameters
    ----------
    encoded : Batches
        With ``entity``.
    rows : int
        Of the table. If it has more than :data:`SAMPLED_IDS`, a sample of its ids is counted.
    """
    share = min(1.0, SAMPLED_IDS / max(rows, 1))

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            ids = table.column(schemas.ENTITY).drop_null().unique()
            tidied = pc.utf8_upper(pc.utf8_trim(ids, characters=BLANKS))
            of_tidied = fingerprints(pa.chunked_array([tidied]))
            kept = sampled(of_tidied, share)
            words = of_tidied[kept], fingerprints(pa.chunked_array([ids]))[kept]
            yield pa.table({name: word.view(np.int64) for name, word in zip(_WORDS, words, strict=True)})

    schema = T.StructType([T.StructField(name, T.LongType()) for name in _WORDS])
    found = encoded.then(step, schema).frame().toArrow()
    ids = found.group_by(list(_WORDS)).aggregate([])
    return int(ids.num_rows - len(ids.column(_WORDS[0]).unique()))


SAMPLED_IDS = 100_000
"""Ids, or rows, up to which all ids of individuals are compared."""

_WORDS = ("tidied", "id")


def _warn_of_variants(variants: int, column: str) -> None:
    """Warn of ids that a difference in case or blanks makes ids of different individuals."""
    if variants:
        LOGGER.warning(
            "table.entity_id: at least %s ids in '%s' differ from another id only by case or by blanks at the ends, "
            "and count as different individuals. Fix: set columns.%s.read, such as {trim: true, case: upper}.",
            f"{variants:,}", column, column,
        )  # fmt: skip


def collect_codes(
    scratch: Scratch,
    table: DataFrame,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    place: ResultPlace,
    *,
    given: bool = False,
    unique: bool = False,
) -> tuple[Batches, int]:
    """Materialize the table as codes, refuse values nobody can decide on, and count its rows.

    Parameters
    ----------
    scratch, table, policy, hierarchies, given
        As :func:`collect_materialized` takes them.
    place : ResultPlace
        Where values nobody can decide on are listed.
    unique : bool
        Refuse records without an id of their own.
    """
    read = collect_materialized(scratch, table, policy, hierarchies, repeated=unique, given=given)
    if unique and (read.facts.null_ids or read.facts.duplicate_ids):
        raise SchemaError(
            f"table.record_id: must hold that every record has an id (null: {read.facts.null_ids:,}) and that no two "
            f"share one (shared: {read.facts.duplicate_ids:,}). Mend the column."
        )

    def set_aside(name: str) -> int:
        listed, values = write_unknown_values(scratch, table, name, hierarchies[name])
        place.put_directory(listed, "unknown_values")
        return values

    refuse_values(policy, read.facts, set_aside, listed_in=place.called("unknown_values"))
    return read.encoded, read.facts.rows


def input_facts(
    parts: Sequence[Mapping[str, Any]], duplicate_ids: int, attributes: Sequence[str], weight_columns: Sequence[str]
) -> InputFacts:
    """Put the facts of the parts of ENCODED together.

    Parameters
    ----------
    parts : sequence of mapping
        As :func:`privrisk_spark.tables.encode.materialize` reports them.
    """
    rows = sum(part["rows"] for part in parts)
    total = sum(part["sum"] for part in parts) % 2**64
    other = reduce(lambda a, b: a ^ b, [part["xor"] for part in parts], 0)

    def by_name(names: Sequence[str], key: str) -> dict[str, int]:
        return {name: sum(part[key][i] for part in parts) for i, name in enumerate(names)}

    return InputFacts(
        rows=rows,
        null_ids=sum(part["null_ids"] for part in parts),
        duplicate_ids=duplicate_ids,
        null_entities=sum(part.get("null_entities", 0) for part in parts),
        nulls=by_name(attributes, "nulls"),
        unknown=by_name(attributes, "unknown"),
        bad_weights=by_name(weight_columns, "bad_weights"),
        infinite_weights=by_name(weight_columns, "infinite_weights"),
        snapshot=f"{rows}-{total:016x}{other:016x}",
    )
