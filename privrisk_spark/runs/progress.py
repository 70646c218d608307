"""Stages of a run: one log line each, one record each, and ``status.json`` for schedulers that lose exit codes."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from privrisk_spark.claims import Status
from privrisk_spark.errors import printable
from privrisk_spark.results.release import StageRecord
from privrisk_spark.runs.verbosity import ASKED
from privrisk_spark.storage.documents import read, write_json
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.opening import open_store
from privrisk_spark.storage.ownership import is_marked

if TYPE_CHECKING:
    from privrisk_spark.runs.terminal import Tasks

LOGGER = logging.getLogger("privrisk_spark")


class _JsonLines(logging.Formatter):
    """One JSON object a line: time, level, message and the stage's fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        document = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        return printable(json.dumps(document, ensure_ascii=False))


class _TextLines(logging.Formatter):
    """A record as text, in which no name of a column steers the terminal."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        return printable(super().format(record))


def configure_logging(form: Literal["text", "json"]) -> None:
    """Send the package's log lines to standard error; warnings alone, and no progress, if quiet was asked for."""
    from privrisk_spark.runs.terminal import log_handler

    handler = log_handler(progress=not ASKED.quiet) if form == "text" else logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if form == "json" else _TextLines())
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(logging.WARNING if ASKED.quiet else logging.INFO)
    LOGGER.propagate = False


def warn_of_one_row(rows: int) -> None:
    """Warn of a table of one row, whose record has nobody to hide among; never under differential privacy.

    Parameters
    ----------
    rows : int
        Of the table.
    """
    if rows == 1:
        LOGGER.warning(
            "table: it has one row, so that its record can be taken for no other; if there should be more, check "
            "table.path and table.options (sep, header)"
        )


@dataclass
class Stage:
    """What a stage says about itself while it runs; set by the pipeline."""

    sentence: str = ""
    parameters: dict[str, object] = field(default_factory=dict)
    status: Status | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Timing:
    """When a stage ran, and how it ended.

    Attributes
    ----------
    number, stages : int
        Which of how many.
    started : float
        Seconds since 1970.
    rows : int or None
        Of the table, if the stage has counted them and the guarantee allows to keep them.
    ended : str
        ``done``, or the name of the error's class.
    """

    stage: str
    number: int
    stages: int
    started: float
    seconds: float
    rows: int | None
    ended: str


def _unlabelled(_text: str) -> AbstractContextManager[None]:
    return nullcontext()


class Progress:
    """Stages of one run in order.

    Parameters
    ----------
    place : Path or Location
        Where the run says how it stands; see :func:`write_status`.
    total : int
        Number of stages, for "stage x of y".
    labelled : callable, optional
        Gives what is done within a block a name, where somebody watches, and may tell who enters it what counts the
        tasks that have ended.
    """

    def __init__(
        self,
        place: Path | Location,
        run_id: str,
        total: int,
        labelled: Callable[[str], AbstractContextManager[Callable[[], Tasks | None] | None]] = _unlabelled,
    ) -> None:
        self.place, self.run_id, self.total, self.labelled = place, run_id, total, labelled
        self.records: list[StageRecord] = []
        self.timings: list[Timing] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Run one stage; its record is kept when it ends without an error."""
        from privrisk_spark.runs.terminal import shown

        number = len(self.records) + 1
        place = f"stage {number} of {self.total}"
        LOGGER.info("%s: %s", place, name, extra={"fields": {"run_id": self.run_id, "stage": name, "number": number}})
        write_status(self.place, self.run_id, phase=name, code=None, message=f"{place} is running")
        stage = Stage()
        begun, started, ended = time.time(), time.monotonic(), "done"
        try:
            with (
                self.labelled(f"privrisk {self.run_id}: {place}, {name}") as tasks,
                shown(f"{place}, {name}", tasks, self.rows),
            ):
                yield stage
        except BaseException as error:
            ended = type(error).__name__
            raise
        finally:
            seconds = time.monotonic() - started
            self.timings.append(Timing(name, number, self.total, begun, round(seconds, 3), stage.rows, ended))
        self.records.append(StageRecord(name, stage.sentence, stage.parameters, stage.status, round(seconds, 3)))
        LOGGER.info(
            "%s: %s done in %.1f s. %s",
            place,
            name,
            seconds,
            stage.sentence,
            extra={"fields": {"run_id": self.run_id, "stage": name, "seconds": round(seconds, 3), **_rows(stage)}},
        )

    @property
    def rows(self) -> int | None:
        """Rows of the table, if a stage until now has said so."""
        return next((timing.rows for timing in reversed(self.timings) if timing.rows is not None), None)

    @property
    def seconds(self) -> Mapping[str, float | None]:
        """Seconds of each stage so far."""
        return {record.name: record.seconds for record in self.records}


def _rows(stage: Stage) -> dict[str, int]:
    return {} if stage.rows is None else {"rows": stage.rows}


def write_status(
    place: Path | Location, run_id: str, *, phase: str, code: int | None, message: str, remedy: str = ""
) -> None:
    """Write how a run stands, as :func:`status_of` says it.

    Parameters
    ----------
    place : Path or Location
        A directory, whose ``status.json`` is replaced if the directory is marked as ours; or a place in a store, which
        gets a file of the run's own.
    run_id, phase, code, message, remedy
        As :func:`status_of` has them.
    """
    document = status_of(run_id, phase=phase, code=code, message=message, remedy=remedy)
    if isinstance(place, Location):
        open_store(place).write(f"{run_id}.json", json.dumps(document, indent=2, ensure_ascii=False).encode())
    elif is_marked(place):
        write_json(place / "status.json", document)


def read_status(place: Path | Location, run_id: str) -> dict[str, Any]:
    """Return what :func:`write_status` wrote last; empty if there is nothing, or it is not whole.

    Parameters
    ----------
    run_id : str
        In a directory the status may be that of another run.
    """
    if isinstance(place, Location):
        try:
            content: bytes | None = open_store(place).read(f"{run_id}.json").content
        except FileNotFoundError:
            content = None
    else:
        content = read(place / "status.json")
    with suppress(ValueError):
        found = json.loads(content or b"{}")
        return found if isinstance(found, dict) else {}
    return {}


def status_of(run_id: str, *, phase: str, code: int | None, message: str, remedy: str = "") -> dict[str, object]:
    """Return how a run stands, as JSON.

    Parameters
    ----------
    code : int or None
        Exit code; None while it runs.
    message, remedy : str
        What happened, and what to do.
    """
    return {"run_id": run_id, "phase": phase, "code": code, "message": message, "what_to_do": remedy}
