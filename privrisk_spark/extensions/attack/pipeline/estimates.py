"""What an intruder estimates of agreement, from the two files alone, before he links by match weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.extensions.attack.kernels.fellegi_sunter import LinkageModel, fitted, started
from privrisk_spark.extensions.attack.kernels.optimal_rule import OptimalRule, optimal_rule
from privrisk_spark.extensions.attack.kernels.term_frequencies import term_frequencies
from privrisk_spark.extensions.attack.pipeline.opened import Opened
from privrisk_spark.extensions.attack.pipeline.protected import Protected
from privrisk_spark.extensions.attack.planning.attacks import compared_people
from privrisk_spark.extensions.attack.policy import attack_of
from privrisk_spark.extensions.attack.stages.blocks import sampled
from privrisk_spark.extensions.attack.stages.by_splink import TOLERANCE, estimated_by_splink
from privrisk_spark.extensions.attack.stages.distance import Comparison
from privrisk_spark.extensions.attack.stages.number_ends import rows_of_nodes
from privrisk_spark.extensions.attack.stages.probabilistic import (
    LevelColumn,
    NumberColumn,
    StoredComparisons,
    collect_patterns,
    store_compared,
)
from privrisk_spark.pipelines.run import ResultRun


@dataclass(frozen=True, eq=False)
class ComparedFiles:
    """Both files as they are compared to estimate match weights.

    Attributes
    ----------
    columns : tuple of k LevelColumn or NumberColumn
    prior : float
        Share of all pairs that are of one person: the intruder knows how large both files are.
    """

    columns: tuple[LevelColumn | NumberColumn, ...]
    rows: StoredComparisons
    people: StoredComparisons
    prior: float


def compared_files(run: ResultRun, opened: Opened, protected: Protected, compared: Comparison) -> ComparedFiles:
    """Write both files where tasks compare people and rows by levels of agreement."""
    terms = attack_of(run.policy).probabilistic.term_frequencies
    columns: list[LevelColumn | NumberColumn] = []
    for j, (name, ends) in enumerate(zip(opened.known, compared.ends, strict=True)):
        tree = compared.hierarchies[j]
        if ends is not None:
            columns.append(NumberColumn(ends.low, ends.high))
            continue
        of_both = sum(rows_of_nodes(file, j, tree) for file in (protected.people, protected.rows))
        frequencies = term_frequencies(tree.at_depth, np.asarray(of_both)) if name in terms else None
        columns.append(LevelColumn(tree, (1,) if tree.height > 1 else (), frequencies=frequencies))
    rows_at, people_at = (run.scratch.directory(f"{of}-weighed") for of in ("rows", "people"))
    rows = store_compared(rows_at, protected.rows, columns, protected.present)
    people = store_compared(people_at, protected.people, columns, np.ones(len(protected.people.rows)))
    return ComparedFiles(tuple(columns), rows, people, 1 / max(protected.rows.total, protected.people.total, 2))


def people_to_compare(run: ResultRun, compared: ComparedFiles, protected: Protected) -> int | None:
    """How many people match weights are estimated from; None for all."""
    known, rows = protected.known, protected.rows
    return compared_people(
        attack_of(run.policy), len(known.rows), known.total, rows.total, compared.rows.tuples, len(compared.columns)
    )


@dataclass(frozen=True)
class Estimate:
    """What an intruder has estimated of agreement.

    Attributes
    ----------
    model : LinkageModel
        By which is searched.
    converged, parted : bool
        As :class:`~privrisk_spark.extensions.attack.results.inferences.MatchModel` tells them.
    sampled : int or None
        People, drawn, from whose pairs it was estimated.
    """

    model: LinkageModel
    rule: OptimalRule
    converged: bool
    parted: bool
    sampled: int | None


def estimated(run: ResultRun, compared: ComparedFiles, protected: Protected) -> Estimate:
    """Estimate how people agree with their rows, and with those of others, from the two files."""
    known, policy = protected.known, attack_of(run.policy)
    sample = people_to_compare(run, compared, protected)
    if sample is not None:
        # Of whoever is drawn all pairs are compared, so that as many of them are links as of all.
        known = sampled(known, sample, seed=policy.intruder.seed)
    counts, asked = collect_patterns(run.scratch, compared.rows, known, "rows"), policy.probabilistic
    begin = started(counts, prior=compared.prior)
    fixed = {f"fixed_{name}": name not in asked.estimated for name in ("u", "prior")}
    if asked.engine == "splink":
        model = estimated_by_splink(known, protected.rows, compared.columns, begin, **fixed)
        # From where Splink has come a step of our own leads nowhere.
        converged = fitted(counts, model, **fixed, tolerance=10 * TOLERANCE, most_steps=1).converged
    else:
        by_own = fitted(counts, begin, **fixed)
        model, converged = by_own.model, by_own.converged
    parted = model.parted
    # An estimate by which agreement does not speak for a link is of two other kinds of pairs.
    model = model if parted else begin
    rule = optimal_rule(
        *model.expected(counts), false_links=asked.false_links, false_non_links=asked.false_non_links, coins=False
    )
    return Estimate(model, rule, converged, parted, sample)
