"""What Spark, a file system or a fault of ours raises, as the errors of this package."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlparse

from privrisk_spark import errors
from privrisk_spark.errors import EngineError, InputError, InternalError, PrivriskError, SchemaError
from privrisk_spark.extras import missing

_CARRIED = "error of privrisk_spark in a task: "

_ENDS = {
    kind.__name__: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, PrivriskError) and not issubclass(kind, errors.ConfigError)
}
"""Errors by name; a policy's faults are found before there are tasks."""


def list_spark_errors() -> tuple[type[Exception], ...]:
    """Return what Spark raises if it cannot execute a plan: errors of PySpark, and of Java that it does not know."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JJavaError
    except ImportError:  # the client of Spark Connect has no py4j
        return (PySparkException,)
    return (PySparkException, Py4JJavaError)


@contextmanager
def carried() -> Iterator[None]:
    """Around what a task does: an error of this package arrives where :func:`named` is, as itself.

    Spark hands over the text of what a task raises, and no more.
    """
    try:
        yield
    except PrivriskError as error:
        kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ENDS)
        raise RuntimeError(_CARRIED + json.dumps([kind, str(error)])) from None


def _of_task(said: str) -> PrivriskError | None:
    """Return the error of this package that a task raised, if that is what Spark tells of."""
    at = said.find(_CARRIED)
    if at < 0:
        return None
    try:
        (kind, message), _ = json.JSONDecoder().raw_decode(said, at + len(_CARRIED))
    except ValueError:  # cut
        return None
    return _ENDS[kind](message)


_UNREADABLE = re.compile(
    r"\[(?P<condition>FAILED_READ_FILE(?!\.FILE_NOT_EXIST)[A-Z0-9_.]*|CANNOT_READ_FILE_FOOTER)\][^\n]*?"
    r"(?P<file>[a-z0-9]+:/[^\s]*)(?P<rest>[^\n]*)"
)
_MISMATCH = re.compile(
    r"column \[?`?(?P<column>[^\n]*?)`?\]?\. Expected Spark type (?P<expected>[^\n]*?), actual Parquet type "
    r"(?P<actual>[A-Za-z0-9_() ,]*)"
)
_MALFORMED = re.compile(r"\[(MALFORMED_CSV_RECORD|MALFORMED_RECORD_IN_PARSING)[A-Z0-9_.]*\]|TextParsingException")


def unreadable(said: str) -> InputError | None:
    """Return what is wrong with a source by what Spark says of it: file and column; nothing it holds is repeated.

    Parameters
    ----------
    said : str
        By Spark.

    Returns
    -------
    InputError or None
        None where Spark tells of something else.
    """
    found = _UNREADABLE.search(said)
    if found is None:
        if _MALFORMED.search(said):
            return SchemaError(
                "A line of a table cannot be read as its format and options say: it has too many or too long values, "
                "or is malformed and options.mode is FAILFAST. Mend the file or the options."
            )
        if "java.lang.StackOverflowError" in said:
            return InputError(
                "Spark's plan is too deep for the stack of its threads (StackOverflowError), as that of a table with "
                "very many columns can be: leave columns out of the table, or start Java with a larger stack "
                "(spark.driver.extraJavaOptions=-Xss16m)."
            )
        return None
    place = urlparse(found["file"].rstrip(".,;"))
    file = unquote(place.path) if place.scheme == "file" else found["file"].rstrip(".,;")
    if any(part.startswith((".scratch-", ".staging-")) for part in Path(file).parts):
        return None
    mismatch = _MISMATCH.search(found["rest"])
    if mismatch is not None:
        return SchemaError(
            f"The table at '{Path(file).parent}': file {Path(file).name}: column '{mismatch['column']}' is of the type "
            f"{mismatch['actual'].strip()}, where other files of the table have {mismatch['expected'].strip()}; write "
            "it anew with one type."
        )
    return SchemaError(
        f"The table at '{Path(file).parent}': file {Path(file).name} cannot be read ({found['condition']}): it is "
        "damaged, cut, or of another format; write it anew."
    )


_LACKING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def lacking(said: str) -> InputError | None:
    """Return which package the Python of Spark's workers lacks, if that is what Spark tells of.

    Parameters
    ----------
    said : str
        By Spark.
    """
    found = _LACKING.search(said)
    if found is None:
        return None
    return InputError(
        f"The Python of Spark's workers has no module '{found[1]}': set PYSPARK_PYTHON (of a Spark Connect server, "
        "where it is started) to an environment that has this package and what it needs, or send them with the job "
        "(--py-files, --archives)."
    )


def refuse_without_spark() -> None:
    """Refuse to go on where pyspark cannot be imported.

    Raises
    ------
    InputError
        If it cannot; says what to install.
    """
    try:
        import pyspark  # noqa: F401 - whether it is there
    except ImportError:
        raise InputError(
            "No engine is installed here: pip install 'privrisk-spark[embedded]' (this machine, without Java) or "
            "'privrisk-spark[spark]', or start the command by the spark-submit of a cluster that brings Spark."
        ) from None


@contextmanager
def named() -> Iterator[None]:
    """Let nothing out but the errors of :mod:`privrisk_spark.errors`.

    What was raised is the cause of the error; its text is not repeated, as it may quote data.

    Raises
    ------
    InputError
        If Spark or a package is not installed, Spark's workers lack a package, or a file of a source cannot be read.
    PrivriskError
        What a task raised (:func:`carried`).
    EngineError
        For what Spark or a file system raises.
    InternalError
        For everything else that is not an error of this package.
    """
    refuse_without_spark()
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError
    except ImportError:  # the client of Spark Connect has no py4j, and raises PySparkException only
        Py4JError = PySparkException  # noqa: N806

    try:
        yield
    except PrivriskError:
        raise
    except (PySparkException, Py4JError) as error:
        said = str(error)
        known = _of_task(said) or unreadable(said) or lacking(said)
        if known is not None:
            raise known from error
        condition = error.getCondition() if isinstance(error, PySparkException) else None
        said = condition or type(error).__name__
        raise EngineError(f"Spark failed ({said}); its log has the details.") from error
    except OSError as error:
        raise EngineError(f"The file system failed: {error.strerror or type(error).__name__}.") from error
    except Exception as error:
        unexpected = InternalError(f"{type(error).__name__} where none was expected.")
        raise missing(error) or unexpected from error
