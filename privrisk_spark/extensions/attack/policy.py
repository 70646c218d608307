"""What ``privrisk attack`` tries on a release: who attacks, with what knowledge, and how much may be found."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from privrisk_spark.policy.assessment import MaskedTable, published_or
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.sections import Section
from privrisk_spark.policy.types import NUMBER, SORTED, Count, Natural, NonNegative, Part, Text

Method = Literal[
    "distance",
    "probabilistic",
    "learned",
    "transparency",
    "homogeneity",
    "external",
    "background",
    "skewness",
    "similarity",
    "minimality",
    "composition",
    "membership",
]
"""What an intruder tries; all the names of :data:`METHODS`."""

METHODS: tuple[Method, ...] = get_args(Method)

OF_VALUES: frozenset[Method] = frozenset(
    {"homogeneity", "external", "background", "skewness", "similarity", "minimality", "composition"}
)
"""Attacks on sensitive values."""

WITHOUT_ROWS: frozenset[Method] = frozenset({"distance", "probabilistic"})
"""Attacks that can be tried where it is not known of which record each row is."""
OF_LINKS: frozenset[Method] = frozenset({"distance", "probabilistic", "learned", "transparency"})
"""Attacks by links, whose limits ``correct_links_at_most`` is of."""

OF_CERTAINTY: frozenset[Method] = OF_VALUES - {"skewness", "minimality"}
"""Attacks by which values become certain, whose limits ``values_certain_at_most`` is of."""

Learnable = Literal["weighted_mean", "ordered_weighted_average", "bilinear", "choquet"]

AS_THEY_ARE: frozenset[Method] = frozenset({"transparency"})
"""Attacks by somebody who knows the values of the original table."""

CellReading = Literal["nearest", "uniform", "midpoint"]

Standardization = Literal["people", "each_file"]
"""By whose mean and deviation numbers are standardized."""

Blocking = Literal["automatic", "consistent_cells", "principal_axis", "never"]
"""How blocks are made where comparing all pairs is too much."""


Engine = Literal["own", "splink"]
"""Who estimates the probabilities of match weights."""

Estimable = Literal["u", "prior"]
"""What may be estimated besides how pairs of one person agree."""


class ProtectedTable(MaskedTable):
    """A protected table by any software; ids tell right links from wrong ones."""

    entity_id: Text | None = Field(
        None, description="Column that holds the persons of table.entity_id; the rows of one person have the same."
    )


Protected = Annotated[Literal["published"] | ProtectedTable, published_or(ProtectedTable)]


class KnownTable(ProtectedTable):
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
    columns: tuple[Text, ...] = Field(
        (),
        description="Columns the intruder knows; default all quasi-identifiers. Sensitive and insensitive ones may be "
        "among them that are released as they are, or masked.",
    )
    levels: Annotated[dict[str, Natural], SORTED] = Field(
        default_factory=dict, description="Known column: the level of its hierarchy up to which he knows it; default 0."
    )
    errors: Errors = Field(Errors(), description="Values he lacks or has wrong, such as {missing: 0.1, wrong: 0.05}.")
    table: KnownTable | None = Field(
        None,
        description="His own table instead of the original one, such as {path: voters.csv, format: csv, record_id: "
        "id}; its columns may have other names, and hold values or labels of the hierarchies.",
    )


class ProbabilisticPolicy(Part):
    """Links by match weights, whose probabilities are estimated from the two files alone (Fellegi and Sunter 1969)."""

    engine: Engine = Field(
        "own",
        description="Who estimates the probabilities: 'own', from counts of all pairs, or 'splink', by its own "
        "comparisons and its own EM algorithm on DuckDB, in the driver (pip install 'privrisk-spark[splink]'). "
        "The search for links is the same.",
    )
    estimated: tuple[Estimable, ...] = Field(
        (),
        description="What EM estimates besides m: 'u', which else is how all pairs agree, from 3 known columns on; "
        "'prior', the share of pairs of one person, which else is one over the rows of the larger file.",
    )
    false_links: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        1e-4, description="Share of the pairs of two people that may be taken for links, by the model."
    )
    false_non_links: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        0.1,
        description="Share of the pairs of one person that may be taken for no links; a clerk decides what is between.",
    )
    term_frequencies: tuple[Text, ...] = Field(
        (),
        description="Known columns in which agreement on a rare value weighs more than on a frequent one (Winkler's "
        "adjustment); not those compared as numbers.",
    )


class LearnedPolicy(Part):
    """Distances an intruder learns who has seen true pairs: the worst case."""

    distances: tuple[Learnable, ...] = Field(
        ("weighted_mean", "ordered_weighted_average", "bilinear"),
        min_length=1,
        description="What is learned: a 'weighted_mean' of the columns' differences, weights of the sorted differences "
        "('ordered_weighted_average'), a 'bilinear' form, or a 'choquet' integral of at most 8 columns.",
    )
    training: Annotated[int, Field(ge=1, le=5000), NUMBER] = Field(
        300, description="Records whose own row the intruder knows; others are found by what he has learned of them."
    )
    held_out: Annotated[int, Field(ge=1, le=100_000), NUMBER] = Field(
        2000, description="Other records, on which it is tried; drawn by their ids and attack.intruder.seed."
    )


class AttackPolicy(Section):
    """Attacks by record linkage: people are linked to the nearest protected rows, and rows to the nearest people."""

    protected: Protected = Field(
        "published",
        description="The protected table: 'published' is the newest release at output.path, whose vault tells which "
        "row is whose; or {path: …, record_id: …} of any software's, or {path: …, entity_id: …} where persons have "
        "several rows. With neither links are scored, and none is called right.",
    )
    intruder: Intruder = Intruder()
    methods: tuple[Literal[Method, "all"], ...] = Field(
        ("distance",),
        min_length=1,
        description="What is tried, or [all] that can be. Links: 'distance', to the nearest candidates; "
        "'probabilistic', to the likeliest ones (Fellegi and Sunter); 'learned', by distances learned from true pairs; "
        "'transparency', by the levels a table was recoded by. Sensitive values: 'homogeneity' of classes; 'external', "
        "with the intruder's own row taken away; 'background', with a value he knows to be false; 'skewness' and "
        "'similarity' of values; 'minimality', as finer schemes were given up; 'composition' with other releases. "
        "'membership': who is in the protected table.",
    )
    levels: Annotated[dict[str, Natural], SORTED] = Field(
        default_factory=dict,
        description="Known column: level of its hierarchy that all rows of the protected table have, for "
        "'transparency'; default those of the release's own scheme.",
    )
    also: tuple[KnownTable, ...] = Field(
        (),
        description="Other releases of the same people, with ids, for 'composition', such as [{path: may.parquet, "
        "record_id: id}].",
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
    standardization: tuple[Standardization, ...] = Field(
        ("people", "each_file"),
        min_length=1,
        description="How numbers are standardized, each tried: both files by the deviation of the 'people', so that "
        "equal numbers stay equal; or 'each_file' by its own mean and deviation, in the columns whose protected cells "
        "are numbers of another mean or deviation.",
    )
    probabilistic: ProbabilisticPolicy = ProbabilisticPolicy()
    learned: LearnedPolicy = LearnedPolicy()
    exact_pairs: Count = Field(
        10**10,
        description="Comparisons of cells that an attack may take. Where all pairs are more, 'distance', "
        "'probabilistic' and 'membership' search in blocks, match weights are estimated from pairs of a sample; "
        "'transparency' by masks is refused if the windows that masks leave take more.",
    )
    blocking: Blocking = Field(
        "automatic",
        description="How blocks are made above exact_pairs: of the records whose cells fit in a few columns "
        "('consistent_cells'), of those next to each other on the first principal axis of the numbers "
        "('principal_axis', not of match weights), 'automatic'ally of what will do, in this order, or 'never': then "
        "it is refused. The share of links that lose no candidate is measured and told.",
    )
    gain_above: Annotated[float, Field(ge=1, allow_inf_nan=False), NUMBER] = Field(
        2.0, description="Of 'skewness': how many times as likely as in the table a value must be in a class."
    )
    correct_links_at_most: Annotated[float, Field(ge=0, le=1), NUMBER] | None = Field(
        None,
        description="Greatest share of the records that may be found; its upper 95 % limit is held against it, and "
        "exit code 1 says it is exceeded.",
    )

    values_certain_at_most: Annotated[float, Field(ge=0, le=1), NUMBER] | None = Field(
        None,
        description="Greatest share of the people of whom a sensitive value may be certain; upper 95 % limits are held "
        "against it, likewise.",
    )

    @property
    def truth(self) -> Literal["rows", "persons"] | None:
        """What is known of whose each row of the protected table is: of which record, only of which person, nothing."""
        if not isinstance(self.protected, ProtectedTable) or self.protected.record_id is not None:
            return "rows"
        return None if self.protected.entity_id is None else "persons"

    @property
    def asked(self) -> tuple[Method, ...]:
        """Methods that are asked for."""
        if "all" in self.methods:
            return METHODS
        return tuple(method for method in METHODS if method in self.methods)

    @property
    def tried(self) -> tuple[Method, ...]:
        """Methods that are tried where they can be."""
        return tuple(method for method in self.asked if self.truth == "rows" or method in WITHOUT_ROWS)


def attack_of(policy: Policy) -> AttackPolicy:
    """Return the section ``attack`` of a policy, or the defaults."""
    return policy.attack if isinstance(policy.attack, AttackPolicy) else AttackPolicy()
