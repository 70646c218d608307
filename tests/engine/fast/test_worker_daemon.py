from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, sys, threading
from pyspark.sql import types as T
from privrisk_spark.engine import session
spark = session.build("test")

def here(batches):
    import pyarrow as pa
    from privrisk_spark.engine.fast import worker_daemon
    imported = sum(name in sys.modules for name in worker_daemon.MODULES)
    for batch in batches:
        total = pa.compute.sum(pa.array(range(100_000))).as_py()
        yield pa.record_batch([[os.getppid()], [imported], [total]], ["parent", "imported", "total"])

rows = spark.range(0, 4, 1, 4).mapInArrow(here, "parent long, imported long, total long").collect()
from privrisk_spark.engine.fast.worker_daemon import MODULES
assert len({row.parent for row in rows}) == 1, rows
assert {(row.imported, row.total) for row in rows} == {(len(MODULES), 4999950000)}, rows
command = open(f"/proc/{rows[0].parent}/cmdline").read() if os.path.exists("/proc/self/cmdline") else "worker_daemon"
assert "privrisk_spark.engine.fast.worker_daemon" in command, command
"""


def test_workers_of_a_local_session_have_all_imported_and_compute(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environment |= {
        "PRIVRISK_FAST": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).resolve().parents[3]), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_imports_start_no_thread_of_pythons_and_print_nothing() -> None:
    """A fork would not have the threads; Spark reads the port from standard output."""
    program = (
        "import importlib, threading\n"
        "from privrisk_spark.engine.fast.worker_daemon import MODULES\n"
        "for name in MODULES: importlib.import_module(name)\n"
        "assert threading.active_count() == 1\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""
