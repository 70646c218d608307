"""What the attacker may know: one dictionary, several, or an estimate of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, WrapValidator

from privrisk_spark.hierarchies.text import PathText
from privrisk_spark.hierarchies.yaml_texts import scalar_text
from privrisk_spark.policy.types import NUMBER, SORTED, Instant, Natural, Option, Part, Text, Year, unsaid
from privrisk_spark.policy.values import Reading
from privrisk_spark.storage.lakes.snapshot import Asked, Form, Snapshot

Consistency = Literal["subsumes", "compatible", "similar"]
Probability = Annotated[float, Field(ge=0, le=1), NUMBER]
DictionaryName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Its name in reports.")]
Similarity = Annotated[float, Field(gt=0, le=1), NUMBER]
Similar = Annotated[dict[str, Similarity], SORTED]
_CONSISTENCY = (
    "When a person of the dictionary fits a released record: subsumes (the released value is the known one or above "
    "it), compatible (either is the other or above it), similar (labels that resemble each other)."
)
_SIMILAR: Any = Field(
    default_factory=dict,
    description="Under consistency 'similar': quasi-identifier and least Jaro similarity of labels, such as "
    "{name: 0.8}; the others are 'compatible'.",
)


GIVEN = "a given frame"
"""Stands for the name of a table that is a frame of the caller's."""


class Table(Part):
    """Where a table is read: a path with a format, or a Spark catalog name."""

    path: PathText | None = Field(
        None, description="File or directory Spark can read; of iceberg also a metadata file (….metadata.json)."
    )
    catalog: Text | None = Field(
        None,
        description="Table name in the Spark catalog, instead of a path; with format iceberg catalog.namespace.table "
        "of pyiceberg's configuration.",
    )
    format: Text = Field(
        "parquet", description="delta, iceberg, or a Spark data source of the path: parquet, csv, orc, json, …"
    )
    options: Annotated[dict[str, Option], SORTED] = Field(
        default_factory=dict, description="Reader options of the path."
    )
    version: Natural | None = Field(
        None,
        description="Of format delta: the version to read; null: the newest, which is recorded.",
        exclude_if=unsaid,
    )
    snapshot: Natural | None = Field(
        None,
        description="Of format iceberg: the snapshot to read; null: the newest, which is recorded.",
        exclude_if=unsaid,
    )
    timestamp: Instant | None = Field(
        None,
        description="Of formats delta and iceberg: read what was the newest then, such as 2026-11-21T06:00:00Z.",
        exclude_if=unsaid,
    )

    _pinned: Snapshot | None = PrivateAttr(default=None)

    @property
    def lake(self) -> Form | None:
        """The format, if it keeps versions of the table that are read here."""
        found = self.format.lower()
        return "delta" if found == "delta" else "iceberg" if found == "iceberg" else None

    @property
    def place(self) -> str | None:
        """Where the whole table is, if a path says so: of a file of Iceberg's metadata the directory of the table."""
        path = self.path
        if path is not None and self.lake == "iceberg" and path.endswith(".metadata.json"):
            return path.rpartition("/")[0].removesuffix("metadata").rstrip("/") or "."
        return path

    @property
    def option_texts(self) -> dict[str, str]:
        """Reader options as they are written."""
        return {name: scalar_text(value) or "" for name, value in self.options.items()}

    @property
    def title(self) -> str:
        """The table as the policy names it, for reports."""
        return str(self.catalog) if self.path is None else getattr(self.path, "written", self.path)

    @property
    def pinned(self) -> Snapshot | None:
        """The version of a lake table that the run reads, once it is opened."""
        return self._pinned

    def asked(self, key: str) -> Asked | None:
        """Return which version of a lake table is asked for; None for any other table.

        Parameters
        ----------
        key : str
            Of the policy, for messages.
        """
        form = self.lake
        if form is None:
            return None
        return Asked(key, form, self.path, self.catalog, self.version, self.snapshot, self.timestamp)

    def at(self, snapshot: Snapshot | None) -> Self:
        """Return the table, of which it is known which version is read."""
        table = self.model_copy()
        table._pinned = snapshot
        return table


class DictionaryColumn(Part):
    """How a dictionary column maps to nodes of an attribute's hierarchy."""

    column: Text = Field(description="Name of the dictionary column.")
    level: Natural | None = Field(None, description="Values are labels of nodes at this level; null: leaves.")
    age_in: Year | None = Field(
        None, description="Values are ages in whole years in this year; the node is the birth year's."
    )
    mapping: PathText | None = Field(None, description="CSV file 'dictionary value;node label' applied first.")
    read: Reading | None = Field(
        None,
        description="How values are tidied when they are read, before all else, such as {trim: true}.",
        exclude_if=unsaid,
    )


def _column_or_mapping(value: object, _handler: Any) -> object:
    """Choose by form, so that a fault is reported once and at its own key."""
    if isinstance(value, str | DictionaryColumn):
        return value
    if isinstance(value, Mapping):
        return DictionaryColumn.model_validate(value)
    raise ValueError("must be the name of a dictionary column, or a mapping {column, level, age_in, mapping, read}")


DictionaryEntry = Annotated[str | DictionaryColumn, WrapValidator(_column_or_mapping)]


class SelfDictionary(Part):
    """The attacker knows the table itself: an upper bound of the risk."""

    kind: Literal["self"] = "self"
    consistency: Consistency = Field("subsumes", description=_CONSISTENCY)
    similar: Similar = _SIMILAR


class DictionaryTable(Table):
    """An external table an attacker may know."""

    columns: dict[str, DictionaryEntry] = Field(
        min_length=1, description="Quasi-identifier: dictionary column, or {column, level, age_in, mapping, read}."
    )
    weight: Text | None = Field(
        None, description="Column of whole numbers: how many people a row stands for; default 1."
    )
    entity_id: Text | None = Field(
        None, description="Column naming the person, if one person has several rows; persons are then counted."
    )


class TableDictionary(DictionaryTable):
    """The attacker knows one external table."""

    kind: Literal["table"]
    consistency: Consistency = Field("compatible", description=_CONSISTENCY)
    similar: Similar = _SIMILAR
    public: bool = Field(False, description="State that the table is public; needed by mode public-dictionary.")


class SelfMember(Part):
    """The table itself as one of several dictionaries."""

    kind: Literal["self"]
    name: DictionaryName
    prior: Probability | None = Field(None, description="Probability q(θ) that the attacker knows it; bayes only.")


class TableMember(DictionaryTable):
    """An external table as one of several dictionaries."""

    kind: Literal["table"]
    name: DictionaryName
    prior: Probability | None = Field(None, description="Probability q(θ) that the attacker knows it; bayes only.")


Member = Annotated[SelfMember | TableMember, Field(discriminator="kind")]


class SeveralDictionaries(Part):
    """The attacker knows one of several dictionaries: by prior probability (bayes), or whichever is worst (minimax)."""

    kind: Literal["bayes", "minimax"] = Field(
        description="bayes: risk is the mean over the members by their priors; minimax: the greatest of them."
    )
    consistency: Consistency = Field("compatible", description=_CONSISTENCY)
    similar: Similar = _SIMILAR
    members: list[Member] = Field(min_length=2, max_length=16, description="The dictionaries, each with a name.")


class SelfEstimate(Part):
    """The table itself as the estimate of what the attacker knows; its ids are ``table.record_id``."""

    kind: Literal["self"]


class TableEstimate(DictionaryTable):
    """An external table as the estimate of what the attacker knows."""

    kind: Literal["table"]
    id: Text = Field(description="Column that identifies a person, as in the true dictionary.")


class TrueDictionary(DictionaryTable):
    """A dictionary the estimate is held against: more rows, more general values."""

    id: Text = Field(description="Column that identifies a person, as in the estimate.")


class EstimatedDictionary(Part):
    """The attacker's dictionary is estimated by a more specific one, whose risk is an upper bound (Fouad 2012)."""

    kind: Literal["estimated"]
    consistency: Consistency = Field("compatible", description=_CONSISTENCY)
    similar: Similar = _SIMILAR
    estimate: Annotated[SelfEstimate | TableEstimate, Field(discriminator="kind")] = Field(
        description="The estimate that risk is computed from."
    )
    against: TrueDictionary | None = Field(
        None, description="If it can be had: the bound is checked by a join, and how tight it is is reported."
    )


Dictionary = Annotated[
    SelfDictionary | TableDictionary | SeveralDictionaries | EstimatedDictionary, Field(discriminator="kind")
]


@dataclass(frozen=True)
class OneDictionary:
    """One of the dictionaries an attacker may know.

    Attributes
    ----------
    table : DictionaryTable or None
        None is the table itself.
    key : str
        Where the policy holds it, for messages.
    prior : float
        Only bayes looks at it.
    """

    name: str
    table: DictionaryTable | None
    key: str
    prior: float = 1.0
