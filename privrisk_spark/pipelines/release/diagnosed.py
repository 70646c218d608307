"""What is measured of decisions beyond their risk: jumps, linkage, a true dictionary, other recodings of a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.engine.counts import SpreadVectors, StoredAttacker, StoredCounts, not_held, own_vectors
from privrisk_spark.engine.decided import WeightColumns
from privrisk_spark.engine.value_codes import ids_are_numbers
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import GreatestAggregate
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.pipelines.release.encoded import Counted
from privrisk_spark.pipelines.release.opened import Opened
from privrisk_spark.pipelines.release.written import Decided
from privrisk_spark.planning.counting import plan_of
from privrisk_spark.planning.dictionaries import true_dictionary
from privrisk_spark.planning.rules import Recoding, Rule
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.release import LinkageFacts, Section
from privrisk_spark.results.trade_off import Evidence
from privrisk_spark.stages.counting.dense_sorted import collect_counts, collect_held
from privrisk_spark.stages.deciding.sampled import Sampling
from privrisk_spark.tables.encode import dictionary_rows, id_of, identities

if TYPE_CHECKING:
    from privrisk_spark.engine.links import Linked
    from privrisk_spark.planning.trade_off import SampleSize
    from privrisk_spark.stages.deciding.sampled import Sampling
    from privrisk_spark.stages.diagnostics.bound import BoundFacts


def measure_decisions(
    scratch: Scratch,
    encoded: Batches,
    disclosure: Disclosure,
    procedure: Search | Rule | Recoding,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    *,
    counted: Sequence[StoredCounts | SpreadVectors],
    linked: Linked | None,
    true: DataFrame | None,
    table: DataFrame,
    dictionaries: Mapping[str, DataFrame],
) -> tuple[LinkageFacts | None, list[Section]]:
    """Measure the decisions a run has written.

    Parameters
    ----------
    scratch : Scratch
        Holds ``decisions``.
    encoded : Batches
        The table, resolved.
    disclosure, procedure, policy, hierarchies
        By which it was decided.
    counted : sequence of StoredCounts or SpreadVectors
        The dictionaries as the decisions were made against them.
    true : DataFrame or None
        The true dictionary of an estimate as Spark opened it.
    table : DataFrame
        As Spark opened it.
    dictionaries : mapping of name to DataFrame
        The external dictionaries as Spark opened them.
    """
    estimated = policy.dictionary.kind == "estimated"
    objective = procedure.objective if isinstance(procedure, Search) else None
    sections = []
    if isinstance(objective, GreatestAggregate):
        from privrisk_spark.stages.diagnostics.crossing import collect_crossings

        crossings = collect_crossings(scratch, encoded, disclosure, objective, policy, list(hierarchies), counted)
        sections = [] if crossings is None else [crossings.section()]
    if linked is None and not estimated:
        return None, sections
    from privrisk_spark.stages.diagnostics.linked_risk import decided_records

    rows = decided_records(scratch, encoded, policy, hierarchies)
    linkage = None
    if linked is not None:
        linkage = linkage_facts(scratch, rows, disclosure, policy, hierarchies, linked=linked, counted=counted[0])
    if not estimated:
        return linkage, sections
    if true is None:
        from privrisk_spark.stages.diagnostics.bound import assumed_bound

        return linkage, [*sections, assumed_bound()]
    estimate = dictionaries.get(policy.dictionaries[0].name)
    bound = bound_facts(
        scratch, rows, encoded, disclosure, counted[0], policy, hierarchies, table=table, estimate=estimate, true=true
    )
    return linkage, [*sections, bound.section()]


def linkage_facts(
    scratch: Scratch,
    decided_rows: Batches,
    disclosure: Disclosure,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    *,
    linked: Linked,
    counted: StoredCounts | SpreadVectors,
) -> LinkageFacts:
    """Measure the risk of the decisions after record linkage.

    Parameters
    ----------
    decided_rows : Batches
        Every record once: ``record_id``, ``q<i>``, ``l<i>``, ``w<i>`` and ``risk``.
    disclosure : Disclosure
        That was decided.
    policy : Policy
        With a linkage.
    hierarchies : mapping of quasi-identifier to Hierarchy
    counted : StoredCounts or SpreadVectors
        The dictionary as the decision was made against it. Where it knows an added attribute it is counted again.

    Raises
    ------
    InputError
        If the counts are too large for the driver.
    """
    from privrisk_spark.stages.diagnostics.linked_risk import collect_linkage, enlarged_policy

    larger, one = enlarged_policy(policy)
    if one.table is not None and any(name in one.table.columns for name in linked.hierarchies):
        everything = {**hierarchies, **linked.hierarchies}
        choice = plan_of(larger, everything, one)
        if choice.plan != "dense" and linked.dictionary is not None:
            choice = plan_of(larger, everything, one, rows=linked.dictionary.count())
        # The table is not counted: the dictionary is another one.
        rows = dictionary_rows(decided_rows, linked.dictionary, one, everything)
        _, counted = collect_counts(scratch, rows, larger, everything, one, choice)
    return collect_linkage(decided_rows, disclosure, larger, one, hierarchies, linked=linked, counts=counted)


def bound_facts(
    scratch: Scratch,
    decided: Batches,
    encoded: Batches,
    disclosure: Disclosure,
    estimate_counts: StoredCounts | SpreadVectors,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    *,
    table: DataFrame,
    estimate: DataFrame | None,
    true: DataFrame,
) -> BoundFacts:
    """Hold the estimate of a policy, and the decisions made against it, against its true dictionary.

    Parameters
    ----------
    decided : Batches
        Columns of DECIDED; with ``n_rows`` if a row stands for several records.
    encoded : Batches
        The table, resolved: where the estimate is the table itself, its identities.
    disclosure : Disclosure
        That was decided.
    policy : Policy
        Of the kind ``estimated``, with a true dictionary.
    hierarchies : mapping of attribute to Hierarchy
    table : DataFrame
        As Spark opened it.
    estimate : DataFrame or None
        As Spark opened it; None where it is the table itself.
    true : DataFrame
        As Spark opened it.

    Raises
    ------
    InputError
        If either dictionary takes a plan that leaves its count distributed.
    SchemaError, HierarchyError
        If an id column is not there, or the values of the true dictionary cannot be used.
    """
    (of_estimate,), of_true = policy.dictionaries, true_dictionary(policy)
    assert of_true is not None
    if not isinstance(estimate_counts, StoredCounts):
        raise not_held(of_estimate.key, estimate_counts.plan)
    mine = (table, policy.table.record_id) if estimate is None else (estimate, id_of(of_estimate))
    numbers = ids_are_numbers((true, id_of(of_true)), mine)
    known = identities(true, of_true, policy, hierarchies, numbers=numbers)
    if estimate is None:
        own = own_vectors(encoded.frame(), estimate_counts.axes, F.col(schemas.RECORD_ID).alias(schemas.ID))
    else:
        own = identities(estimate, of_estimate, policy, hierarchies, numbers=numbers)
    rows = dictionary_rows(encoded, true, of_true, hierarchies)

    from privrisk_spark.stages.diagnostics.bound import measure_bound

    return measure_bound(
        decided,
        disclosure,
        policy,
        hierarchies,
        estimate=own,
        true=known,
        estimate_counts=estimate_counts,
        true_counts=collect_held(scratch, rows, policy, hierarchies, of_true),
    )


def sampling_of(opened: Opened, counted: Counted, *, rows: int, policy: Policy) -> tuple[SampleSize, Sampling]:
    """Return how many records the report looks at, and how they are sampled.

    Parameters
    ----------
    rows : int
        Of the table.
    """
    from privrisk_spark.planning.trade_off import sample_size
    from privrisk_spark.stages.deciding.sampled import Sampling

    held = [counts.load() if isinstance(counts, StoredCounts) else None for counts in counted.counts]
    # What is out already is no part of a recoding.
    size = sample_size(
        [one.height for one in opened.hierarchies.values()], [*held, *([] if policy.history is None else [None])]
    )
    return size, Sampling(size.kept, rows, len(policy.weight_columns))


def evidence_of(
    decided: Decided,
    counted: Counted,
    disclosure: Disclosure,
    size: SampleSize,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
) -> Evidence:
    """Return what the vault's report shows of the sample.

    Parameters
    ----------
    decided : Decided
        With a sample.
    hierarchies : mapping of quasi-identifier to Hierarchy
    """
    sample = decided.sample
    assert sample is not None, "a release decided by risk samples its decisions"
    of_all = tuple(hierarchies.values())
    facts = None
    if size.evaluated and len(sample.codes):
        stored = [counts for counts in counted.counts if isinstance(counts, StoredCounts)]
        from privrisk_spark.planning.trade_off import least_utility
        from privrisk_spark.stages.deciding.sampled import trade_off

        facts = trade_off(
            sample,
            disclosure,
            StoredAttacker.of(policy, stored).load(),
            WeightColumns.of_policy(policy, list(hierarchies)),
            size=size,
            own=all(one.table is None for one in policy.dictionaries),
            floor=least_utility(policy),
        )
    return Evidence(sample.pairs(of_all), sample.risky_classes(of_all), facts)
