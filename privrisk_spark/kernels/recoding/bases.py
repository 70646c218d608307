"""Classes of lowest nodes of boxes: what all nodes above them are counted from."""

from __future__ import annotations

from privrisk_spark.kernels.recoding.full_domain import FullDomain, NodeClasses

__all__ = ["Bases"]

Levels = tuple[int, ...]

_HELD = 64
"""Nodes of which the classes are kept."""


class Bases:
    """Classes of the lowest nodes of boxes, each from the fewest of those kept that are nowhere above it."""

    def __init__(self, table: FullDomain) -> None:
        self.table = table
        bottom = (0,) * len(self.table.ancestors)
        self._bottom = self.table.classes(bottom)
        self._kept: dict[Levels, NodeClasses] = {bottom: self._bottom}

    def at(self, low: Levels) -> NodeClasses:
        """Return the classes of a node."""
        if low not in self._kept:
            below = (
                classes
                for levels, classes in self._kept.items()
                if all(one <= other for one, other in zip(levels, low, strict=True))
            )
            finer = min(below, key=lambda classes: len(classes.rows), default=self._bottom)
            if len(self._kept) >= _HELD:
                del self._kept[next(iter(self._kept))]
            self._kept[low] = self.table.classes(low, finer)
        else:
            self._kept[low] = self._kept.pop(low)  # the last that will go
        return self._kept[low]
