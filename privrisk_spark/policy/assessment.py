"""What ``privrisk assess`` measures besides the table itself: a release, a population, an adversary, and thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, WrapValidator

from privrisk_spark.hierarchies.builders import HierarchySpec
from privrisk_spark.kernels.measures.prediction import MODELS, Model
from privrisk_spark.policy.dictionaries import DictionaryEntry, Table
from privrisk_spark.policy.types import NUMBER, SORTED, Count, Finite, Natural, NonNegative, Part, Positive, Text

Share = Annotated[float, Field(gt=0, le=1), NUMBER]
Percent = Annotated[float, Field(gt=0, le=100), NUMBER]


class MaskedTable(Table):
    """A release of the table, by this software or by another: its quasi-identifiers hold labels of nodes."""

    columns: Annotated[dict[str, Text], SORTED] = Field(
        default_factory=dict, description="Quasi-identifier or sensitive column: its column in the release, if renamed."
    )
    record_id: Text | None = Field(
        None, description="Column of the release that holds table.record_id; needed by `intervals` and `concealment`."
    )


def published_or(kind: type[MaskedTable]) -> WrapValidator:
    """Choose by form, so that a fault is reported once and at its own key."""

    def chosen(value: object, _handler: Any) -> object:
        if value == "published" or isinstance(value, kind):
            return value
        if isinstance(value, Mapping):
            return kind.model_validate(value)
        raise ValueError("must be 'published', or a mapping {path, format, columns, record_id}")

    return WrapValidator(chosen)


Masked = Annotated[Literal["published"] | MaskedTable, published_or(MaskedTable)]


class Population(Table):
    """The people the table is a sample of."""

    columns: dict[str, DictionaryEntry] = Field(
        min_length=1, description="Quasi-identifier: population column, or {column, level, age_in, mapping, read}."
    )
    weight: Text | None = Field(
        None, description="Column of whole numbers: how many people a row stands for; default 1."
    )


class SensitiveModel(Part):
    """How the values of a sensitive column are compared."""

    distance: Literal["equal", "ordered", "hierarchical"] | None = Field(
        None, description="Ground distance of t-closeness; default 'ordered' for numbers and dates, else 'equal'."
    )
    hierarchy: HierarchySpec | None = Field(None, description="Of the distance 'hierarchical', such as {file: a.csv}.")
    c: Positive = Field(3.0, description="c of recursive (c, l)-diversity, whose greatest l is measured.")


class Interval(Part):
    """A numeric column of which the release holds a masked form."""

    masked: Text | None = Field(None, description="Its column in the release; default the same name.")
    p: Percent = Field(10.0, description="Width of the interval, in percent of the ranks or standard deviations.")


class SpecialUniques(Part):
    """Minimal sample uniques (SUDA2)."""

    size: Annotated[int, Field(gt=0, le=6), NUMBER] = Field(3, description="Most attributes of a minimal unique set.")
    dis_fraction: Share = Field(0.1, description="p of the DIS score: the share of the population in the sample.")


class Detection(Part):
    """Probability that an exploit is detected, a logistic function of those before it (Xia et al. 2015, eq 4)."""

    h0: Finite = Field(-4.59, description="Log odds that the first exploit is detected.")
    h1: Finite = Field(0.0, description="What each exploit before adds to the log odds.")


class AdversaryPolicy(Part):
    """An adversary who attacks if it pays (Xia et al. 2015); the defaults are the paper's case study."""

    currency: Text = Field("US dollars", description="Of gain, penalty and costs; only a name.")
    group: Literal["known", "unknown"] = Field(
        "known", description="Whether the adversary knows how many candidates a record has before paying for access."
    )
    prior: Share = Field(0.63, description="Probability that the target is among the candidates.")
    gain: NonNegative = Field(8000.0, description="What a successful exploit brings.")
    loss: NonNegative = Field(1.0, description="What a re-identification costs its person; risk = p_reid × loss.")
    penalty: NonNegative = Field(10_000.0, description="Fine of a detected exploit.")
    fines: Natural | None = Field(1, description="Fines paid at most; null: as many as exploits are detected.")
    cost_access: NonNegative = Field(100.0, description="Of the data.")
    cost_link: NonNegative = Field(0.0, description="Of finding the candidates.")
    cost_exploit: NonNegative = Field(10.0, description="Of approaching a candidate.")
    detection: Detection = Detection()
    discount: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        0.9, description="Worth today of what is earned or paid a step later."
    )
    risk_at_most: Share | None = Field(
        0.05, description="Least penalty and least group size that bring every record's p_reid under this bound."
    )


class Classifiers(Part):
    """Classifiers that predict the label from the quasi-identifiers, of the table and of the release."""

    models: tuple[Model, ...] = Field(
        MODELS,
        min_length=1,
        description="Of scikit-learn, with its usual parameters (the extra `ml`).",
    )
    sample: Annotated[int, Field(ge=10, le=1_000_000), NUMBER] = Field(10_000, description="Records drawn at most.")
    folds: Annotated[int, Field(ge=2, le=20), NUMBER] = Field(
        5, description="Parts of the sample, each predicted by what is fitted to the others."
    )


class AssessPolicy(Part):
    """What is measured, against what, and what a table must meet."""

    release: Masked | None = Field(
        None,
        description="A release to hold against the table: 'published' is the newest at output.path, or {path: …} of "
        "any; null: the table alone.",
    )
    suppressed: Literal["apart", "compatible"] = Field(
        "apart",
        description="Records of the release that are suppressed in every quasi-identifier of a set: 'apart', in no "
        "class, as in ARX; 'compatible' with every record, as in sdcMicro. They are counted in any case.",
    )
    population: Population | None = Field(None, description="A table of the people the table is a sample of.")
    sampling_fraction: Share | None = Field(
        None, description="Share of the population in the table, for estimates where no population table is given."
    )
    sets: dict[str, list[Text]] = Field(
        default_factory=dict,
        description="Sets of quasi-identifiers by name, each measured by a count of its own; default all of them.",
    )
    sensitive: Annotated[dict[str, SensitiveModel], SORTED] = Field(
        default_factory=dict, description="How sensitive columns are compared; all with the role are measured."
    )
    intervals: Annotated[dict[str, Interval], SORTED] = Field(
        default_factory=dict, description="Numeric columns whose masked values are compared record by record."
    )
    household: Text | None = Field(
        None, description="Column that names the household of a record, for the risk that one of its members is found."
    )
    label: Text | None = Field(None, description="Column a classifier would predict, for the classification metric.")
    classifiers: Classifiers | None = Field(
        None, description="Predict the label, before and after, from the first set of quasi-identifiers."
    )
    k: Count = Field(5, description="k of the metrics that need one; records_below_k takes thresholds.k if given.")
    risk_above: list[Share] = Field(
        default_factory=lambda: [0.05, 0.2, 0.5], description="Thresholds whose share of records above is told."
    )
    worst: Annotated[int, Field(ge=0, le=1000), NUMBER] = Field(10, description="Worst classes listed in the report.")
    special_uniques: SpecialUniques | None = Field(
        SpecialUniques(), description="Records that few values single out, and their scores; null: not looked for."
    )
    concealment: bool = Field(
        False, description="Check (k,1), (1,k), (k,k) anonymity and k-concealment of the release; small tables."
    )
    adversary: AdversaryPolicy | None = Field(
        AdversaryPolicy(), description="An adversary who attacks where it pays; null: none."
    )
    records: bool = Field(True, description="Write each record's class size and risks to records/.")
    thresholds: Annotated[dict[str, NonNegative], SORTED] = Field(
        default_factory=dict,
        description="Measure: bound it must meet on what is assessed last (the release if there is one), such as "
        "{k: 5, prosecutor_max: 0.2}; one that fails is exit code 1.",
    )
