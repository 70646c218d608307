"""Sessions for the Python interface, and private directories for results without a place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from privrisk_spark.engine.failures import named
from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.temporary import PrivateDirectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from privrisk_spark.policy.run import Engine


@named()
def session(engine: Engine = "auto") -> SparkSession:
    """Return the Spark session of this process. If there is none, make one.

    Parameters
    ----------
    engine : {"auto", "embedded", "spark"}
        Engine of the session; see ``run.engine`` of a policy.

    Returns
    -------
    SparkSession

    Raises
    ------
    InputError
        If the engine is not installed, or the session of this process is of the other engine.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> spark = pr.session()
    >>> spark.createDataFrame([("Ada", 34), ("Ben", 36)], "name string, age int").count()
    2
    """
    from privrisk_spark.engine.session import obtain

    return obtain("privrisk", engine=engine)


def check_reach(spark: SparkSession, key: str) -> None:
    """Refuse a private directory of this machine where workers are on others.

    Parameters
    ----------
    key : str
        What would name another directory, for the message.

    Raises
    ------
    ConfigError
        Naming what to give.
    """
    master = spark.conf.get("spark.master", None) or "local"
    if not master.startswith("local"):
        rule = (
            f"must name a directory that every worker sees, as Spark runs at {master}; without it only this one would"
        )
        raise ConfigError([Fault(key, rule)])


@contextmanager
def directory_for(output: str | Path | None, name: str) -> Iterator[tuple[str, PrivateDirectory | None]]:
    """Yield where a result goes, and the private directory it lies in if nobody named a place.

    An error within the block removes that directory.

    Parameters
    ----------
    output : str or Path, optional
        As the caller named it.
    name : str
        Of the directory within a private one.
    """
    if output is not None:
        yield str(output), None
        return
    private = PrivateDirectory()
    try:
        yield str(private.path / name), private
    except BaseException:
        private.close()
        raise


class Closeable:
    """What results share: a directory of theirs, which can be given up early."""

    private: PrivateDirectory | None

    def close(self) -> None:
        """Remove the private directory, if the result lies in one; its frames cannot be read any more."""
        if self.private is not None:
            self.private.close()

    def __enter__(self) -> Self:
        """Return the result, to be closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the result."""
        self.close()


def opened_parts(private: PrivateDirectory | None, spark: SparkSession, place: Path | str, name: str) -> DataFrame:
    """Open the Parquet files of a directory in the place of a result, as :func:`opened` does.

    Parameters
    ----------
    private, spark
        As :func:`opened` takes them.
    place : Path or str
        Of the result.
    name : str
        Of the directory.
    """
    from privrisk_spark.tables.released import parts_at

    return opened(private, spark, lambda: parts_at(spark, locate(str(place), key="output").below(name)))


def opened(private: PrivateDirectory | None, spark: SparkSession, read: Callable[[], DataFrame]) -> DataFrame:
    """Open a frame of a result, which keeps the directory its files lie in; frames made of it do not.

    Parameters
    ----------
    private : PrivateDirectory or None
        Of the result.
    spark : SparkSession
        Held under the settings of a run meanwhile.
    read : callable
        Opens it.

    Raises
    ------
    EngineError
        If the files are gone.
    """
    from privrisk_spark.engine.settings import as_required

    with named(), as_required(spark):
        frame = read()
    frame.__dict__["_privrisk_workspace"] = private
    return frame
