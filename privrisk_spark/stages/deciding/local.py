"""Classes with levels of their own, found on the driver by the counts of distinct records, or by an approved tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privrisk_spark.claims import Status
from privrisk_spark.engine.stored_levels import StoredLevels
from privrisk_spark.errors import CheckError
from privrisk_spark.kernels.arrays import IntArray, LevelArray
from privrisk_spark.kernels.lattice.levels import counted_from_root, steps_up
from privrisk_spark.kernels.recoding.local.algorithms import PARTITIONS, counting_persons
from privrisk_spark.kernels.recoding.local.mondrian import mondrian
from privrisk_spark.kernels.recoding.local.partition import Asked, Partition, labelled
from privrisk_spark.kernels.recoding.local.tree import Tree, grown
from privrisk_spark.kernels.recoding.metrics import Facts, Measured, Metric
from privrisk_spark.kernels.recoding.problem import Condition, Problem
from privrisk_spark.planning.rules import Recoding
from privrisk_spark.planning.schemes import drift
from privrisk_spark.planning.trees import read_tree
from privrisk_spark.policy.anonymity import KAnonymityGuarantee
from privrisk_spark.policy.schemes import FittedPartition
from privrisk_spark.results.release import ChosenRule, Section
from privrisk_spark.stages.deciding.rules import RuleInputs
from privrisk_spark.stages.deciding.unmet import broken, impossible, refuse_nothing


@dataclass(frozen=True, eq=False)
class ByDepth:
    """A table whose levels are counted from the root: one node for all records of a class, however deep leaves are.

    Attributes
    ----------
    also : tuple of Condition
        What every class must meet beside ``k`` rows.
    missing : tuple of k ndarrays of int8, shape (m,)
        Levels that the value of each distinct record lacks.
    """

    measured: Measured
    also: tuple[Condition, ...]
    missing: tuple[LevelArray, ...]

    @classmethod
    def of(cls, inputs: RuleInputs, problem: Problem, k: int) -> ByDepth:
        """Count levels from the root, and persons as values where there are any."""
        table = problem.measured.table
        counted = [counted_from_root(ancestors) for ancestors in table.ancestors]
        ancestors = tuple(of for of, _ in counted)
        leaves = [one.n_under[of] for one, of in zip(inputs.hierarchies.values(), ancestors, strict=True)]
        measured, also = Measured.of(replace(table, ancestors=ancestors), leaves), problem.conditions[1:]
        if table.persons is not None:
            measured, also = counting_persons(measured, k, also)
        missing = tuple(of[table.vectors[:, i]] for i, (_, of) in enumerate(counted))
        return cls(measured, also, missing)

    def levels(self, found: Partition) -> IntArray:
        """Levels as steps from each value, below 0 for a suppressed record; ndarray of shape (m, k)."""
        steps = [steps_up(of, lacked) for of, lacked in zip(found.levels.T, self.missing, strict=True)]
        levels: IntArray = np.column_stack(steps)
        levels[found.of < 0] = -1
        return levels

    def facts(self, found: Partition) -> Facts:
        """Measure a recoding as the reader sees its classes."""
        return found.facts(self.measured, one_numbering=True)


def partitioned(inputs: RuleInputs, problem: Problem, rule: Recoding) -> tuple[StoredLevels, ChosenRule]:
    """Give each class levels of its own, and keep those of every distinct record.

    Raises
    ------
    CheckError
        If more rows are suppressed than may be, or none would be released.
    """
    asked, table = rule.asked, ByDepth.of(inputs, problem, rule.asked.k)
    if isinstance(rule.given, FittedPartition):
        found = _applied(inputs, problem, rule.given, table, asked)
        facts = table.facts(found)
        section = local_section(problem.metric, asked, facts, drift(rule.given, facts))
    else:
        if asked.method == "mondrian":
            ordered = [name in asked.ordered for name in inputs.hierarchies]
            found = mondrian(table.measured, asked.k, table.also, ordered=ordered)
        else:
            found = PARTITIONS[asked.method](table.measured, asked.k, table.also)
        facts = _kept(problem, asked, table.facts(found))
        section = local_section(problem.metric, asked, facts)
    heights = tuple(hierarchy.height for hierarchy in inputs.hierarchies.values())
    vectors, place = problem.measured.table.vectors, inputs.scratch.directory("partition")
    stored = StoredLevels.of_records(vectors, table.levels(found).astype(np.int8), heights, place)
    return stored, ChosenRule(asked.method, {}, section)


def fitted_tree(inputs: RuleInputs, problem: Problem, rule: Recoding) -> tuple[Tree, Section]:
    """Cut a table by strict Mondrian, and keep how; errors as of :func:`partitioned`."""
    asked, table = rule.asked, ByDepth.of(inputs, problem, rule.asked.k)
    found, tree = grown(table.measured, asked.k, table.also)
    return tree, local_section(problem.metric, asked, _kept(problem, asked, table.facts(found)))


def _kept(problem: Problem, asked: KAnonymityGuarantee, facts: Facts) -> Facts:
    """Return what was measured, if no more rows are suppressed than may be."""
    if not problem.keeps_limit(facts):
        raise CheckError(impossible(problem, asked))
    refuse_nothing(facts, asked)
    return facts


def _applied(
    inputs: RuleInputs, problem: Problem, given: FittedPartition, table: ByDepth, asked: KAnonymityGuarantee
) -> Partition:
    """Recode by an approved tree."""
    tree = read_tree(given, inputs.hierarchies)
    found = tree.applied(table.measured, asked.k, table.also)
    facts = table.facts(found)
    if not problem.keeps_limit(facts):
        group = tree.groups(table.measured)
        homeless = int(table.measured.table.counts[group < 0].sum())
        classes = labelled(table.measured, Asked(1), group, tree.class_levels).classes
        persons = problem.measured.table.persons is not None
        conditions = table.also if persons else problem.conditions
        raise CheckError(broken(problem, asked, given, conditions, classes, facts, homeless=homeless))
    refuse_nothing(facts, asked)
    return found


def local_section(
    metric: Metric, asked: KAnonymityGuarantee, facts: Facts, drifted: Mapping[str, Any] | None = None
) -> Section:
    """What is said of classes that have levels of their own, exact, for the vault."""
    value = metric.value(facts)
    figures = {
        "levels": None,
        "suppressed": facts.suppressed,
        "classes": facts.classes,
        "metric": {"name": metric.name, "value": value},
        "nodes_evaluated": 0,
        "optimal": False,
        "gap": None,
        **(drifted or {}),
    }
    told: dict[str, str | int | float] = {
        f"metric '{metric.name}'": value,
        "suppressed rows": facts.suppressed,
        "released classes": facts.classes,
    }
    if drifted is None:
        text = (
            f"The classes were made by '{asked.method}', and each has levels of its own. Nothing is proved of what "
            "they cost; what every class has is."
        )
    else:
        fitted, share = drifted["fitted"], drifted["suppressed_share"]
        text = (
            f"The approved classes of {drifted['scheme']['date']} were applied, and keep their guarantee on this "
            "table: rows that come to none of them, or to one that has too few here, are suppressed. What they achieve "
            "may drift from batch to batch; fit others when it drifts too far."
        )
        told |= {
            f"metric '{metric.name}' when they were fitted": fitted["metric"]["value"],
            "released classes when they were fitted": fitted["classes"],
            "share of suppressed rows": share["here"],
            "share of suppressed rows when they were fitted": share["fitted"],
            "approved by": drifted["scheme"]["approved_by"],
            "approved at": drifted["scheme"]["approved_at"],
        }
    status: Status = "heuristic"
    return Section("recoding", "Recoding class by class", text, status, told, figures=figures)
