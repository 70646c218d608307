"""Diversity of each sensitive column for an attacker who knows the others: they are quasi-identifiers then.

Machanavajjhala, Gehrke, Kifer and Venkitasubramaniam (ACM TKDD 2007, section 5.2.2) ask it of tables with several
sensitive columns. A bucket holds its classes whole, and so the finer ones that the other columns divide them into.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, report
from privrisk_spark.engine.slices import read_slices
from privrisk_spark.json_values import from_json
from privrisk_spark.kernels.classes import criteria
from privrisk_spark.kernels.classes.classes import Classes
from privrisk_spark.kernels.classes.tally import ClassTally
from privrisk_spark.kernels.numeric.fold import folded
from privrisk_spark.stages.assessing.classes import Layout, classes_of
from privrisk_spark.stages.assessing.tallies import Sensitive
from privrisk_spark.storage.parts import PartDirectory

JointDiversity = Mapping[str, ClassTally]
"""By measure."""


def collect_joint_diversity(
    scratch: Scratch, directory: PartDirectory, names: Sequence[str], buckets: int, layout: Layout,
    sensitive: Sequence[Sensitive], *, apart: bool,
) -> tuple[JointDiversity, ...]:  # fmt: skip
    """Measure the diversity of each sensitive column within what the others leave of a class.

    Parameters
    ----------
    directory, names, layout
        As :func:`privrisk_spark.stages.assessing.classes.read_bucket` takes them.
    sensitive : sequence of Sensitive
        The first of the columns the layout holds; at least two.
    apart : bool
        Leave out records that are suppressed in every quasi-identifier.

    Returns
    -------
    tuple of mapping of measure to ClassTally
        Of each sensitive column.
    """
    held, asked = tuple(names), tuple(sensitive)

    def read(bucket: int) -> Iterator[pa.Table]:
        table = read_slices(directory, held, bucket)
        told = [dict(_diversity(*_knowing(table, layout, j, len(asked)), of, apart)) for j, of in enumerate(asked)]
        yield report("", {"joint": told})

    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, range(buckets), read, PARTS))
    found = []
    for j in range(len(asked)):
        of_parts = [{name: from_json(ClassTally, one) for name, one in part["joint"][j].items()} for part in parts]
        found.append({name: folded(first, [one[name] for one in of_parts[1:]]) for name, first in of_parts[0].items()})
    return tuple(found)


def _knowing(table: pa.Table | None, layout: Layout, j: int, sensitive: int) -> tuple[Classes, Layout]:
    """Classes by the quasi-identifiers and the sensitive columns but the j-th, which they hold."""
    k, columns = len(layout.radices), schemas.sensitive(len(layout.value_counts))
    others = [i for i in range(sensitive) if i != j]
    radices = (*layout.radices, *(layout.value_counts[i] + 1 for i in others))
    finer = Layout(radices, (layout.value_counts[j],), layout.persons)
    if table is not None:
        rest = [schemas.ENTITY] if layout.persons else []
        picked = [*schemas.nodes(k), *(columns[i] for i in others), columns[j], *rest, schemas.N_ROWS]
        table = table.select(picked).rename_columns([*finer.names, *rest, schemas.N_ROWS])
    return classes_of(table, finer), layout


def _diversity(classes: Classes, layout: Layout, sensitive: Sensitive, apart: bool) -> Iterator[tuple[str, ClassTally]]:
    roots = np.array([radix - 1 for radix in layout.radices], dtype=np.int32)
    if apart:
        classes = classes.where(~(classes.nodes[:, : len(roots)] == roots).all(axis=1))
    (runs,) = classes.held
    for name, criterion, given in (
        ("l_distinct_joint", criteria.DISTINCT_DIVERSITY, {}),
        ("l_entropy_joint", criteria.ENTROPY_DIVERSITY, {}),
        ("l_recursive_joint", criteria.RECURSIVE_L, {"c": sensitive.c}),
    ):
        numbers = criterion.numbers_of_known(runs, sensitive.missing, **given)
        yield name, ClassTally.of(criterion, numbers, classes.sizes, classes.nodes, asked=1.0, most=0)
