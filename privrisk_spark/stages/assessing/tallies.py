"""All tallies of equivalence classes, by one pass over the classes of a bucket; they add up over buckets.

Nothing here is arithmetic of a measure: each is a kernel's. What is decided here is which measures a subject has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.classes import criteria
from privrisk_spark.kernels.classes.classes import Classes
from privrisk_spark.kernels.classes.closeness import TableDistribution, greatest_log_ratio_present
from privrisk_spark.kernels.classes.criteria import Criterion
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.classes.tally import ClassTally
from privrisk_spark.kernels.measures.classification import ClassificationTally
from privrisk_spark.kernels.measures.divergence import DivergenceTally, spread_over
from privrisk_spark.kernels.measures.identity import SizeHistogram
from privrisk_spark.kernels.measures.loss import (
    CellTally,
    SizeTally,
    fully_suppressed,
    leaf_ncp,
    node_levels,
    record_penalty,
    share_loss,
    step_loss,
)
from privrisk_spark.kernels.measures.population_risk import IndividualRiskTally
from privrisk_spark.kernels.measures.population_sizes import PopulationHistogram
from privrisk_spark.kernels.measures.weighted_sizes import WeightTally
from privrisk_spark.kernels.numeric.fold import Tally, refuse_other

Distance = Literal["equal", "ordered", "hierarchical"]
Suppressed = Literal["class", "apart", "compatible"]


@dataclass(frozen=True, eq=False)
class Sensitive:
    """A sensitive attribute as the classes hold it.

    Attributes
    ----------
    distance : {"equal", "ordered", "hierarchical"}
    ancestor : ndarray of int32, shape (values, H + 1), or None
        Of the hierarchical distance.
    c : float
        Of recursive (c, l)-diversity.
    missing : int
        Code of the missing value.
    """

    name: str
    distance: Distance
    ancestor: IntArray | None
    c: float
    missing: int

    def criteria(
        self, runs: SensitiveRuns, table: TableDistribution, *, asked: Mapping[str, float]
    ) -> list[tuple[str, Criterion, FloatArray | LongArray, float]]:
        """Name of the measure, criterion, number of each class and bound of every model."""
        closeness = criteria.CLOSENESS[self.distance]
        ground = {"ancestor": self.ancestor} if self.distance == "hierarchical" else {}
        of_table = {"table": table}
        models: list[tuple[str, Criterion, Mapping[str, Any], float]] = [
            ("p_sensitive", criteria.P_SENSITIVITY, {}, 2.0),
            ("homogeneity", criteria.HOMOGENEITY, {}, 2.0),
            ("l_entropy", criteria.ENTROPY_DIVERSITY, {}, 2.0),
            ("l_recursive", criteria.RECURSIVE_L, {"c": self.c}, 2.0),
            ("t_closeness", closeness, of_table | ground, 0.2),
            ("alpha", criteria.ALPHA, {}, 0.5),
            ("beta_likeness", criteria.BETA_LIKENESS, of_table, 1.0),
            ("enhanced_beta_likeness", criteria.ENHANCED_BETA_LIKENESS, of_table, 1.0),
            ("delta_disclosure", criteria.DELTA_DISCLOSURE, of_table, 1.0),
        ]
        return [
            (name, criterion, criterion.numbers_of_known(runs, self.missing, **given), asked.get(name, usual))
            for name, criterion, given, usual in models
        ]

    def of_classes(self, runs: SensitiveRuns, table: TableDistribution) -> dict[str, FloatArray | LongArray]:
        """What each class gives away, by the names of :data:`DIVERSITY`: what a record is told of its class."""
        closeness = criteria.CLOSENESS[self.distance]
        ground = {"ancestor": self.ancestor} if self.distance == "hierarchical" else {}
        found = (
            criteria.DISTINCT_DIVERSITY.numbers_of_known(runs, self.missing).astype(np.int64),
            criteria.ENTROPY_DIVERSITY.numbers_of_known(runs, self.missing),
            closeness.numbers(runs, table=table, **ground),
            criteria.ALPHA.numbers_of_known(runs, self.missing),
        )
        return dict(zip(DIVERSITY, found, strict=True))


DIVERSITY = ("l_distinct", "l_entropy", "t_closeness", "alpha")
"""What is kept of a class for each sensitive attribute; the first is a count."""


@dataclass(frozen=True, eq=False)
class Released:
    """Cells of the release, to spread over the leaves of the table.

    Attributes
    ----------
    nodes : ndarray of int32, shape (m, k)
    rows : ndarray of int64, shape (m,)
    """

    nodes: IntArray
    rows: LongArray


@dataclass(frozen=True, eq=False)
class ClassMeasures:
    """What is measured of the classes of a subject.

    Attributes
    ----------
    hierarchies : tuple of k Hierarchy
    thresholds : tuple of float
        Risks whose share of records above is told.
    bounds : mapping of measure to float
        For the classes that fail; the thresholds of the policy.
    sensitive : tuple of Sensitive
        Of the first of the attributes the classes hold.
    label : int or None
        Which of the attributes is to be predicted.
    tables : tuple of ndarray of int64
        How often the whole subject has each value of each attribute.
    cells : bool
        Measure the loss of released cells.
    released : Released or None
        Measure the divergence of a release from this table.
    suppressed : {"class", "apart", "compatible"}
        Records that are suppressed whole: a class like any, in no class, or compatible with all. Unless they are a
        class, what they hold is no measure of what a class gives away.
    """

    hierarchies: tuple[Hierarchy, ...]
    k: int
    worst: int
    thresholds: tuple[float, ...]
    bounds: Mapping[str, float] = field(default_factory=dict)
    sensitive: tuple[Sensitive, ...] = ()
    label: int | None = None
    tables: tuple[LongArray, ...] = ()
    cells: bool = False
    released: Released | None = None
    suppressed: Suppressed = "class"


@dataclass(frozen=True)
class Tallies:
    """Everything measured of some of the classes of a subject.

    Attributes
    ----------
    sizes : SizeHistogram
        Of class sizes ``f``.
    small : ClassTally
        k-anonymity, with the worst classes.
    rows, apart, persons : int
        Rows, those of them that are suppressed whole and left out, and persons of the others' classes added up.
    compatible : PopulationHistogram or None
        Of class sizes and the rows they are compatible with, where a missing value may be any.
    mapped : ClassTally or None
        k-map, with the worst classes; 0 of a class that the population lacks.
    attribute : tuple of mapping of measure to ClassTally
        Of each sensitive attribute.
    log_ratios : tuple of float
        Greatest ``|ln(q/p)|`` over the values a class holds, of each sensitive attribute; 0 of no class.
    cells : mapping of measure to CellTally
    """

    sizes: SizeHistogram
    small: ClassTally
    rows: int
    apart: int
    persons: int
    compatible: PopulationHistogram | None
    population: PopulationHistogram | None
    mapped: ClassTally | None
    weights: WeightTally | None
    individual: IndividualRiskTally | None
    attribute: tuple[Mapping[str, ClassTally], ...]
    log_ratios: tuple[float, ...]
    spread: SizeTally
    label: ClassificationTally | None
    cells: Mapping[str, CellTally]
    penalty: CellTally | None
    divergence: DivergenceTally | None

    @classmethod
    def of(
        cls,
        classes: Classes,
        asked: ClassMeasures,
        population: LongArray | None = None,
    ) -> Tallies:
        """Measure whole classes.

        Parameters
        ----------
        population : ndarray of int64, shape (m,), optional
            People of the population in each class.
        """
        all_of_them, all_rows, all_nodes = classes, classes.rows, classes.nodes
        lost = fully_suppressed(all_nodes, [hierarchy.root for hierarchy in asked.hierarchies])
        telling = classes.where(~lost) if asked.suppressed != "class" and lost.any() else classes
        if asked.suppressed == "apart" and lost.any():
            classes = telling
            population = None if population is None else population[~lost]
        sizes, crowds, nodes, thresholds = classes.sizes, classes.crowds, classes.nodes, asked.thresholds
        overlapping = classes.compatible is not None
        attribute, log_ratios = [], []
        for sensitive, runs, count in zip(asked.sensitive, telling.held, asked.tables, strict=False):
            # A missing value is one more value of the domain only where there is one.
            domain = count if count[-1] else count[:-1]
            distribution = TableDistribution(domain)
            of_class = sensitive.criteria(runs, distribution, asked=asked.bounds)
            log_ratios.append(float(greatest_log_ratio_present(runs, distribution).max(initial=0.0)))
            attribute.append(
                {
                    name: ClassTally.of(criterion, values, telling.sizes, telling.nodes, asked=bound, most=asked.worst)
                    for name, criterion, values, bound in of_class
                }
            )
        runs_of_label = None if asked.label is None else all_of_them.held[asked.label]
        cells, penalty = {}, None
        if asked.cells:
            leaves = [hierarchy.n_under for hierarchy in asked.hierarchies]
            losses = {
                "precision": [step_loss(node_levels(hierarchy.parent)) for hierarchy in asked.hierarchies],
                "generalized_information_loss": [share_loss(count) for count in leaves],
                "gcp": [leaf_ncp(count) for count in leaves],
                "iyengar_loss": [leaf_ncp(count, "iyengar") for count in leaves],
            }
            cells = {name: CellTally.of(all_nodes, all_rows, loss) for name, loss in losses.items()}
            of_record = record_penalty(all_nodes, leaves)
            penalty = CellTally.of(np.arange(len(all_rows), dtype=np.int32)[:, None], all_rows, [of_record])
        weights, individual = _weighted(classes, thresholds)
        return cls(
            sizes=SizeHistogram.of(sizes),
            small=ClassTally.of(
                criteria.K_ANONYMITY,
                crowds,
                sizes,
                nodes,
                asked=asked.bounds.get("k", float(asked.k)),
                most=asked.worst,
            ),
            rows=int(all_rows.sum()),
            apart=int(all_rows[lost].sum()) if asked.suppressed == "apart" else 0,
            persons=int(sizes.sum()),
            compatible=PopulationHistogram.of(sizes, crowds) if overlapping else None,
            population=None if population is None else PopulationHistogram.of(sizes, population),
            mapped=None
            if population is None
            else ClassTally.of(criteria.K_MAP, population, sizes, nodes, asked=float(asked.k), most=asked.worst),
            weights=weights,
            individual=individual,
            attribute=tuple(attribute),
            log_ratios=tuple(log_ratios),
            spread=SizeTally.of(all_rows, k=asked.k, suppressed=lost),
            label=None
            if runs_of_label is None
            else ClassificationTally.of(
                runs_of_label.class_start, runs_of_label.value, runs_of_label.count, suppressed=lost
            ),
            cells=cells,
            penalty=penalty,
            divergence=None if asked.released is None else _divergence(all_of_them, asked, asked.released),
        )

    @classmethod
    def empty(
        cls, asked: ClassMeasures, *, weighted: bool = False, population: bool = False, compatible: bool = False
    ) -> Tallies:
        """Tallies of no class, with those that sampling weights, a population or missing values bring."""
        nothing = np.zeros(0, dtype=np.int64)
        none = Classes.none(len(asked.hierarchies), len(asked.tables), weighted=weighted)
        if compatible:
            none = replace(none, compatible=nothing, compatible_millionths=nothing if weighted else None)
        return cls.of(none, asked, nothing if population else None)

    @property
    def crowds(self) -> SizeHistogram | PopulationHistogram:
        """Among how many records hide: of class sizes, or of what classes are compatible with."""
        return self.sizes if self.compatible is None else self.compatible

    @property
    def question(self) -> list[list[str]]:
        """What tallies these can be added to share: the measures of each sensitive attribute, and those of cells."""
        return [*(list(of) for of in self.attribute), list(self.cells)]

    def plus(self, other: Tallies) -> Tallies:
        """Tallies of the classes of both.

        Raises
        ------
        InternalError
            If they are of different measures, or these are asked differently.
        """
        refuse_other(self.question, other.question, "Tallies of the same measures")
        return Tallies(
            sizes=self.sizes.plus(other.sizes),
            small=self.small.plus(other.small),
            rows=self.rows + other.rows,
            apart=self.apart + other.apart,
            persons=self.persons + other.persons,
            compatible=_added(self.compatible, other.compatible),
            population=_added(self.population, other.population),
            mapped=_added(self.mapped, other.mapped),
            weights=_added(self.weights, other.weights),
            individual=_added(self.individual, other.individual),
            attribute=tuple(
                {name: one[name].plus(two[name]) for name in one}
                for one, two in zip(self.attribute, other.attribute, strict=True)
            ),
            log_ratios=tuple(max(pair) for pair in zip(self.log_ratios, other.log_ratios, strict=True)),
            spread=self.spread.plus(other.spread),
            label=_added(self.label, other.label),
            cells={name: one.plus(other.cells[name]) for name, one in self.cells.items()},
            penalty=_added(self.penalty, other.penalty),
            divergence=_added(self.divergence, other.divergence),
        )


def _weighted(classes: Classes, thresholds: tuple[float, ...]) -> tuple[WeightTally | None, IndividualRiskTally | None]:
    """Risks in the population by sampling weights, of all that a class is compatible with."""
    if classes.millionths is None:
        return None, None
    alike = classes.millionths if classes.compatible_millionths is None else classes.compatible_millionths
    people, weights, sizes = classes.millionths / 1e6, alike / 1e6, classes.sizes
    return (
        WeightTally.of(classes.crowds, weights, thresholds, records=sizes, people=people),
        IndividualRiskTally.of(classes.crowds, weights, thresholds, records=sizes),
    )


def _added(one: Tally | None, other: Tally | None) -> Tally | None:
    """Add up what a subject has, or has not."""
    if one is None or other is None:
        refuse_other(one is None, other is None, "Tallies of the same measures")
        return None
    return one.plus(other)


def _divergence(classes: Classes, asked: ClassMeasures, released: Released) -> DivergenceTally:
    spread = spread_over(
        classes.nodes,
        released.nodes,
        released.rows,
        at_depth=[hierarchy.at_depth for hierarchy in asked.hierarchies],
        leaves=[hierarchy.n_under for hierarchy in asked.hierarchies],
    )
    return DivergenceTally.of(classes.rows, spread)
