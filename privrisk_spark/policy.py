"""The policy as frozen objects: what each key may hold, and its default.

`config` reads and layers what a person writes; `policy_rules` holds the rules that take several keys together.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    WrapValidator,
)

from privrisk_spark.builders import HierarchySpec
from privrisk_spark.interval_builders import no_truth


def _day(value: object) -> object:
    """Take dates in ISO form only: pydantic would read a number as seconds since 1970."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    try:
        return dt.date.fromisoformat(str(value))
    except ValueError:
        raise ValueError('must be a date YYYY-MM-DD, or "{ds}" in quotes for the date of the run') from None


def _option(value: object) -> object:
    if not isinstance(value, str | int | float):
        raise ValueError("must be a text, a number, true or false")
    return value


def _column_or_mapping(value: object, _handler: Any) -> object:
    """Choose by form, so that a fault is reported once and at its own key."""
    if isinstance(value, str | DictionaryColumn):
        return value
    if isinstance(value, Mapping):
        return DictionaryColumn.model_validate(value)
    raise ValueError("must be the name of a dictionary column, or a mapping {column, level, age_in, mapping}")


def _by_name(value: dict[str, Any]) -> dict[str, Any]:
    """Sort a mapping whose order means nothing, so that the digest does not depend on it."""
    return dict(sorted(value.items()))


def _without_trailing_zeros(number: Decimal) -> str:
    return str(number.normalize(Context(prec=len(number.as_tuple().digits))))


_SORTED = AfterValidator(_by_name)

NullPolicy = Literal["own-value", "wildcard", "forbid", "suppress"]
Text = Annotated[str, Field(min_length=1)]
Option = Annotated[str | int | float | bool, BeforeValidator(_option)]
Day = Annotated[
    dt.date,
    BeforeValidator(_day),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "date"}, {"const": "{ds}"}]}),
]

# Python counts True as 1; a policy does not. Bounds stand before the validator, where the JSON Schema sees them.
_NUMBER = BeforeValidator(no_truth)
Count = Annotated[int, Field(gt=0), _NUMBER]
Natural = Annotated[int, Field(ge=0), _NUMBER]
Year = Annotated[int, Field(ge=1, le=9999), _NUMBER]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), _NUMBER]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False), _NUMBER]
Finite = Annotated[float, Field(allow_inf_nan=False), _NUMBER]
Weight = Annotated[float, Field(ge=0), _NUMBER]
# Decimals: 0.1 is one tenth exactly. Serialized so that 4 and 4.0 have one digest.
_EXACT = PlainSerializer(_without_trailing_zeros, return_type=str, when_used="json")
NonNegativeExact = Annotated[Decimal, Field(ge=0), _NUMBER, _EXACT]
PositiveExact = Annotated[Decimal, Field(gt=0), _NUMBER, _EXACT]
Delta = Annotated[Decimal, Field(gt=0, lt=1), _NUMBER, _EXACT]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, ser_json_inf_nan="strings")


class Run(_Part):
    """Name and date of a run."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Short name, part of the run id.")
    date: Day | None = Field(None, description="Business date; '{ds}' takes the scheduler's date or today.")


class Table(_Part):
    """Where a table is read: a path with a format, or a Spark catalog name."""

    path: Text | None = Field(None, description="File or directory Spark can read.")
    catalog: Text | None = Field(None, description="Table name in the Spark catalog, instead of a path.")
    format: Text = Field("parquet", description="Spark data source of the path: parquet, csv, orc, json, …")
    options: Annotated[dict[str, Option], _SORTED] = Field(
        default_factory=dict, description="Reader options of the path."
    )


class ReleaseTable(Table):
    """The table to release."""

    record_id: Text | None = Field(
        None, description="Column that identifies a record; null derives one from content and ordinal."
    )
    entity_id: None = None
    weight: None = None


class QuasiIdentifier(_Part):
    """A column an attacker may know; it is generalized."""

    role: Literal["quasi-identifier"]
    hierarchy: HierarchySpec = Field(description="How values are generalized, such as {file: age.csv}.")
    nulls: NullPolicy = Field(
        "suppress",
        description="A missing value is: 'suppress' ⊥ from the start, 'own-value' a value like any other, 'wildcard' ⊥ "
        "that is consistent with every value, 'forbid' an error.",
    )
    unknown: Literal["error", "suppress"] | None = Field(
        None, description="A value outside the hierarchy is an error (default) or ⊥ (default under dp)."
    )


class Sensitive(_Part):
    """A column worth protecting; released as it is or dropped."""

    role: Literal["sensitive"]
    action: Literal["keep", "drop"] = "keep"


class Insensitive(_Part):
    """A column no attacker knows and nobody minds; released as it is or dropped."""

    role: Literal["insensitive"]
    action: Literal["keep", "drop"] = "keep"


class Identifier(_Part):
    """A direct identifier; never released."""

    role: Literal["identifier"]
    action: Literal["drop"] = "drop"


class WeightColumn(_Part):
    """A column that holds personal weights; never released."""

    role: Literal["weight"]


Column = Annotated[QuasiIdentifier | Sensitive | Insensitive | Identifier | WeightColumn, Field(discriminator="role")]


class DictionaryColumn(_Part):
    """How a dictionary column maps to nodes of an attribute's hierarchy."""

    column: Text = Field(description="Name of the dictionary column.")
    level: Natural | None = Field(None, description="Values are labels of nodes at this level; null: leaves.")
    age_in: Year | None = Field(
        None, description="Values are ages in whole years in this year; the node is the birth year's."
    )
    mapping: Text | None = Field(None, description="CSV file 'dictionary value;node label' applied first.")


DictionaryEntry = Annotated[str | DictionaryColumn, WrapValidator(_column_or_mapping)]


class SelfDictionary(_Part):
    """The attacker knows the table itself: an upper bound of the risk."""

    kind: Literal["self"] = "self"
    consistency: Literal["subsumes", "compatible"] = "subsumes"


class TableDictionary(Table):
    """The attacker knows one external table."""

    kind: Literal["table"]
    consistency: Literal["subsumes", "compatible"] = "compatible"
    columns: dict[str, DictionaryEntry] = Field(
        min_length=1, description="Quasi-identifier: dictionary column, or {column, level, age_in, mapping}."
    )
    public: bool = Field(False, description="State that the table is public; needed by mode public-dictionary.")


Dictionary = Annotated[SelfDictionary | TableDictionary, Field(discriminator="kind")]


class Personal(_Part):
    """Personal weights, read from columns of the table with role ``weight``."""

    columns: Annotated[dict[str, str], _SORTED] = Field(
        default_factory=dict, description="Quasi-identifier: column of w_{j,r}."
    )
    factor: Text | None = Field(None, description="Column of w'_r, multiplies every weight of the record.")
    sum_to: Positive | None = Field(
        None, description="Scale each record's weights, its own times the attribute's, to this sum."
    )
    at_most: Positive | None = Field(
        None, description="Scale down records whose weights, own times attribute, sum to more."
    )


class SensitivityPolicy(_Part):
    """Sensitivity Φ of a disclosed record."""

    form: Literal["constant", "linear", "record", "multiplicative"] = "linear"
    constant: NonNegative = Field(1.0, description="Φ of the constant form.")
    weights: Annotated[dict[str, Weight], _SORTED] = Field(
        default_factory=dict, description="Leaf weight per quasi-identifier (default 1; .inf allowed)."
    )
    node_weights: Annotated[dict[str, Annotated[dict[str, Weight], _SORTED]], _SORTED] = Field(
        default_factory=dict, description="Weights of single nodes by label, in place of the harmonic mean."
    )
    record: Text | None = Field(None, description="Column of w_r for the record form (default 1).")
    personal: Personal | None = None


class RiskPolicy(_Part):
    """Identification risk of a record."""

    model: Literal["I", "II", "III"] = "I"
    sensitivity: SensitivityPolicy = SensitivityPolicy()


class UtilityPolicy(_Part):
    """Utility of a disclosed record."""

    measure: Literal["depth", "leaves", "log-leaves", "xiao-tao", "lm"] = "depth"
    weights: Annotated[dict[str, NonNegative], _SORTED] = Field(
        default_factory=dict, description="Weight per quasi-identifier (default 1)."
    )


class DecisionPolicy(_Part):
    """The optimization problem of each record."""

    problem: Literal["min-risk"] = "min-risk"
    utility_at_least: Finite = Field(description="The floor c of every record's utility.")
    method: Literal["auto", "exact", "aruba"] = "auto"
    neighbourhood: Literal["swap", "cube"] = "swap"
    infeasible: Literal["error", "suppress"] = Field(
        "error", description="A record that cannot reach the floor is an error, or is released fully suppressed."
    )


class RiskGuarantee(_Part):
    """Each record's risk is minimal subject to the floor."""

    kind: Literal["risk"] = "risk"


class Epsilon(_Part):
    """Privacy loss of the two stages."""

    admit: NonNegativeExact = Field(description="Noisy admission of t-frequent cells; 0 with a public dictionary.")
    keep: PositiveExact = Field(description="Sampling and crowd threshold.")


class Objective(_Part):
    """Objective (5.4) of the exponential draw."""

    lambda_: NonNegative = Field(1.0, alias="lambda")
    kappa: NonNegative = 1.0
    tau: Annotated[float, Field(gt=0), _NUMBER] = Field(1.0, description="Inverse temperature; .inf takes the best.")
    phi_min: Positive = Field(description="Public floor of Φ.")
    count_cap: Count | None = Field(None, description="Public cap of counts; default public_rows.")


class DpGuarantee(_Part):
    """Differential privacy for add/remove of one row, one row per person."""

    kind: Literal["dp"]
    mode: Literal["local", "public-dictionary"] = "local"
    epsilon: Epsilon = Field(description="Privacy loss, such as {admit: 0.3, keep: 0.7}.")
    delta: Delta = Field(description="Probability that the bound epsilon may fail.")
    public_rows: Count = Field(description="Public estimate of the number of rows.")
    schemes: list[list[Natural]] = Field(
        min_length=1, max_length=4096, description="Public level vectors, in the order of the quasi-identifiers."
    )
    objective: Objective = Field(description="Objective of the draw, such as {phi_min: 0.1}.")
    keep_fraction: Annotated[float, Field(gt=0, le=1), _NUMBER] = Field(
        0.5, description="Keep probability as a share of 1 - exp(-keep)."
    )
    crowd: Annotated[int, Field(ge=10), _NUMBER] | None = Field(
        None, description="k; default the smallest that meets delta."
    )
    frequent: Count | None = Field(None, description="t; default the smallest that meets delta.")
    key: str | None = Field(
        None,
        pattern=r"^(env|file):.+$",
        description="Release key by reference, 'env:NAME' or 'file:PATH' (64 hex digits); null: made and destroyed.",
    )


Guarantee = Annotated[RiskGuarantee | DpGuarantee, Field(discriminator="kind")]


class Counting(_Part):
    """Physical plan of counting."""

    plan: Literal["auto", "dense", "sorted"] = "auto"
    dense_cells: Count = Field(2**27, description="Cells the dense plan may hold.")
    sorted_vectors: Count = Field(20_000_000, description="Distinct vectors the sorted plan may hold.")


class RowCount(_Part):
    """Range of the number of rows."""

    at_least: Natural = 1
    at_most: Natural | None = None


class Checks(_Part):
    """Contracts a release must meet."""

    row_count: RowCount = RowCount()
    min_class_size: Count | None = Field(None, description="Least class size of released quasi-identifiers.")
    max_mean_risk: NonNegative | None = None
    max_risk: NonNegative | None = None
    forbid_verbatim: bool = Field(False, description="No record may be released with all its original values.")
    fail_on: Literal["error", "warning"] = "error"


class Output(_Part):
    """Where the release and what must not be published go."""

    path: Text = Field(description="Directory of the published releases.")
    vault: Text = Field(description="Directory of what must not be published, outside output.path.")
    format: Literal["parquet", "csv"] = "parquet"
    files: Annotated[int, Field(gt=0, le=10_000), _NUMBER] | None = Field(
        None, description="Data files; default one per million rows."
    )


class Cap(_Part):
    """Budget of a lineage."""

    epsilon: PositiveExact = Field(description="Most all releases of the lineage may cost together.")
    delta: Delta = Field(description="Most delta all releases of the lineage may cost together.")


class LedgerPolicy(_Part):
    """Privacy-budget ledger."""

    url: Text = Field(description="SQLAlchemy URL, such as sqlite:///vault/ledger.db.")
    lineage: str = Field(min_length=1, max_length=200, description="Name all releases of one data set share.")
    cap: Cap = Field(description="Budget of the lineage, such as {epsilon: 4, delta: 1e-7}.")


class Policy(_Part):
    """A whole policy."""

    version: Annotated[Literal[1], _NUMBER] = Field(description="Version of the policy format: 1.")
    run: Run = Field(description="Name of the run, such as {name: census}.")
    table: ReleaseTable = Field(description="Table to release, such as {path: data/census.csv, format: csv}.")
    columns: dict[str, Column] = Field(min_length=1, description="A role for every column of the table.")
    dictionary: Dictionary = SelfDictionary()
    risk: RiskPolicy = RiskPolicy()
    utility: UtilityPolicy = UtilityPolicy()
    decision: DecisionPolicy | None = None
    guarantee: Guarantee = RiskGuarantee()
    counting: Counting = Counting()
    checks: Checks = Checks()
    output: Output = Field(description="Where results go, such as {path: out/census, vault: vault/census}.")
    ledger: LedgerPolicy | None = None

    @property
    def quasi_identifiers(self) -> dict[str, QuasiIdentifier]:
        """Quasi-identifiers in the order of the policy."""
        return {name: column for name, column in self.columns.items() if isinstance(column, QuasiIdentifier)}

    @property
    def kept_columns(self) -> list[str]:
        """Columns released as they are, in the order of the policy."""
        return [
            name
            for name, column in self.columns.items()
            if isinstance(column, Sensitive | Insensitive) and column.action == "keep"
        ]

    @property
    def weight_columns(self) -> list[str]:
        """Columns of personal weights that the risk reads, without repetition."""
        sensitivity = self.risk.sensitivity
        personal = sensitivity.personal or Personal()
        names = [*personal.columns.values(), personal.factor, sensitivity.record]
        return list(dict.fromkeys(name for name in names if name is not None))

    def canonical(self) -> str:
        """Return the policy as JSON, defaults filled in, equal for policies that mean the same.

        Keys are in the order of the models. Columns stay in the order written: level vectors refer to it.
        ``guarantee.key`` is a reference, never a key; ``ledger.url`` is left out, as it may hold a password.
        """
        return self.model_dump_json(by_alias=True, exclude={"ledger": {"url"}})

    def digest(self) -> str:
        """SHA-256 of the canonical policy, hex."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def run_id(self, date: dt.date) -> str:
        """Return the default run id: name, date and the start of the digest, so that a changed policy is a new run."""
        return f"{self.run.name}-{(self.run.date or date).isoformat()}-{self.digest()[:8]}"
