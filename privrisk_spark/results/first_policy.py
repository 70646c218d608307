"""What is proposed for a table without a policy: guesses with their reasons, and what floors would give."""

from __future__ import annotations

from dataclasses import dataclass

from privrisk_spark.claims import Status
from privrisk_spark.json_values import JsonDocument
from privrisk_spark.results.page import html_table
from privrisk_spark.results.profile import TableProfile


@dataclass(frozen=True)
class ColumnGuess:
    """What is proposed for a column.

    Attributes
    ----------
    column, role, concept : str
        The concept is what the column is about, such as ``birth_date``.
    confidence : float
        In (0, 1); an order of how much speaks for it, no probability.
    decide : bool
        Whether the column is undecided: you must confirm it before a release, because it may be an id.
    check : bool
        Whether the proposal is unsure, but a release accepts it.
    hierarchy : str or None
        Of a quasi-identifier: dates, mask, intervals, order, groups or flat.
    levels : int
        Steps from its values to ``*``; 0 where there is no hierarchy.
    weight : float
        Utility of one step, in bits; 0 where there is no hierarchy.
    """

    column: str
    role: str
    concept: str
    confidence: float
    reason: str
    decide: bool
    check: bool
    hierarchy: str | None = None
    levels: int = 0
    weight: float = 0.0


@dataclass(frozen=True)
class FloorFigures:
    """What a least utility would give, on the sample.

    Attributes
    ----------
    share, floor : float
        Of the greatest utility, and in bits.
    mean_risk, greatest_risk : float
        Probability that a row is identified, 1 over the rows it fits.
    few_alike : float
        Share of the rows that fit fewer rows than asked.
    kept : float
        Mean utility over the greatest.
    suppressed_rows : float
        Share of the rows that cannot reach it and are suppressed whole.
    suppressed : dict of column to float
        Share of the rows in which the column is suppressed, though it is there.
    """

    share: float
    floor: float
    mean_risk: float
    greatest_risk: float
    few_alike: float
    kept: float
    suppressed_rows: float
    suppressed: dict[str, float]


@dataclass(frozen=True)
class FloorTable(JsonDocument):
    """Three floors, and why one of them is proposed.

    Attributes
    ----------
    greatest : float
        Utility of a row that loses nothing, in bits.
    rows, decided, table_rows : int
        Of the sample, those of it that were decided, and of the table.
    alike : int
        Rows that nearly all are to fit.
    before : float
        Mean risk of the sample as it is.
    figures : tuple of FloorFigures
        Ascending; the chosen one among them.
    reason : str
        Why it is proposed; a sentence.
    """

    greatest: float
    rows: int
    decided: int
    table_rows: int
    alike: int
    before: float
    chosen: FloorFigures
    figures: tuple[FloorFigures, ...]
    reason: str

    json_keys = (
        "greatest_utility_bits:greatest", "sampled_rows:rows", "decided_rows:decided", "rows:table_rows",
        "mean_risk_before:before", "floors:figures", "proposed:chosen.floor", "reason", "status",
    )  # fmt: skip

    @property
    def status(self) -> Status:
        """``tested`` if all rows of the table were decided, else ``heuristic``."""
        return "tested" if self.decided == self.table_rows else "heuristic"

    @property
    def basis(self) -> str:
        """What the figures are of, a sentence."""
        if self.decided == self.table_rows:
            return f"Figures of all {self.rows:,} rows, decided by the search of a release."
        if self.rows == self.table_rows:
            return f"Figures of {self.decided:,} of the {self.rows:,} rows, decided by the search of a release."
        return (
            f"Figures of {self.decided:,} rows, decided by the search of a release against a sample of {self.rows:,} "
            f"of the {self.table_rows:,} rows. In the whole table every row has more to hide among: its risk is lower."
        )

    def _repr_html_(self) -> str:
        rows = [
            (f"{100 * one.share:.0f} %", one.floor, one.mean_risk, one.greatest_risk, one.few_alike, one.kept)
            for one in self.figures
        ]
        head = ("floor", "bits", "mean risk", "greatest risk", f"rows that fit fewer than {self.alike}", "kept")
        return html_table("What floors would give", head, rows, notes=[self.reason, self.basis])


@dataclass(frozen=True)
class FirstPolicy:
    """A policy that is proposed for a table, and why.

    Attributes
    ----------
    title : str
        Name of the table.
    columns : tuple of ColumnGuess
        In the order of the table.
    ids : str
        Why; a sentence.
    floors : FloorTable or None
        None where there is no quasi-identifier.
    version : str
        Of this package.
    """

    title: str
    profile: TableProfile
    columns: tuple[ColumnGuess, ...]
    record_id: str | None
    entity_id: str | None
    ids: str
    floors: FloorTable | None
    version: str

    @property
    def to_decide(self) -> tuple[str, ...]:
        """Columns that are undecided."""
        return tuple(one.column for one in self.columns if one.decide)

    def _repr_html_(self) -> str:
        rows = [
            (
                one.column,
                one.role,
                one.hierarchy or "",
                "DECIDE" if one.decide else "CHECK" if one.check else "",
                one.reason,
            )
            for one in self.columns
        ]
        head = ("column", "role", "hierarchy", "", "why")
        table = html_table(f"Proposed policy of {self.title}", head, rows, notes=[self.ids])
        return table + ("" if self.floors is None else self.floors._repr_html_())
