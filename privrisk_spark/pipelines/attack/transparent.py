"""Links by somebody who knows the levels that a whole table was recoded by."""

from __future__ import annotations

from privrisk_spark.kernels.linkage.transparency import exact_links
from privrisk_spark.pipelines.attack.opened import Opened
from privrisk_spark.pipelines.attack.protected import Protected
from privrisk_spark.planning.attack_findings import exactly_linked
from privrisk_spark.planning.attacks import PROTECTED
from privrisk_spark.results.attacks import Attack
from privrisk_spark.stages.attacking.classes import scheme_classes


def by_levels(opened: Opened, protected: Protected) -> list[Attack]:
    """Link people and rows exactly, by what the scheme makes of everybody's values."""
    assert opened.levels is not None
    trees, levels = list(opened.known.values()), [opened.levels[name] for name in opened.known]
    classes = scheme_classes(protected.people, protected.rows, trees, levels, key=PROTECTED)
    kept = protected.rows.total == protected.people.total
    links = exact_links(classes.tuples.rows, classes.released, kept=kept)
    return exactly_linked(links, protected.rows.total, protected.people.total)
