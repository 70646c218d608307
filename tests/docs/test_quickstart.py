"""The notebook runs from its first cell to its last, and is kept without what it showed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "quickstart.ipynb"


def test_the_notebook_is_kept_without_outputs() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert NOTEBOOK.read_text() == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("embedded", marks=pytest.mark.on_embedded("once is enough")),
        pytest.param("spark", marks=pytest.mark.on_spark("it starts Java")),
    ],
)
def test_the_notebook_on_each_engine_shows_its_results_and_ends_cleanly(engine: str, tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    done = tmp_path / "done.ipynb"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environment |= {
        "PYTHONPATH": str(ROOT),
        "PRIVRISK_ENGINE": engine,
        "TMPDIR": str(tmp_path),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }
    # A process of its own: Jupyter's threads and sockets are not this one's to close.
    command = [sys.executable, str(ROOT / "docs" / "notebook.py"), str(done)]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert "Exception" not in ran.stderr
    assert "Traceback" not in ran.stderr
    shown: list[dict[str, Any]] = []
    for cell in json.loads(done.read_text())["cells"]:
        shown += [out["data"] for out in cell.get("outputs", []) if "data" in out]
    pages = ["".join(data["text/html"]) for data in shown if "text/html" in data]
    assert any("missed" in page for page in pages)  # the assessment
    assert any("lattice" in page for page in pages)  # the plan
    assert any("At a glance" in page for page in pages)  # the release
    assert any("<iframe sandbox" in page for page in pages)  # the report
    # Jupyter kills Spark with the kernel; the next session removes the directory of that one.
    left = [path.name for path in tmp_path.glob("privrisk-*") if not path.name.startswith("privrisk-session-")]
    assert not left, "private directories go with the results"
