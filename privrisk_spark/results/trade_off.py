"""What a release gives up of utility for what it takes off the risk, beside other recodings; exact, for the vault."""

from __future__ import annotations

from dataclasses import dataclass

from privrisk_spark.kernels.search.trade_off import AtFloor, Fits


@dataclass(frozen=True)
class RecodingPoint:
    """Mean risk and utility of the sampled records at one level vector.

    Attributes
    ----------
    levels : tuple of k int
    """

    levels: tuple[int, ...]
    risk: float
    utility: float


@dataclass(frozen=True)
class AnonymousPoint:
    """The full-domain recoding of most utility for one k.

    Attributes
    ----------
    levels : tuple of k int
    risk, utility : float
        Suppressed records are counted as such.
    suppressed : int
        Sampled records in classes of fewer than k.
    """

    k: int
    levels: tuple[int, ...]
    risk: float
    utility: float
    suppressed: int


@dataclass(frozen=True)
class PartPoint:
    """How probably a sampled record is found by an attacker with part of the dictionary, on average.

    Attributes
    ----------
    share : float
        Of the dictionary, in (0, 1].
    before, after : float
        Of the records as they are, and as they are released.
    """

    share: float
    before: float
    after: float


@dataclass(frozen=True)
class TradeOffFacts:
    """The risk-utility map of a table, from a sample of its records.

    Attributes
    ----------
    records : int
        Of the sample.
    nodes, of_nodes : int
        Level vectors that were evaluated, and those of the whole lattice.
    kept : tuple of k tuples of int
        Levels of each attribute whose combinations were evaluated.
    own : bool
        Whether the dictionary is the table itself: points of k are k-anonymous then, else of k-map.
    recodings : tuple of RecodingPoint
        All of the frontier; of the others one for each place of a drawing.
    frontier : tuple of int
        Positions in ``recodings``, by increasing risk.
    floors : tuple of AtFloor
        Ascending.
    anonymous : tuple of AnonymousPoint
        Ascending; a k that no recoding reaches is left out.
    suppressed_at_most : float
        Largest share of the sample that points of k suppress.
    risk, utility : float
        Means of this release over the same records, suppressed ones counted as such.
    fits_before, fits_after : Fits
        Of the records as they are, and as they are released.
    parts : tuple of PartPoint
        By falling share of the dictionary.
    """

    records: int
    nodes: int
    of_nodes: int
    kept: tuple[tuple[int, ...], ...]
    own: bool
    recodings: tuple[RecodingPoint, ...]
    frontier: tuple[int, ...]
    floors: tuple[AtFloor, ...]
    anonymous: tuple[AnonymousPoint, ...]
    suppressed_at_most: float
    risk: float
    utility: float
    fits_before: Fits
    fits_after: Fits
    parts: tuple[PartPoint, ...]


@dataclass(frozen=True)
class RowPair:
    """A row of the table and what is released of it; None is a missing value.

    Attributes
    ----------
    before, after : tuple of k str or None
        Labels of the quasi-identifiers; ``after`` is empty where the row is not released.
    risk_before, risk_after : float or None
        None of a fictitious row.
    """

    before: tuple[str | None, ...]
    after: tuple[str | None, ...]
    risk_before: float | None = None
    risk_after: float | None = None


@dataclass(frozen=True)
class RiskyClass:
    """A released class with the greatest risk of its records.

    Attributes
    ----------
    labels : tuple of k str or None
    consistent : int
        Dictionary rows that fit it; the fewest where records or dictionaries differ.
    """

    labels: tuple[str | None, ...]
    risk: float
    consistent: int


@dataclass(frozen=True)
class Evidence:
    """What a report shows of single records and of other recodings; exact, for the vault.

    Attributes
    ----------
    pairs : tuple of RowPair
        Some rows of the table, before and after.
    riskiest : tuple of RiskyClass
        By falling risk.
    trade_off : TradeOffFacts or None
        None where it is not evaluated.
    """

    pairs: tuple[RowPair, ...] = ()
    riskiest: tuple[RiskyClass, ...] = ()
    trade_off: TradeOffFacts | None = None

    json_keys = ("trade_off",)

    @property
    def fictitious(self) -> bool:
        """Whether nothing of it comes from records."""
        real = any(pair.risk_before is not None or pair.risk_after is not None for pair in self.pairs)
        return not (real or self.riskiest or self.trade_off)
