"""What somebody finds who knows how a table was protected: the levels of its scheme and why it has them, its masks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from privrisk_spark.extensions.attack.kernels.evidence import found
from privrisk_spark.extensions.attack.kernels.minimality import credibility
from privrisk_spark.extensions.attack.kernels.transparency import exact_links
from privrisk_spark.extensions.attack.pipeline.opened import Opened
from privrisk_spark.extensions.attack.pipeline.protected import Protected
from privrisk_spark.extensions.attack.planning.attacks import PROTECTED, compared_as_numbers
from privrisk_spark.extensions.attack.planning.findings import exactly_linked, linked_as_made
from privrisk_spark.extensions.attack.planning.inference_findings import inferred
from privrisk_spark.extensions.attack.planning.masks import refuse_other_masks, refuse_windows, told_masks
from privrisk_spark.extensions.attack.policy import attack_of
from privrisk_spark.extensions.attack.results.attacks import Attack
from privrisk_spark.extensions.attack.results.inferences import Inference
from privrisk_spark.extensions.attack.stages.classes import (
    SensitiveClasses,
    finer_parts,
    parts_of_classes,
    scheme_classes,
)
from privrisk_spark.extensions.attack.stages.masked import bounds_of, collect_possible
from privrisk_spark.extensions.attack.stages.number_ends import values_of
from privrisk_spark.extensions.attack.stages.probabilistic import collect_owners
from privrisk_spark.extensions.perturb.kernels.candidates import comparisons, value_bounds
from privrisk_spark.pipelines.run import ResultRun


def by_levels(opened: Opened, protected: Protected) -> list[Attack]:
    """Link people and rows exactly, by what the scheme makes of everybody's values."""
    assert opened.levels is not None
    trees, levels = list(opened.known.values()), [opened.levels[name] for name in opened.known]
    classes = scheme_classes(protected.people, protected.rows, trees, levels, key=PROTECTED)
    kept = protected.rows.total == protected.people.total
    links = exact_links(classes.tuples.rows, classes.released, kept=kept)
    return exactly_linked(links, protected.rows.total, protected.people.total)


def by_masks(run: ResultRun, opened: Opened, protected: Protected) -> list[Attack]:
    """Link people to the rows that they can have become, as it is known how the columns were masked."""
    refuse_other_masks(run.policy, opened.release.manifest)
    masks = told_masks(run.policy)
    people, rows = (
        {
            name: values_of(name, tree, of.nodes[:, j], number=name in compared_as_numbers(run.policy))
            for j, (name, tree) in enumerate(opened.known.items())
        }
        for of in (protected.known, protected.rows)
    )
    most = run.policy.counting.sorted_vectors
    owners = collect_owners(protected.told, protected.known, protected.rows, most=most)
    told = [bounds_of(one, people, rows, protected.known.rows, protected.rows.rows) for one in masks]
    bounds, values = [one.at(owners.known) for one, _ in told], [of for _, of in told]
    ways = {"intersection": (bounds, values)}
    if any(one.repeatable for one in masks):
        again = [
            (value_bounds(rows[name][owners.record]), rows[name])
            for one in masks
            if one.repeatable
            for name in one.columns
        ]
        of_others = [i for i, one in enumerate(masks) if not one.repeatable]
        ways["repetition"] = (
            [*(one for one, _ in again), *(bounds[i] for i in of_others)],
            [*(of for _, of in again), *(values[i] for i in of_others)],
        )
    compared = {way: comparisons(of_people, np.column_stack(of_rows)) for way, (of_people, of_rows) in ways.items()}
    refuse_windows(attack_of(run.policy), sum(compared.values()))
    tried = protected.known.total
    return [
        linked_as_made(
            way,
            collect_possible(run.scratch, *of, protected.rows.rows, owners, compared=compared[way], name=way),
            absent=tried - int(owners.persons.sum()),
            rows=protected.rows.total,
            distinct=len(protected.rows.rows),
        )
        for way, of in ways.items()
    ]


def by_minimality(
    opened: Opened, protected: Protected, shown: SensitiveClasses, i: int, column: str, *, alpha: float, k: int
) -> Iterator[Inference]:
    """Believe more of values, as no scheme a step below in one attribute has met the condition.

    Each of these schemes is tried: counted is of whom one of them tells more of some value than is allowed. Schemes
    further below had to fail where these do, and tell nothing more.

    Parameters
    ----------
    shown : SensitiveClasses
        Of the release, no row of which is suppressed.
    i : int
        Which of its sensitive columns.
    alpha : float
        Greatest share of a class that may hold a value.
    """
    assert opened.levels is not None
    trees, levels = list(opened.known.values()), [opened.levels[name] for name in opened.known]
    classes = scheme_classes(protected.people, protected.rows, trees, levels, key=PROTECTED)
    exposed = np.zeros(len(protected.people.rows), dtype=np.bool_)
    telling = []
    for j in (j for j, level in enumerate(levels) if level):
        finer = [*levels[:j], levels[j] - 1, *levels[j + 1 :]]
        parts = finer_parts(protected.people, classes, trees, finer, key=PROTECTED)
        learned = credibility(parts_of_classes(parts, classes, shown, i), alpha=alpha, k=k)
        if learned is not None:
            telling.append(learned.exact)
            exposed |= learned.believed(alpha, len(parts.owner))[parts.member]
    # What several schemes that may have failed tell together is more than each tells.
    exact = len(telling) < 2 and all(telling)
    believed = found(exposed.astype(np.float64), protected.people.rows)
    yield replace(
        inferred("minimality", column, "exposed", believed, alpha=alpha), status="tested" if exact else "heuristic"
    )


def by_repetition(run: ResultRun, protected: Protected) -> list[Attack]:
    """Link people to the rows of their classes, which whoever knows the algorithm and everybody makes again."""
    most = run.policy.counting.sorted_vectors
    owners = collect_owners(protected.told, protected.known, protected.rows, most=most)
    rows = protected.rows.rows[owners.record]
    return [
        linked_as_made(
            "classes",
            (rows, protected.present[owners.record] / rows, owners.persons),
            absent=protected.known.total - int(owners.persons.sum()),
            rows=protected.rows.total,
            distinct=len(protected.rows.rows),
        )
    ]
