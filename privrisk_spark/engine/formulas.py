"""Texts a spreadsheet would run as a formula when it opens a CSV file, and the quote that keeps it from that."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

# Spreadsheets also run texts that begin with the full-width forms.
_MARKS = r"[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]"
# A text that has such quotes before a formula gets one more, so that taking one away gives every text back.
_RUN = rf"^'*{_MARKS}"
_QUOTED = rf"^'+{_MARKS}"


def quoted_names(names: Sequence[str]) -> list[str]:
    """Put a quote before every name of a column that a spreadsheet would run, for the first line of a file."""
    return [f"'{name}" if re.match(_RUN, name) else name for name in names]


def with_quoted_formulas(frame: DataFrame) -> DataFrame:
    """Put a quote before every text that begins with ``=``, ``+``, ``-``, ``@``, a tab or the end of a line."""
    return _with_texts(frame, lambda text: F.when(text.rlike(_RUN), F.concat(F.lit("'"), text)).otherwise(text))


def without_quoted_formulas(frame: DataFrame) -> DataFrame:
    """Take the quotes away that :func:`with_quoted_formulas` and :func:`quoted_names` put."""
    names = [name[1:] if re.match(_QUOTED, name) else name for name in frame.columns]
    texts = _with_texts(
        frame, lambda text: F.when(text.rlike(_QUOTED), F.substring(text, 2, 2**31 - 1)).otherwise(text)
    )
    return texts.toDF(*names)


def _with_texts(frame: DataFrame, change: Callable[[Column], Column]) -> DataFrame:
    columns = []
    for field in frame.schema.fields:
        quoted = field.name.replace("`", "``")
        value = F.col(f"`{quoted}`")
        columns.append(change(value).alias(field.name) if isinstance(field.dataType, T.StringType) else value)
    return frame.select(*columns)
