"""The policy as frozen objects: what each key may hold, and its default.

`config` reads and layers what a person writes; `policy_rules` holds the rules that take several keys together.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from privrisk_spark.hierarchies.builders import HierarchySpec
from privrisk_spark.policy.assessment import AssessPolicy
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
from privrisk_spark.policy.types import (
    NUMBER,
    SORTED,
    Count,
    Day,
    Delta,
    Finite,
    Natural,
    NonNegative,
    NonNegativeExact,
    NullPolicy,
    Part,
    Positive,
    PositiveExact,
    Text,
    Weight,
)


class Run(Part):
    """Name and date of a run."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Short name, part of the run id.")
    date: Day | None = Field(None, description="Business date; '{ds}' takes the scheduler's date or today.")


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


class QuasiIdentifier(Part):
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


class Sensitive(Part):
    """A column worth protecting; released as it is or dropped."""

    role: Literal["sensitive"]
    action: Literal["keep", "drop"] = "keep"


class Insensitive(Part):
    """A column no attacker knows and nobody minds; released as it is or dropped."""

    role: Literal["insensitive"]
    action: Literal["keep", "drop"] = "keep"


class Identifier(Part):
    """A direct identifier; never released."""

    role: Literal["identifier"]
    action: Literal["drop"] = "drop"


class WeightColumn(Part):
    """A column that holds personal weights; never released."""

    role: Literal["weight"]


Column = Annotated[QuasiIdentifier | Sensitive | Insensitive | Identifier | WeightColumn, Field(discriminator="role")]


class Personal(Part):
    """Personal weights, read from columns of the table with role ``weight``."""

    columns: Annotated[dict[str, str], SORTED] = Field(
        default_factory=dict, description="Quasi-identifier: column of w_{j,r}."
    )
    factor: Text | None = Field(
        None, description="Column of w'_r, multiplies every weight of the record, those of interactions too."
    )
    sum_to: Positive | None = Field(
        None, description="Scale each record's weights, its own times the attribute's, to this sum."
    )
    at_most: Positive | None = Field(
        None, description="Scale down records whose weights, own times attribute, sum to more."
    )


class Interaction(Part):
    """Attributes whose joint disclosure weighs more than each alone (LSFB06 Φ4, F12 eq 2.3)."""

    columns: list[Text] = Field(min_length=2, description="Quasi-identifiers, each once; what counts is all disclosed.")
    weight: Weight = Field(description="What their joint disclosure adds, not negative; .inf allowed.")


class SensitivityPolicy(Part):
    """Sensitivity Φ of a disclosed record."""

    form: Literal["constant", "linear", "record", "multiplicative", "interaction"] = "linear"
    constant: NonNegative = Field(1.0, description="Φ of the constant form.")
    weights: Annotated[dict[str, Weight], SORTED] = Field(
        default_factory=dict, description="Leaf weight per quasi-identifier (default 1; .inf allowed)."
    )
    node_weights: Annotated[dict[str, Annotated[dict[str, Weight], SORTED]], SORTED] = Field(
        default_factory=dict, description="Weights of single nodes by label, in place of the harmonic mean."
    )
    record: Text | None = Field(None, description="Column of w_r for the record form (default 1).")
    interactions: list[Interaction] = Field(
        default_factory=list,
        max_length=256,
        description="Of the form 'interaction': sets of attributes and their weights, such as "
        "[{columns: [age, city], weight: 0.3}].",
    )
    personal: Personal | None = None


class RiskPolicy(Part):
    """Identification risk of a record."""

    model: Literal["I", "II", "III"] = "I"
    sensitivity: SensitivityPolicy = SensitivityPolicy()


class UtilityPolicy(Part):
    """Utility of a disclosed record."""

    measure: Literal["depth", "leaves", "log-leaves", "xiao-tao", "lm"] = "depth"
    weights: Annotated[dict[str, NonNegative], SORTED] = Field(
        default_factory=dict, description="Weight per quasi-identifier (default 1)."
    )


class RiskGuarantee(Part):
    """Each record's risk is minimal subject to the floor."""

    kind: Literal["risk"] = "risk"


class Epsilon(Part):
    """Privacy loss of the stages."""

    choose: NonNegativeExact = Field(
        Decimal(0), description="One pick of a scheme among candidates; a release with several picks costs it as often."
    )
    admit: NonNegativeExact = Field(
        Decimal(0), description="Noisy admission of t-frequent cells; 0 with a public dictionary and in mode global."
    )
    keep: PositiveExact = Field(description="Sampling and crowd threshold.")


class AggregateObjective(Part):
    """Objective (5.4) of the exponential draw: lambda / risk + utility^kappa, of every admitted generalization."""

    kind: Literal["aggregate"] = "aggregate"
    lambda_: NonNegative = Field(1.0, alias="lambda")
    kappa: NonNegative = 1.0
    tau: Annotated[float, Field(gt=0), NUMBER] = Field(1.0, description="Inverse temperature; .inf takes the best.")
    phi_min: Positive = Field(description="Public floor of Φ.")
    count_cap: Count | None = Field(None, description="Public cap of counts; default public_rows.")


class ThresholdObjective(Part):
    """Minus the risk, of the admitted generalizations whose utility is at least a floor; where none is, suppression."""

    kind: Literal["threshold"]
    utility_at_least: Finite = Field(description="The floor c of every drawn generalization's utility.")
    tau: Annotated[float, Field(gt=0), NUMBER] = Field(1.0, description="Inverse temperature; .inf takes the best.")
    count_cap: Count | None = Field(None, description="Public cap of counts; default public_rows.")


def _usual_objective(value: object) -> object:
    return {"kind": "aggregate", **value} if isinstance(value, Mapping) and "kind" not in value else value


Objective = Annotated[
    AggregateObjective | ThresholdObjective, Field(discriminator="kind"), BeforeValidator(_usual_objective)
]
"""What the exponential draw prefers; ``aggregate`` where none is named."""


class DpGuarantee(Part):
    """Differential privacy for add/remove of one row, one row per person (drawn, with table.entity_id)."""

    kind: Literal["dp"]
    mode: Literal["local", "global", "public-dictionary"] = Field(
        "local",
        description="A record's generalization is drawn among admitted ones ('local', or 'public-dictionary' where "
        "admission costs nothing), or all records take one drawn scheme ('global').",
    )
    epsilon: Epsilon = Field(description="Privacy loss, such as {admit: 0.3, keep: 0.7}.")
    delta: Delta = Field(description="Probability that the bound epsilon may fail.")
    public_rows: Count = Field(description="Public estimate of the number of rows.")
    schemes: list[list[Natural]] | None = Field(
        None,
        min_length=1,
        max_length=4096,
        description="Public level vectors, in the order of the quasi-identifiers; default proposed from hierarchies "
        "and public_rows.",
    )
    candidates: list[list[Natural]] | None = Field(
        None,
        min_length=1,
        max_length=4096,
        description="Public level vectors to draw the scheme from, in mode global, or with peel; default proposed.",
    )
    peel: Count | None = Field(None, description="Draw that many of the candidates as schemes of mode local.")
    public_shares: Annotated[dict[str, Annotated[dict[str, NonNegative], SORTED]], SORTED] = Field(
        default_factory=dict,
        description="Public shares of values or nodes, by quasi-identifier and label, for proposals; else uniform.",
    )
    reuse: Text | None = Field(
        None,
        description="Manifest of an earlier release of the lineage, in its own directory: its admitted cells are taken "
        "and cost nothing more.",
    )
    noise: Literal["auto", "gaussian", "laplace"] = Field(
        "auto",
        description="Noise of the admission in mode local; 'auto' takes the one with the lower threshold T.",
    )
    objective: Objective | None = Field(
        None,
        description="Objective of the draw, such as {phi_min: 0.1} or {kind: threshold, utility_at_least: 8}; mode "
        "global has none.",
    )
    keep_fraction: Annotated[float, Field(gt=0, le=1), NUMBER] = Field(
        0.5, description="Keep probability as a share of 1 - exp(-keep)."
    )
    crowd: Annotated[int, Field(ge=10), NUMBER] | None = Field(
        None, description="k; default the smallest that meets delta."
    )
    frequent: Count | None = Field(
        None,
        description="t; default the smallest that meets delta. In mode global the rows of a cell that a scheme's score "
        "does not count; default those a cell needs to be released with probability 50 %.",
    )
    key: str | None = Field(
        None,
        pattern=r"^(env|file):.+$",
        description="Release key by reference, 'env:NAME' or 'file:PATH' (64 hex digits); null: made and destroyed.",
    )


class AsPublishedGuarantee(Part):
    """Algorithm 6 or 7 of F12 (sections 6.4, 6.5) as published, for comparison only: nothing is guaranteed."""

    kind: Literal["as-published"]
    algorithm: Annotated[Literal[6, 7], NUMBER] = Field(
        description="Number of the algorithm in F12: 6 draws from its law, 7 walks towards it."
    )
    accept_unproven: bool = Field(
        False, description="Must be true: says that whoever publishes knows that nothing is guaranteed."
    )
    epsilon: Positive = Field(description="What F12 claims; the draw depends on it.")
    beta: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        description="Probability that a row is not sampled; above exp(-epsilon)."
    )
    theta0: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        description="t is theta times the number of rows, theta uniform between this and 1."
    )
    lambda_: NonNegative = Field(1.0, alias="lambda", description="Of the aggregate objective (5.4).")
    kappa: NonNegative = Field(1.0, description="Of the aggregate objective (5.4).")
    phi_l: Positive | None = Field(
        None, description="Lower bound of Φ, for the aggregate objective; a smaller Φ counts as it."
    )
    phi_u: Positive | None = Field(
        None, description="Upper bound of Φ, for the threshold version, where a larger Φ counts as it, and Algorithm 7."
    )
    utility_at_least: NonNegative | None = Field(
        None, description="c of the threshold version, which draws by risk; null: the aggregate objective."
    )
    steps: Count | None = Field(
        None, description="Length of each row's walk, which Algorithm 7 needs and its print does not give."
    )
    layer_width: Annotated[float, Field(gt=0, lt=1), NUMBER] | None = Field(
        None, description="epsilon'' of Algorithm 7: a layer's largest Φ is 1 + epsilon'' times its least."
    )
    sigma: Annotated[float, Field(gt=0, lt=1), NUMBER] | None = Field(
        None, description="Of Algorithm 7: an element is put out if it has at least sigma t rows."
    )
    key: str | None = Field(
        None,
        pattern=r"^(env|file):.+$",
        description="Release key by reference, 'env:NAME' or 'file:PATH' (64 hex digits); null: made and destroyed.",
    )


Guarantee = Annotated[RiskGuarantee | DpGuarantee | AsPublishedGuarantee, Field(discriminator="kind")]


class Counting(Part):
    """Physical plan of counting."""

    plan: Literal["auto", "dense", "sorted", "shuffle", "iceberg"] = "auto"
    dense_cells: Count = Field(2**27, description="Cells the dense plan may hold.")
    sorted_vectors: Count = Field(20_000_000, description="Distinct vectors the sorted plan may hold.")


class LinkedColumn(Part):
    """An attribute a linked row adds to a disclosed record."""

    column: Text = Field(description="Column of the linkage table.")
    hierarchy: HierarchySpec = Field(description="Where its values stand, such as {flat: {}}.")
    dictionary: Text | None = Field(None, description="Column of the dictionary that knows it; null: none does.")
    weight: Weight = Field(1.0, description="Sensitivity weight of its leaves.")


class LinkagePolicy(Table):
    """Rows an attacker may link to a released record, with their probabilities (F12 §2.7)."""

    record_id: Text = Field(description="Column with the record's id.")
    linked_id: Text | None = Field(
        None,
        description="Column naming the linked row, so that a pair given twice is an error; null: rows have no name.",
    )
    probability: Text = Field(description="Column with p(z | record); what is left of 1 is no link.")
    columns: dict[str, LinkedColumn] = Field(min_length=1, description="Added attributes by name.")


class RowCount(Part):
    """Range of the number of rows."""

    at_least: Natural = 1
    at_most: Natural | None = None


class Checks(Part):
    """Contracts a release must meet."""

    row_count: RowCount = RowCount()
    min_class_size: Count | None = Field(None, description="Least class size of released quasi-identifiers.")
    max_mean_risk: NonNegative | None = None
    max_risk: NonNegative | None = None
    forbid_verbatim: bool = Field(False, description="No record may be released with all its original values.")
    fail_on: Literal["error", "warning"] = "error"


class Output(Part):
    """Where the release and what must not be published go."""

    path: Text = Field(description="Directory of the published releases.")
    vault: Text = Field(description="Directory of what must not be published, outside output.path.")
    format: Literal["parquet", "csv"] = "parquet"
    files: Annotated[int, Field(gt=0, le=10_000), NUMBER] | None = Field(
        None, description="Data files; default one per million rows."
    )


class Cap(Part):
    """Budget of a lineage."""

    epsilon: PositiveExact = Field(description="Most all releases of the lineage may cost together.")
    delta: Delta = Field(description="Most delta all releases of the lineage may cost together.")


class LedgerPolicy(Part):
    """Privacy-budget ledger."""

    url: Text = Field(
        description="sqlite:///vault/ledger.db, or postgresql+psycopg://role@host/database, or env:NAME of a variable."
    )
    lineage: str = Field(min_length=1, max_length=200, description="Name all releases of one data set share.")
    cap: Cap = Field(description="Budget of the lineage, such as {epsilon: 4, delta: 1e-7}.")


class Policy(Part):
    """A whole policy."""

    version: Annotated[Literal[1], NUMBER] = Field(description="Version of the policy format: 1.")
    run: Run = Field(description="Name of the run, such as {name: census}.")
    table: ReleaseTable = Field(description="Table to release, such as {path: data/census.csv, format: csv}.")
    columns: dict[str, Column] = Field(min_length=1, description="A role for every column of the table.")
    dictionary: Dictionary = SelfDictionary()
    risk: RiskPolicy = RiskPolicy()
    utility: UtilityPolicy = UtilityPolicy()
    decision: DecisionPolicy | None = None
    guarantee: Guarantee = RiskGuarantee()
    counting: Counting = Counting()
    linkage: LinkagePolicy | None = Field(None, description="Measure the risk after record linkage too.")
    checks: Checks = Checks()
    output: Output | None = Field(
        None, description="Where a release goes, such as {path: out/census, vault: vault/census}."
    )
    ledger: LedgerPolicy | None = None
    assess: AssessPolicy = Field(AssessPolicy(), description="What `privrisk assess` measures.")

    @property
    def places(self) -> Output:
        """Where a release goes; a policy to release by has it."""
        assert self.output is not None
        return self.output

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
        ``guarantee.key`` is a reference, never a key. Left out are ``ledger.url``, as it may hold a password, and
        ``assess``, on which no release depends.
        """
        return self.model_dump_json(by_alias=True, exclude={"ledger": {"url"}, "assess": True})

    def digest(self) -> str:
        """SHA-256 of the canonical policy, hex."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    def run_id(self, date: dt.date) -> str:
        """Return the default run id: name, date and the start of the digest, so that a changed policy is a new run."""
        return f"{self.run.name}-{(self.run.date or date).isoformat()}-{self.digest()[:8]}"
