"""The policy as frozen objects: what each key may hold, and its default.

`reading` reads and layers what a person writes; `rules` holds what takes several keys of different parts together.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, PrivateAttr, Tag, model_validator

from privrisk_spark.hierarchies.builders import HierarchySpec
from privrisk_spark.hierarchies.text import PathText
from privrisk_spark.policy.assessment import AssessPolicy
from privrisk_spark.policy.checks import Checks
from privrisk_spark.policy.contents import contents_of
from privrisk_spark.policy.decisions import DecisionPolicy
from privrisk_spark.policy.dictionaries import (
    Dictionary,
    EstimatedDictionary,
    OneDictionary,
    SelfDictionary,
    SeveralDictionaries,
    Table,
    TableDictionary,
    TableEstimate,
    TableMember,
)
from privrisk_spark.policy.guarantees import Guarantee, RiskGuarantee
from privrisk_spark.policy.masking import Mask, Masked
from privrisk_spark.policy.run import Run
from privrisk_spark.policy.secrets import FromEnvironment, without_secrets
from privrisk_spark.policy.sections import Section, SectionOf
from privrisk_spark.policy.sensitivity import LinearSensitivity, Sensitivity
from privrisk_spark.policy.types import (
    NUMBER,
    SORTED,
    Count,
    Delta,
    LedgerUrl,
    NonNegative,
    NullPolicy,
    Part,
    PositiveExact,
    Text,
    Weight,
    unsaid,
)
from privrisk_spark.policy.values import Reading, Recoding
from privrisk_spark.storage.lakes.snapshot import Form


class ReleaseTable(Table):
    """The table to release."""

    record_id: Text | None = Field(
        None, description="Column that identifies a record; null derives one from content and ordinal."
    )
    entity_id: Text | None = Field(
        None,
        description="Column naming the person, if one person has several rows; frequencies count distinct persons, and "
        "under dp one row of each is drawn.",
    )
    weight: Text | None = Field(
        None, description="Column of sampling weights; classes are reported with rows and weighted population."
    )


Read = Annotated[
    Reading | None,
    Field(description="How values are tidied when they are read, such as {trim: true, cast: date}.", exclude_if=unsaid),
]
Recoded = Annotated[
    Recoding | None,
    Field(
        description="How numbers are made coarser before they are released, such as {round: 100}.", exclude_if=unsaid
    ),
]


def _hierarchy_or_mask(schema: dict[str, Any]) -> None:
    """Say in a JSON Schema that a column with a mask needs no hierarchy."""
    schema["required"] = [key for key in schema["required"] if key != "hierarchy"]
    schema["anyOf"] = [{"required": ["hierarchy"]}, {"required": ["mask"]}]


class QuasiIdentifier(Part):
    """A column an attacker may know; it is generalized, or masked."""

    model_config = ConfigDict(json_schema_extra=_hierarchy_or_mask)

    role: Literal["quasi-identifier"]
    hierarchy: HierarchySpec = Field(
        description="How values are generalized, such as {file: age.csv}; where there is a mask, none is needed."
    )
    mask: Masked = None
    nulls: NullPolicy = Field(
        "suppress",
        description="A missing value is: 'suppress' ⊥ from the start, 'own-value' a value like any other, 'wildcard' ⊥ "
        "that is consistent with every value, 'forbid' an error.",
    )
    unknown: Literal["error", "suppress"] | None = Field(
        None, description="A value outside the hierarchy is an error (default) or ⊥ (default under dp)."
    )
    no_id: bool = Field(False, description="You state that no value names an individual.", exclude_if=unsaid)
    read: Read = None

    @model_validator(mode="before")
    @classmethod
    def flat_where_masked(cls, value: Any) -> Any:
        """Let a column with a mask do without a hierarchy: what looks at its values takes each for itself then."""
        if isinstance(value, Mapping) and value.get("mask") is not None and value.get("hierarchy") is None:
            return {**value, "hierarchy": {"flat": {}}}
        return value


class Sensitive(Part):
    """A column worth protecting; released as it is, or as ``release`` says, or dropped."""

    role: Literal["sensitive"]
    action: Literal["keep", "drop"] = Field("keep", description="keep: released as it is; drop: not released.")
    release: Recoded = None
    mask: Masked = None
    read: Read = None


class Insensitive(Part):
    """A column no attacker knows and nobody minds; released as it is, or as ``release`` says, or dropped."""

    role: Literal["insensitive"]
    action: Literal["keep", "drop"] = Field("keep", description="keep: released as it is; drop: not released.")
    release: Recoded = None
    mask: Masked = None
    read: Read = None


class Identifier(Part):
    """A direct identifier; never released."""

    role: Literal["identifier"]
    action: Literal["drop"] = "drop"
    read: Read = None


class WeightColumn(Part):
    """A column that holds personal or sampling weights; released only with ``release: true``."""

    role: Literal["weight"]
    release: bool = Field(False, description="Whether it is released as it is.", exclude_if=unsaid)
    read: Read = None


Column = Annotated[QuasiIdentifier | Sensitive | Insensitive | Identifier | WeightColumn, Field(discriminator="role")]


class RiskPolicy(Part):
    """Identification risk of a record."""

    model: Literal["I", "II", "III"] = Field(
        "I", description="Risk where rho of N people fit a record: Phi/rho (I), 1/rho (II), Phi log(N/rho) (III)."
    )
    sensitivity: Sensitivity = Field(
        LinearSensitivity(), description="Phi: how much harm it does if a record's disclosed values are known."
    )


class UtilityPolicy(Part):
    """Utility of a disclosed record."""

    measure: Literal["depth", "leaves", "log-leaves", "xiao-tao", "lm"] = Field(
        "depth", description="What a value is worth: steps of generalization not taken (depth), or by leaves below it."
    )
    weights: Annotated[dict[str, NonNegative], SORTED] = Field(
        default_factory=dict, description="Weight per quasi-identifier (default 1)."
    )


class Counting(Part):
    """Physical plan of counting."""

    plan: Literal["auto", "dense", "sorted", "shuffle", "iceberg"] = Field(
        "auto", description="How consistent persons are counted; auto takes the cheapest plan that fits."
    )
    dense_cells: Count = Field(2**27, description="Cells the dense plan may hold.")
    sorted_vectors: Count = Field(20_000_000, description="Distinct vectors the sorted plan may hold.")


class LinkedColumn(Part):
    """An attribute a linked row adds to a disclosed record."""

    column: Text = Field(description="Column of the linkage table.")
    hierarchy: HierarchySpec = Field(description="Where its values stand, such as {flat: {}}.")
    dictionary: Text | None = Field(None, description="Column of the dictionary that knows it; null: none does.")
    weight: Weight = Field(1.0, description="Sensitivity weight of its leaves.")


class LinkagePolicy(Table):
    """Rows an attacker may link to a released record, with their probabilities (Fouad 2012, §2.7)."""

    record_id: Text = Field(description="Column with the record's id.")
    linked_id: Text | None = Field(
        None,
        description="Column naming the linked row, so that a pair given twice is an error; null: rows have no name.",
    )
    probability: Text = Field(description="Column with p(z | record); what is left of 1 is no link.")
    columns: dict[str, LinkedColumn] = Field(min_length=1, description="Added attributes by name.")


class LakeOutput(Part):
    """A lake table that holds the newest release, or that of each date."""

    format: Form = Field(description="Format of the table.")
    path: PathText | None = Field(
        None,
        description="Of format delta: directory of the table, or its URI in HDFS or an object store, outside "
        "output.path; the first release makes it.",
        exclude_if=unsaid,
    )
    catalog: Text | None = Field(
        None,
        description="Of format iceberg: catalog.namespace.table, the catalog being one of pyiceberg's configuration; "
        "the first release makes the table.",
        exclude_if=unsaid,
    )
    date_column: Text | None = Field(
        None,
        description="Column for the business date, such as release_date: the table is partitioned by it, and a release "
        "replaces the rows of its own date only.",
        exclude_if=unsaid,
    )


class Output(Part):
    """Where the release and what must not be published go."""

    path: PathText = Field(
        description="Directory of the published releases, or its URI in HDFS or an object store, such as "
        "s3://bucket/releases."
    )
    vault: PathText = Field(
        description="Directory of what must not be published, outside output.path; also in HDFS or an object store, "
        "such as s3://bucket/vault."
    )
    format: Literal["parquet", "csv"] = Field("parquet", description="Format of the data files.")
    files: Annotated[int, Field(gt=0, le=10_000), NUMBER] | None = Field(
        None, description="Data files; default one per million rows."
    )
    quote_formulas: bool = Field(
        False,
        description="In CSV, put ' before texts and column names that a spreadsheet would run: those that begin with "
        "= + - @ (also full-width), a tab or the end of a line.",
        exclude_if=unsaid,
    )
    partition_by: tuple[Text, ...] = Field(
        (),
        description="Released columns whose values are the names of directories instead of standing in the files, such "
        "as [region, year].",
        exclude_if=unsaid,
    )
    catalog: Text | None = Field(
        None,
        description="Table of Spark's catalog that holds the newest release, such as main.health.visits_public; the "
        "first release makes it.",
        exclude_if=unsaid,
    )
    lake: LakeOutput | None = Field(
        None,
        description="A table to which each release is committed besides, such as {format: delta, path: lake/census}.",
        exclude_if=unsaid,
    )

    @property
    def published(self) -> dict[str, str]:
        """Places of what is published, by their keys, as far as the policy tells them."""
        lake = None if self.lake is None else self.lake.path
        return {"output.path": self.path, **({} if lake is None else {"output.lake.path": lake})}


class Cap(Part):
    """Budget of a lineage."""

    epsilon: PositiveExact = Field(description="Most all releases of the lineage may cost together.")
    delta: Delta = Field(description="Most delta all releases of the lineage may cost together.")


Accounting = Literal["basic", "pld"]
"""What a cap binds on: the sums of what was claimed, or their tight composition."""


class LedgerPolicy(Part):
    """Privacy-budget ledger: releases of the kind dp are charged to it, others are noted in it without a charge."""

    url: LedgerUrl = Field(
        description="sqlite:///vault/ledger.db, or postgresql+psycopg://role@host/database, or env:NAME of a variable."
    )
    lineage: str = Field(
        min_length=1, max_length=200, description="Name all releases of one table share, in upper or lower case."
    )
    cap: Cap = Field(description="Budget of the lineage, such as {epsilon: 4, delta: 1e-7}.")
    accounting: Accounting = Field(
        "basic",
        description="What the cap binds on: 'basic' the sums of all releases (proved), 'pld' their tight composition "
        "by privacy-loss distributions at the cap's delta (tested: proved up to floating point, for parameters that do "
        "not depend on earlier releases).",
        exclude_if=lambda accounting: accounting == "basic",
    )


class Lineage(Part):
    """All releases of one name that a policy's vault remembers."""

    lineage: Text = Field(description="run.name of the releases, such as visits.")


def _kind_of_history(value: object) -> str:
    return "lineage" if isinstance(value, Mapping | Lineage) else "releases"


History = Annotated[
    Annotated[list[PathText], Tag("releases")] | Annotated[Lineage, Tag("lineage")], Discriminator(_kind_of_history)
]
"""Which earlier releases a policy composes with."""


class Policy(Part):
    """A whole policy."""

    version: Annotated[Literal[1], NUMBER] = Field(description="Version of the policy format: 1.")
    run: Run = Field(description="Name of the run, such as {name: census}.")
    table: ReleaseTable = Field(description="Table to release, such as {path: data/census.csv, format: csv}.")
    columns: dict[str, Column] = Field(min_length=1, description="A role for every column of the table.")
    undecided: tuple[Text, ...] = Field((), description="Columns you must confirm before a release.", exclude_if=unsaid)
    dictionary: Dictionary = Field(SelfDictionary(), description="What the attacker knows.")
    risk: RiskPolicy = Field(RiskPolicy(), description="How risk is measured.")
    utility: UtilityPolicy = Field(UtilityPolicy(), description="How utility is measured.")
    decision: DecisionPolicy | None = Field(
        None, description="What is decided for each record; not of a recoding, a masked or a private release."
    )
    guarantee: Guarantee = Field(RiskGuarantee(), description="What is promised of the release.")
    counting: Counting = Field(Counting(), description="How consistent persons are counted.")
    history: History | None = Field(
        None,
        description="Earlier releases of the same records, as vaults or manifests, or {lineage: NAME} of all that "
        "output.vault remembers of runs of this name: risk is then that of all together. An empty list begins a "
        "history.",
        exclude_if=unsaid,
    )
    linkage: LinkagePolicy | None = Field(None, description="Measure the risk after record linkage too.")
    checks: Checks = Field(Checks(), description="What must hold before anything is published.")
    output: Output | None = Field(
        None, description="Where a release goes, such as {path: out/census, vault: vault/census}."
    )
    ledger: LedgerPolicy | None = Field(None, description="The privacy budget of the table's releases.")
    assess: AssessPolicy = Field(AssessPolicy(), description="What `privrisk assess` measures.")
    attack: Annotated[Section, SectionOf("attack")] | None = Field(
        None, description="What `privrisk attack` tries.", exclude_if=unsaid
    )
    sharing: Annotated[Section, SectionOf("sharing")] | None = Field(
        None,
        description="What `privrisk share` decides of a social network, whose profiles are the table.",
        exclude_if=unsaid,
    )

    _given: tuple[FromEnvironment, ...] = PrivateAttr(default=())

    @property
    def from_environment(self) -> tuple[FromEnvironment, ...]:
        """Texts that an environment variable had a part in."""
        return self._given

    def given_by_environment(self, given: Sequence[FromEnvironment]) -> Policy:
        """Return the policy, of which it is known what the environment had a part in."""
        policy = self.model_copy()
        policy._given = tuple(given)
        return policy

    @property
    def places(self) -> Output:
        """Where a release goes; a policy to release by has it."""
        assert self.output is not None
        return self.output

    @property
    def decides(self) -> bool:
        """Whether exact figures of the table may decide what is released, and whether it is."""
        return self.guarantee.decides

    @property
    def dictionaries(self) -> tuple[OneDictionary, ...]:
        """The dictionaries the decision is made against; one unless the kind is bayes or minimax."""
        given = self.dictionary
        if isinstance(given, SeveralDictionaries):
            return tuple(
                OneDictionary(
                    member.name,
                    member if isinstance(member, TableMember) else None,
                    f"dictionary.members.{i}",
                    1.0 if member.prior is None else member.prior,
                )
                for i, member in enumerate(given.members)
            )
        if isinstance(given, EstimatedDictionary):
            estimate = given.estimate
            table = estimate if isinstance(estimate, TableEstimate) else None
            return (OneDictionary("estimate", table, "dictionary.estimate"),)
        return (OneDictionary("dictionary", given if isinstance(given, TableDictionary) else None, "dictionary"),)

    @property
    def quasi_identifiers(self) -> dict[str, QuasiIdentifier]:
        """Quasi-identifiers in the order of the policy."""
        return {name: column for name, column in self.columns.items() if isinstance(column, QuasiIdentifier)}

    @property
    def kept_columns(self) -> list[str]:
        """Columns released as values, as they are or masked, and not as labels; in the order of the policy."""
        as_values = not self.guarantee.generalizes
        return [
            name
            for name, column in self.columns.items()
            if getattr(column, "action", None) == "keep"
            or (isinstance(column, WeightColumn) and column.release)
            or (as_values and isinstance(column, QuasiIdentifier))
        ]

    @property
    def recodings(self) -> dict[str, Recoding]:
        """How kept columns are made coarser that say so, in the order of the policy."""
        asked = {name: getattr(self.columns[name], "release", None) for name in self.kept_columns}
        return {name: recoding for name, recoding in asked.items() if isinstance(recoding, Recoding)}

    @property
    def masks(self) -> dict[str, Mask]:
        """How each column is masked that says so, in the order of the policy."""
        asked = {name: getattr(column, "mask", None) for name, column in self.columns.items()}
        return {name: mask for name, mask in asked.items() if mask is not None}

    @property
    def kept_as_they_are(self) -> list[str]:
        """Sensitive and insensitive columns that are released as they are, or masked, in the order of the policy."""
        plain = [name for name in self.kept_columns if name not in self.recodings]
        return [name for name in plain if isinstance(self.columns[name], Sensitive | Insensitive)]

    @property
    def sensitive_as_they_are(self) -> list[str]:
        """Sensitive columns whose values are released unchanged, in the order of the policy."""
        changed = {name for name, mask in self.masks.items() if mask.method != "none"}
        plain = [name for name in self.kept_as_they_are if name not in changed]
        return [name for name in plain if isinstance(self.columns[name], Sensitive)]

    @property
    def used_columns(self) -> set[str]:
        """Columns of the table whose values are read: neither dropped nor identifiers without a use."""
        out = {n for n, of in self.columns.items() if isinstance(of, Identifier | Insensitive) and of.action == "drop"}
        return set(self.columns) - (out - {self.table.record_id, self.table.entity_id})

    @property
    def weight_columns(self) -> list[str]:
        """Columns of personal weights that the risk reads, without repetition."""
        return list(dict.fromkeys(self.risk.sensitivity.weight_columns))

    def canonical(self) -> str:
        """Return the policy as JSON, defaults filled in, equal for policies that mean the same.

        Keys are in the order of the models. Columns stay in the order written: level vectors refer to it.
        ``guarantee.key`` is a reference, never a key. Left out are ``ledger.url``, as it may hold a password,
        and ``run.engine``, ``assess`` and ``attack``, on which no release depends.
        """
        return self.model_dump_json(
            by_alias=True, exclude={"ledger": {"url"}, "run": {"engine"}, "assess": True, "attack": True}
        )

    def digest(self) -> str:
        """SHA-256 of the canonical policy without secrets, hex; it is published, and so is its start in a run id.

        See :func:`privrisk_spark.policy.secrets.without_secrets`.
        """
        canonical = self.canonical()
        document = json.loads(canonical)
        plain = without_secrets(document, self._given)
        text = canonical if plain == document else json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def run_id(self, date: dt.date) -> str:
        """Return the default run id: name, date and the start of a digest, so that a changed policy is a new run.

        So is one whose hierarchy or mapping files hold something else.
        """
        digest, files = self.digest(), contents_of(self, but=("assess", "attack"))
        if files:
            digest = hashlib.sha256(json.dumps([digest, files], sort_keys=True).encode()).hexdigest()
        return f"{self.run.name}-{(self.run.date or date).isoformat()}-{digest[:8]}"
