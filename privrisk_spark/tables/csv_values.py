"""Values of whole CSV records: Arrow parses the regular ones, the others are parsed one by one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from privrisk_spark.errors import SchemaError
from privrisk_spark.kernels.numeric.csv_records import Records, find_records
from privrisk_spark.policy.csv_dialect import CsvDialect

__all__ = ["LONGEST_LINE", "CsvParser", "find_csv_records"]

LONGEST_LINE: Final = 2**20
"""Bytes of a line of a CSV file that is read under dp; one that is as long or longer is no row."""

_LOST: Final = "\ufffd".encode()
"""The replacement character, which decoding writes for bytes that are not valid text."""


@dataclass(frozen=True)
class CsvParser:
    """How a block of whole records becomes columns.

    Attributes
    ----------
    where : str
        The table, for messages.
    """

    dialect: CsvDialect
    where: str
    columns: int
    private: bool

    def parse(self, data: bytes) -> list[pa.Array]:
        """Return the values of each column."""
        records = find_csv_records(data, self.dialect)
        chosen = np.ones(len(records.starts), dtype=np.bool_)
        if self.private:
            chosen = records.ends - records.starts < LONGEST_LINE
        regular = records.regular & (records.values == self.columns)
        if records.alone and regular.all() and chosen.all():
            return self._parse_by_arrow(data)
        good, others = np.flatnonzero(chosen & regular), np.flatnonzero(chosen & ~regular)
        lines = [data[records.starts[i] : records.ends[i]] for i in good]
        parsed = self._parse_by_arrow(b"".join([line + b"\n" for line in lines]))
        rows = [self.parse_one(data[records.starts[i] : records.ends[i]].decode()) for i in others]
        malformed = np.array([row is None or len(row) != self.columns for row in rows], dtype=np.bool_)
        if self.dialect.mode == "FAILFAST" and malformed.any():
            raise SchemaError(
                f"{self.where}: a line is malformed, and options.mode is FAILFAST. Fix the line or the mode."
            )
        kept = np.flatnonzero(~malformed) if self.dialect.mode == "DROPMALFORMED" else np.arange(len(rows))
        filled = [self._fill(rows[i]) for i in kept]
        # Back to the order of the lines: the regular ones come first.
        order = pa.array(np.argsort(np.concatenate([good, others[kept]])))
        return [
            pa.concat_arrays([column, pa.array([row[i] for row in filled], pa.string())]).take(order)
            for i, column in enumerate(parsed)
        ]

    def count_damage(self, data: bytes) -> list[int]:
        """Return the counts of :class:`CsvDamage` for a block."""
        records = find_csv_records(data, self.dialect)
        values = np.where(records.regular, records.values, 0)
        for i in np.flatnonzero(~records.regular):
            row = self.parse_one(data[records.starts[i] : records.ends[i]].decode())
            values[i] = -1 if row is None else len(row)
        garbled = 0
        if _LOST in data:
            lost = np.array([found.start() for found in re.finditer(_LOST, data)])
            record = np.searchsorted(records.ends, lost)
            there = record < len(records.ends)
            garbled = len(np.unique(record[there][records.starts[record[there]] <= lost[there]]))
        wrong = values != self.columns
        return [
            len(values),
            *(int(n) for n in (wrong.sum(), (values == self.columns + 1).sum(), (values < 0).sum())),
            garbled,
        ]

    def _parse_by_arrow(self, data: bytes) -> list[pa.Array]:
        names = [f"c{i}" for i in range(self.columns)]
        if not data.strip(b"\r\n"):
            return [pa.array([], pa.string()) for _ in names]
        table = pyarrow.csv.read_csv(
            # Without an end of the last line Arrow takes a missing value there for an empty text.
            pa.BufferReader(data if data.endswith((b"\n", b"\r")) else data + b"\n"),
            pyarrow.csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 2),
            pyarrow.csv.ParseOptions(
                delimiter=self.dialect.sep, quote_char=self.dialect.quote or False, double_quote=True,
                newlines_in_values=self.dialect.multi_line,
            ),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )  # fmt: skip
        return [self._replace_words(table.column(name).combine_chunks()) for name in names]

    def _replace_words(self, values: pa.ChunkedArray | pa.Array) -> pa.Array:
        """Replace empty texts, and the text that means a missing value."""
        array = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
        if self.dialect.empty_value:
            array = pc.if_else(pc.equal(array, ""), self.dialect.empty_value, array)
        return pc.if_else(pc.equal(array, self.dialect.null_value), pa.scalar(None, pa.string()), array)

    @cached_property
    def _value(self) -> re.Pattern[str]:
        """One value from a place of a record on: quoted, or up to the separator."""
        separator, quote = re.escape(self.dialect.sep), re.escape(self.dialect.quote)
        escape = self.dialect.escape_sign
        if not quote:
            return re.compile(rf"(?:(?!)()|([^{separator}\r\n]*))(?={separator}|\Z)")
        inside = f"[^{quote}]|{quote}{quote}"
        if escape is not None:
            inside = f"[^{quote}{re.escape(escape)}]|{re.escape(escape)}."
        unquoted = rf"(?:[^{quote}{separator}\r\n][^{separator}\r\n]*)?"
        return re.compile(rf"(?:({quote}(?:{inside})*{quote})|({unquoted}))(?={separator}|\Z)", re.DOTALL)

    def parse_one(self, text: str) -> list[str | None] | None:
        """Return the values of a record; None if its quotes are not clear."""
        quote = self.dialect.quote
        before = re.escape(self.dialect.escape_sign or quote)
        values: list[str | None] = []
        at = 0
        while True:
            found = self._value.match(text, at)
            if found is None:
                return None
            value = found[2] or None
            if found[1] is not None:
                inside = found[1][1:-1]
                value = re.sub(f"{before}([{re.escape(quote)}{before}])", r"\1", inside)
                value = value or self.dialect.empty_value
            values.append(None if value == self.dialect.null_value else value)
            at = found.end()
            if at == len(text):
                return values
            at += 1

    def _fill(self, row: list[str | None] | None) -> list[str | None]:
        """Return as many values as columns."""
        given = row or []
        return [*given[: self.columns], *[None] * (self.columns - len(given))]


def find_csv_records(data: bytes, dialect: CsvDialect) -> Records:
    """Find the records of a block that begins with one."""
    comment, escape = dialect.comment, dialect.escape_sign
    return find_records(
        data,
        ord(dialect.sep),
        ord(dialect.quote) if dialect.quote else None,
        escape=ord(escape) if escape else None,
        comment=ord(comment) if comment else None,
        multi_line=dialect.multi_line,
    )
