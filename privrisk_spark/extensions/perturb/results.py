"""What masking did to a table: each column before and after, exact, for the vault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FEW_CHANGED: Final = 0.05
"""Share of changed values below which a mask is warned of."""


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of a column.

    Attributes
    ----------
    values : int
        Records that have one.
    mean, deviation : float
        Of a population: divided by the number of values.
    """

    values: int
    mean: float
    deviation: float


@dataclass(frozen=True)
class MaskedColumn:
    """A masked column, before and after.

    Attributes
    ----------
    missing_before, missing_after : int
        Records without a value.
    changed : int
        Records whose value is another.
    before, after : Moments or None
        None of categories.
    il1s : float or None
        Mean of ``|x - x'| / (√2 sd)`` over the records that have both values (T20).
    disclosed_by_rank, disclosed_by_deviation : float or None
        Shares of the records whose value is in the interval around the masked one, of ``percent`` of the ranks or of
        the standard deviation.
    """

    name: str
    method: str
    missing_before: int
    missing_after: int
    changed: int
    before: Moments | None = None
    after: Moments | None = None
    il1s: float | None = None
    disclosed_by_rank: float | None = None
    disclosed_by_deviation: float | None = None


@dataclass(frozen=True)
class BlockLoss:
    """What blocks lose against grouping all records at once, on a sample.

    Attributes
    ----------
    label : str
        Of the columns.
    sampled : int
        Records.
    exact, blocks : float
        Share of the sum of squares that is lost, by MDAV over the sample and by MDAV in four blocks of it.
    """

    label: str
    sampled: int
    exact: float
    blocks: float


@dataclass(frozen=True)
class MaskingFacts:
    """A masked release.

    Attributes
    ----------
    numbers : tuple of str
        Masked columns of numbers.
    correlations_before, correlations_after : tuple of tuple of float
        Between them, over the records that have all of them.
    suppressed : int
        Values that are missing as too few records have the same columns missing.
    clipped : int
        Values that left the range of their type, and are its end.
    percent : float
        Of the intervals.
    """

    rows: int
    columns: tuple[MaskedColumn, ...]
    numbers: tuple[str, ...]
    correlations_before: tuple[tuple[float, ...], ...]
    correlations_after: tuple[tuple[float, ...], ...]
    losses: tuple[BlockLoss, ...] = ()
    suppressed: int = 0
    clipped: int = 0
    percent: float = 10.0

    json_keys = (
        "rows", "columns", "numbers", "correlations_before", "correlations_after", "losses", "suppressed",
        "clipped", "percent", "il1s", "changed",
    )  # fmt: skip

    @property
    def changed(self) -> dict[str, float]:
        """Share of the values of each masked column that masking changed; columns without a value are left out."""
        values = {column: self.rows - column.missing_before for column in self.columns}
        return {column.name: column.changed / known for column, known in values.items() if known}

    @property
    def il1s(self) -> float | None:
        """Mean of IL1s over the columns of numbers; None without such."""
        found = [column.il1s for column in self.columns if column.il1s is not None]
        return sum(found) / len(found) if found else None
