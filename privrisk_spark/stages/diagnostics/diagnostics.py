"""What is measured of decisions beyond their risk: after linkage, against a true dictionary, where they jump."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import GreatestAggregate
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.planning.rules import Rule
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.release import LinkageFacts, Section
from privrisk_spark.stages.counting.dense_sorted import SpreadVectors, StoredCounts
from privrisk_spark.stages.diagnostics.bound import assumed_bound, collect_bound
from privrisk_spark.stages.diagnostics.crossing import collect_crossings
from privrisk_spark.stages.diagnostics.linked_risk import collect_linkage, decided_records
from privrisk_spark.stages.tables.links import Linked


def collect_diagnostics(
    scratch: Scratch,
    encoded: Batches,
    disclosure: Disclosure,
    procedure: Search | Rule,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    *,
    counted: Sequence[StoredCounts | SpreadVectors],
    linked: Linked | None,
    true: DataFrame | None,
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
    linked : Linked or None
    true : DataFrame or None
        The true dictionary of an estimate as Spark opened it.
    dictionaries : mapping of name to DataFrame
        The external dictionaries as Spark opened them.
    """
    estimated = policy.dictionary.kind == "estimated"
    objective = procedure.objective if isinstance(procedure, Search) else None
    sections = []
    if isinstance(objective, GreatestAggregate):
        crossings = collect_crossings(scratch, encoded, disclosure, objective, policy, list(hierarchies), counted)
        sections = [] if crossings is None else [crossings.section()]
    if linked is None and not estimated:
        return None, sections
    rows = decided_records(scratch, encoded, policy, hierarchies)
    linkage = None
    if linked is not None:
        linkage = collect_linkage(scratch, rows, disclosure, policy, hierarchies, linked=linked, counted=counted[0])
    if not estimated:
        return linkage, sections
    if true is None:
        return linkage, [*sections, assumed_bound()]
    estimate = dictionaries.get(policy.dictionaries[0].name)
    bound = collect_bound(
        scratch, rows, encoded, disclosure, counted[0], policy, hierarchies, estimate=estimate, true=true
    )
    return linkage, [*sections, bound.section()]
