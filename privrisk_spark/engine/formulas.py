"""Texts a spreadsheet would run as a formula when it opens a CSV file, and the quote that keeps it from that."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

# Spreadsheets also run texts that begin with the full-width forms.
_MARKS = "[=+\\-@\\t\\r\\n\uff1d\uff0b\uff0d\uff20]"
# A text that has such quotes before a formula gets one more, so that taking one away gives every text back.
_RUN = rf"^'*{_MARKS}"
_QUOTED = rf"^'+{_MARKS}"


def quoted_names(names: Sequence[str]) -> list[str]:
    """Put a quote before every name of a column that a spreadsheet would run, for the first line of a file."""
    return [f"'{name}" if re.match(_RUN, name) else name for name in names]


def with_quoted_formulas(texts: pa.Array) -> pa.Array:
    """Put a quote before every text that begins with ``=``, ``+``, ``-``, ``@``, a tab or the end of a line."""
    return pc.if_else(pc.match_substring_regex(texts, _RUN), pc.binary_join_element_wise("'", texts, ""), texts)


def without_quoted_formulas(frame: DataFrame) -> DataFrame:
    """Take the quotes away that :func:`with_quoted_formulas` and :func:`quoted_names` put."""
    names = [name[1:] if re.match(_QUOTED, name) else name for name in frame.columns]
    columns = []
    for field in frame.schema.fields:
        escaped = field.name.replace("`", "``")
        value = F.col(f"`{escaped}`")
        if isinstance(field.dataType, T.StringType):
            bare = F.substring(value, 2, 2**31 - 1)
            value = F.when(value.rlike(_QUOTED), bare).otherwise(value).alias(field.name)
        columns.append(value)
    return frame.select(*columns).toDF(*names)
