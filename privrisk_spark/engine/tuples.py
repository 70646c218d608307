"""Released tuples as parts: each distinct vector of nodes once, with its number of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import materialized, write_ipc
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.numeric import fingerprint
from privrisk_spark.storage.part_files import write_array
from privrisk_spark.storage.parts import PartDirectory


@dataclass(frozen=True)
class TupleParts:
    """Parts of TUPLES in a directory."""

    directory: PartDirectory
    names: tuple[str, ...]
    schema: T.StructType

    def frame(self, spark: SparkSession) -> DataFrame:
        """Hand them to Spark."""
        return materialized(spark, self.directory, self.names, self.schema).frame()

    @classmethod
    def of_vectors(
        cls, directory: PartDirectory, nodes: npt.NDArray[np.int32], rows: LongArray, *, files: int
    ) -> TupleParts:
        """Write tuples of nodes alone as one part."""
        k = nodes.shape[1]
        columns = {name: pa.array(nodes[:, i]) for i, name in enumerate(schemas.nodes(k))}
        table = pa.table(columns | {schemas.N_ROWS: pa.array(rows)})
        names = (write_tuples(table, directory, files=files),) if len(rows) else ()
        return cls(directory, names, schemas.tuples(T.StructType([]), k))


def write_tuples(tuples: pa.Table, directory: PartDirectory, *, files: int) -> str:
    """Write TUPLES as a part ordered by file, and beside it where each file begins.

    Parameters
    ----------
    files : int
        Files of the release.

    Returns
    -------
    str
        Name of the part.
    """
    content = [fingerprints(tuples.column(name)) for name in tuples.column_names if name != schemas.N_ROWS]
    file = fingerprint.of_rows(content, tuples.num_rows) % np.uint64(files)
    order = np.argsort(file, kind="stable")
    name = write_ipc(tuples.take(pa.array(order)) if files > 1 else tuples, directory)
    begins = np.concatenate([[0], np.cumsum(np.bincount(file.astype(np.int64), minlength=files))])
    write_array(begins, directory, f"{name}.files.npy")
    return name
