"""Columns of a table as numbers, and masked numbers as values of the type they had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine.fingerprints import one_chunk
from privrisk_spark.errors import Fault, SchemaError
from privrisk_spark.extensions.perturb.planning import MaskPlan
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.policy.masking import NUMERIC, Pram, TopBottom

LARGEST = 2.0**53
"""Whole numbers beyond it are no doubles."""

DIGITS = 15
"""Decimals of more are no doubles."""

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # of the years 1 and 9999

_WHOLE: dict[type[T.DataType], tuple[float, float]] = {
    T.ByteType: (-(2.0**7), 2.0**7 - 1),
    T.ShortType: (-(2.0**15), 2.0**15 - 1),
    T.IntegerType: (-(2.0**31), 2.0**31 - 1),
    T.LongType: (-LARGEST, LARGEST),
    T.DateType: (_FIRST_DAY, _LAST_DAY),
}
"""Types of whole numbers and days, with the range masked ones are kept in."""

_CATEGORIES = (T.StringType, T.BooleanType, T.NumericType, T.DateType)


def check_types(plan: MaskPlan, table: T.StructType) -> None:
    """Refuse columns that cannot be masked as the policy says.

    Parameters
    ----------
    table : StructType
        Of the table.

    Raises
    ------
    SchemaError
        Naming every such column.
    """
    faults = list(_unfit(plan, {field.name: field.dataType for field in table.fields}))
    if faults:
        raise SchemaError(faults)


def _unfit(plan: MaskPlan, kinds: Mapping[str, T.DataType]) -> Iterator[Fault]:
    for name, mask in plan.masks.items():
        kind = kinds[name]
        if isinstance(mask, NUMERIC) and not is_numeric(kind):
            rule = f"'{mask.method}' is for numbers and days, and the column holds {kind.simpleString()}"
            yield Fault(f"columns.{name}.mask", f"{rule}{_way(name, kind)}")
        if isinstance(mask, TopBottom) and mask.quantiles is None and isinstance(kind, T.DateType):
            yield Fault(f"columns.{name}.mask", "low and high are numbers, and the column holds days; give quantiles")
        if isinstance(mask, Pram) and not isinstance(kind, _CATEGORIES):
            rule = f"'pram' is for texts, numbers, days, true and false, and the column holds {kind.simpleString()}"
            yield Fault(f"columns.{name}.mask", f"{rule}{_way(name, kind)}")
    for one in plan.arranged:
        for name in one.known:
            if not is_numeric(kinds[name]):
                held = kinds[name].simpleString()
                rule = f"'{name}' must hold numbers or days, and it holds {held}{_way(name, kinds[name])}"
                yield Fault(f"columns.{one.columns[0]}.mask.known", rule)


def _way(name: str, kind: T.DataType) -> str:
    if isinstance(kind, T.StringType):
        return f"; set columns.{name}.read: {{cast: number}} (or integer, or date), or choose 'pram' for categories"
    if isinstance(kind, T.TimestampType | T.TimestampNTZType):
        return f"; set columns.{name}.read: {{cast: date}} to take its days"
    if isinstance(kind, T.DecimalType):
        return f", of more than {DIGITS} digits; set columns.{name}.read: {{cast: number}}"
    return ""


def is_numeric(kind: T.DataType) -> bool:
    """Whether values of a type are numbers or days that a double holds."""
    if isinstance(kind, T.DecimalType):
        return bool(kind.precision <= DIGITS)
    return type(kind) in _WHOLE or isinstance(kind, T.FloatType | T.DoubleType)


def doubles_of(values: pa.ChunkedArray) -> tuple[FloatArray, int]:
    """Return the numbers of a column, and how many of them are none that can be masked.

    Returns
    -------
    ndarray of float64, shape (n,)
        NaN where missing; days since 1970 of dates.
    int
        Values that are infinite, or whole and beyond 2^53.
    """
    array = one_chunk(values)
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    beyond = 0
    if pa.types.is_int64(array.type):
        beyond = pc.sum(pc.or_(pc.greater(array, int(LARGEST)), pc.less(array, -int(LARGEST)))).as_py() or 0
    numbers = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers + 0.0, beyond + int(np.count_nonzero(np.isinf(numbers)))


def values_of(numbers: FloatArray, kind: T.DataType, like: pa.DataType) -> tuple[pa.Array, int]:
    """Return masked numbers as values of a type, and how many of them left its range.

    Parameters
    ----------
    numbers : ndarray of float64, shape (n,)
        NaN where missing.
    kind : DataType
        Of the column in Spark.
    like : pa.DataType
        The same in Arrow.

    Returns
    -------
    pa.Array
        Whole numbers and days are rounded to the nearest, halves to the even one, and decimals to their places.
    int
    """
    missing = np.isnan(numbers)
    known = np.where(missing, 0.0, numbers)
    clipped = 0
    if type(kind) in _WHOLE:
        low, high = _WHOLE[type(kind)]
        whole = np.rint(known)
        clipped = int(np.count_nonzero((whole < low) | (whole > high)))
        whole = np.clip(whole, low, high)
        if pa.types.is_date32(like):
            return pa.array(whole.astype(np.int32), mask=missing).cast(like), clipped
        return pa.array(whole.astype(np.int64), mask=missing).cast(like), clipped
    if isinstance(kind, T.DecimalType):
        unit = 10.0**kind.scale
        most = (10.0**kind.precision - 1) / unit
        clipped = int(np.count_nonzero(np.abs(known) > most))
        known = np.rint(np.clip(known, -most, most) * unit) / unit
        return pa.array(known, mask=missing).cast(like), clipped
    return pa.array(known, mask=missing).cast(like, safe=False), clipped
