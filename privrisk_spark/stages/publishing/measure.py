"""What a run reports about its input, its decisions and its release; the parts of a stage bring their own facts."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, grouped, in_chunks, part_name, report
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.engine.number_texts import as_texts, dictionary_of
from privrisk_spark.engine.slices import dealt, read_slices
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import LongArray, WordArray
from privrisk_spark.kernels.numeric import fingerprint
from privrisk_spark.kernels.numeric.bins import BinCounts
from privrisk_spark.kernels.numeric.fold import folded_dicts
from privrisk_spark.kernels.numeric.moments import Moments, risk_bins
from privrisk_spark.kernels.numeric.packing import Packing
from privrisk_spark.results.facts import ClassFacts, DecisionFacts, HistoryFacts, ReleaseFacts
from privrisk_spark.results.release import AttributeLevels, Histogram, Summary
from privrisk_spark.storage.part_files import map_array, write_array
from privrisk_spark.storage.parts import PartDirectory


def decision_facts(parts: Sequence[Mapping[str, Any]], hierarchies: Mapping[str, Hierarchy]) -> DecisionFacts:
    """Put the facts of the parts of the decisions together.

    Parameters
    ----------
    parts : sequence of mapping
        As :func:`privrisk_spark.stages.deciding.decide.conclude` reports them.
    hierarchies : mapping of attribute to Hierarchy
    """

    def summary(key: str) -> Summary:
        return Summary.of(folded_dicts(Moments.empty(), [part[key] for part in parts]))

    def histogram(key: str) -> Histogram:
        edges = risk_bins()
        return Histogram(edges, folded_dicts(BinCounts.empty(len(edges) - 1), [part[key] for part in parts]).numbers)

    levels = tuple(
        AttributeLevels(
            attribute,
            hierarchy.height,
            hierarchy.level_names,
            folded_dicts(BinCounts.empty(hierarchy.height + 1), [part["levels"][i] for part in parts]).numbers,
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
        identified_before=summary("identified_before"),
        identified_after=summary("identified"),
        utility=summary("utility"),
        levels=levels,
        before=histogram("before"),
        after=histogram("after"),
        unproved=sum(part["unproved"] for part in parts),
        gap=max((part["gap"] for part in parts), default=0.0),
        history=_history_facts([part["history"] for part in parts if "history" in part]),
        suppressed=sum(part["suppressed"] for part in parts),
    )


def _history_facts(parts: Sequence[Mapping[str, Any]]) -> HistoryFacts | None:
    if not parts:
        return None

    def summary(key: str) -> Summary:
        return Summary.of(folded_dicts(Moments.empty(), [part[key] for part in parts]))

    edges = risk_bins()
    bins = folded_dicts(BinCounts.empty(len(edges) - 1), [part["bins"] for part in parts])
    counts = {key: sum(part[key] for part in parts) for key in ("records", "changed", "beyond", "raised")}
    return HistoryFacts(
        **counts,
        alone=summary("alone"),
        out=summary("out"),
        bounded=summary("bounded"),
        histogram=Histogram(edges, bins.numbers),
    )


CLASSES_PER_TASK = 1_000_000

TUPLES = ""
"""Beside attributes, what stands for all of them together; the one name no column of a policy can have."""


def release_classes(
    release: Batches, labels: Mapping[str, Sequence[str | None]], directory: PartDirectory, *, kept: int = 0
) -> Batches:
    """Write the classes of each chunk of a staged release as a part, and return PARTS.

    Parameters
    ----------
    release : Batches
        ``a<i>`` texts of the attributes, ``r<j>`` kept columns, read from the staged files.
    labels : mapping of attribute to the labels of its hierarchy's nodes
    kept : int
        Number of kept columns.

    Notes
    -----
    A part holds int64 columns: fingerprint, ascending, words of label numbers, rows. Texts that are no label count as
    one; the facts have the number of rows with such a text, and in how many rows labels and tuples of them stand.
    """
    texts, as_it_is = [f"a{i}" for i in range(len(labels))], schemas.released(kept)
    known = _known(labels)
    null_known = [None in set(of) for of in labels.values()]
    # The first node of each label, in the order of `known`, and of the missing one.
    nodes = [_first_nodes(of, texts) for of, texts in zip(labels.values(), known, strict=True)]
    # A missing text and one that is no label have numbers of their own.
    packing = Packing(tuple(len(of) + 2 for of in known))

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            numbers, outside, label_rows, nodes_of = [], [], [], []
            for name, of, null_is_label, node in zip(texts, known, null_known, nodes, strict=True):
                distinct, place = dictionary_of(table.column(name))
                found = pc.index_in(as_texts(distinct), value_set=of).fill_null(len(of) + 1)
                number = np.append(found.to_numpy(zero_copy_only=False), len(of)).astype(np.int64)
                of_row = number[place.fill_null(len(distinct)).to_numpy(zero_copy_only=False)]
                numbers.append(of_row)
                wrong = np.count_nonzero(of_row == len(of) + 1)
                outside.append(int(wrong + (0 if null_is_label else np.count_nonzero(of_row == len(of)))))
                stands = np.bincount(of_row, minlength=len(of) + 2)
                rows_of_node = np.zeros(node.max(initial=0) + 1, dtype=np.int64)
                rows_of_node[node] = stands[: len(node)]
                label_rows.append(fingerprint.of_counts(rows_of_node))
                nodes_of.append(np.append(node, np.full(len(of) + 2 - len(node), -1))[of_row])
            keys = packing.pack(numbers, table.num_rows)
            first, member = grouped(keys)
            words = [key[first] for key in keys]
            of_class = fingerprint.of_rows([fingerprint.of_integers(word) for word in words], len(first)).view(np.int64)
            order = np.argsort(of_class)
            name = part_name("npy")
            columns = [of_class, *words, np.bincount(member, minlength=len(first))]
            write_array(np.stack([column[order] for column in columns]), directory, name)
            values = []
            if as_it_is:
                from privrisk_spark.stages.publishing.uniqueness import write_values

                values = write_values([table.column(of) for of in as_it_is], numbers, directory, name)
            label_rows.append(fingerprint.of_tuples([nodes[first] for nodes in nodes_of], columns[-1]))
            facts = {"rows": table.num_rows, "classes": len(first), "outside": outside, "label_rows": label_rows}
            facts["values"] = values
            yield report(name, facts)

    return release.then(step, PARTS)


def _known(labels: Mapping[str, Sequence[str | None]]) -> list[pa.Array]:
    """Labels of each attribute, each once, in the order of their numbers."""
    return [pa.array(sorted({label for label in of if label is not None}), pa.string()) for of in labels.values()]


def _words_of_roots(labels: Mapping[str, Sequence[str | None]]) -> list[int]:
    """Words of the tuple of all roots, the last nodes, as :func:`release_classes` packs tuples."""
    known = _known(labels)
    packing = Packing(tuple(len(of) + 2 for of in known))
    numbers = [
        pc.index(of, labels_of[-1]).as_py() if labels_of[-1] is not None else len(of)
        for of, labels_of in zip(known, labels.values(), strict=True)
    ]
    return [int(word[0]) for word in packing.pack([np.array([number]) for number in numbers], 1)]


def _first_nodes(labels: Sequence[str | None], known: pa.Array) -> LongArray:
    """First node with each known label, and with the missing one if there is one."""
    first = dict(reversed([(label, node) for node, label in enumerate(labels)]))
    texts = known.to_pylist() + ([None] if None in first else [])
    return np.array([first[text] for text in texts], dtype=np.int64)


def summed_label_rows(parts: Iterable[Mapping[str, Any]], attributes: Sequence[str]) -> dict[str, int]:
    """Put the ``label_rows`` of parts together, by attribute and for whole tuples."""
    rows = [part["label_rows"] for part in parts]
    return {name: sum(of[i] for of in rows) % 2**64 for i, name in enumerate([*attributes, TUPLES])}


def label_rows_of(
    nodes: npt.NDArray[np.int32], sizes: LongArray, hierarchies: Mapping[str, Hierarchy]
) -> dict[str, int]:
    """Return a fingerprint of how many rows each label must stand in, by attribute and for whole tuples.

    Parameters
    ----------
    nodes : ndarray of int32, shape (n_tuples, k)
        As they were decided.
    sizes : ndarray of int64, shape (n_tuples,)
        Rows of each.
    hierarchies : mapping of attribute to Hierarchy
    """
    result, meant = {}, [hierarchy.meant[nodes[:, i]] for i, hierarchy in enumerate(hierarchies.values())]
    for (attribute, hierarchy), of in zip(hierarchies.items(), meant, strict=True):
        rows = np.zeros(hierarchy.n_nodes, dtype=np.int64)
        np.add.at(rows, of, sizes)
        result[attribute] = fingerprint.of_counts(rows)
    return {**result, TUPLES: fingerprint.of_tuples(meant, sizes)}


def measure_release(
    scratch: Scratch, release: Batches, labels: Mapping[str, Sequence[str | None]], kept: Sequence[str] = ()
) -> ReleaseFacts:
    """Measure a staged release from its files.

    Parameters
    ----------
    labels : mapping of attribute to the labels of its hierarchy
        As :func:`release_classes` takes them.
    kept : sequence of str
        Names of the columns ``r<j>``.
    """
    directory = scratch.directory("release_classes")
    parts = scratch.collect_parts(release_classes(release, labels, directory, kept=len(kept)))
    names = tuple(part["name"] for part in parts)
    tasks = max(1, -(-sum(part["classes"] for part in parts) // CLASSES_PER_TASK))
    told, roots = ("classes", "least", "singles", "least_telling"), _words_of_roots(labels)

    def found(number: int) -> tuple[int, int, int, int]:
        return _classes_between(directory, names, number, tasks, roots)

    def read(number: int) -> Iterator[pa.Table]:
        yield pa.table({name: pa.array([value], pa.int64()) for name, value in zip(told, found(number), strict=True)})

    if tasks == 1:
        ranges = [found(0)]
    else:
        schema = T.StructType([T.StructField(name, T.LongType()) for name in told])
        merged_by_tasks = Batches.of_parts(scratch.spark, range(tasks), read, schema).frame().toArrow()
        ranges = [tuple(row[name] for name in told) for row in merged_by_tasks.to_pylist()]
    uniques = []
    if kept:
        sizes = [sum(part["values"][j] for part in parts) for j in range(len(kept) + 1)]
        from privrisk_spark.stages.publishing.uniqueness import measure_uniques

        uniques = measure_uniques(scratch, directory, names, sizes)
    return ReleaseFacts(
        rows=sum(part["rows"] for part in parts),
        classes=sum(classes for classes, _, _, _ in ranges),
        min_class_size=min((least for classes, least, _, _ in ranges if classes), default=0),
        min_telling_size=min((least for _, _, _, least in ranges if least), default=None),
        off_hierarchy={attribute: sum(part["outside"][i] for part in parts) for i, attribute in enumerate(labels)},
        label_rows=summed_label_rows(parts, tuple(labels)),
        unique_by_cells=sum(alone for _, _, alone, _ in ranges),
        unique_by_kept=dict(zip(kept, uniques, strict=False)),
        unique_by_all=uniques[-1] if uniques else None,
    )


def _classes_between(
    directory: PartDirectory, names: Sequence[str], number: int, ranges: int, roots: Sequence[int]
) -> tuple[int, int, int, int]:
    """Classes of one of equal ranges of fingerprints, from all parts.

    Returns
    -------
    tuple of int
        Classes, rows of the smallest, classes of one row, and rows of the smallest whose words are not those of the
        roots; 0 where there is none.
    """
    low = -(2**63) + number * 2**64 // ranges
    high = -(2**63) + (number + 1) * 2**64 // ranges - 1
    pieces = []
    for name in names:
        columns = map_array(directory, name)
        begin = np.searchsorted(columns[0], np.int64(low), side="left")
        end = np.searchsorted(columns[0], np.int64(high), side="right")
        pieces.append(columns[1:, begin:end])
    if not sum(piece.shape[1] for piece in pieces):
        return 0, 0, 0, 0
    *words, rows = np.concatenate(pieces, axis=1)
    first, member = grouped(words)
    sizes = np.zeros(len(first), dtype=np.int64)
    np.add.at(sizes, member, rows)
    telling = ~np.logical_and.reduce([word[first] == root for word, root in zip(words, roots, strict=True)])
    least_telling = int(sizes[telling].min()) if telling.any() else 0
    return len(first), int(sizes.min()), int(np.count_nonzero(sizes == 1)), least_telling


_MEMBERS_PER_BUCKET = 500_000


def collect_classes(scratch: Scratch, members: Batches, *, k: int, rows: int) -> DataFrame:
    """Return the released classes: ``n<i>`` nodes, ``rows`` f_k, ``persons``, ``population`` F_k.

    Where persons are counted, their rows are dealt by person: each is then in one task, and what the tasks count adds
    up, however large a class is.

    Parameters
    ----------
    members : Batches
        As :func:`privrisk_spark.stages.deciding.decide.conclude` writes them; ``entity`` and ``millionths`` where the
        policy has them.
    rows : int
        Of the release.
    """
    there, nodes = members.schema.fieldNames(), schemas.nodes(k)
    sums = ["rows", *(["persons"] if schemas.ENTITY in there else [])]
    sums += [schemas.MILLIONTHS] if schemas.MILLIONTHS in there else []

    def partly(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            if table.num_rows:
                yield _of_classes(table, nodes)

    if schemas.ENTITY in there:
        directory, buckets = scratch.directory("members-by-person"), max(1, -(-rows // _MEMBERS_PER_BUCKET))

        def of_person(table: pa.Table) -> WordArray:
            return fingerprints(table.column(schemas.ENTITY))

        taken = [*nodes, schemas.ENTITY, schemas.N_ROWS, *sums[2:]]
        parts = scratch.collect_parts(dealt(members, of_person, taken, buckets, directory))
        held = tuple(part["name"] for part in parts)

        def read(bucket: int) -> Iterator[pa.Table]:
            whole = read_slices(directory, held, bucket)
            yield from () if whole is None else (whole,)

        schema = T.StructType([members.schema[name] for name in taken])
        members = Batches.of_parts(scratch.spark, range(buckets), read, schema)
    fields = [T.StructField(name, T.IntegerType()) for name in nodes]
    fields += [T.StructField(name, T.LongType()) for name in sums]
    partial = members.then(partly, T.StructType(fields)).frame()
    whole = partial.groupBy(*nodes).agg(*[F.sum(name).alias(name) for name in sums])
    if schemas.MILLIONTHS not in there:
        return whole
    return whole.withColumn("population", F.col(schemas.MILLIONTHS) / F.lit(1e6)).drop(schemas.MILLIONTHS)


def _of_classes(table: pa.Table, nodes: Sequence[str]) -> pa.Table:
    """Rows, distinct persons and weights of the classes among MEMBERS, which hold all rows of their persons."""
    first, member = grouped([table.column(name).to_numpy() for name in nodes])

    def summed(values: LongArray) -> pa.Array:
        result = np.zeros(len(first), dtype=np.int64)
        np.add.at(result, member, values)
        return pa.array(result)

    classes = table.select(list(nodes)).take(pa.array(first))
    classes = classes.append_column("rows", summed(table.column(schemas.N_ROWS).to_numpy()))
    if schemas.ENTITY in table.column_names:
        place = table.column(schemas.ENTITY).combine_chunks().dictionary_encode().indices
        pairs, _ = grouped([member, place.to_numpy().astype(np.int64)])
        once = np.zeros(table.num_rows, dtype=np.int64)
        once[pairs] = 1
        classes = classes.append_column("persons", summed(once))
    if schemas.MILLIONTHS in table.column_names:
        classes = classes.append_column(schemas.MILLIONTHS, summed(table.column(schemas.MILLIONTHS).to_numpy()))
    return classes


def measure_classes(classes: DataFrame, roots: Sequence[int]) -> ClassFacts:
    """Measure the released classes.

    Parameters
    ----------
    classes : DataFrame
        As :func:`collect_classes` returns them.
    roots : sequence of k int
        The node that stands for the root of each attribute.
    """
    named = zip(schemas.nodes(len(roots)), roots, strict=True)
    telling = reduce(operator.or_, (F.col(name) != int(root) for name, root in named))
    persons = F.col("persons") if "persons" in classes.columns else F.lit(None)
    population = F.col("population") if "population" in classes.columns else F.lit(None)
    row = classes.agg(
        F.count("*").alias("classes"),
        F.coalesce(F.sum("rows"), F.lit(0)).alias("rows"),
        F.coalesce(F.min("rows"), F.lit(0)).alias("smallest"),
        F.count_if(F.col("rows") == 1).alias("uniques"),
        F.min(persons).alias("fewest_persons"),
        F.min(F.when(telling, persons)).alias("fewest_telling_persons"),
        F.count_if(persons == 1).alias("single_persons"),
        F.min(population).alias("least_population"),
        F.sum(population.cast("decimal(38,6)")).cast("string").cast("double").alias("population"),
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
        fewest_telling_persons=row["fewest_telling_persons"],
    )
