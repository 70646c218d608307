"""What a run reports about its input, its decisions and its release; the parts of a stage bring their own facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark import schemas
from privrisk_spark.batches import Batches, grouped, in_chunks
from privrisk_spark.hierarchy import Hierarchy
from privrisk_spark.kernels.moments import Moments, merged, risk_bins
from privrisk_spark.kernels.packing import Packing
from privrisk_spark.results import AttributeLevels, Histogram, Summary
from privrisk_spark.source import as_texts, dictionary_of


@dataclass(frozen=True)
class InputFacts:
    """Facts of the encoded table.

    Attributes
    ----------
    rows, null_ids, duplicate_ids, null_entities : int
    nulls, unknown : dict of attribute to rows
    bad_weights : dict of weight column to rows that are missing, NaN or negative
    snapshot : str
        Identity of the content: independent of order and partitioning; private.
    """

    rows: int
    null_ids: int
    duplicate_ids: int
    null_entities: int
    nulls: dict[str, int]
    unknown: dict[str, int]
    bad_weights: dict[str, int]
    snapshot: str


def input_facts(
    parts: Sequence[Mapping[str, Any]], duplicate_ids: int, attributes: Sequence[str], weight_columns: Sequence[str]
) -> InputFacts:
    """Put the facts of the parts of ENCODED together.

    Parameters
    ----------
    parts : sequence of mapping
        As :func:`privrisk_spark.encoding.pin` reports them.
    duplicate_ids : int
    attributes, weight_columns : sequence of str
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
        snapshot=f"{rows}-{total:016x}{other:016x}",
    )


@dataclass(frozen=True)
class DecisionFacts:
    """Facts of DECIDED; exact, for the vault.

    Attributes
    ----------
    rows, sampled, infeasible, verbatim : int
        Records; those drawn into the sample (all outside dp); those that could not reach the floor; those released with
        every original value.
    risk_before, risk_after, utility : Summary
    levels : tuple of AttributeLevels
    before, after : Histogram
        Records by risk.
    """

    rows: int
    sampled: int
    infeasible: int
    verbatim: int
    risk_before: Summary
    risk_after: Summary
    utility: Summary
    levels: tuple[AttributeLevels, ...]
    before: Histogram
    after: Histogram


def decision_facts(parts: Sequence[Mapping[str, Any]], hierarchies: Mapping[str, Hierarchy]) -> DecisionFacts:
    """Put the facts of the parts of the decisions together.

    Parameters
    ----------
    parts : sequence of mapping
        As :func:`privrisk_spark.anonymize.conclude` reports them.
    hierarchies : mapping of attribute to Hierarchy
    """

    def summary(key: str) -> Summary:
        return Summary.of(merged([Moments(*part[key]) for part in parts]))

    def histogram(key: str) -> Histogram:
        edges = risk_bins()
        return Histogram(edges, tuple(sum(part[key][i] for part in parts) for i in range(len(edges) - 1)))

    levels = tuple(
        AttributeLevels(
            attribute,
            hierarchy.height,
            level_names(hierarchy.height),
            tuple(sum(part["levels"][i][level] for part in parts) for level in range(hierarchy.height + 1)),
        )
        for i, (attribute, hierarchy) in enumerate(hierarchies.items())
    )
    return DecisionFacts(
        rows=sum(part["rows"] for part in parts),
        sampled=sum(part["sampled"] for part in parts),
        infeasible=sum(part["infeasible"] for part in parts),
        verbatim=sum(part["verbatim"] for part in parts),
        risk_before=summary("risk_before"),
        risk_after=summary("risk"),
        utility=summary("utility"),
        levels=levels,
        before=histogram("before"),
        after=histogram("after"),
    )


def level_names(height: int) -> tuple[str, ...]:
    """Return names of the levels 0 to ``height`` for a person."""
    if height == 0:
        return ("suppressed",)
    return ("as it is", *[f"level {level}" for level in range(1, height)], "suppressed")


@dataclass(frozen=True)
class ReleaseFacts:
    """Facts read back from the staged files.

    Attributes
    ----------
    rows, classes : int
        Released rows and distinct combinations of released quasi-identifiers.
    min_class_size : int
        0 for an empty release.
    off_hierarchy : dict of attribute to rows whose text is no node of the hierarchy
    """

    rows: int
    classes: int
    min_class_size: int
    off_hierarchy: dict[str, int]


def release_classes(release: Batches, labels: Mapping[str, Sequence[str | None]]) -> DataFrame:
    """Return the classes of a staged release: words ``c<j>`` of label numbers, ``size``, ``off<i>``.

    Parameters
    ----------
    release : Batches
        ``a<i>`` texts of the attributes, read from the staged files.
    labels : mapping of attribute to the labels of its hierarchy

    Notes
    -----
    ``off<i>`` is the number of rows whose text of attribute i is no label; such texts count as one.
    """
    texts = [f"a{i}" for i in range(len(labels))]
    off = [f"off{i}" for i in range(len(labels))]
    known = [pa.array(sorted({label for label in of if label is not None}), pa.string()) for of in labels.values()]
    null_known = [None in set(of) for of in labels.values()]
    # A missing text and one that is no label have numbers of their own.
    packing = Packing(tuple(len(of) + 2 for of in known))
    words = [f"c{j}" for j in range(packing.n_words)]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            numbers, outside = [], []
            for name, of, null_is_label in zip(texts, known, null_known, strict=True):
                distinct, place = dictionary_of(table.column(name))
                found = pc.index_in(as_texts(distinct), value_set=of).fill_null(len(of) + 1)
                number = np.append(found.to_numpy(zero_copy_only=False), len(of)).astype(np.int64)
                of_row = number[place.fill_null(len(distinct)).to_numpy(zero_copy_only=False)]
                numbers.append(of_row)
                wrong = np.count_nonzero(of_row == len(of) + 1)
                outside.append(wrong + (0 if null_is_label else np.count_nonzero(of_row == len(of))))
            keys = packing.pack(numbers, table.num_rows)
            first, member = grouped(keys)
            columns = {name: pa.array(key[first]) for name, key in zip(words, keys, strict=True)}
            columns["size"] = pa.array(np.bincount(member, minlength=len(first)).astype(np.int64))
            for name, rows in zip(off, outside, strict=True):
                # Rows of the whole chunk, on its first class.
                columns[name] = pa.array(np.where(np.arange(len(first)) == 0, rows, 0).astype(np.int64))
            yield pa.table(columns)

    schema = T.StructType([T.StructField(name, T.LongType(), False) for name in (*words, "size", *off)])
    sums = [F.sum(name).alias(name) for name in ("size", *off)]
    return release.then(step, schema).frame().groupBy(*words).agg(*sums)


def measure_release(classes: DataFrame, attributes: Sequence[str]) -> ReleaseFacts:
    """Measure a staged release from the classes of its files.

    Parameters
    ----------
    classes : DataFrame
        As :func:`release_classes` returns it.
    attributes : sequence of str
    """
    row = classes.agg(
        F.coalesce(F.sum("size"), F.lit(0)).alias("rows"),
        F.count("*").alias("classes"),
        F.coalesce(F.min("size"), F.lit(0)).alias("least"),
        *[F.coalesce(F.sum(f"off{i}"), F.lit(0)).alias(f"off{i}") for i in range(len(attributes))],
    ).first()
    assert row is not None
    return ReleaseFacts(
        rows=row["rows"],
        classes=row["classes"],
        min_class_size=row["least"],
        off_hierarchy={attribute: row[f"off{i}"] for i, attribute in enumerate(attributes)},
    )


@dataclass(frozen=True)
class ClassFacts:
    """Facts of the released classes; exact, for the vault.

    Attributes
    ----------
    classes, rows : int
        Distinct combinations of released quasi-identifiers, and their records.
    smallest, uniques : int
        Records of the smallest class, ``min f_k``, and classes with one record.
    fewest_persons, single_persons : int or None
        Persons of the class with the fewest, and classes of one person; None without ``entity_id``.
    least_population, population : float or None
        Weighted size of the class with the least, ``min F_k``, and of all; None without sampling weights.
    """

    classes: int
    rows: int
    smallest: int
    uniques: int
    fewest_persons: int | None
    single_persons: int | None
    least_population: float | None
    population: float | None

    def to_dict(self) -> dict[str, int | float | None]:
        """JSON-safe form."""
        return asdict(self)


def released_classes(members: DataFrame, *, k: int) -> DataFrame:
    """Return the released classes: ``n<i>`` nodes, ``rows`` f_k, ``persons``, ``population`` F_k.

    Parameters
    ----------
    members : DataFrame
        As :func:`privrisk_spark.anonymize.conclude` writes them; ``entity`` and ``millionths`` where the policy has
        them.
    k : int
    """
    there = members.columns
    measures = [F.sum(schemas.N_ROWS).alias("rows")]
    if schemas.ENTITY in there:
        measures.append(F.count_distinct(schemas.ENTITY).alias("persons"))
    if schemas.MILLIONTHS in there:
        measures.append((F.sum(schemas.MILLIONTHS) / F.lit(1e6)).alias("population"))
    return members.groupBy(*schemas.nodes(k)).agg(*measures)


def measure_classes(classes: DataFrame) -> ClassFacts:
    """Measure the released classes."""
    persons = F.col("persons") if "persons" in classes.columns else F.lit(None)
    population = F.col("population") if "population" in classes.columns else F.lit(None)
    row = classes.agg(
        F.count("*").alias("classes"),
        F.coalesce(F.sum("rows"), F.lit(0)).alias("rows"),
        F.coalesce(F.min("rows"), F.lit(0)).alias("smallest"),
        F.count_if(F.col("rows") == 1).alias("uniques"),
        F.min(persons).alias("fewest_persons"),
        F.count_if(persons == 1).alias("single_persons"),
        F.min(population).alias("least_population"),
        F.sum(population.cast("decimal(38,6)")).cast("double").alias("population"),
    ).first()
    assert row is not None
    counted = "persons" in classes.columns
    return ClassFacts(
        classes=row["classes"],
        rows=row["rows"],
        smallest=row["smallest"],
        uniques=row["uniques"],
        fewest_persons=int(row["fewest_persons"]) if counted else None,
        single_persons=row["single_persons"] if counted else None,
        least_population=None if row["least_population"] is None else float(row["least_population"]),
        population=None if row["population"] is None else float(row["population"]),
    )
