"""The process that Spark forks its Python workers from on one machine, with everything a task needs imported before.

Spark's own imports nothing, so every worker imports it all again, at the moment when the first task waits for it. What
is imported here starts no thread of Python's; numpy's and Arrow's memory allocators are made to be forked.
"""

from __future__ import annotations

import gc
import importlib

from pyspark.daemon import manager

MODULES = (
    "pyspark.worker",
    "pandas",
    "pyarrow.parquet",
    "privrisk_spark.stages.deciding.decide",
    "privrisk_spark.stages.publishing.measure",
    "privrisk_spark.stages.publishing.files",
)


def main() -> None:
    """Import, and serve."""
    gc.disable()
    for name in MODULES:
        importlib.import_module(name)
    # Neither does a worker look for garbage among all this, nor does it copy the memory by that.
    gc.freeze()
    gc.enable()
    manager()


if __name__ == "__main__":
    main()
