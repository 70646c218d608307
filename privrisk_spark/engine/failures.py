"""What Spark, a file system or a fault of ours raises, as the errors of this package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from privrisk_spark.errors import EngineError, InputError, InternalError, PrivriskError


@contextmanager
def named() -> Iterator[None]:
    """Let nothing out but the errors of :mod:`privrisk_spark.errors`.

    What was raised is the cause of the error; its text is not repeated, as it may quote data.

    Raises
    ------
    InputError
        If Spark is not installed.
    EngineError
        For what Spark or a file system raises.
    InternalError
        For everything else that is not an error of this package.
    """
    try:
        from pyspark.errors import PySparkException
    except ImportError:
        raise InputError("Spark is not installed here: pip install 'privrisk-spark[spark]'.") from None
    try:
        from py4j.protocol import Py4JError
    except ImportError:  # the client of Spark Connect has no py4j, and raises PySparkException only
        Py4JError = PySparkException  # noqa: N806

    try:
        yield
    except PrivriskError:
        raise
    except (PySparkException, Py4JError) as error:
        condition = error.getCondition() if isinstance(error, PySparkException) else None
        said = condition or type(error).__name__
        raise EngineError(f"Spark failed ({said}); its log has the details.") from error
    except OSError as error:
        raise EngineError(f"The file system failed: {error.strerror or type(error).__name__}.") from error
    except Exception as error:
        raise InternalError(f"{type(error).__name__} where none was expected.") from error
