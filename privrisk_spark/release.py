"""Publishing: release frames become files in a canonical order, and files become a release by renaming.

Layout of an output directory::

    manifest.json                  the current release; replaced atomically, last of all
    releases/<run id>/manifest.json    a release exists iff this file does
    releases/<run id>/data/part-00000.parquet …
    releases/<run id>/checks.json, dictionary.json, report.html

A crash leaves the old release or the new one, never a mixture; staging directories of dead runs are swept by the next.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark import schemas
from privrisk_spark.errors import BusyError
from privrisk_spark.hierarchy import Hierarchy
from privrisk_spark.policy import Output, Policy

ROWS_PER_FILE = 1_000_000


def labelled(frame: DataFrame, policy: Policy, hierarchies: Mapping[str, Hierarchy], *, files: int) -> DataFrame:
    """Return RELEASE: labels in place of nodes, rows in a canonical order, nothing else.

    Rows go to files by a hash of their released content and are sorted by it within a file, so that neither the input's
    order nor its partitioning shows, and the same release has the same bytes.

    Parameters
    ----------
    frame : DataFrame
        Holds ``n<i>`` and ``r<i>``.
    policy : Policy
    hierarchies : mapping of attribute to Hierarchy
    files : int
    """
    k = len(hierarchies)
    kept = policy.kept_columns
    content = [*schemas.nodes(k), *schemas.released(len(kept))]
    named = frame.select(*content)
    names = dict(zip(hierarchies, [f"label{i}" for i in range(k)], strict=True))
    names |= dict(zip(kept, schemas.released(len(kept)), strict=True))
    for i, hierarchy in enumerate(hierarchies.values()):
        lookup = node_labels(frame.sparkSession, hierarchy)
        lookup = lookup.select(F.col("node").alias(f"node{i}"), F.col("label").alias(f"label{i}"))
        named = named.join(F.broadcast(lookup), F.col(f"n{i}") == F.col(f"node{i}"), "left")
    # The sort comes after the joins: the optimizer drops a sort below a join.
    # To the sort 0.0 and -0.0 are one value; their texts are two.
    inexact = T.FloatType | T.DoubleType | T.ArrayType | T.StructType
    texts = [F.col(field.name).cast("string") for field in named.schema.fields if isinstance(field.dataType, inexact)]
    ordered = named.repartition(files, *content).sortWithinPartitions(*content, *texts)
    return ordered.select(*[F.col(names[name]).alias(name) for name in policy.columns if name in names])


def node_labels(spark: SparkSession, hierarchy: Hierarchy) -> DataFrame:
    """Frame of ``node`` and ``label`` of a hierarchy."""
    nodes = np.arange(hierarchy.n_nodes, dtype=np.int32)
    arrays = [pa.array(nodes), pa.array(list(hierarchy.labels), type=pa.string())]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, names=["node", "label"]), "node int, label string")


def files_for(output: Output, rows: int) -> int:
    """Return the number of data files: the policy's, or one per million rows."""
    return output.files or max(1, -(-rows // ROWS_PER_FILE))


def write_data(release: DataFrame, output: Output, directory: Path) -> list[dict[str, Any]]:
    """Write RELEASE into a staging directory under fixed file names.

    Returns
    -------
    list of dict
        ``name``, ``bytes`` and ``sha256`` of each file.
    """
    writer = release.write.mode("errorifexists")
    if output.format == "csv":
        # By default Spark trims texts when it writes them.
        untrimmed = {"ignoreLeadingWhiteSpace": False, "ignoreTrailingWhiteSpace": False}
        writer.options(header=True, escape='"', **untrimmed).csv(str(directory))
    else:
        writer.parquet(str(directory))
    entries = []
    parts = sorted(path for path in directory.iterdir() if path.name.startswith("part-"))
    for path in directory.iterdir():
        if path not in parts:
            path.unlink()
    for number, path in enumerate(parts):
        target = directory / f"part-{number:05d}.{output.format}"
        path.rename(target)
        entries.append({"name": target.name, "bytes": target.stat().st_size, "sha256": _sha256(target)})
    return entries


def read_back(spark: SparkSession, output: Output, directory: Path) -> DataFrame:
    """Open staged data as a consumer would."""
    if output.format == "csv":
        return spark.read.options(header=True, escape='"', multiLine=True).csv(str(directory))
    return spark.read.parquet(str(directory))


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """Replace a file atomically and durably."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def write_json(path: Path, document: Any) -> None:
    """Replace a JSON file atomically; the document must be JSON-safe, without NaN and infinities."""
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@dataclass(frozen=True)
class Workplace:
    """Directories of one run.

    Attributes
    ----------
    root, vault : Path
        Of the policy.
    run_id : str
    attempt : str
        Distinguishes the attempts of one run id: Spark remembers the files it has seen under a path.
    """

    root: Path
    vault: Path
    run_id: str
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    @property
    def staging(self) -> Path:
        """Where the release is put together."""
        return self.root / f".staging-{self.run_id}~{self.attempt}"

    @property
    def scratch(self) -> Path:
        """Where intermediate results lie; readable by every worker."""
        return self.vault / f".scratch-{self.run_id}~{self.attempt}"

    @property
    def target(self) -> Path:
        """Directory of the release."""
        return self.root / "releases" / self.run_id

    def published(self) -> dict[str, Any] | None:
        """Manifest of this run id's release, or None; the root's manifest is mended if a crash left it behind."""
        path = self.target / "manifest.json"
        if not path.exists():
            return None
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if self._current_sequence() < manifest["sequence"]:
            write_json(self.root / "manifest.json", manifest)
        return manifest

    def recorded_snapshot(self) -> str:
        """Snapshot the vault's summary states for this run, or ``unrecorded`` if a later run replaced it."""
        path = self.vault / "summary.json"
        if path.exists():
            summary = json.loads(path.read_text(encoding="utf-8"))
            if summary.get("run_id") == self.run_id:
                return str(summary["snapshot"])
        return "unrecorded"

    def _current_sequence(self) -> int:
        path = self.root / "manifest.json"
        return int(json.loads(path.read_text(encoding="utf-8"))["sequence"]) if path.exists() else 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold output and vault: sweep what dead runs left, make fresh directories, remove them at the end.

        One run at a time works on an output or a vault, so nothing found there can belong to a live one.

        Raises
        ------
        BusyError
            If another process is at work there; running again later helps.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        self.vault.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(self.root, "output.path"), _locked(self.vault, "output.vault"):
            self._sweep()
            self.scratch.mkdir(mode=0o700)
            self.staging.mkdir(mode=0o700)
            try:
                yield
            finally:
                shutil.rmtree(self.scratch, ignore_errors=True)
                shutil.rmtree(self.staging, ignore_errors=True)

    def _sweep(self) -> None:
        for path in [*self.root.glob(".staging-*"), *self.vault.glob(".scratch-*")]:
            shutil.rmtree(path, ignore_errors=True)
        for path in [*self.root.glob(".*.json.*"), *self.vault.glob(".*.json.*"), *self.vault.glob(".report.html.*")]:
            path.unlink(missing_ok=True)

    def commit(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Make the staged directory the release: rename, then its manifest, then the root's."""
        complete = {"sequence": self._current_sequence() + 1, **manifest}
        if self.target.exists():
            shutil.rmtree(self.target)
        self.target.parent.mkdir(exist_ok=True)
        self.staging.chmod(0o755)
        self.staging.rename(self.target)
        write_json(self.target / "manifest.json", complete)
        write_json(self.root / "manifest.json", complete)
        return complete

    def swap_into_vault(self, source: Path, name: str) -> None:
        """Put a directory in the vault in place of the one of an earlier run."""
        target, old = self.vault / name, self.scratch / f"old-{name}"
        shutil.rmtree(old, ignore_errors=True)
        if target.exists():
            target.rename(old)
        source.rename(target)


@contextmanager
def _locked(directory: Path, key: str) -> Iterator[None]:
    """Hold a directory's lock file; a dead process holds none."""
    path = directory / ".lock"
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A run that ended meanwhile has unlinked the file; a lock on what is gone keeps nobody out.
            mine = os.path.samestat(os.fstat(lock.fileno()), path.stat())
        except OSError:
            mine = False
        if not mine:
            raise BusyError(f"{key}: another run is at work on '{directory}'; wait for it, or use another directory.")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def write_decisions(
    decided: DataFrame, attributes: Sequence[str], record_id: str, method: str, directory: Path
) -> None:
    """Write the vault's ``decisions/``: record id, levels, risk, utility, consistent rows, method."""
    k = len(attributes)
    decided.select(
        F.col(schemas.RECORD_ID).alias(record_id),
        *[F.col(level).alias(f"level_{name}") for name, level in zip(attributes, schemas.levels(k), strict=True)],
        schemas.RISK,
        schemas.UTILITY,
        schemas.CONSISTENT,
        F.lit(method).alias("method"),
    ).write.mode("errorifexists").parquet(str(directory))
