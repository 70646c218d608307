"""What each class is compatible with, where a missing or suppressed value may be any: classes of buckets overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, report
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.engine.slices import read_slices, write_slices
from privrisk_spark.errors import InputError
from privrisk_spark.kernels.classes.classes import Classes
from privrisk_spark.kernels.classes.compatible import compatible_persons, compatible_sums
from privrisk_spark.kernels.measures.loss import fully_suppressed
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.stages.assessing.classes import Layout, bucket_of
from privrisk_spark.stages.assessing.tallies import Suppressed
from privrisk_spark.storage.parts import PartDirectory


@dataclass(frozen=True)
class Overlap:
    """Which values may be any.

    Attributes
    ----------
    wild : tuple of int
        Attributes whose root may be any value.
    suppressed : {"class", "apart", "compatible"}
        What records are that are at the root in every attribute: a class like any, in no class, or compatible with all.
    """

    wild: tuple[int, ...]
    suppressed: Suppressed = "class"


@dataclass(frozen=True)
class CompatibleClasses:
    """What the classes of a subject are compatible with, by bucket.

    Attributes
    ----------
    names : tuple of str
        Parts there.
    k : int
        Attributes.
    """

    directory: PartDirectory
    names: tuple[str, ...]
    k: int
    weighted: bool

    def __call__(self, classes: Classes, bucket: int) -> Classes:
        """Classes of a bucket, in lexicographic order, with what each is compatible with."""
        found = read_slices(self.directory, self.names, bucket)
        assert found is not None
        nodes = [found.column(name).to_numpy() for name in schemas.nodes(self.k)]
        order = np.lexsort(nodes[::-1]) if found.num_rows else np.zeros(0, dtype=np.int64)
        return replace(
            classes,
            compatible=found.column(schemas.N_ROWS).to_numpy()[order],
            compatible_millionths=found.column(schemas.MILLIONTHS).to_numpy()[order] if self.weighted else None,
        )


def collect_compatible(
    scratch: Scratch, directory: PartDirectory, names: Sequence[str], buckets: int, layout: Layout, overlap: Overlap, *,
    most: int, target: PartDirectory,
) -> CompatibleClasses:  # fmt: skip
    """Count what each class is compatible with, in one task, which holds the distinct ones.

    Parameters
    ----------
    directory, names, layout
        As :func:`privrisk_spark.stages.assessing.classes.read_bucket` takes them; with persons only where none of the
        suppressed is compatible with all.
    most : int
        Classes held at most, and pairs of class and person.
    target : PartDirectory
        Directory for what is found.

    Raises
    ------
    InputError
        If there are more classes.
    """
    held, k = tuple(names), len(layout.radices)
    roots = [radix - 1 for radix in layout.radices]
    sums = [schemas.N_ROWS, *([schemas.MILLIONTHS] if layout.weighted else [])]

    def classes_of(bucket: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Nodes and amounts of the classes of a bucket, and pairs of class and person."""
        table = read_slices(directory, held, bucket)
        if table is None or not table.num_rows:
            nothing = np.zeros((0, len(sums)), dtype=np.int64), np.zeros((0, 2), dtype=np.int64)
            return np.zeros((0, k), dtype=np.int32), *nothing
        nodes = [table.column(name).to_numpy() for name in schemas.nodes(k)]
        first, member = distinct_rows(nodes)
        amounts = np.zeros((len(first), len(sums)), dtype=np.int64)
        np.add.at(amounts, member, np.column_stack([table.column(name).to_numpy() for name in sums]))
        pairs = np.zeros((0, 2), dtype=np.int64)
        if layout.persons:
            pairs = np.column_stack([member, fingerprints(table.column(schemas.ENTITY)).view(np.int64)])
            once, _ = distinct_rows(list(pairs.T))
            pairs = pairs[once]
        return np.column_stack([node[first] for node in nodes]).astype(np.int32), amounts, pairs

    def read(_: int) -> Iterator[pa.Table]:
        found, classes, number = [], 0, 0
        for bucket in range(buckets):
            nodes, amounts, pairs = classes_of(bucket)
            pairs[:, 0] += classes
            found.append((nodes, amounts, pairs))
            classes, number = classes + len(nodes), number + max(len(nodes), len(pairs))
            if number > most:
                yield report("", {"classes": number})
                return
        nodes, amounts, pairs = (np.concatenate(parts) for parts in zip(*found, strict=True))
        lost = fully_suppressed(nodes, roots)
        there = ~lost if overlap.suppressed == "apart" else np.ones(len(nodes), dtype=np.bool_)
        fully = lost[there] if overlap.suppressed == "compatible" else None
        counted = amounts.copy()
        counted[there] = compatible_sums(nodes[there], amounts[there], roots, overlap.wild, fully)
        if layout.persons:
            place = np.cumsum(there) - 1
            pairs = pairs[there[pairs[:, 0]]]
            counted[there, 0] = compatible_persons(nodes[there], place[pairs[:, 0]], pairs[:, 1], roots, overlap.wild)
        columns = {name: pa.array(np.ascontiguousarray(nodes[:, i])) for i, name in enumerate(schemas.nodes(k))}
        columns |= {name: pa.array(np.ascontiguousarray(counted[:, j])) for j, name in enumerate(sums)}
        of_bucket = bucket_of([nodes[:, i].astype(np.int64) for i in range(k)], buckets)
        yield report(write_slices(pa.table(columns), of_bucket, buckets, target), {"classes": number})

    (part,) = scratch.collect_parts(Batches.of_parts(scratch.spark, range(1), read, PARTS))
    if part["classes"] > most:
        raise InputError(
            f"counting.sorted_vectors: there are more than {most:,} distinct records, and where missing or suppressed "
            "values may be any they are held at once; raise it if workers have the memory, or assess smaller sets, or "
            "without nulls: wildcard (assess.suppressed: apart)."
        )
    return CompatibleClasses(target, (part["name"],), k, layout.weighted)
