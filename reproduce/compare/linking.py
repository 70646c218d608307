"""What is found of the people of a protected table, and what the table has lost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privrisk_spark.extensions.attack.kernels.agreement import LevelAgreement, LostWeight
from privrisk_spark.extensions.attack.kernels.differences import Difference, LevelDifference, Reading
from privrisk_spark.extensions.attack.kernels.evidence import Found, found
from privrisk_spark.extensions.attack.kernels.fellegi_sunter import fitted, started
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile
from privrisk_spark.extensions.attack.kernels.patterns import ComparedFile
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from reproduce.compare.learning import TRAINING, others_found
from reproduce.compare.protecting import Protected
from reproduce.deciding.subject import Subject
from reproduce.recoding.algorithms import leaves_under


@dataclass(frozen=True, eq=False)
class Shown:
    """The distinct rows of a protected table, and whose each piece is."""

    subject: Subject
    protected: Protected

    @cached_property
    def _distinct(self) -> tuple[IntArray, LongArray, LongArray]:
        nodes = self.protected.nodes
        first, member = distinct_rows([np.ascontiguousarray(column) for column in nodes.T])
        rows = np.zeros(len(first), dtype=np.int64)
        np.add.at(rows, member, self.protected.rows)
        return nodes[first], rows, member

    @cached_property
    def _people(self) -> tuple[LongArray, LongArray, LongArray]:
        """Record, distinct row, and people of whom both are: one look for each record and row it has, -1 for none."""
        of_piece, mine, rows = self.protected.record, self._distinct[2], self.protected.rows
        if self.protected.absent is not None:
            away = np.flatnonzero(self.protected.absent)
            of_piece, mine = np.append(of_piece, away), np.append(mine, np.full(len(away), -1))
            rows = np.append(rows, self.protected.absent[away])
        first, member = distinct_rows([of_piece, mine])
        people = np.bincount(member, weights=rows).astype(np.int64)
        return of_piece[first], mine[first], people

    @cached_property
    def _cells(self) -> tuple[list[IntArray], IntArray]:
        nodes, _, _ = self._distinct
        distinct, cells = [], np.empty(nodes.shape, dtype=np.int32)
        for j in range(nodes.shape[1]):
            of, place = np.unique(nodes[:, j], return_inverse=True)
            distinct.append(of)
            cells[:, j] = place.reshape(-1)
        return distinct, cells

    def file(self, reading: Reading) -> SearchedFile:
        """The table to be searched by distance."""
        distinct, cells = self._cells
        under = leaves_under(self.subject)
        differences: list[Difference] = [
            LevelDifference(axis.at_depth, leaves, nodes, reading)
            for axis, leaves, nodes in zip(self.subject.axes, under, distinct, strict=True)
        ]
        k = len(differences)
        return SearchedFile(tuple(differences), np.full(k, 1 / k), cells, self._distinct[1])

    def weighed(self) -> SearchedFile:
        """The table to be searched by match weights that are estimated from it and the people."""
        distinct, cells = self._cells
        agreements = tuple(
            LevelAgreement(axis.at_depth, nodes, (1,) if height > 1 else ())
            for axis, nodes, height in zip(self.subject.axes, distinct, self.subject.heights, strict=True)
        )
        counts = ComparedFile(agreements, cells, self._distinct[1]).counted(self.subject.nodes, self.subject.counts)
        begin = started(counts, prior=1 / max(self.subject.rows, 2))
        estimated = fitted(counts, begin, fixed_prior=True)
        model = estimated.model if estimated.parted else begin
        lost = tuple(LostWeight(*of) for of in zip(agreements, model.weights, strict=True))
        return SearchedFile(lost, np.full(len(lost), 1 / len(lost)), cells, self._distinct[1])

    def people_found(self, file: SearchedFile) -> Found:
        """People whose row is found, by what is nearest to each of them."""
        record, own, people = self._people
        links = file.linked(self.subject.nodes)
        each = links.at(record)
        near = file.holds(self.subject.nodes[record], own, each)
        return found(np.where(near, 1.0 / each.rows, 0.0), people)

    def rows_found(self, reading: Reading) -> Found:
        """Rows whose person is found, by who is nearest to each of them."""
        subject, known = self.subject, self._distinct[0]
        differences: list[Difference] = []
        cells = np.empty(subject.nodes.shape, dtype=np.int32)
        for j, (axis, leaves) in enumerate(zip(subject.axes, leaves_under(subject), strict=True)):
            nodes, place = np.unique(subject.nodes[:, j], return_inverse=True)
            differences.append(LevelDifference(axis.at_depth, leaves, nodes, reading))
            cells[:, j] = place.reshape(-1)
        k = len(differences)
        people = SearchedFile(tuple(differences), np.full(k, 1 / k), cells, subject.counts)
        record, own, rows = self._people
        record, own, rows = (of[own >= 0] for of in (record, own, rows))
        links = people.linked(known).at(own)
        near = people.holds(known[own], record, links)
        return found(np.where(near, 1.0 / links.rows, 0.0), rows)

    def others_found(self, seed: int, training: int = TRAINING) -> Found:
        """People whose row is found by weights that were learned from others."""
        record, own, people = self._people
        return others_found(self.file("uniform"), self.subject.nodes[record], own, people, seed=seed, training=training)

    def lost(self) -> float:
        """Mean difference of a value from a draw of what its cell covers, 0 to 1: the loss of information."""
        apart = self.file("uniform").distances(self.subject.nodes[self.protected.record], self._distinct[2])
        parts = (apart * self.protected.rows).tolist()
        if self.protected.absent is not None:
            parts += (self._suppressed * self.protected.absent).tolist()
        return math.fsum(parts) / self.subject.rows

    @property
    def _suppressed(self) -> FloatArray:
        """What each record loses where all of its values are suppressed, as if its row is not there."""
        lost = np.zeros(len(self.subject.counts))
        for j, (axis, leaves) in enumerate(zip(self.subject.axes, leaves_under(self.subject), strict=True)):
            root = np.array([axis.ancestor[0, -1]], dtype=np.int32)
            lost += LevelDifference(axis.at_depth, leaves, root, "uniform").of(self.subject.nodes[:, j])[:, 0]
        return lost / len(self.subject.axes)

    def by_scheme(self) -> Found | None:
        """People whose row is found by who knows the scheme, and so the class of each; None where there is none."""
        if not self.protected.scheme:
            return None
        _, rows, member = self._distinct
        return found(1.0 / rows[member], self.protected.rows)


def attacked(
    subject: Subject, protected: Protected, seed: int
) -> tuple[Mapping[str, Found], Mapping[str, Found], float]:
    """Attack a protected table by every method.

    Parameters
    ----------
    seed : int
        Draws whom the intruder learns from.

    Returns
    -------
    found : mapping of method to Found
        People whose row is found.
    of_rows : mapping of method to Found
        Rows whose person is found.
    lost : float
        Information.
    """
    shown = Shown(subject, protected)
    by: dict[str, Found] = {
        "distance, nearest": shown.people_found(shown.file("nearest")),
        "distance, any value": shown.people_found(shown.file("uniform")),
        "match weights": shown.people_found(shown.weighed()),
        "learned weights": shown.others_found(seed),
    }
    scheme = shown.by_scheme()
    if scheme is not None:
        by["levels of the scheme"] = scheme
    of_rows = {"distance, nearest": shown.rows_found("nearest"), "distance, any value": shown.rows_found("uniform")}
    return by, of_rows, shown.lost()
