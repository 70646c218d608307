"""Texts a spreadsheet would run as a formula when it opens a CSV file, and the quote that keeps it from that."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

# A text that has such quotes before a formula gets one more, so that taking one away gives every text back.
_RUN = r"^'*[=+\-@\t\r]"
_QUOTED = r"^'+[=+\-@\t\r]"


def with_quoted_formulas(frame: DataFrame) -> DataFrame:
    """Put a quote before every text that begins with ``=``, ``+``, ``-``, ``@``, tab or return."""
    return _with_texts(frame, lambda text: F.when(text.rlike(_RUN), F.concat(F.lit("'"), text)).otherwise(text))


def without_quoted_formulas(frame: DataFrame) -> DataFrame:
    """Take the quotes away that :func:`with_quoted_formulas` put."""
    return _with_texts(frame, lambda text: F.when(text.rlike(_QUOTED), F.substring(text, 2, 2**31 - 1)).otherwise(text))


def _with_texts(frame: DataFrame, change: Callable[[Column], Column]) -> DataFrame:
    columns = []
    for field in frame.schema.fields:
        quoted = field.name.replace("`", "``")
        value = F.col(f"`{quoted}`")
        columns.append(change(value).alias(field.name) if isinstance(field.dataType, T.StringType) else value)
    return frame.select(*columns)
