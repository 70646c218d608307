"""Parts as files: those that tasks map instead of reading, Arrow files and arrays, and texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from privrisk_spark.storage.parts import PartDirectory

__all__ = ["map_array", "mapped_arrow", "write_array", "writing_arrow", "writing_bytes"]


@contextmanager
def writing_arrow(directory: PartDirectory, name: str, schema: pa.Schema) -> Iterator[pa.RecordBatchFileWriter]:
    """Open a part for writing Arrow batches.

    Parameters
    ----------
    name : str
        That nobody else has.
    schema : pyarrow.Schema
    """
    with directory.writing(name) as path, pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        yield writer


@contextmanager
def writing_bytes(directory: PartDirectory, name: str) -> Iterator[IO[bytes]]:
    """Open a part for writing bytes one after another."""
    with directory.writing(name) as path, open(path, "wb") as sink:
        yield sink


@contextmanager
def mapped_arrow(directory: PartDirectory, name: str) -> Iterator[pa.RecordBatchFileReader]:
    """Map a part written by :func:`writing_arrow`; what is read of it stays mapped as long as somebody has it."""
    with pa.memory_map(directory.path(name)) as source:
        yield pa.ipc.open_file(source)


def write_array(array: npt.NDArray[Any], directory: PartDirectory, name: str) -> None:
    """Write an array as a part that tasks can map."""
    with directory.writing(name) as path, open(path, "wb") as sink:
        np.save(sink, array)


def map_array(directory: PartDirectory, name: str) -> npt.NDArray[Any]:
    """Map a part written by :func:`write_array`."""
    mapped: npt.NDArray[Any] = np.load(directory.path(name), mmap_mode="r")
    return mapped
