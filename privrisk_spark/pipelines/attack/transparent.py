"""What somebody finds who knows the levels that a whole table was recoded by, and why it was."""

from __future__ import annotations

from collections.abc import Iterator

from privrisk_spark.kernels.linkage.minimality import credibility
from privrisk_spark.kernels.linkage.transparency import exact_links
from privrisk_spark.pipelines.attack.opened import Opened
from privrisk_spark.pipelines.attack.protected import Protected
from privrisk_spark.planning.attack_findings import exactly_linked, inferred
from privrisk_spark.planning.attacks import PROTECTED
from privrisk_spark.results.attacks import Attack
from privrisk_spark.results.inferences import Inference
from privrisk_spark.stages.attacking.classes import SensitiveClasses, finer_parts, released_parts, scheme_classes


def by_levels(opened: Opened, protected: Protected) -> list[Attack]:
    """Link people and rows exactly, by what the scheme makes of everybody's values."""
    assert opened.levels is not None
    trees, levels = list(opened.known.values()), [opened.levels[name] for name in opened.known]
    classes = scheme_classes(protected.people, protected.rows, trees, levels, key=PROTECTED)
    kept = protected.rows.total == protected.people.total
    links = exact_links(classes.tuples.rows, classes.released, kept=kept)
    return exactly_linked(links, protected.rows.total, protected.people.total)


def by_minimality(
    opened: Opened, protected: Protected, shown: SensitiveClasses, i: int, column: str, *, alpha: float, k: int
) -> Iterator[Inference]:
    """Believe more of values, as the scheme a step below each attribute's level did not meet the condition.

    Parameters
    ----------
    opened : Opened
    protected : Protected
    shown : SensitiveClasses
        Of the release.
    i : int
        Which of its sensitive columns.
    column : str
    alpha : float
        Greatest share of a class that may hold a value.
    k : int
    """
    assert opened.levels is not None
    trees, levels = list(opened.known.values()), [opened.levels[name] for name in opened.known]
    classes = scheme_classes(protected.people, protected.rows, trees, levels, key=PROTECTED)
    tried = []
    for j, level in enumerate(levels):
        if level:
            finer = [*levels[:j], level - 1, *levels[j + 1 :]]
            parts = finer_parts(protected.people, classes, trees, finer, key=PROTECTED)
            for _, of_value in released_parts(parts, classes, shown, i):
                tried.append(credibility(of_value, alpha=alpha, k=k, recoding="global").above(alpha))
    if tried:
        yield inferred("minimality", column, "exposed", max(tried, key=lambda one: one.correct), alpha=alpha)
