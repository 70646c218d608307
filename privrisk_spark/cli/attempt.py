"""How a command ends: an error becomes a line, a status and an exit code."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from privrisk_spark.cli.options import CommonOptions, LogFormat
from privrisk_spark.cli.printing import echo
from privrisk_spark.errors import (
    BudgetError,
    BusyError,
    ConfigError,
    EngineError,
    Fault,
    InputError,
    InternalError,
    PlaceError,
    PrivriskError,
    ReleasedError,
)
from privrisk_spark.extras import missing
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.ownership import is_marked
from privrisk_spark.storage.store import StorageError

if TYPE_CHECKING:
    from privrisk_spark.policy.policy import Policy
    from privrisk_spark.runs.places import ResultPlace
    from privrisk_spark.runs.vaults import Vault


@dataclass
class Attempt:
    """What is known of a run when it fails.

    Attributes
    ----------
    asked : str or None
        ``--run-id``.
    run_id : str
        Its id; empty before it is settled.
    status : Path, Location or None
        Where its status goes; see :func:`privrisk_spark.runs.progress.write_status`.
    told : Path or None
        File that says how it ended besides, whatever it was.
    """

    asked: str | None
    run_id: str = ""
    status: Path | Location | None = None
    told: Path | None = None

    def policy(
        self,
        files: Sequence[str],
        overrides: Sequence[str] | None,
        date: str | None,
        *,
        releasing: bool = True,
    ) -> tuple[Policy, dt.date]:
        """Read the policy, and settle run id and business date.

        Parameters
        ----------
        files, overrides
            Layers; see :func:`privrisk_spark.policy.reading.load`.
        date : str or None
            As it was given.
        releasing : bool
            Demand what a release needs.
        """
        from privrisk_spark.policy import reading

        day = day_of(date)
        if not files:
            raise ConfigError([Fault("", "name a policy file, such as conf/demo.yaml")])
        policy = reading.load(files, overrides=overrides or [], date=day, releasing=releasing)
        self.run_id = reading.check_run_id(policy.run_id(day) if self.asked is None else self.asked)
        return policy, policy.run.date or day

    def tell_in(self, place: ResultPlace | Vault) -> None:
        """Write from now on how the run stands to a place that was checked, if the place exists."""
        place.claim(make=False)
        self.status = place.status


@contextmanager
def attempted(run_id: str | None, log_format: LogFormat, *, told: Path | None = None) -> Iterator[Attempt]:
    """Run a command that starts Spark: whatever ends it, by a signal too, becomes a line, a status and an exit code."""
    from privrisk_spark.runs.progress import configure_logging

    configure_logging(log_format.value)
    attempt = Attempt(run_id, run_id or "")
    try:
        with _told_by_signals():
            _refuse_other_file(told)
            attempt.told = told
            yield attempt
        _tell(told, attempt, phase="ended", code=0, message="The command has ended without an error.")
    except typer.Exit:
        raise
    except (KeyboardInterrupt, _Stopped):
        _end(EngineError("stopped by a signal before the run ended."), attempt, log_format)
    except Exception as error:
        _end(_ours(error), attempt, log_format)


@dataclass(frozen=True)
class Job:
    """A job whose policy was read, and its business date."""

    attempt: Attempt
    policy: Policy
    date: dt.date

    @property
    def run(self) -> dict[str, Any]:
        """Run id and business date, as the Python interface takes them."""
        return {"run_id": self.attempt.run_id, "date": self.date}


@contextmanager
def start_job(common: CommonOptions, *, releasing: bool = False, told: Path | None = None) -> Iterator[Job]:
    """Read the policy of a job, with what a release needs if `releasing`, and end the job as :func:`attempted` does."""
    with attempted(common.run_id, common.log_format, told=told) as attempt:
        policy, day = attempt.policy(common.files, common.overrides, common.date, releasing=releasing)
        from privrisk_spark.engine.failures import named

        with named():
            yield Job(attempt, policy, day)


def _refuse_other_file(told: Path | None) -> None:
    """Refuse a status file that holds anything else than the status of an earlier run."""
    try:
        content = told.read_bytes() if told is not None and told.is_file() else b""
        status = json.loads(content or b'{"run_id": "", "code": 0}')
    except ValueError:
        status = None
    if not isinstance(status, dict) or not {"run_id", "code"} <= status.keys():
        rule = f"must be a new file, or the status of an earlier run. Got '{told}'. Fix: name another file"
        raise ConfigError([Fault("--status-file", rule)])


@contextmanager
def told_errors() -> Iterator[None]:
    """Run a command that needs no Spark; what another package says is not repeated, as it may quote a secret."""
    try:
        yield
    except typer.Exit:
        raise
    except Exception as error:
        ours = _ours(error)
        echo(_line(ours), err=True)
        raise typer.Exit(ours.exit_code) from None


def _ours(error: Exception) -> PrivriskError:
    if isinstance(error, PrivriskError):
        return error
    lacking = missing(error)
    if lacking is not None:
        return lacking
    if isinstance(error, OSError):
        found: PrivriskError = EngineError(f"The file system failed: {error.strerror or type(error).__name__}.")
    else:
        found = InternalError(f"{type(error).__name__} where none was expected.")
    found.__cause__ = error
    return found


class _Stopped(BaseException):
    """The process was asked to end."""


@contextmanager
def _told_by_signals() -> Iterator[None]:
    """Let SIGTERM end the block as an error does, so that what was begun is cleared away and the status says so."""

    def stop(*_: object) -> None:
        raise _Stopped

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread: whoever started it hears the signals
        yield
        return
    try:
        yield
    finally:
        # None is a handler that Python knows nothing of.
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def days_of(first: str | None, last: str | None, run_id: str | None) -> list[str | None]:
    """Return the days of a backfill, ascending; ``--date`` alone, as it was given, if ``--until`` was not.

    A day that fails ends the command: what comes after it may build on it.
    """
    if last is None:
        return [first]
    with told_errors():
        if first is None:
            raise ConfigError([Fault("--until", "needs --date, the first day")])
        if run_id is not None:
            raise ConfigError(
                [Fault("--run-id", "names one release, and --until makes one a day; leave one of them out")]
            )
        begin, end = day_of(first), day_of(last, "--until")
        if end < begin:
            raise ConfigError([Fault("--until", f"must not be before --date {begin}. Got {end}")])
        days = [begin + dt.timedelta(days=n) for n in range((end - begin).days + 1)]
    return [day.isoformat() for day in days]


def day_of(text: str | None, option: str = "--date") -> dt.date:
    """Return the day an option names, or today (UTC)."""
    if text is None:
        return dt.datetime.now(dt.UTC).date()
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise ConfigError([Fault(option, f"must be a date YYYY-MM-DD. Got {text!r}")]) from None


def _end(error: PrivriskError, attempt: Attempt, log_format: LogFormat) -> NoReturn:
    from privrisk_spark.reporting.guide import section_of
    from privrisk_spark.runs.progress import LOGGER

    of_engine = isinstance(error, EngineError | InternalError) and error.__cause__ is not None
    log = _kept_log(attempt) if of_engine else None
    if log is not None:
        error.args = (f"{error} What Spark said is in '{log}', which may quote rows: never publish it.",)
    section = section_of(error)
    remedy = error.remedy if section is None else f"{error.remedy} Read: privrisk guide {section}."
    if log_format is LogFormat.json:
        fields = {"run_id": attempt.run_id, "code": error.exit_code, "what_to_do": remedy}
        LOGGER.error("%s", f"{error}{_frames(error)}", extra={"fields": fields})
    else:
        echo(_line(error), err=True)
    # Where another run is at work, the status is its own; that of a published release stays, unless it is damaged.
    others = isinstance(error, BusyError | PlaceError) or (
        isinstance(error, ReleasedError | BudgetError | InputError) and _is_published(attempt)
    )
    places = [] if others else [attempt.status]
    for place in (*places, attempt.told):
        _tell(place, attempt, phase="failed", code=error.exit_code, message=str(error), remedy=remedy)
    raise typer.Exit(error.exit_code)


def _is_published(attempt: Attempt) -> bool:
    """Whether the status there tells that a run of this id has published its release."""
    from privrisk_spark.runs.progress import read_status

    try:
        known = {} if attempt.status is None else read_status(attempt.status, attempt.run_id)
    except (OSError, StorageError, InputError):
        return False
    return (known.get("run_id"), known.get("phase"), known.get("code")) == (attempt.run_id, "published", 0)


def _tell(
    place: Path | Location | None, attempt: Attempt, *, phase: str, code: int, message: str, remedy: str = ""
) -> None:
    """Write how a run ended, if there is where to; it does not end otherwise because that fails."""
    from privrisk_spark.runs.progress import LOGGER, status_of, write_status
    from privrisk_spark.storage.documents import write_json

    try:
        if place is not None and place is attempt.told:
            document = status_of(attempt.run_id, phase=phase, code=code, message=message, remedy=remedy)
            write_json(attempt.told, document)
        elif place is not None:
            write_status(place, attempt.run_id, phase=phase, code=code, message=message, remedy=remedy)
    except (OSError, StorageError, InputError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else fault
        named = "--status-file" if place is attempt.told else "status.json"
        LOGGER.warning("%s cannot be written (%s): it may say that the run goes on", named, why)


def _kept_log(attempt: Attempt) -> Path | Location | None:
    """Copy what a session of our own logged to where the run's status goes; it vanishes with the process else."""
    status = attempt.status
    if "pyspark" not in sys.modules or status is None or (isinstance(status, Path) and not is_marked(status)):
        return None
    from privrisk_spark.engine.session import own_log
    from privrisk_spark.runs.places import SPARK_LOG
    from privrisk_spark.storage.opening import open_store
    from privrisk_spark.storage.permissions import PRIVATE_FILE

    log = own_log()
    if log is None:
        return None
    try:
        if isinstance(status, Location):
            open_store(status).upload(f"{attempt.run_id}.{SPARK_LOG}", log)
            return status.below(f"{attempt.run_id}.{SPARK_LOG}")
        kept = Path(shutil.copy(log, status / SPARK_LOG))
        kept.chmod(PRIVATE_FILE)
    except (OSError, StorageError, InputError):
        return None
    return kept


def _line(error: PrivriskError) -> str:
    from privrisk_spark.reporting.guide import told

    return told(error) + _frames(error)


def _frames(error: PrivriskError) -> str:
    """Where a fault of ours came from, for who reports it; without the text of what was raised."""
    if not isinstance(error, InternalError) or error.__cause__ is None:
        return ""
    frames = traceback.extract_tb(error.__cause__.__traceback__)
    return " At " + ", ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
