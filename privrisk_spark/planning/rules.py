"""Rules that decide without a search, as the stages take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from privrisk_spark.policy.anonymity import KAnonymityGuarantee

if TYPE_CHECKING:
    from privrisk_spark.policy.schemes import FittedPartition, FittedScheme

CellScope = Literal["table", "attribute"]
"""One order over all cells of the table, or one for each attribute."""


@dataclass(frozen=True)
class LevelRule:
    """A listed rule.

    Attributes
    ----------
    levels : tuple of k int
        Of the quasi-identifiers in order; the height is ⊥.
    """

    name: str
    levels: tuple[int, ...]


@dataclass(frozen=True)
class BestListedRule:
    """The rule of a list that has the least mean risk of those useful enough.

    Attributes
    ----------
    utility_at_least : float
        Floor of the mean utility.
    """

    rules: tuple[LevelRule, ...]
    utility_at_least: float


@dataclass(frozen=True)
class LeastExposedOfRecord:
    """Of every record its least exposed cells.

    Attributes
    ----------
    cells : int
        Of each record.
    """

    cells: int


@dataclass(frozen=True)
class LeastExposedInOrder:
    """The first cells of an order by exposure.

    Attributes
    ----------
    cells : int
        Of each order.
    scope : {"table", "attribute"}
    """

    cells: int
    scope: CellScope


@dataclass(frozen=True)
class Recoding:
    """A recoding of the whole table, all released classes of which meet what is asked.

    Attributes
    ----------
    given : FittedScheme, FittedPartition or None
        What is applied; None: one is searched for.
    """

    asked: KAnonymityGuarantee
    given: FittedScheme | FittedPartition | None = None


Rule = BestListedRule | LeastExposedOfRecord | LeastExposedInOrder
