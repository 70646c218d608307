"""Minimal sample uniques of the sets of quasi-identifiers: each set in a task, which holds its distinct records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, report
from privrisk_spark.kernels.measures.special_uniques import SpecialUniques
from privrisk_spark.results.assessment import Measured
from privrisk_spark.stages.assessing import measures
from privrisk_spark.stages.assessing.classes import kept_tables
from privrisk_spark.stages.assessing.records import CLASS_SIZE, ROWS
from privrisk_spark.storage.parts import PartDirectory


@dataclass(frozen=True)
class Sought:
    """Distinct records of a set of a subject.

    Attributes
    ----------
    parts : tuple of str
        Tables of classes in it.
    columns : tuple of k str
        Quasi-identifiers.
    size : int
        Most attributes of a minimal sample unique.
    fraction : float
        Share of the population in the sample.
    """

    directory: PartDirectory
    parts: tuple[str, ...]
    columns: tuple[str, ...]
    size: int
    fraction: float

    def measured(self) -> Iterator[Measured]:
        """Measure them; parameters are those of the measure alone."""
        cells = kept_tables(self.directory, [{"name": part} for part in self.parts])
        there = cells.column(CLASS_SIZE).to_numpy() > 0
        nodes = np.column_stack([cells.column(name).to_numpy()[there] for name in schemas.nodes(len(self.columns))])
        special = SpecialUniques.of(nodes, cells.column(ROWS).to_numpy()[there], self.size)
        yield from measures.special(special, {}, self.columns, size=self.size, fraction=self.fraction)


def collect_special(scratch: Scratch, sought: Sequence[Sought]) -> list[list[Measured]]:
    """Measure the special uniques of each, in order."""
    held = tuple(sought)
    if not held:
        return []

    def read(number: int) -> Iterator[pa.Table]:
        found = [[one.name, one.value, dict(one.parameters)] for one in held[number].measured()]
        yield report("", {"number": number, "measured": found})

    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, range(len(held)), read, PARTS))
    parts.sort(key=lambda part: part["number"])
    return [[Measured(name, value, parameters) for name, value, parameters in part["measured"]] for part in parts]
