"""Linkage tables as frames: opened, encoded, and held against the table (F12 §2.7).

LINKS, the linkage table, is a frame with

===============  ====================================================================================================
column           content
===============  ====================================================================================================
``record_id``    string, the record
``linked_id``    string, the linked row, where it has a name; a pair then stands once, otherwise every row is a link
``probability``  double in [0, 1], the chance that this is the link of the record; at most 1 in all
``z<j>``         int leaf code of added attribute j; the code after the last leaf is ⊥, what the link does not know
===============  ====================================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch, in_chunks
from privrisk_spark.engine.links import KEY, PROBABILITY, Linked, added_codes
from privrisk_spark.engine.value_codes import ValueCodes, as_text_column
from privrisk_spark.errors import Fault, SchemaError, listing, nearest
from privrisk_spark.hierarchies.builders import build, is_public
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.disclosure.linked import SLACK
from privrisk_spark.policy.policy import LinkagePolicy, Policy
from privrisk_spark.tables.coverage import LeafSource, collect_distinct_values
from privrisk_spark.tables.opening import read
from privrisk_spark.tables.row_groups import Wanted
from privrisk_spark.tables.sources import scan

LINKED_ID = "linked_id"


@dataclass(frozen=True, eq=False)
class OpenLinks:
    """A linkage table as Spark opened it, and the dictionary that may know what it adds.

    Attributes
    ----------
    dictionary : DataFrame or None
        None where it is the table itself.
    """

    given: LinkagePolicy
    links: DataFrame
    dictionary: DataFrame | None

    def check(self) -> None:
        """Refuse tables that lack a named column; only schemas are read.

        Raises
        ------
        SchemaError
            Naming every such column.
        """
        given, links = self.given, self.links
        named = [("record_id", given.record_id), ("linked_id", given.linked_id), ("probability", given.probability)]
        wanted = [(key, name, "linkage table", links) for key, name in named if name is not None]
        for attribute, added in given.columns.items():
            wanted.append((f"columns.{attribute}.column", added.column, "linkage table", links))
            if self.dictionary is not None and added.dictionary is not None:
                wanted.append((f"columns.{attribute}.dictionary", added.dictionary, "dictionary", self.dictionary))
        faults = [
            Fault(
                f"{KEY}.{key}",
                f"the {what} has no column '{name}'{nearest(name, frame.columns)}; it has {listing(frame.columns)}",
            )
            for key, name, what, frame in wanted
            if name not in frame.columns
        ]
        if given.probability in links.columns:
            kind = links.schema[given.probability].dataType
            if not isinstance(kind, T.NumericType | T.StringType):
                faults.append(Fault(f"{KEY}.probability", f"must be a number, not {kind.simpleString()}"))
        if faults:
            raise SchemaError(faults)


def open_links(spark: SparkSession, policy: Policy, dictionaries: Mapping[str, DataFrame]) -> OpenLinks | None:
    """Open and check the linkage table, if the policy has one.

    Parameters
    ----------
    dictionaries : mapping of name to DataFrame
        The external dictionaries as Spark opened them.

    Raises
    ------
    SchemaError
        If it cannot be opened, or lacks a column.
    """
    if policy.linkage is None:
        return None
    given = policy.linkage
    used = [given.record_id, given.linked_id or given.record_id, given.probability]
    links = read(spark, given, key=KEY, used=[*used, *(added.column for added in given.columns.values())])
    opened = OpenLinks(given, links, dictionaries.get(policy.dictionaries[0].name))
    opened.check()
    return opened


def encode_links(
    links: DataFrame, given: LinkagePolicy, hierarchies: Mapping[str, Hierarchy], *, numbers: bool = False
) -> Batches:
    """Return LINKS of the linkage table; a value outside its hierarchy is :data:`schemas.UNKNOWN`.

    Parameters
    ----------
    links : DataFrame
        The linkage table; see :meth:`OpenLinks.check`.
    hierarchies : mapping of added attribute to Hierarchy
        In the order of the policy.
    numbers : bool
        Whether the record ids of the table are numbers.
    """
    ids = {schemas.RECORD_ID: given.record_id}
    if given.linked_id is not None:
        ids[LINKED_ID] = given.linked_id
    codes = added_codes(len(hierarchies))
    wanted = [Wanted(to, name, "text", distinct=True) for to, name in ids.items()]
    wanted.append(Wanted(PROBABILITY, given.probability, "number"))
    wanted += [Wanted(to, given.columns[name].column, "text") for to, name in zip(codes, hierarchies, strict=True)]
    lookups = [(ValueCodes.of_leaves(hierarchy), hierarchy.n_leaves) for hierarchy in hierarchies.values()]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for rows in in_chunks(tables):
            columns = {name: as_text_column(rows.column(name), name, numbers=numbers) for name in ids}
            columns[PROBABILITY] = rows.column(PROBABILITY)
            for name, (lookup, bottom) in zip(codes, lookups, strict=True):
                found = lookup.encoded(rows.column(name))
                found[found == schemas.NULL] = bottom
                columns[name] = pa.array(found)
            yield pa.table(columns)

    fields = [T.StructField(name, T.StringType()) for name in ids]
    fields.append(T.StructField(PROBABILITY, T.DoubleType()))
    fields += [T.StructField(name, T.IntegerType()) for name in codes]
    return scan(given, links, wanted).then(step, T.StructType(fields))


@dataclass(frozen=True)
class LinkFaults:
    """What is wrong with LINKS, in rows if not said otherwise.

    Attributes
    ----------
    rows : int
        Rows in all.
    null_ids : int
        The record, or the linked row where it has a name, is missing.
    unknown_records : int
        The record is not in the table.
    duplicates : int
        Rows beyond the first of a pair.
    bad_probabilities : int
        Missing, NaN or negative.
    over_one : int
        Records whose probabilities sum to more than 1.
    unknown_values : tuple of m int
        The value of an added attribute is outside its hierarchy.
    """

    rows: int
    null_ids: int
    unknown_records: int
    duplicates: int
    bad_probabilities: int
    over_one: int
    unknown_values: tuple[int, ...]

    def rules(self, attributes: Sequence[str]) -> list[str]:
        """Every fault in words, with its count.

        Parameters
        ----------
        attributes : sequence of m str
            Names of the added attributes.
        """
        found = [
            (f"{KEY}.record_id", self.null_ids, "rows do not name their record, or their linked row"),
            (f"{KEY}.record_id", self.unknown_records, "rows name a record that the table lacks"),
            (f"{KEY}.linked_id", self.duplicates, "rows repeat the record and the linked row of another row"),
            (f"{KEY}.probability", self.bad_probabilities, "rows have none: it must be a number of at least 0"),
            (f"{KEY}.probability", self.over_one, "records have probabilities that sum to more than 1"),
        ]
        outside = "rows hold a value outside the hierarchy; add it, or leave out what is not known"
        found += [
            (f"{KEY}.columns.{name}.hierarchy", rows, outside)
            for name, rows in zip(attributes, self.unknown_values, strict=True)
        ]
        return [f"{key}: {rows:,} {rule}." for key, rows, rule in found if rows]


def measure_link_faults(links: DataFrame, records: DataFrame, n_leaves: Sequence[int]) -> LinkFaults:
    """Check LINKS against the table; with a fault, the risk under linkage is not defined.

    Parameters
    ----------
    links : DataFrame
        LINKS.
    records : DataFrame
        Column ``record_id``, unique.
    n_leaves : sequence of m int
        Leaves of each added attribute.
    """
    value = F.col(PROBABILITY)
    ids = [name for name in (schemas.RECORD_ID, LINKED_ID) if name in links.columns]
    missing = F.lit(False)
    for name in ids:
        missing = missing | F.col(name).isNull()
    outside = {
        name: F.col(name).isNull() | (F.col(name) < 0) | (F.col(name) > n)
        for name, n in zip(added_codes(len(n_leaves)), n_leaves, strict=True)
    }
    row = links.agg(
        F.count("*").alias("rows"),
        _rows(missing).alias("null_ids"),
        _rows(value.isNull() | F.isnan(value) | (value < 0)).alias("bad_probabilities"),
        *[_rows(condition).alias(name) for name, condition in outside.items()],
    ).first()
    # As decimals, which add up to the same sum in any order; faulty ones are counted above. NaN is the greatest number.
    part = F.when((value >= 0) & ~F.isnan(value), F.least(value, F.lit(2.0))).otherwise(0.0).cast("decimal(20,18)")
    again = F.col("n") - 1 if LINKED_ID in ids else F.lit(0)
    of_record = (
        links.where(~missing)
        .groupBy(*ids)
        .agg(F.count("*").alias("n"), F.sum(part).alias("total"))
        .groupBy(schemas.RECORD_ID)
        .agg(F.sum("n").alias("n"), F.sum(again).alias("again"), F.sum("total").alias("total"))
    )
    known = records.select(schemas.RECORD_ID, F.lit(True).alias("known"))
    more = (
        of_record.join(known, schemas.RECORD_ID, "left")
        .agg(
            F.coalesce(F.sum(F.when(F.col("known").isNull(), F.col("n"))), F.lit(0)).alias("unknown_records"),
            F.coalesce(F.sum("again"), F.lit(0)).alias("duplicates"),
            _rows(F.col("total") > F.lit(1 + Decimal(str(SLACK)))).alias("over_one"),
        )
        .first()
    )
    assert row is not None
    assert more is not None
    return LinkFaults(
        rows=row["rows"],
        null_ids=row["null_ids"],
        bad_probabilities=row["bad_probabilities"],
        unknown_values=tuple(row[name] for name in outside),
        **more.asDict(),
    )


def _rows(condition: Column) -> Column:
    return F.coalesce(F.sum(F.when(condition, 1).otherwise(0)), F.lit(0))


def collect_links(
    scratch: Scratch, encoded: Batches, opened: OpenLinks | None, *, numbers: bool = False
) -> Linked | None:
    """Encode the linkage table, if there is one, and hold it against the table.

    Parameters
    ----------
    encoded : Batches
        The table; holds ``record_id``.
    numbers : bool
        Whether the record ids of the table are numbers.

    Raises
    ------
    SchemaError
        Naming every fault with its count.
    HierarchyError
        If a hierarchy cannot be built.
    """
    if opened is None:
        return None
    if opened.links.isEmpty():
        raise SchemaError(f"{KEY}: its table has no rows.")
    hierarchies = _collect_added_hierarchies(opened)
    rows = encode_links(opened.links, opened.given, hierarchies, numbers=numbers)
    held = scratch.write_frame(rows.frame(), "links")
    n_leaves = [hierarchy.n_leaves for hierarchy in hierarchies.values()]
    faults = measure_link_faults(held, encoded.frame(), n_leaves).rules(list(hierarchies))
    if faults:
        raise SchemaError(" | ".join(faults))
    return Linked(held, hierarchies, opened.dictionary)


def _collect_added_hierarchies(opened: OpenLinks) -> dict[str, Hierarchy]:
    """Build the hierarchies; leaves that the policy does not declare come from the links.

    Not from the dictionary: a value no link has is consistent with ⊥ alone, be it a leaf or outside the hierarchy.
    """
    columns = opened.given.columns
    source = LeafSource(opened.given, opened.links, {name: added.column for name, added in columns.items()})
    undeclared = [name for name, added in columns.items() if not is_public(added.hierarchy)]
    (values,) = collect_distinct_values([source.narrow(undeclared)])
    return {
        name: build(added.hierarchy, name, values=values.get(name), numbers=source.is_spelled(name))
        for name, added in columns.items()
    }
