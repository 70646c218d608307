"""Values of CSV lines as Spark's parser reads them, for an engine whose own parser reads some lines in another way."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as pc

from privrisk_spark.engine.csv_tables import ended
from privrisk_spark.engine.object_files import csv_separator
from privrisk_spark.errors import SchemaError


@dataclass(frozen=True)
class CsvValues:
    """How lines are split into values.

    Attributes
    ----------
    options : mapping of str to str
        Reader options of the table, names in small letters.
    columns : int
        Values that a line should have.
    unclear : str or None
        Message if Spark reads the quotes of a line in a way of its own: a quote inside a quoted value, or a value whose
        quote does not end on its line. None takes such a line as a row of missing values, so that how a private run
        ends does not depend on it.
    """

    options: Mapping[str, str]
    columns: int
    unclear: str | None

    def split(self, lines: pa.Array) -> tuple[list[pa.Array], pa.Array]:
        """Return the values of each column, and the lines that have more or fewer values than columns (else null).

        A line with fewer values gets missing ones, and what is too much is dropped.

        Parameters
        ----------
        lines : pa.Array
            Of strings, without their ends.
        """
        separator, quote, _ = self._signs
        regular = compute.equal(compute.count_substring(lines, separator), self.columns - 1).to_numpy(False)
        quoted = np.flatnonzero(compute.match_substring(lines, quote).to_numpy(False))
        regular[quoted] = [self._regular.fullmatch(text) is not None for text in lines.take(quoted).to_pylist()]
        if regular.all():
            return self._by_arrow(lines), pa.nulls(len(lines), pa.string())
        irregular = np.flatnonzero(~regular)
        parsed, texts = self._by_arrow(lines.filter(pa.array(regular))), lines.take(irregular).to_pylist()
        rows = [self._one_by_one(text) for text in texts]
        others = [pa.array([row[i] for row, _ in rows], pa.string()) for i in range(self.columns)]
        # Back to the order of the lines: the regular ones come first.
        order = pa.array(np.argsort(np.concatenate([np.flatnonzero(regular), irregular])))
        columns = [pa.concat_arrays([one, other]).take(order) for one, other in zip(parsed, others, strict=True)]
        damaged = [None if whole else text for text, (_, whole) in zip(texts, rows, strict=True)]
        none = pa.nulls(len(lines) - len(texts), pa.string())
        return columns, pa.concat_arrays([none, pa.array(damaged, pa.string())]).take(order)

    @cached_property
    def _signs(self) -> tuple[str, str, str]:
        """Separator, quote and escape."""
        return csv_separator(self.options), self.options.get("quote", '"'), self.options.get("escape", "\\")

    @cached_property
    def _quoted(self) -> str:
        _, quote, escape = map(re.escape, self._signs)
        return (
            f"{quote}(?:[^{quote}]|{quote}{quote})*{quote}" if quote == escape else f"{quote}[^{quote}{escape}]*{quote}"
        )

    @cached_property
    def _regular(self) -> re.Pattern[str]:
        """Lines with quotes, as many values as columns, and no escape within quotes."""
        separator, quote, _ = map(re.escape, self._signs)
        value = f"(?:{self._quoted}|(?:[^{quote}{separator}][^{separator}]*)?)"
        return re.compile(f"{value}(?:{separator}{value}){{{self.columns - 1}}}", re.DOTALL)

    @cached_property
    def _value(self) -> re.Pattern[str]:
        """One value from a place of a line on."""
        separator, quote, escape = map(re.escape, self._signs)
        quoted = self._quoted if quote == escape else f"{quote}(?:[^{quote}{escape}]|{escape}.)*{quote}"
        return re.compile(f"(?:({quoted})|((?:[^{quote}{separator}][^{separator}]*)?))(?={separator}|\\Z)", re.DOTALL)

    def _by_arrow(self, lines: pa.Array) -> list[pa.Array]:
        names = [f"c{i}" for i in range(self.columns)]
        separator, quote, escape = self._signs
        if not len(lines):
            return [pa.array([], pa.string()) for _ in names]
        # A last column, so that a line of one empty value is no empty line.
        data = ended(lines, f"{separator}\n")
        table = pc.read_csv(
            io.BytesIO(data),
            pc.ReadOptions(column_names=[*names, "end"], use_threads=False, block_size=len(data) + 1),
            pc.ParseOptions(
                delimiter=separator, quote_char=quote, double_quote=quote == escape, newlines_in_values=False
            ),
            pc.ConvertOptions(
                include_columns=names, column_types=dict.fromkeys(names, pa.string()), null_values=[""],
                strings_can_be_null=True, quoted_strings_can_be_null=False,
            ),
        )  # fmt: skip
        return [self._as_spark(table.column(name).combine_chunks()) for name in names]

    def _as_spark(self, values: pa.ChunkedArray | pa.Array) -> pa.Array:
        """Take quoted values of no letters and those that stand for a missing one as Spark does."""
        array = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
        empty, missing = self.options.get("emptyvalue", ""), self.options.get("nullvalue", "")
        if empty:
            array = compute.if_else(compute.equal(array, ""), empty, array)
        return compute.if_else(compute.equal(array, missing), pa.scalar(None, pa.string()), array)

    def _one_by_one(self, text: str) -> tuple[list[str | None], bool]:
        """Return the values of a line, and whether it has as many as columns."""
        _, quote, escape = self._signs
        values: list[str | None] = []
        at = 0
        while True:
            found = self._value.match(text, at)
            if found is None:
                if self.unclear is not None:
                    raise SchemaError(self.unclear)
                return [None] * self.columns, False
            value = found[2] or None
            if found[1] is not None:
                inside = found[1][1:-1]
                value = re.sub(f"{re.escape(escape)}([{re.escape(quote)}{re.escape(escape)}])", r"\1", inside)
                value = value or self.options.get("emptyvalue", "")
            values.append(None if value == self.options.get("nullvalue", "") else value)
            at = found.end()
            if at == len(text):
                break
            at += 1
        whole = len(values) == self.columns
        return [*values[: self.columns], *[None] * (self.columns - len(values))], whole
