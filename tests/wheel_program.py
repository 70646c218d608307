"""The wheel with the extra ``embedded``, alone in an environment without Java, releases the seven rows of README.

``python tests/wheel_program.py DIRECTORY``, which is what ``make wheel`` does.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("bash", "cat")
"""Programs that README's commands call. Java is none of them."""

_READ = """
import csv, json, sys
import pyarrow.parquet as pq
place = json.load(open("release/manifest.json"))["data"]["path"]
rows = pq.read_table(f"release/{place}").to_pylist()
csv.writer(sys.stdout).writerows(sorted(map(list, map(dict.values, rows))))
"""


def installed(directory: Path) -> Path:
    """Build the wheel, install it with its extra into an environment, and return the environment's programs."""
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "build", "-q", "--wheel", "--out-dir", directory, ROOT], check=True)
    (wheel,) = directory.glob("*.whl")
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, directory / "env"], check=True)
    programs = directory / "env" / "bin"
    install = [uv, "pip", "install", "-q", "--compile-bytecode", "--python", programs / "python"]
    subprocess.run([*install, f"privrisk-spark[embedded] @ {wheel.as_uri()}"], check=True)
    for tool in TOOLS:
        (programs / tool).symlink_to(str(shutil.which(tool)))
    return programs


def released(programs: Path, directory: Path) -> list[list[str]]:
    """Run the first commands of README where nothing else is installed, and return the released rows, sorted."""
    commands = re.findall(r"(?ms)^```sh\n(.*?)^```$", (ROOT / "README.md").read_text())[:3]
    environment = {"PATH": str(programs), "HOME": str(directory), "LANG": os.environ.get("LANG", "C.UTF-8")}
    subprocess.run([programs / "bash", "-euc", "\n".join(commands)], check=True, cwd=directory, env=environment)
    read = [programs / "python", "-c", _READ]
    found = subprocess.run(read, check=True, cwd=directory, env=environment, capture_output=True, text=True).stdout
    return list(csv.reader(io.StringIO(found)))


def main(directory: Path) -> None:
    """Do both, and hold the rows against README's table."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    rows = released(installed(directory), directory)
    lines = re.findall(r"(?m)^\| (\[.*) \| (.*) \| (.*) \|$", (ROOT / "README.md").read_text())
    expected = [[cell.replace("\\", "") for cell in line] for line in lines]
    if rows != expected:
        sys.exit(f"The release of the wheel is not README's table: {rows}")
    shutil.rmtree(directory)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
