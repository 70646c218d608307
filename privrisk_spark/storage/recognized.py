"""What a table's files are, by their names and first bytes: nobody has said it yet."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.storage.locations import is_remote

__all__ = ["Recognized", "recognized"]

_FORMATS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".orc": "orc",
    ".json": "json", ".jsonl": "json", ".ndjson": "json", ".avro": "avro",
}  # fmt: skip
_MAGIC = {b"PAR1": "parquet", b"ORC": "orc"}
_SEPARATORS = (";", ",", "\t", "|")
_LOOKED_AT = 2**18
_ROWS = 200


@dataclass(frozen=True)
class Recognized:
    """What a table's files are.

    Attributes
    ----------
    format : str
        As ``table.format`` of a policy.
    options : dict
        As ``table.options``.
    """

    format: str
    options: dict[str, str | bool]


def recognized(path: str, *, format: str | None = None) -> Recognized:
    """Return what a table's files are.

    Of CSV the separator is the one by which the first rows have the most, and equally many, fields; the first row is a
    header unless it holds a number or an empty field.

    Parameters
    ----------
    path : str
        File or directory; of one in an object store only its name is looked at.
    format : str, optional
        Where the caller says it.

    Raises
    ------
    ConfigError
        If there is nothing there, or nothing tells what it is.
    """
    place = Path(path)
    remote = is_remote(path)
    if not remote and not place.exists():
        raise ConfigError(
            [Fault("TABLE", f"there is nothing at '{place.absolute()}'; name a file or a directory of files")]
        )
    example = None if remote else next(_files(place), None)
    found = format or _of_directory(place, remote) or _by_name(Path(path)) or _by_content(example)
    if found is None:
        rule = f"nothing says what format '{path}' has; give --format csv, parquet, orc, json, delta or iceberg"
        raise ConfigError([Fault("TABLE", rule)])
    if found != "csv":
        return Recognized(found, {})
    return Recognized("csv", {"header": True} if example is None else _of_csv(_beginning(example)))


def _files(place: Path) -> Iterator[Path]:
    """Files of a table, but those Spark leaves out."""
    if place.is_file():
        yield place
    elif place.is_dir():
        for file in sorted(place.rglob("*")):
            if file.is_file() and not any(part.startswith(("_", ".")) for part in file.relative_to(place).parts):
                yield file


def _of_directory(place: Path, remote: bool) -> str | None:
    if remote or not place.is_dir():
        return None
    if (place / "_delta_log").is_dir():
        return "delta"
    return "iceberg" if next(place.glob("metadata/*.metadata.json"), None) is not None else None


def _by_name(place: Path) -> str | None:
    return next((_FORMATS[suffix] for suffix in reversed(place.suffixes) if suffix.lower() in _FORMATS), None)


def _by_content(example: Path | None) -> str | None:
    if example is None:
        return None
    by_name = _by_name(example)
    if by_name is not None:
        return by_name
    with example.open("rb") as opened:
        begin = opened.read(4)
    return next((name for magic, name in _MAGIC.items() if begin.startswith(magic)), None)


def _beginning(file: Path) -> bytes:
    with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as opened:
        return opened.read(_LOOKED_AT)


def _of_csv(begin: bytes) -> dict[str, str | bool]:
    options: dict[str, str | bool] = {}
    # What is cut at the end may be half a character, and half a line.
    whole = begin.rpartition(b"\n")[0] if len(begin) == _LOOKED_AT else begin
    try:
        text = whole.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = whole.decode("latin-1")
        options["encoding"] = "ISO-8859-1"
    separator = max(_SEPARATORS, key=lambda sign: _fitness(text, sign))
    rows = list(_parsed(text, separator))
    if separator != ",":
        options["sep"] = separator
    if '""' in text:
        options["escape"] = '"'
    return options | {"header": _is_header(rows[0]) if rows else True}


def _parsed(text: str, separator: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    try:
        for _, row in zip(range(_ROWS), reader, strict=False):
            if row:
                yield row
    except csv.Error:
        return


def _fitness(text: str, separator: str) -> tuple[float, int]:
    """Share of the rows that have as many fields as the first, and how many these are."""
    rows = list(_parsed(text, separator))
    if not rows or len(rows[0]) < 2:
        return (0.0, 0)
    return (sum(len(row) == len(rows[0]) for row in rows) / len(rows), len(rows[0]))


def _is_header(row: Sequence[str]) -> bool:
    names = [cell.strip() for cell in row]
    return all(names) and len(set(names)) == len(names) and not any(_is_number(name) for name in names)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
