"""What a table's files are, by their names and first rows, before a policy describes them. Status: *heuristic*."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.planning.first_policy.tidying import MISSING_WORDS
from privrisk_spark.storage.directories import is_there
from privrisk_spark.storage.locations import is_remote, locate
from privrisk_spark.storage.opening import open_store
from privrisk_spark.storage.table_files import LineFile, LocalFile, files_below, files_of

__all__ = ["Recognized", "recognize_table"]

_FORMATS = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".orc": "orc",
    ".json": "json", ".jsonl": "json", ".ndjson": "json", ".avro": "avro",
}  # fmt: skip
_FOREIGN = {
    ".xlsx": "Excel", ".xls": "Excel", ".xlsm": "Excel", ".ods": "LibreOffice", ".sav": "SPSS", ".dta": "Stata",
    ".sas7bdat": "SAS", ".rds": "R", ".rdata": "R", ".feather": "Arrow", ".arrow": "Arrow", ".zip": "an archiver",
}  # fmt: skip
"""Files of programs that must write another format."""
_MAGIC = {b"PAR1": "parquet", b"ORC": "orc"}
_SEPARATORS = (";", ",", "\t", "|")
_LOOKED_AT = 2**18
_ROWS = 1000
_DECODED = 2**30
"""Bytes of a file whose encoding is tried."""

_NUMBER = re.compile(
    r"[+-]?(?:[0-9][0-9.,']*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?%?|[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}.*"
)
"""Numbers of any country, and dates."""

Option = str | int | bool


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
    options: dict[str, Option]


def recognize_table(path: str, *, format: str | None = None, options: Mapping[str, Option] | None = None) -> Recognized:
    """Return what a table's files are.

    The separator of CSV is the one by which most rows have the same number of fields. The first row is a header if no
    column of numbers or dates begins with one, and no column of repeated texts with one of them.

    Parameters
    ----------
    path : str
        File or directory, also in an object store.
    format : str, optional
        If the caller knows it.
    options : mapping, optional
        If the caller knows them.

    Raises
    ------
    ConfigError
        If nothing exists there, if no name and no first bytes show a format that is read, if the first row of CSV may
        be a header or a record, or if it has one field less than the others.
    """
    place, given = Path(path), dict(options or {})
    remote = is_remote(path)
    if not remote and not is_there(place):
        raise _error(f"'{place.expanduser().absolute()}' does not exist. Fix: name a file or a directory of files")
    example = next(_find_files(path), None)
    if remote and example is None:
        raise _error(f"'{path}' has no files. Fix: name a file or a directory of files")
    foreign = _FOREIGN.get(place.suffix.lower())
    if foreign is not None and format is None:
        raise _error(f"'{place.name}' is a file of {foreign}, which is not read. Fix: write CSV in UTF-8, or Parquet")
    found = format or _of_directory(path) or _by_name(Path(path)) or _by_content(example)
    if found is None:
        rule = f"no name and no first bytes show the format of '{path}'. Fix: give --format csv, parquet, orc, json, "
        raise _error(f"{rule}delta or iceberg")
    if found != "csv":
        return Recognized(found, given)
    recognized: dict[str, Option] = {"header": True} if example is None else _recognize_csv(example, given)
    return Recognized("csv", recognized | given)


def _error(rule: str) -> ConfigError:
    return ConfigError([Fault("TABLE", rule)])


def _find_files(path: str) -> Iterator[LineFile]:
    """Files of a table, but those Spark leaves out."""
    if is_remote(path):
        yield from files_below(locate(path, key="TABLE"))
    else:
        for file in files_of(Path(path)):
            yield LocalFile(path, str(file), file.name, 0)


def _of_directory(path: str) -> str | None:
    """Return delta or iceberg if a directory has their logs, which are no data files."""
    store = open_store(locate(path, key="TABLE"))
    if next(store.entries("_delta_log"), None) is not None:
        return "delta"
    return "iceberg" if any(one.name.endswith(".metadata.json") for one in store.entries("metadata")) else None


def _by_name(place: Path) -> str | None:
    return next((_FORMATS[suffix] for suffix in reversed(place.suffixes) if suffix.lower() in _FORMATS), None)


def _by_content(example: LineFile | None) -> str | None:
    if example is None:
        return None
    by_name = _by_name(Path(example.name))
    if by_name is not None:
        return by_name
    with example.content() as opened:
        begin = opened.read(4)
    return next((name for magic, name in _MAGIC.items() if begin.startswith(magic)), None)


# ----------------------------------------------------------------------------------------------------------- CSV


def _recognize_csv(file: LineFile, given: Mapping[str, Option]) -> dict[str, Option]:
    found: dict[str, Option] = {}
    with file.content() as opened:
        encoding = str(given.get("encoding") or _find_encoding(opened))
    if encoding != "UTF-8":
        found["encoding"] = encoding
    with file.content() as opened, io.TextIOWrapper(opened, encoding, errors="replace", newline="") as decoded:
        text = decoded.read(_LOOKED_AT)
    text = text.removeprefix("\ufeff")
    if len(text) == _LOOKED_AT:  # the last line may be cut
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
    declared = re.match(r"sep=(.)(?:\r\n|\r|\n)", text)  # Excel's own first line
    text = text[declared.end() :] if declared else text
    known = str(given.get("sep") or given.get("delimiter") or (declared[1] if declared else ""))
    quoting = _find_quoting(text, known)
    if quoting["delimiter"] != ",":
        found["sep"] = quoting["delimiter"]
    if "escapechar" in quoting:
        found["escape"] = "\\"
    rows = _parse(text, quoting)
    if any("\n" in cell or "\r" in cell for _, row in rows for cell in row):
        by_line = [len(row) for line in text.splitlines() for _, row in _parse(line, quoting)]
        if _agreement([len(row) for _, row in rows]) >= _agreement(by_line):
            found["multiLine"] = True
        else:
            rows = [(place, row) for place, line in enumerate(text.splitlines()) for _, row in _parse(line, quoting)]
    if declared:
        rows = [(place + 1, row) for place, row in rows]
    return found | _find_first_row(rows, given, quoting["delimiter"], above=int(declared is not None))


def _find_first_row(
    rows: Sequence[tuple[int, list[str]]], given: Mapping[str, Option], separator: str, *, above: int
) -> dict[str, Option]:
    """Find the lines above the header, and whether there is one."""
    found: dict[str, Option] = {"skipRows": above} if above else {}
    if rows and "skipRows" not in given:
        # Spreadsheets write as many separators above the header as below it.
        filled = [max((i for i, cell in enumerate(row, 1) if cell.strip()), default=0) for _, row in rows]
        width = Counter(len(row) for _, row in rows).most_common(1)[0][0]
        first = next(i for i, (_, row) in enumerate(rows) if len(row) == width)
        if first == 1 and len(rows[0][1]) == width - 1 and all(rows[0][1]) and (width > 2 or separator == " "):
            raise _error(
                "the header has one name less than the rows have values, as write.table of R writes row names. Fix: "
                "write the table with row.names = FALSE or col.names = NA, or without a separator at the end of rows"
            )
        usual = Counter(filled).most_common(1)[0][0]
        while first + 1 < len(rows) and filled[first] < min(usual, 2):
            first += 1
        if first:
            found["skipRows"], rows = rows[first][0], rows[first:]
    if "header" in given:
        return found
    if rows and rows[0][1][0].startswith("#") and "comment" not in given:
        raise _error(
            "the first line begins with '#'. Fix: give --option comment=# if it is a comment, or --option header=true "
            "if it has the names of the columns"
        )
    header = _is_header([row for _, row in rows])
    if header is None:
        raise _error("the first row may be a header or a record. Fix: give --option header=true or header=false")
    return found | {"header": header}


def _find_encoding(opened: IO[bytes]) -> str:
    """Find the encoding: UTF-16 by its mark or its zeros, else UTF-8 if it is, else a Western one."""
    data = opened.read(2**20)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    zeros = data.count(b"\0")
    if zeros > len(data) // 4:
        return "UTF-16LE" if data[1::2].count(b"\0") > zeros / 2 else "UTF-16BE"
    decoder, seen, utf8, control = codecs.getincrementaldecoder("utf-8")(), 0, True, False
    while data and seen < _DECODED:
        if utf8:
            try:
                decoder.decode(data)
            except UnicodeDecodeError:
                utf8 = False
        control = control or any(0x80 <= byte <= 0x9F for byte in set(data))
        if not utf8 and control:
            break
        seen += len(data)
        data = opened.read(2**20)
    return "UTF-8" if utf8 else "windows-1252" if control else "ISO-8859-1"


def _find_quoting(text: str, separator: str) -> dict[str, Any]:
    """Find the separator, unless it is given, and whether a backslash stands before quotes within quotes."""
    separator = "\t" if separator == r"\t" else separator
    escaped = {"escapechar": "\\", "doublequote": False}
    ways: list[dict[str, Any]] = [{}, escaped] if '\\"' in text else [{}]

    def find_best(separators: Sequence[str]) -> dict[str, Any]:
        return max(
            ({"delimiter": sign, **way} for sign in separators for way in ways), key=lambda one: _fitness(text, one)
        )

    found = find_best((separator,) if separator else _SEPARATORS)
    if separator or _fitness(text, found)[1]:
        return found
    found = find_best((" ",))  # as write.table of R separates, which quotes texts
    return found if '"' in text and _fitness(text, found)[0] == 1 else {"delimiter": ","}


def _parse(text: str, quoting: Mapping[str, Any]) -> list[tuple[int, list[str]]]:
    """Rows that are not blank, each with the number of lines above it."""
    reader = csv.reader(io.StringIO(text, newline=""), **quoting)
    found, above = [], 0
    try:
        for row in reader:
            if any(cell.strip() for cell in row) or len(row) > 1:
                found.append((above, row))
            above = reader.line_num
            if len(found) == _ROWS:
                break
    except csv.Error:
        pass
    return found


def _fitness(text: str, quoting: Mapping[str, Any]) -> tuple[float, int]:
    """Share of the rows that have as many fields as most rows have, and how many these are."""
    widths = [len(row) for _, row in _parse(text, quoting)]
    width = Counter(widths).most_common(1)[0][0] if widths else 0
    if width < 2:
        return (0.0, 0)
    # The header of write.table has one field less.
    as_r = quoting["delimiter"] in " \t" and widths[0] == width - 1 and set(widths[1:]) == {width}
    return (1.0 if as_r else _agreement(widths), width)


def _agreement(widths: Sequence[int]) -> float:
    return max(Counter(widths).values()) / len(widths) if widths else 0.0


def _is_header(rows: Sequence[Sequence[str]]) -> bool | None:
    """Return whether the first row names the columns; None if that is not sure.

    In a column of numbers or dates a name is no number. In a column whose texts repeat, a name is none of them.
    """
    if not rows:
        return True
    head, body = [cell.strip() for cell in rows[0]], rows[1:]
    if not body:
        return None if any(map(_is_number, head)) else True
    names = values = numbers = 0
    for place, name in enumerate(head):
        cells = [row[place].strip() for row in body if place < len(row)]
        cells = [cell for cell in cells if cell and cell.upper() not in MISSING_WORDS]
        if not name or name.upper() in MISSING_WORDS or not cells:
            continue
        if sum(map(_is_number, cells)) >= 0.9 * len(cells):
            names += not _is_number(name)
            numbers += _is_number(name)
        elif len(set(cells)) <= len(cells) / 2 or name in cells:
            names += name not in cells
            values += name in cells
    unnamed = sum(not name for name in head[1:])
    if names and not values and not numbers and not unnamed:
        return True
    counts = [int(name) for name in head if name.isdigit()]
    steps = {b - a for a, b in pairwise(counts)}
    may_be_names = len(steps) == 1 and min(steps) > 0  # such as years
    again = not numbers and rows[0] in body  # as in two files that were joined
    if (values or numbers) and not names and head[0] and not may_be_names and not again:
        return False
    return None


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None
