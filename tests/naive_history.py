"""What an attacker knows who holds several releases of one record, from the definitions."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import naive
import numpy as np
from naive_decisions import Known, literal

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.disclosure.disclosure import Disclosure

Levels = tuple[int, ...]


def after(
    disclosure: Disclosure,
    hierarchies: list[Hierarchy],
    record: np.ndarray,
    known: Known,
    scale: list[float],
    releases: Sequence[Levels],
) -> SimpleNamespace:
    """As :func:`naive_decisions.literal`, of one dictionary, for an attacker who holds earlier releases of the record.

    A row is consistent with what he knows if it is consistent with every cell of every release, this one included. What
    is known of a value is the cell below which no other of its released cells lies.
    """
    single = literal(disclosure, hierarchies, record, [known], scale)

    def cells(levels: Levels) -> list[list[int]]:
        return [
            [int(h.ancestor[c, x]) for h, c, x in zip(hierarchies, record, one, strict=True)]
            for one in (*releases, levels)
        ]

    def rows(levels: Levels) -> int:
        held = cells(levels)
        found = sum(
            all(
                relation(node, value)
                for cell in held
                for relation, node, value in zip(known.relations, cell, row, strict=True)
            )
            for row in known.rows
        )
        return max(found + absent, 1)

    original = [int(h.ancestor[c, 0]) for h, c in zip(hierarchies, record, strict=True)]
    absent = int(naive.count_any(known.relations, original, known.rows) == 0)

    def deepest(levels: Levels) -> list[int]:
        held = cells(levels)
        nodes = []
        for i, h in enumerate(hierarchies):
            of_attribute = {cell[i] for cell in held}
            (lowest,) = [
                node
                for node in of_attribute
                if all(naive.consistent(h.parent.tolist(), other, node, "subsumes") for other in of_attribute)
            ]
            nodes.append(lowest)
        return nodes

    def risk(levels: Levels) -> float:
        nodes = deepest(levels)
        weights = [
            0.0 if w[n] == 0 or s == 0 else float(w[n]) * s
            for w, n, s in zip(disclosure.sensitivity.weights, nodes, scale, strict=True)
        ]
        suppressed = [n == h.root for n, h in zip(nodes, hierarchies, strict=True)]
        phi = naive.phi(disclosure.sensitivity.form, weights, suppressed, interactions=[])
        return naive.risk(disclosure.model, phi, rows(levels), len(known.rows) + absent)

    return SimpleNamespace(
        depths=single.depths,
        risk=risk,
        utility=single.utility,
        consistent=rows,
        alone=single.risk,
        model=disclosure.model,
    )
