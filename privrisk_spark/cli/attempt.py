"""How a command ends: an error becomes a line, a status and an exit code."""

from __future__ import annotations

import datetime as dt
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from privrisk_spark.cli.options import LogFormat
from privrisk_spark.errors import BusyError, ConfigError, EngineError, Fault, InternalError, PrivriskError
from privrisk_spark.reporting.guide import section_of, told

if TYPE_CHECKING:
    from privrisk_spark.policy.policy import Policy


@dataclass
class Attempt:
    """What is known of a run when it fails: its id, and where its status goes."""

    run_id: str
    status: Path | None = None

    def policy(
        self,
        files: Sequence[Path],
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
        self.run_id = reading.check_run_id(self.run_id or policy.run_id(day))
        return policy, policy.run.date or day


@contextmanager
def attempted(run_id: str | None, log_format: LogFormat) -> Iterator[Attempt]:
    """Run a command that starts Spark."""
    from privrisk_spark.runs.progress import configure_logging, write_status

    configure_logging(log_format.value)
    attempt = Attempt(run_id or "")
    try:
        yield attempt
    except PrivriskError as error:
        _end(error, attempt.status, attempt.run_id, write_status)


@contextmanager
def told_errors() -> Iterator[None]:
    """Run a command that only raises errors of ours."""
    try:
        yield
    except PrivriskError as error:
        typer.echo(told(error), err=True)
        raise typer.Exit(error.exit_code) from None


@contextmanager
def ended() -> Iterator[None]:
    """Run a command that uses a database, whose errors may quote its URL: their text is not repeated."""
    with told_errors():
        try:
            yield
        except PrivriskError:
            raise
        except OSError as error:
            raise EngineError(f"The file system failed: {error.strerror or type(error).__name__}.") from None
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(where.filename).name}:{where.lineno}"
            raise InternalError(f"{type(error).__name__} at {place} where none was expected.") from None


def day_of(text: str | None) -> dt.date:
    """Return ``--date``, or today (UTC)."""
    if text is None:
        return dt.datetime.now(dt.UTC).date()
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise ConfigError([Fault("--date", f"must be a date YYYY-MM-DD. Got {text!r}")]) from None


def _end(error: PrivriskError, vault: Path | None, run_id: str, write_status: Callable[..., None]) -> None:
    typer.echo(told(error), err=True)
    if vault is not None and not isinstance(error, BusyError):
        section = section_of(error)
        remedy = error.remedy if section is None else f"{error.remedy} Read: privrisk guide {section}."
        write_status(vault, run_id, phase="failed", code=error.exit_code, message=str(error), remedy=remedy)
    if isinstance(error, InternalError) and error.__cause__ is not None:
        trace = error.__cause__.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            typer.echo(f"  at {Path(code.co_filename).name}:{trace.tb_lineno} {code.co_name}", err=True)
            trace = trace.tb_next
    raise typer.Exit(error.exit_code)
