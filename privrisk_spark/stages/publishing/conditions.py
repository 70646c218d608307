"""What is asked of sensitive values in every released class, held against the staged files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import GroupedData
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.grounds import grounds_of, missing_codes
from privrisk_spark.engine.number_texts import dictionary_of
from privrisk_spark.engine.population import PeopleOf
from privrisk_spark.engine.value_codes import labels_of
from privrisk_spark.errors import CheckError, InputError, InternalError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.recoding.full_domain import NodeClasses
from privrisk_spark.kernels.recoding.holders import Held
from privrisk_spark.kernels.recoding.persons import Persons
from privrisk_spark.kernels.recoding.population import Population
from privrisk_spark.planning.recoding import asked_in_words, conditions, sensitive_of, shares_of
from privrisk_spark.policy.anonymity import KAnonymityGuarantee
from privrisk_spark.stages.publishing.owners import collect_owners


def measure_conditions(
    asked: KAnonymityGuarantee,
    release: Batches,
    table: Batches,
    columns: Mapping[str, str],
    hierarchies: Sequence[Hierarchy],
    people: PeopleOf | None = None,
    members: Batches | None = None,
    *,
    most: int,
) -> dict[str, int]:
    """Count the released classes that do not meet each condition besides k.

    Parameters
    ----------
    release : Batches
        ``a<i>`` texts of the attributes, ``r<j>`` kept columns, read from the staged files.
    table : Batches
        ENCODED, whose sensitive values the classes are compared with.
    columns : mapping of sensitive column to its column ``r<j>``
    hierarchies : sequence of k Hierarchy
        Rows with the labels of all roots are of no class where suppressed rows are released.
    people : PeopleOf, optional
        Looks nodes up in the dictionary, where its people are asked about.
    members : Batches, optional
        MEMBERS, where persons are counted: with the values of the columns whose shares are asked about.
    most : int
        Distinct tuples with their values that the driver may hold.

    Returns
    -------
    dict of words to number of classes

    Raises
    ------
    CheckError
        If the files hold values of a column that the table does not have, or others than were decided.
    InputError
        If there are more tuples than the driver may hold.
    """
    if not asked.also:
        return {}
    labels = [f"a{i}" for i in range(len(hierarchies))]
    of_values = {}
    for name in sensitive_of(asked):
        value = columns[name]
        # A file of lines has texts, which are read as what they were written from; equal values are one then.
        as_written = F.col(value).cast(table.schema[value].dataType).alias(value)
        of_values[name] = _collect(release.frame().groupBy(*labels, as_written), most)
    alike = next(iter(of_values.values())) if of_values else _collect(release.frame().groupBy(*labels), most)
    alike = alike.group_by(labels).aggregate([(schemas.N_ROWS, "sum")]).rename_columns([*labels, schemas.N_ROWS])
    owner, keys = _classes(alike, labels)
    by_class = np.argsort(owner)
    rows, size, shares = alike.column(schemas.N_ROWS).to_numpy().astype(np.int64)[by_class], None, []
    if members is not None:
        size = collect_owners(members, hierarchies, alike, value=None, most=most)[by_class]
        shares = shares_of(asked)
    held: list[Held] = []
    distributions, texts = {}, {}
    for name, found in of_values.items():
        value, of_persons = columns[name], name in shares
        number = F.count_distinct(schemas.ENTITY) if of_persons else F.count("*")
        whole = table.frame().groupBy(value).agg(number.alias(schemas.N_ROWS)).toArrow().sort_by(value)
        code = pc.index_in(found.column(value), value_set=whole.column(value)).combine_chunks()
        if code.null_count:
            raise _others_in_files(name, f"the files hold {code.null_count:,} values that the table has not")
        code = code.to_numpy().astype(np.int64)
        owner, _ = _classes(found, labels)
        if members is not None and size is not None and of_persons:
            try:
                who = collect_owners(members, hierarchies, found, value=value, most=most)
                known = _collect_known(members, hierarchies, found, labels, value=value, most=most)
            except InternalError:
                if release.schema[value].dataType == table.schema[value].dataType:
                    raise
                # Rounded to another value that the table has, too: of lines that is no bug.
                raise _others_in_files(name, "the files hold other values than were decided") from None
            runs = SensitiveRuns.of_entries(owner, code, who, len(size))
            held.append(SensitiveRuns(runs.class_start, runs.value, runs.count, size, known))
        else:
            of_value = found.column(schemas.N_ROWS).to_numpy().astype(np.int64)
            held.append(SensitiveRuns.of_entries(owner, code, of_value, len(rows)))
        texts[name] = whole.column(value)
        distributions[name] = TableDistribution(whole.column(schemas.N_ROWS).to_numpy().astype(np.int64))
    persons = None if size is None else Persons.counted(size)
    classes = NodeClasses(np.arange(len(rows)), rows, tuple(held), persons)
    told = np.ones(len(rows), dtype=np.bool_)
    if asked.suppressed == "keep":
        roots = [hierarchy.labels[hierarchy.root] for hierarchy in hierarchies]
        same = [
            pc.equal(keys.column(i), root) if root is not None else pc.is_null(keys.column(i))
            for i, root in enumerate(roots)
        ]
        told = ~np.logical_and.reduce([of.fill_null(False).to_numpy() for of in same])
    population = None
    if people is not None:
        counted = people(_nodes(keys, hierarchies))
        population = Population(lambda _: counted, monotone=False)
    held_to = conditions(
        asked, distributions, grounds_of(asked, texts), population, persons=shares, missing=missing_codes(texts)
    )
    unit = "rows" if members is None else "persons"
    of_each = zip(asked_in_words(asked, unit)[1:], held_to[1:], strict=True)
    return {words: int(np.count_nonzero(told & ~condition.meets(classes))) for words, condition in of_each}


def _others_in_files(column: str, what: str) -> CheckError:
    return CheckError(
        f"Not published. columns.{column}: {what}, and what is asked of its values need not hold of these. CSV has "
        "timestamps to the millisecond: round the column, or choose output.format 'parquet'."
    )


def _collect_known(
    members: Batches,
    hierarchies: Sequence[Hierarchy],
    found: pa.Table,
    labels: Sequence[str],
    *,
    value: str,
    most: int,
) -> LongArray | None:
    """Persons of each class who hold a value that is not missing; None if none is missing."""
    missing = found.column(value).is_null().to_numpy()
    if not missing.any():
        return None
    owner, classes = _classes(found, labels)
    rows = np.zeros(classes.num_rows, dtype=np.int64)
    np.add.at(rows, owner[~missing], found.column(schemas.N_ROWS).to_numpy()[~missing])
    there = np.flatnonzero(rows)
    known = Batches.of_frame(members.frame().where(F.col(value).isNotNull()))
    groups = classes.take(pa.array(there)).append_column(schemas.N_ROWS, pa.array(rows[there]))
    rows[there] = collect_owners(known, hierarchies, groups, value=None, most=most)
    return rows


def _collect(tuples: GroupedData, most: int) -> pa.Table:
    """Collect tuples with their rows, as far as the driver may hold them."""
    found = tuples.agg(F.count("*").alias(schemas.N_ROWS)).limit(most + 1).toArrow()
    if found.num_rows > most:
        raise InputError(f"counting.sorted_vectors: there are more than {most:,} released tuples; raise it.")
    return found


def _nodes(keys: pa.Table, hierarchies: Sequence[Hierarchy]) -> IntArray:
    """Nodes that labels name, as whoever reads the release finds them."""
    found = []
    for column, hierarchy in zip(keys.columns, hierarchies, strict=True):
        lookup, missing = labels_of(hierarchy)
        codes = lookup.encoded(column)
        found.append(np.where(codes < 0, np.int32(missing), codes))
    return np.column_stack(found)


def _classes(found: pa.Table, labels: Sequence[str]) -> tuple[LongArray, pa.Table]:
    """Class of each row of a table, by the order of the labels alone, and the labels of each class."""
    ranks = []
    for name in labels:
        distinct, place = dictionary_of(found.column(name))
        rank = np.empty(len(distinct) + 1, dtype=np.int64)
        rank[pc.sort_indices(distinct).to_numpy()] = np.arange(len(distinct))
        rank[-1] = len(distinct)
        ranks.append(rank[place.fill_null(len(distinct)).to_numpy(zero_copy_only=False)])
    first, member = distinct_rows(ranks)
    return member, found.select(labels).take(pa.array(first))
