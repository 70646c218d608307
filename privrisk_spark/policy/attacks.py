"""What ``privrisk attack`` tries on a release: who attacks, with what knowledge, and how much may be found."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from privrisk_spark.policy.assessment import Masked, MaskedTable
from privrisk_spark.policy.types import NUMBER, SORTED, Count, Natural, NonNegative, Part, Text

Method = Literal["distance"]

CellReading = Literal["nearest", "uniform", "midpoint"]


class KnownTable(MaskedTable):
    """A table an intruder has: his people, and what he knows of them, in nodes of the hierarchies."""

    record_id: Text = Field(description="Column that holds the ids of table.record_id, which tell right links.")


ErrorRate = Annotated[float, Field(ge=0, le=1), NUMBER]


class Errors(Part):
    """Values an intruder lacks, or has wrong: each by itself, drawn by the ids of the records and the seed."""

    missing: ErrorRate = Field(0.0, description="Share of the values he does not have.")
    wrong: ErrorRate = Field(0.0, description="Share of the values in place of which he has another.")


class Intruder(Part):
    """Somebody who knows records of the table, as they are before it is protected, or a table of his own."""

    share: Annotated[float, Field(gt=0, le=1), NUMBER] = Field(
        1.0, description="Share of the records that are attacked, drawn by their ids and the seed."
    )
    seed: Natural = Field(1, description="Which records are drawn, where share is below 1, and which values are wrong.")
    columns: tuple[Text, ...] = Field((), description="Quasi-identifiers the intruder knows; default all.")
    levels: Annotated[dict[str, Natural], SORTED] = Field(
        default_factory=dict, description="Known column: the level of its hierarchy up to which he knows it; default 0."
    )
    errors: Errors = Field(Errors(), description="Values he lacks or has wrong, such as {missing: 0.1, wrong: 0.05}.")
    table: KnownTable | None = Field(
        None,
        description="His own table instead of the original one, such as {path: voters.csv, format: csv, record_id: "
        "id}; its columns may have other names, and hold values or labels of the hierarchies.",
    )


class AttackPolicy(Part):
    """Attacks by record linkage: people are linked to the nearest protected rows, and rows to the nearest people."""

    protected: Masked = Field(
        "published",
        description="The protected table: 'published' is the newest release at output.path, whose vault tells which "
        "row is whose; or {path: …, record_id: …} of any software's.",
    )
    intruder: Intruder = Intruder()
    methods: tuple[Method, ...] = Field(
        ("distance",), min_length=1, description="What is tried: 'distance', the nearest candidates."
    )
    weights: Annotated[dict[str, NonNegative], SORTED] = Field(
        default_factory=dict, description="Weight of each known column in the distance; default 1."
    )
    numbers: tuple[Text, ...] = Field(
        (), description="Known columns compared as numbers or days, in standard deviations, instead of by levels."
    )
    texts: tuple[Text, ...] = Field(
        (), description="Known columns compared as texts, by their Jaro-Winkler similarity, instead of by levels."
    )
    cells: tuple[CellReading, ...] = Field(
        ("nearest", "uniform"),
        min_length=1,
        description="What a generalized cell is taken for, each tried: the value it covers that is 'nearest', a "
        "'uniform' draw of them, or, where all known columns are numbers, its 'midpoint'.",
    )
    exact_pairs: Count = Field(
        10**10, description="Comparisons of cells that an attack may take; it is exact, or it is refused."
    )
    correct_links_at_most: Annotated[float, Field(ge=0, le=1), NUMBER] | None = Field(
        None,
        description="Greatest share of the records that may be found; its upper 95 % limit is held against it, and "
        "exit code 1 says it is exceeded.",
    )

    @property
    def tried(self) -> tuple[Method, ...]:
        """Methods that are tried."""
        return self.methods
