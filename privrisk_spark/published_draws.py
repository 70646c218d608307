"""Stages of a release by Algorithm 6 of F12 as published: frequent elements, sample and draw. No guarantee.

Every random number is a keyed function of a record, the threshold one of the release, so retries and other
partitionings give the same bits. The keys travel inside UDF closures only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from privrisk_spark import cells, schemas
from privrisk_spark.anonymize import Decide, Decided, integers
from privrisk_spark.as_published import AsPublished
from privrisk_spark.batches import Scratch, grouped
from privrisk_spark.counts import SpreadVectors, StoredCounts, cell_space
from privrisk_spark.hierarchy import Hierarchy
from privrisk_spark.kernels import randomness
from privrisk_spark.kernels.counting import Axis, consistent_at
from privrisk_spark.kernels.decide import Decisions
from privrisk_spark.kernels.exponential import negative_risk, objective
from privrisk_spark.kernels.lattice import reaches
from privrisk_spark.kernels.published import NOTHING, algorithm_6, element_law, random_threshold
from privrisk_spark.measure import InputFacts
from privrisk_spark.policy import Policy
from privrisk_spark.sampling import Disclosing, FrequentCells, record_blocks

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

Elements = StoredCounts | FrequentCells
"""Counts of the t-frequent elements, or of all."""

_WEIGHED_AT_ONCE = 2**21
"""Pairs of a distinct record and an element whose probabilities are held at once."""


@dataclass(frozen=True, repr=False)
class DrawKeys:
    """Keys of one release, one per use; they never appear in a text.

    Attributes
    ----------
    threshold, sample, element : bytes
        Derived from the release key and bound to run id, snapshot and constants.
    """

    threshold: bytes
    sample: bytes
    element: bytes

    @classmethod
    def derive(cls, release_key: bytes, *, run_id: str, snapshot: str, constants: str) -> DrawKeys:
        """Derive independent keys; another snapshot or other constants under the same run id give unrelated draws."""
        bound = (run_id, snapshot, constants)
        labels = ("as published threshold", "as published sample", "as published element")
        return cls(*(randomness.derive_key(release_key, *bound, label) for label in labels))


@dataclass(frozen=True, eq=False, repr=False)
class Draws(Disclosing):
    """What a draw depends on besides the record and the counts.

    Attributes
    ----------
    constants : AsPublished
    keys : DrawKeys
    rows : int
        ``|D|``.
    least : int
        Smallest count that is t-frequent; secret, as theta is.
    """

    constants: AsPublished
    keys: DrawKeys
    rows: int
    least: int

    @classmethod
    def of_policy(
        cls,
        policy: Policy,
        hierarchies: Mapping[str, Hierarchy],
        axes: Sequence[Axis],
        constants: AsPublished,
        *,
        key: bytes,
        run_id: str,
        facts: InputFacts,
    ) -> Draws:
        """What the policy and its hierarchies say, and the threshold that is drawn (step 2)."""
        digest = constants.digest(policy, hierarchies)
        keys = DrawKeys.derive(key, run_id=run_id, snapshot=facts.snapshot, constants=digest)
        word = randomness.prf(keys.threshold, np.zeros((1, 4), dtype=np.uint32))[:, 0]
        (t,) = random_threshold(randomness.uniforms(word), theta0=constants.policy.theta0, rows=facts.rows).tolist()
        return cls(
            **cls.tables(policy, hierarchies, axes),
            constants=constants,
            keys=keys,
            rows=facts.rows,
            least=math.ceil(t),
        )

    @property
    def level_vectors(self) -> list[tuple[int, ...]]:
        """Every level vector, the last attribute's level first to change."""
        return list(product(*(range(ancestor.shape[1]) for ancestor in self.ancestor)))

    def consistent(self, elements: Elements, codes: IntArray, levels: Sequence[int]) -> LongArray:
        """``ρ`` of each record's element at a level vector; may be 0 where it is not t-frequent."""
        if isinstance(elements, StoredCounts):
            return consistent_at(elements.load(), self.code_depth, codes, levels)
        disclosed = self.disclosed(codes, levels)
        classes = [r.node_class[node] for r, node in zip(elements.space.relations, disclosed, strict=True)]
        position, found = elements.index.find(classes, len(codes))
        if not len(elements.rows):
            return np.zeros(len(codes), dtype=np.int64)
        result: LongArray = np.where(found, elements.rows[position], 0)
        return result

    def scores(self, counts: LongArray, phi: FloatArray, utility: FloatArray) -> FloatArray:
        """``f^a`` of eq 5.4, or ``-r^a``; Φ cut at its bound."""
        asked = self.constants.policy
        if asked.utility_at_least is None:
            assert asked.phi_l is not None
            return objective(
                counts, phi, utility, lam=asked.lambda_, kappa=asked.kappa, phi_min=asked.phi_l, count_cap=self.rows
            )
        assert asked.phi_u is not None
        return negative_risk(counts, np.fmin(phi, asked.phi_u), count_cap=self.rows)

    def drawing(self, elements: Elements) -> Decide:
        """Return the function that samples the rows of a chunk and draws an element for each (steps 4 to 8)."""
        k = len(self.ancestor)
        beta = self.constants.policy.beta
        sample_key, element_key = self.keys.sample, self.keys.element

        def run(table: pa.Table) -> Decided:
            codes = integers(table, schemas.codes(k))
            messages = randomness.record_messages(record_blocks(table))
            sampled = randomness.uniforms(randomness.prf(sample_key, messages)[:, 0])
            drawn = randomness.uniforms(randomness.prf(element_key, messages)[:, 0])
            first, member = grouped(list(codes.T))
            distinct = codes[first]
            heights = [ancestor.shape[1] - 1 for ancestor in self.ancestor]
            depths = np.column_stack([depth[distinct[:, i]] for i, depth in enumerate(self.code_depth)])
            reached = []
            for levels in self.level_vectors:
                above = (depths >= levels).all(axis=1)
                if above.any() and (self.consistent(elements, distinct[above], levels) >= self.least).any():
                    reached.append(levels)
            chosen_levels = np.tile(np.array(heights, dtype=np.int64), (len(codes), 1))
            kept = np.zeros(len(codes), dtype=np.bool_)
            consistent = np.full(len(codes), self.rows, dtype=np.int64)
            size = max(1, _WEIGHED_AT_ONCE // max(1, len(reached)))
            for begin in range(0, len(distinct), size):
                rows = np.flatnonzero((member >= begin) & (member < begin + size))
                law, counts = self._law(elements, distinct[begin : begin + size], reached)
                of = member[rows] - begin
                chosen = algorithm_6(law, sampled[rows], drawn[rows], beta=beta, members=of)
                out = chosen != NOTHING
                kept[rows] = out
                chosen_levels[rows[out]] = np.array(reached, dtype=np.int64).reshape(-1, k)[chosen[out]]
                consistent[rows[out]] = counts[of[out], chosen[out]]
            return Decided(
                table, self._decisions(codes, chosen_levels, consistent), np.arange(len(codes), dtype=np.int64), kept
            )

        return run

    def _law(
        self, elements: Elements, codes: IntArray, level_vectors: Sequence[Sequence[int]]
    ) -> tuple[FloatArray, LongArray]:
        """Law of the draw of distinct records over level vectors, and the counts of their elements; shape (n, c)."""
        shape = (len(codes), len(level_vectors))
        depths = np.column_stack([depth[codes[:, i]] for i, depth in enumerate(self.code_depth)])
        above, counts = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.int64)
        phi, utility = np.zeros(shape), np.zeros(shape)
        for j, levels in enumerate(level_vectors):
            # Beyond a value's depth there is ⊥ again: the same element, which counts once.
            above[:, j] = (depths >= levels).all(axis=1)
            disclosed = self.disclosed(codes, levels)
            counts[:, j] = self.consistent(elements, codes, levels)
            phi[:, j] = self.sensitivity.phi(disclosed)
            for of_node, node in zip(self.utility, disclosed, strict=True):
                utility[:, j] += of_node[node]
        frequent = counts >= self.least
        floor = self.constants.policy.utility_at_least
        if floor is not None:
            frequent &= reaches(utility, floor)
        law = element_law(
            self.scores(counts, phi, utility),
            above,
            frequent,
            epsilon_drawing=self.constants.epsilon_drawing,
            rows=self.rows,
        )
        return law, counts

    def _decisions(self, codes: IntArray, levels: LongArray, consistent: LongArray) -> Decisions:
        """Decisions of rows at their level vectors."""
        k = codes.shape[1]
        depths = np.column_stack([depth[codes[:, i]] for i, depth in enumerate(self.code_depth)])
        disclosed = [ancestor[codes[:, i], levels[:, i]] for i, ancestor in enumerate(self.ancestor)]
        utility = np.zeros(len(codes))
        for of_node, node in zip(self.utility, disclosed, strict=True):
            utility += of_node[node]
        phi = self.sensitivity.phi(disclosed)
        return Decisions(
            levels=np.minimum(levels, depths).astype(np.int8),
            nodes=np.column_stack(disclosed).astype(np.int32, copy=False),
            risk=phi / consistent,
            # The count of the record as it is may not have been made: at most as if nobody else were like it.
            risk_before=self.sensitivity.phi(self.disclosed(codes, [0] * k)),
            utility=utility,
            consistent=consistent,
            feasible=np.ones(len(codes), dtype=np.bool_),
        )


def collect_elements(
    scratch: Scratch,
    counted: StoredCounts | SpreadVectors,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    *,
    least: int,
) -> Elements:
    """Find the elements with at least that many rows (step 3), unless all are counted already."""
    if isinstance(counted, StoredCounts):
        return counted
    space = cells.collect_frequent(counted.vectors, cell_space(counted, policy, hierarchies), least)
    found = cells.frequent_cells(counted.vectors, space, least, materialize=scratch.write_frame)
    most = policy.counting.sorted_vectors
    return FrequentCells.collect_cells(scratch.write_frame(found, "frequent"), space, most=most)
