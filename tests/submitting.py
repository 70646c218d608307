"""Jobs that spark-submit starts, and the archive of an environment for machines that do not have the package."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

from product import ROOT


def submit(
    command: Sequence[str], environment: Mapping[str, str], directory: Path, *, killed_at: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of spark-submit, with all its output as ``stderr``.

    Parameters
    ----------
    killed_at : str, optional
        The process and its children are killed at the first line that contains this text.
    """
    with subprocess.Popen(
        command, cwd=directory, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as driver:  # fmt: skip
        assert driver.stdout is not None
        lines = []
        watch = Timer(400, driver.kill)
        watch.start()
        for line in driver.stdout:
            lines.append(line)
            if killed_at is not None and killed_at in line:
                os.killpg(driver.pid, signal.SIGKILL)
                killed_at = None
        code = driver.wait()
        watch.cancel()
    return subprocess.CompletedProcess(command, code, "", "".join(lines))


@dataclass(frozen=True)
class PackedEnvironment:
    """An environment that has the wheel and not Spark, and the archive of it."""

    environment: Path
    archive: Path

    @property
    def job(self) -> str:
        """Path of the job that makes releases, in the environment."""
        (found,) = self.environment.glob("lib/*/site-packages/privrisk_spark/jobs/release.py")
        return str(found)


def pack(directory: Path) -> PackedEnvironment:
    """Make an environment and its archive by the lines of docs/clusters.md, of the packages that tests use."""
    uv, there = Path(sys.executable).with_name("uv"), directory / "env"
    same = directory / "same.txt"
    listed = [uv, "pip", "freeze", "--exclude-editable", "--python", sys.executable]
    same.write_text(subprocess.check_output(listed, text=True))
    subprocess.run([uv, "build", "-q", "--wheel", "--out-dir", directory, ROOT], check=True)
    (wheel,) = directory.glob("*.whl")
    subprocess.run([uv, "venv", "-q", "--seed", "--python", sys.executable, there], check=True)
    install = [uv, "pip", "install", "-q", "--python", there / "bin/python", "--constraint", same]
    subprocess.run([*install, f"privrisk-spark[hdfs] @ {wheel.as_uri()}", "venv-pack", "setuptools"], check=True)
    archive = directory / "privrisk.tar.gz"
    packed = [there / "bin/venv-pack", "-q", "-p", there, "-o", archive, "--compress-level", "1"]
    subprocess.run(packed, check=True)
    return PackedEnvironment(there, archive)
