"""Risk of records of one lattice, all at the same node at a time: what the searches of whole tables share.

Records of a block may have a history: levels ``h`` at which earlier releases disclosed their values. As the nodes of a
value lie on one path to the root, who has all releases knows the deepest of them, the meet ``g ∧ h = min(g, h)``
level by level, so the risk of disclosing ``g`` is that at ``g ∧ h``, by the same counts. To disclose ``g ∧ h`` itself
has the same risk, no less utility and no greater levels than ``g``, so the best level vector is at most ``h``, where
the risk is that of the record without history: the lattice of a block ends at ``h``, and is searched as any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, IntArray, LevelArray, LongArray
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import GreatestAggregate, least_positive_risk
from privrisk_spark.kernels.disclosure.risk import Attacker, identification_risk
from privrisk_spark.kernels.numeric import fingerprint
from privrisk_spark.kernels.numeric.distinct import distinct_keys, distinct_rows
from privrisk_spark.kernels.search.counted_records import CountedRecords
from privrisk_spark.kernels.search.lattice_blocks import LatticeBlock

_KEY_LIMIT = 2**62


def pick(values: FloatArray | None, rows: LongArray) -> FloatArray | None:
    """Values of some rows, if there are any values."""
    return None if values is None else values[rows]


def kinds_of(
    disclosure: Disclosure,
    attacker: Attacker,
    codes: IntArray,
    personal: FloatArray | None,
    record_weight: FloatArray | None,
    history: LevelArray | None = None,
) -> tuple[LongArray, LongArray]:
    """One row of each kind of records that cannot be decided differently, and the kind of every row."""
    key, bound = np.zeros(len(codes), dtype=np.int64), 1
    for number, kinds in _numbers(disclosure, attacker, codes, history):
        if bound > _KEY_LIMIT // kinds:
            first, key = distinct_keys(key, bound)
            bound = len(first)
        key = key * kinds + number
        bound *= kinds
    weights = [] if personal is None else [np.ascontiguousarray(column) for column in personal.T]
    if record_weight is not None:
        weights.append(record_weight)
    if not weights:
        return distinct_keys(key, bound)
    # Sorting a hash once is much faster than every column; where two kinds share a hash, the columns are sorted.
    columns = [key, *(weight.view(np.int64) for weight in weights)]
    hashed = fingerprint.of_rows([column.view(np.uint64) for column in columns], len(key))
    first, member = distinct_keys((hashed >> np.uint64(1)).view(np.int64), 2**63)
    if all((column[first].take(member) == column).all() for column in columns):
        return first, member
    return distinct_rows(columns)


def kind_keys(
    disclosure: Disclosure, attacker: Attacker, codes: IntArray, history: LevelArray | None = None
) -> tuple[LongArray, int] | None:
    """Number the kinds of records that have no personal weights. A number does not depend on the other records.

    Returns
    -------
    keys : ndarray of int64, shape (n,)
        Equal where records cannot be decided differently.
    bound : int
        Above all keys. None instead of both if keys would be too large.
    """
    key, bound = np.zeros(len(codes), dtype=np.int64), 1
    for number, kinds in _numbers(disclosure, attacker, codes, history):
        if bound > _KEY_LIMIT // kinds:
            return None
        key, bound = key * kinds + number, bound * kinds
    return key, bound


def _numbers(
    disclosure: Disclosure, attacker: Attacker, codes: IntArray, history: LevelArray | None
) -> Iterator[tuple[LongArray, int]]:
    """Yield a number per record for each attribute, equal if values are decided equally, and a bound above it."""
    for i in range(codes.shape[1]):
        tables = [disclosure.alike[i], *(counts.alike[i] for counts in attacker.possible)]
        kind_of_code = distinct_rows(tables)[1]
        kinds = int(kind_of_code.max()) + 1
        number = kind_of_code.take(codes[:, i])
        if history is not None:
            levels = disclosure.ancestor[i].shape[1]
            number, kinds = number * np.int64(levels) + history[:, i], kinds * levels
        yield number, kinds


class Records:
    """Risk of the records of one lattice block at its nodes.

    Parameters
    ----------
    codes : ndarray of int32, shape (n, k)
        Of the records of the block, in its order; weights likewise.
    personal : ndarray of float64, shape (n, k), or None
    record_weight : ndarray of float64, shape (n,), or None
    """

    def __init__(
        self,
        disclosure: Disclosure,
        attacker: Attacker,
        block: LatticeBlock,
        codes: IntArray,
        personal: FloatArray | None,
        record_weight: FloatArray | None,
    ) -> None:
        self.disclosure, self.attacker, self.block = disclosure, attacker, block
        self.codes = codes
        self.columns = [np.ascontiguousarray(codes[:, i]) for i in range(codes.shape[1])]
        self.personal, self.record_weight = personal, record_weight
        self.counted = [CountedRecords(counts, self.columns, block.depths) for counts in attacker.possible]
        self.absent: list[LongArray | None] = [None] * len(attacker.possible)
        bottom = [0] * codes.shape[1]
        for d, counted in enumerate(self.counted):
            absent = counted.consistent(slice(None), bottom) == 0
            self.absent[d] = absent.astype(np.int64) if absent.any() else None

    @cached_property
    def weighing(self) -> tuple[list[IntArray], LongArray] | None:
        """Columns of one record per combination of weights, and the combination of every record.

        None where a record has weights of its own, or nearly all combinations differ.
        """
        if self.personal is not None or self.record_weight is not None:
            return None
        alike = [kind.take(column) for kind, column in zip(self.disclosure.alike, self.columns, strict=True)]
        first, member = distinct_rows(alike)
        if 2 * len(first) > len(member):
            return None
        return [column[first] for column in self.columns], member

    def only(self, rows: LongArray) -> Records:
        """Some of the records, ascending."""
        return Records(
            self.disclosure,
            self.attacker,
            self.block.only(rows),
            self.codes[rows],
            pick(self.personal, rows),
            pick(self.record_weight, rows),
        )

    def levels(self, node: int) -> list[int]:
        """Level vector of a node."""
        levels: list[int] = self.block.lattice.levels(np.array([node]))[0].tolist()
        return levels

    def sensitivity(self, rows: LongArray | slice, columns: Sequence[IntArray], levels: Sequence[int]) -> FloatArray:
        """Φ of some records, whose columns are given."""
        member = None
        if self.weighing is not None:
            examples, kind = self.weighing
            if len(examples[0]) <= len(columns[0]):
                columns, member = examples, kind[rows]
        nodes = [
            by_level[level].take(column)
            for by_level, level, column in zip(self.disclosure.ancestor_by_level, levels, columns, strict=True)
        ]
        phi = self.disclosure.sensitivity.phi(
            nodes,
            personal=None if self.personal is None else self.personal[rows],
            record_weight=None if self.record_weight is None else self.record_weight[rows],
        )
        return phi if member is None else phi.take(member)

    def risk(self, rows: LongArray | slice, node: int) -> tuple[FloatArray, LongArray]:
        """Risk of some records at one lattice node, and the smallest ``ρ_θ``."""
        return self.risk_at(rows, self.levels(node))

    def risk_at(self, rows: LongArray | slice, levels: Sequence[int]) -> tuple[FloatArray, LongArray]:
        """The same at one level vector, which may be above the lattice where it ends at a history."""
        phi, found = self._evaluated(rows, levels)
        model = self.disclosure.model
        risks = [identification_risk(model, phi, consistent, dictionary_rows=n) for consistent, n in found]
        least = found[0][0]
        for consistent, _ in found[1:]:
            least = np.minimum(least, consistent)
        return self.attacker.risk(risks), least

    def _evaluated(
        self, rows: LongArray | slice, levels: Sequence[int]
    ) -> tuple[FloatArray, list[tuple[LongArray, int | LongArray]]]:
        """Φ of some records at one level vector, and ``ρ_θ`` and ``N_θ`` of each possible dictionary."""
        columns = self.columns if isinstance(rows, slice) else [column.take(rows) for column in self.columns]
        phi = self.sensitivity(rows, columns, levels)
        evaluated: list[tuple[LongArray, int | LongArray]] = []
        for counts, counted, absent in zip(self.attacker.possible, self.counted, self.absent, strict=True):
            found = counted.consistent(rows, levels)
            n: int | LongArray = counts.dictionary_rows
            if absent is not None:
                found, n = found + absent[rows], n + absent[rows]
            if not counts.monotone:
                # Nothing need be similar to a node.
                found = np.maximum(found, 1)
            evaluated.append((found, n))
        return phi, evaluated

    @cached_property
    def least_sensitivity(self) -> FloatArray:
        """Smallest positive Φ of each record over its lattice; infinity where there is none."""
        least = np.full(len(self.columns[0]), np.inf)
        for node in range(self.block.lattice.n_nodes):
            phi = self.sensitivity(slice(None), self.columns, self.levels(node))
            np.minimum(least, phi, out=least, where=phi > 0)
        return least

    def weighed_risk(self, objective: GreatestAggregate, rows: LongArray, node: int, risk: FloatArray) -> FloatArray:
        """The risk whose inverse an aggregate weighs, of some records, their risk given."""
        none = np.flatnonzero(risk == 0)
        if objective.zero_phi == "exclude" or not len(none):
            return risk
        phi, found = self._evaluated(rows[none], self.levels(node))
        risks = [
            least_positive_risk(
                self.disclosure.model,
                phi,
                consistent,
                dictionary_rows=n,
                least_sensitivity=self.least_sensitivity[rows[none]],
            )
            for consistent, n in found
        ]
        weighed = risk.copy()
        weighed[none] = self.attacker.risk(risks)
        return weighed
