"""Every set of quasi-identifiers of every subject measured, class by class, and what follows from the tallies."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.counts import StoredCounts
from privrisk_spark.engine.population import PeopleOf
from privrisk_spark.json_values import from_json
from privrisk_spark.kernels.adversary.process import Solution
from privrisk_spark.kernels.measures.household import HouseholdTally
from privrisk_spark.kernels.numeric.fold import folded
from privrisk_spark.pipelines.assess.counted import Counted, CountedSubject
from privrisk_spark.pipelines.assess.opened import Opened
from privrisk_spark.pipelines.run import ResultRun
from privrisk_spark.planning.assessment import ALL
from privrisk_spark.results.assessment import Measured, Subject, WorstClass
from privrisk_spark.results.plots import Plot
from privrisk_spark.stages.assessing import attack, measures
from privrisk_spark.stages.assessing.buckets import counting_values, kept_schema, tallying
from privrisk_spark.stages.assessing.classes import (
    count_rows,
    counted_rows,
    each_bucket,
    kept_tables,
    renamed,
)
from privrisk_spark.stages.assessing.classifiers import collect_predictions
from privrisk_spark.stages.assessing.columns import KeptSet, Separated, collect_separation
from privrisk_spark.stages.assessing.compatible import CompatibleClasses, Overlap, collect_compatible
from privrisk_spark.stages.assessing.households import HOUSEHOLD, collect_households
from privrisk_spark.stages.assessing.joint import JointDiversity, collect_joint_diversity
from privrisk_spark.stages.assessing.log_linear import collect_log_linear
from privrisk_spark.stages.assessing.numeric_utility import collect_numeric_utility
from privrisk_spark.stages.assessing.pairs import collect_concealment, collect_entropy_loss, collect_intervals
from privrisk_spark.stages.assessing.plots import plots_of
from privrisk_spark.stages.assessing.records import (
    ROWS,
    KeptClasses,
    beside_classes,
    of_records,
    write_nothing,
    written,
)
from privrisk_spark.stages.assessing.sources import totals
from privrisk_spark.stages.assessing.special_uniques import Sought, collect_special
from privrisk_spark.stages.assessing.tallies import ClassMeasures, Released, Tallies
from privrisk_spark.storage.parts import PartDirectory

RECORDS = {"table": "records", "release": "released-records"}
"""Directory of the records of each subject."""

MOST_CELLS = 2_000_000
"""Cells of a release a task holds to spread them over the table."""

_FROM_OTHERS = frozenset({"k_map", "journalist_max"})
"""Bounds that are no bound of a class's own number."""


@dataclass(frozen=True, eq=False)
class MeasuredSet:
    """A set of quasi-identifiers of a subject, measured.

    Attributes
    ----------
    tallies : Tallies
        Of all classes.
    asked : ClassMeasures
        What was measured of a class.
    classes : PartDirectory
        Directory of what is kept of the classes.
    parts : tuple of dict
        Names and facts of the parts there.
    schema : StructType
        Of the parts.
    suppressed : Suppressed or None
        Of a release.
    joint : tuple of mapping of measure to ClassTally
        Diversity of each sensitive attribute for who knows the others; empty of fewer than two.
    """

    tallies: Tallies
    asked: ClassMeasures
    classes: PartDirectory
    parts: tuple[dict[str, Any], ...]
    schema: T.StructType
    suppressed: measures.Suppressed | None = None
    joint: tuple[JointDiversity, ...] = ()

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return sum(part["classes"] for part in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts."""
        return tuple(part["name"] for part in self.parts)


MeasuredSets = Mapping[str, Mapping[str, MeasuredSet]]
"""By subject and set."""


def measure_sets(run: ResultRun, opened: Opened, counted: Counted) -> tuple[MeasuredSets, dict[str, float]]:
    """Measure each set of each subject; the release first, whose cells the table is spread over.

    Returns
    -------
    MeasuredSets
    dict of str to float
        Seconds each of them took.
    """
    measured: dict[str, dict[str, MeasuredSet]] = {subject.name: {} for subject in counted.subjects}
    seconds: dict[str, float] = {}
    for number, (name, columns) in enumerate(opened.sets.items()):
        released: Released | None = None
        for subject in reversed(counted.subjects):
            begun = time.monotonic()
            of_set = _measure_set(run, opened, counted, subject, number, columns, released)
            seconds[f"{subject.name}, set {name}"] = round(time.monotonic() - begun, 3)
            measured[subject.name][name] = of_set
            if subject.name == "release":
                released = _cells(of_set)
    return measured, seconds


def _cells(measured: MeasuredSet) -> Released | None:
    """Cells of a release, if a task can hold them."""
    if measured.n_classes > MOST_CELLS:
        return None
    table = kept_tables(measured.classes, measured.parts)
    names = schemas.nodes(len(measured.asked.hierarchies))
    nodes = np.column_stack([table.column(name).to_numpy() for name in names])
    return Released(nodes, table.column(ROWS).to_numpy())


def _measure_set(
    run: ResultRun,
    opened: Opened,
    counted: Counted,
    subject: CountedSubject,
    number: int,
    columns: list[str],
    released: Released | None,
) -> MeasuredSet:
    """Count the set's classes, if they are not those of all quasi-identifiers, and measure them in their buckets."""
    scratch, positions = run.scratch, opened.positions(columns)
    layout, directory, parts, buckets = subject.layout, subject.directory, subject.parts, subject.buckets
    if positions != list(range(len(opened.hierarchies))):
        directory = scratch.directory(f"counted-{subject.name}-{number}")
        layout = subject.layout.of_set(positions)
        of_all = counted_rows(run.spark, subject.directory, subject.names, subject.layout)
        rows = renamed(of_all, positions, layout.others)
        parts = tuple(scratch.collect_parts(count_rows(rows, layout, buckets, directory)))
    names, n_rows = tuple(part["name"] for part in parts), sum(part["rows"] for part in parts)
    lost = sum(part["suppressed"] for part in parts)
    # Where every record is at the root, columns are generalized, and no record is suppressed.
    of_lost = run.policy.assess.suppressed if subject.name == "release" and 0 < lost < n_rows else "class"
    asked = replace(_asked_of(run, opened, subject, columns, released), suppressed=of_lost)
    completed: CompatibleClasses | None = None
    overlap = Overlap(_wild(run, columns, parts), of_lost)
    if overlap.wild or of_lost == "compatible":
        place = scratch.directory(f"compatible-{subject.name}-{number}")
        most = run.policy.counting.sorted_vectors
        completed = collect_compatible(scratch, directory, names, buckets, layout, overlap, most=most, target=place)
    if layout.persons:
        counting = counting_values(layout.bounds[len(layout.radices) :])
        of_buckets = each_bucket(scratch, directory, names, buckets, layout, counting, None)
        asked = replace(asked, tables=totals(scratch.collect_parts(of_buckets), layout))
    target = scratch.directory(f"classes-{subject.name}-{number}")
    measuring = tallying(asked, population=_people(opened, counted.population, positions))
    of_buckets = each_bucket(scratch, directory, names, buckets, layout, measuring, target, completed)
    written = scratch.collect_parts(of_buckets)
    first, *others = (from_json(Tallies, part["tallies"]) for part in written)  # at least one bucket
    tallies = folded(first, others)
    schema = kept_schema(
        len(columns),
        population=counted.population is not None,
        weighted=layout.weighted,
        sensitive=[sensitive.name for sensitive in asked.sensitive],
    )
    joint: tuple[JointDiversity, ...] = ()
    if len(asked.sensitive) > 1:
        joint = collect_joint_diversity(
            scratch, directory, names, buckets, layout, asked.sensitive, apart=of_lost != "class"
        )
    suppressed = measures.Suppressed(lost, of_lost) if subject.name == "release" else None
    return MeasuredSet(tallies, asked, target, tuple(written), schema, suppressed, joint)


def _wild(run: ResultRun, columns: Sequence[str], parts: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Attributes of a set of which a value is missing, or suppressed, and may be any."""
    kinds = [run.policy.quasi_identifiers[name].nulls for name in columns]
    there = [any(part["at_root"][i] for part in parts) for i in range(len(columns))]
    return tuple(i for i, kind in enumerate(kinds) if kind == "wildcard" and there[i])


def _asked_of(
    run: ResultRun, opened: Opened, subject: CountedSubject, columns: Sequence[str], released: Released | None
) -> ClassMeasures:
    """Return what is measured of a class of the set."""
    assess = run.policy.assess
    names = [vocabulary.name for vocabulary in subject.vocabularies]
    sensitive = [
        vocabulary
        for vocabulary in subject.vocabularies
        if vocabulary.name in assess.sensitive or run.policy.columns[vocabulary.name].role == "sensitive"
    ]
    return ClassMeasures(
        hierarchies=tuple(opened.hierarchies[column] for column in columns),
        k=assess.k,
        worst=assess.worst,
        thresholds=tuple(assess.risk_above),
        bounds={name: bound for name, bound in assess.thresholds.items() if name not in _FROM_OTHERS},
        sensitive=tuple(vocabulary.sensitive(assess.sensitive.get(vocabulary.name)) for vocabulary in sensitive),
        label=names.index(assess.label) if assess.label is not None and assess.label in names else None,
        tables=subject.tables,
        cells=subject.name == "release",
        released=released,
    )


def _people(opened: Opened, counts: StoredCounts | None, positions: Sequence[int]) -> PeopleOf | None:
    if counts is None:
        return None
    return PeopleOf(counts, tuple(opened.hierarchies.values()), tuple(positions))


def compare_pairs(run: ResultRun, opened: Opened, counted: Counted, n_rows: int) -> Iterator[Measured]:
    """Measures that need to know which record became which; none where the release does not name its records."""
    if counted.pairs is None:
        return
    matched, assess = counted.pairs.matched, run.policy.assess
    of = {"subject": "release", "set": ALL}
    yield from collect_entropy_loss(matched, opened.hierarchies, of)
    if assess.concealment:
        yield from collect_concealment(matched, n_rows, list(opened.hierarchies.values()), of)
    kept = opened.policy.kept_columns
    intervals = {name: (interval, f"r{kept.index(name)}") for name, interval in assess.intervals.items()}
    yield from collect_intervals(run.scratch, matched, counted.pairs.records, intervals, of)
    yield from collect_numeric_utility(run.scratch, matched, list(assess.intervals), of)


SpecialUniques = Mapping[tuple[str, str], Sequence[Measured]]
"""Measures of minimal sample uniques by subject and set."""


def find_special_uniques(run: ResultRun, opened: Opened, measured: MeasuredSets) -> SpecialUniques:
    """Find the minimal sample uniques of each set of each subject, if the policy asks for them."""
    asked, most = run.policy.assess.special_uniques, run.policy.counting.sorted_vectors
    if asked is None:
        return {}
    skipped: dict[tuple[str, str], list[Measured]] = {}
    sought: dict[tuple[str, str], Sought] = {}
    for subject, sets in measured.items():
        for name, of_set in sets.items():
            if of_set.n_classes > most:
                reason = f"more than {most:,} distinct records (counting.sorted_vectors); assess smaller sets"
                unknown = ("special_uniques", "suda_max", "dis_max", "dis_mean", "suda_contribution")
                skipped[subject, name] = [Measured(measure, None, {"reason": reason}) for measure in unknown]
                continue
            columns = tuple(opened.sets[name])
            fraction = run.policy.assess.sampling_fraction or asked.dis_fraction
            sought[subject, name] = Sought(
                of_set.classes, of_set.names, columns, min(asked.size, len(columns)), fraction
            )
    return skipped | dict(zip(sought, collect_special(run.scratch, list(sought.values())), strict=True))


SeparatedSets = Mapping[tuple[str, str], Separated]
"""How well each set of each subject tells records apart."""


def find_separation(run: ResultRun, measured: MeasuredSets) -> SeparatedSets:
    """Find how well each set of each subject, and each of its columns, tells records apart."""
    sets = {(subject, name): of_set for subject, held in measured.items() for name, of_set in held.items()}
    kept = [KeptSet(one.classes, one.names, len(one.asked.hierarchies)) for one in sets.values()]
    return dict(zip(sets, collect_separation(run.scratch, kept), strict=True))


LogLinear = Mapping[tuple[str, str], Sequence[Measured]]
"""Estimates of each set of each subject by log-linear models."""


def find_log_linear(run: ResultRun, measured: MeasuredSets) -> LogLinear:
    """Estimate population uniques by log-linear models, where the share of the population in the table is known."""
    fraction, most = run.policy.assess.sampling_fraction, run.policy.counting.sorted_vectors
    if fraction is None or fraction == 1:
        return {}
    kept, of = {}, []
    for subject, sets in measured.items():
        for name, of_set in sets.items():
            if of_set.tallies.compatible is None and of_set.n_classes <= most:
                kept[subject, name] = KeptSet(of_set.classes, of_set.names, len(of_set.asked.hierarchies))
                of.append({"subject": subject, "set": name})
    return dict(zip(kept, collect_log_linear(run.scratch, list(kept.values()), fraction, of), strict=True))


Households = Mapping[tuple[str, str], Mapping[str, HouseholdTally]]
"""Risks of the households of each set of each subject, by what the risk of a record is."""


def find_households(
    run: ResultRun, opened: Opened, counted: Counted, measured: MeasuredSets, n_rows: int
) -> Households:
    """Find the risk of each household, if the policy names them; of a release, where it names its records."""
    found: dict[tuple[str, str], Mapping[str, HouseholdTally]] = {}
    for subject in counted.subjects:
        if HOUSEHOLD not in subject.rows.schema.fieldNames():
            continue
        for number, (name, columns) in enumerate(opened.sets.items()):
            rows = renamed(subject.rows, opened.positions(columns), [HOUSEHOLD], named=[schemas.RECORD_ID])
            kept = _kept(opened, measured[subject.name][name], columns)
            beside = beside_classes(run.spark, rows, kept, most=run.policy.counting.sorted_vectors)
            store = f"households-{subject.name}-{number}"
            found[subject.name, name] = collect_households(run.scratch, beside, n_rows, store=store)
    return found


def _kept(opened: Opened, of_set: MeasuredSet, columns: Sequence[str]) -> KeptClasses:
    radices = tuple(opened.hierarchies[column].n_nodes for column in columns)
    return KeptClasses(of_set.classes, of_set.names, of_set.schema, radices, of_set.n_classes)


def predict_labels(run: ResultRun, opened: Opened, counted: Counted) -> dict[str, list[Measured]]:
    """Predict the label of each subject that holds it, from the first set, if the policy asks for classifiers."""
    asked, label = run.policy.assess.classifiers, run.policy.assess.label
    found: dict[str, list[Measured]] = {}
    if asked is None or label is None:
        return found
    name, columns = next(iter(opened.sets.items()))
    for subject in counted.subjects:
        held = [vocabulary.name for vocabulary in subject.vocabularies]
        if label not in held:
            continue
        rows = sum(part["rows"] for part in subject.parts)
        of = {"subject": subject.name, "set": name}
        found[subject.name] = list(
            collect_predictions(
                run.scratch,
                subject.directory,
                subject.names,
                subject.buckets,
                subject.layout,
                opened.positions(columns),
                held.index(label),
                rows,
                asked,
                of,
            )
        )
    return found


Planned = tuple[attack.Groups, Solution, attack.AttackTable]
"""The attack on every group size: the groups, its solution, and what a record of each size is told."""


def planned_attack(run: ResultRun, counted: Counted, measured: MeasuredSet) -> Planned | None:
    """Return the attack of the adversary the policy assumes, if it does."""
    policy = run.policy.assess.adversary
    if policy is None:
        return None
    histogram = measured.tallies.population
    if histogram is not None and counted.population is not None:
        groups = attack.Groups.of_population(histogram, counted.population.dictionary_rows)
    else:
        groups = attack.Groups.of_table(measured.tallies.crowds, run.policy.assess.sampling_fraction)
    return groups, *attack.planned(policy, groups)


def subject_of(
    run: ResultRun,
    opened: Opened,
    counted: Counted,
    measured: MeasuredSets,
    special: SpecialUniques,
    separated: SeparatedSets,
    households: Households,
    log_linear: LogLinear,
    subject: CountedSubject,
    more: Sequence[Measured],
) -> Subject:
    """Return every measure of a subject, set by set.

    Parameters
    ----------
    run, opened, counted, measured, special, separated, households, log_linear
        As the stages before returned them.
    more : sequence of Measured
        Measures beside those of sets.
    """
    assess = run.policy.assess
    found: list[Measured] = []
    worst: list[WorstClass] = []
    plots: list[Plot] = []
    for name, columns in opened.sets.items():
        of = {"subject": subject.name, "set": name}
        of_set = measured[subject.name][name]
        tallies, asked = of_set.tallies, of_set.asked
        original = measured["table"][name].tallies if subject.name == "release" else None
        found += measures.identity(tallies, asked, of, suppressed=of_set.suppressed)
        if assess.household is not None:
            found += measures.households(households.get((subject.name, name)), of)
        found += measures.population(tallies, asked, of, assess.sampling_fraction)
        found += log_linear.get((subject.name, name), ())
        for unique in special.get((subject.name, name), ()):
            found.append(replace(unique, parameters={**of, **unique.parameters}))
        found += measures.separation(separated[subject.name, name], of, columns)
        found += measures.attribute(tallies, asked, of, of_set.joint)
        found += measures.utility(tallies, asked, of, columns, original=original)
        worst += measures.worst_classes(tallies, asked, of, asked.hierarchies)
        planned = planned_attack(run, counted, of_set)
        if planned is not None and assess.adversary is not None:
            found += attack.attacked(assess.adversary, *planned, of)
        plots += plots_of(tallies, asked, planned, assess.adversary, name)
    return Subject(subject.name, subject.title, (*found, *more), tuple(worst), tuple(plots))


def write_records(run: ResultRun, opened: Opened, counted: Counted, measured: MeasuredSets) -> None:
    """Write each record's risks, for the set of all quasi-identifiers or the first one."""
    name, columns = next(iter(opened.sets.items()))
    for subject in counted.subjects:
        if schemas.RECORD_ID not in subject.rows.schema.fieldNames():
            continue
        of_set = measured[subject.name][name]
        planned = planned_attack(run, counted, of_set)
        kept = _kept(opened, of_set, columns)
        known = renamed(subject.rows, opened.positions(columns), [schemas.RECORD_ID])
        rows = of_records(
            beside_classes(run.spark, known, kept, most=run.policy.counting.sorted_vectors),
            record_id=run.policy.table.record_id or schemas.RECORD_ID,
            attack=None if planned is None else planned[2],
            fraction=run.policy.assess.sampling_fraction,
        )
        source = run.scratch.directory(f"parts-of-{RECORDS[subject.name]}")
        parts = [part["name"] for part in run.scratch.collect_parts(written(rows, source))]
        source.take(parts or [write_nothing(rows, source)], run.scratch.path / RECORDS[subject.name])
