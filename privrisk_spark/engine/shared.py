"""Where tasks and driver hand parts to each other: beside the run's own files, or in an object store that all reach.

On a cluster whose machines share no disk only a store will do, and the first thing such a run does is to find out.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.engine.session import own_directory
from privrisk_spark.errors import ConfigError, Fault, InputError
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.rules.apart import impossible_apart
from privrisk_spark.runs.places import ResultPlace
from privrisk_spark.runs.vaults import IN_STORE, Vault
from privrisk_spark.storage.documents import write_plainly
from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.opening import open_remote
from privrisk_spark.storage.parts import LocalParts, ObjectParts, PartDirectory, keep_under
from privrisk_spark.storage.scratch import forget_store, note_store
from privrisk_spark.storage.store import StorageError

_LOG = logging.getLogger(__name__)

_PROBE = "probe"
_TASKS = 8
"""Tasks that look for the probe; a cluster of more machines may have one that none of them runs on."""


@contextmanager
def scratch_of(
    spark: SparkSession,
    policy: Policy,
    path: Path,
    vault: Vault | None = None,
    *,
    place: ResultPlace | None = None,
) -> Iterator[Scratch]:
    """Hold the directories of a run; what it put into an object store goes at the end.

    Parameters
    ----------
    policy : Policy
        Whose ``run.scratch`` may name an object store.
    path : Path
        The run's own directory, new and empty; its name is no other run's.
    vault : Vault, optional
        One in a store serves where ``run.scratch`` names none and tasks run on other machines.
    place : ResultPlace, optional
        The same of a command that has no vault.

    Raises
    ------
    ConfigError
        If a task does not find there what the driver wrote, or the policy asks for what needs a shared disk.
    """
    here = (spark.conf.get("spark.master", "local") or "local").startswith("local")
    # The master of a Spark Connect server says nothing of where the server is.
    beside = here and not type(spark).__module__.startswith("pyspark.sql.connect")
    key, store = "output.vault" if place is None else "--output", None
    if vault is not None and vault.location.remote and not beside:
        store = vault.location.below(IN_STORE)
    elif place is not None and place.shared is not None and not beside:
        store = place.shared
    if policy.run.scratch is not None:
        key, store = "run.scratch", locate(policy.run.scratch, key="run.scratch")
    if store is None:
        if not here:
            beside_run = LocalParts(str(path))
            _measure_reach(spark, beside_run, _put_probe(beside_run), key)
        yield Scratch(spark, path)
        return
    faults = list(impossible_apart(policy, key)) if key == "output.vault" else []  # of the other it is said before
    if faults:
        raise ConfigError(faults)
    keep_under(own_directory())
    shared = ObjectParts(store.below(path.name.lstrip(".")))
    note_store(path, shared.location)
    if vault is not None:
        vault.note_scratch(path.name, shared.location)
    try:
        open_remote(shared.location).make(public=False)
        content = _put_probe(shared)
    except InputError as error:  # the store took nothing, so that there is nothing to come back for
        _forget(path, vault)
        raise ConfigError([Fault(key, error.faults[0].rule)]) from None
    except BaseException:
        _remove(shared, path, vault)
        raise
    try:
        _measure_reach(spark, shared, content, key)
        yield Scratch(spark, path, shared)
    finally:
        _remove(shared, path, vault)


def _forget(path: Path, vault: Vault | None) -> None:
    """Take back that a run keeps anything in a store."""
    forget_store(path)
    if vault is not None:
        vault.forget_scratch(path.name)


def _remove(shared: ObjectParts, path: Path, vault: Vault | None) -> None:
    """Remove what a run put into a store; one that does not remove changes neither how the run ended nor its error.

    Then the next run in the place tries again.
    """
    try:
        shared.remove()
        _forget(path, vault)
    except (StorageError, InputError) as error:
        _LOG.warning(
            "The run's scratch '%s' could not be removed and holds values of the table: remove it. %s", shared, error
        )


def _put_probe(directory: PartDirectory) -> str:
    """Write what tasks will look for, and return it."""
    content = secrets.token_hex(16)
    with directory.writing(_PROBE) as written:
        write_plainly(Path(written), content)
    return content


def _measure_reach(spark: SparkSession, directory: PartDirectory, content: str, key: str) -> None:
    """Refuse a directory where tasks do not find the probe."""

    def look(_: int) -> Iterator[pa.Table]:
        try:
            found = directory.reached(_PROBE) == content.encode()
            why = "" if found else "another file is there"
        except Exception as error:
            found, why = False, type(error).__name__
        yield pa.table({"found": [found], "why": [why]})

    schema = T.StructType([T.StructField("found", T.BooleanType()), T.StructField("why", T.StringType())])
    rows = Batches.of_parts(spark, range(_TASKS), look, schema).frame().toArrow().to_pylist()
    lost = sorted({row["why"] for row in rows if not row["found"]})
    if lost:
        what = (
            "is not reached by Spark's workers: set run.scratch to HDFS or an object store, such as "
            f"s3://bucket/scratch, or put {'the vault' if key == 'output.vault' else 'it'} on a file system that all "
            "machines mount at one path"
            if isinstance(directory, LocalParts)
            else "is not reached by Spark's workers: give them the settings and credentials that the driver has "
            "(such as spark.executorEnv.AWS_…) and the package obstore, or hdfs-native for HDFS"
        )
        raise ConfigError([Fault(key, f"{what}. A task ended with {', '.join(lost)}")])
