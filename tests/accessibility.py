"""axe-core, run over pages in a real browser: light, dark, and on a narrow screen; and whether they fit on paper."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

PLACE = Path(os.environ.get("PRIVRISK_AXE", Path(sys.prefix, "axe")))
"""Where ``make .venv/axe`` puts it."""

PROGRAM = Path(__file__).parent / "axe" / "check.mjs"


def checked(pages: Sequence[Path], *, profile: Path) -> list[dict[str, Any]]:
    """Open pages, and return what is found on each in each view; where axe-core is not there, the test is skipped.

    Parameters
    ----------
    profile : Path
        Directory for the browser's own files.

    Returns
    -------
    list of dict
        ``page``, ``view``, ``violations`` (``id``, ``help``, ``nodes``) and ``wide``, the pixels a page is wider than
        the screen, or the paper.
    """
    reason = None if (PLACE / "node_modules").exists() else f"axe-core is not in {PLACE} (make .venv/axe)"
    reason = reason if BROWSER else "no chromium on this machine; apt-get install chromium"
    if reason is not None:
        if "axe" in os.environ.get("PRIVRISK_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    command = ["node", str(PROGRAM), str(PLACE), str(BROWSER), str(profile), *map(str, pages)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    return found


def faults(found: Sequence[dict[str, Any]]) -> list[str]:
    """What is wrong, in a line each."""
    lines = []
    for one in found:
        where = f"{Path(one['page']).name}, {one['view']}"
        lines += [f"{where}: {fault['id']} ({fault['help']}): {fault['nodes'][:3]}" for fault in one["violations"]]
        if one["wide"] > 0:
            lines.append(f"{where}: {one['wide']} pixels wider than the screen")
    return lines
