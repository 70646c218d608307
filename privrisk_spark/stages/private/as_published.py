"""Stages of a release by Algorithm 6 or 7 of F12 as published: frequent elements, sample and draw. No guarantee.

Every random number is a keyed function of a record, the threshold one of the release, so retries and other
partitionings give the same bits. The keys travel inside UDF closures only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import grouped
from privrisk_spark.engine.counts import StoredCounts
from privrisk_spark.engine.decided import Decide, Decided, integers
from privrisk_spark.engine.fingerprints import record_blocks
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LevelArray, LongArray
from privrisk_spark.kernels.as_published.algorithm6 import NOTHING, algorithm_6, element_law, random_threshold
from privrisk_spark.kernels.as_published.algorithm7 import LayeredLattices, sample_point
from privrisk_spark.kernels.as_published.frequent_elements import (
    by_levels,
    consistent_elements,
    frequent_elements,
    lattice_counts,
)
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.dp.exponential import negative_risk, objective
from privrisk_spark.kernels.lattice.lattice import Lattice, reaches
from privrisk_spark.kernels.random import keyed
from privrisk_spark.planning.as_published import AsPublished
from privrisk_spark.policy.as_published import ThresholdAsPublished, WalkAsPublished
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.facts import InputFacts
from privrisk_spark.stages.private.sampling import Disclosing, FrequentCells

Elements = StoredCounts | FrequentCells
"""Counts of the t-frequent elements, or of all."""

_WEIGHED_AT_ONCE = 2**21
"""Pairs of a distinct record and an element that are held at once."""

_WALKING_AT_ONCE = 2**19
"""Coordinates of the points that walk at once."""


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
        return cls(*(keyed.derive_key(release_key, *bound, label) for label in labels))


@dataclass(frozen=True, eq=False, repr=False)
class Draws(Disclosing):
    """What a draw depends on besides the record and the counts.

    Attributes
    ----------
    rows : int
        ``|D|``.
    t : float
        ``theta |D|``; secret, as theta is.
    """

    constants: AsPublished
    keys: DrawKeys
    rows: int
    t: float

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
        word = keyed.prf(keys.threshold, np.zeros((1, 4), dtype=np.uint32))[:, 0]
        (t,) = random_threshold(keyed.uniforms(word), theta0=constants.policy.theta0, rows=facts.rows).tolist()
        return cls(
            **cls.tables(policy, hierarchies, axes),
            constants=constants,
            keys=keys,
            rows=facts.rows,
            t=t,
        )

    @property
    def least(self) -> int:
        """Smallest count that is t-frequent."""
        return math.ceil(self.t)

    @property
    def least_counted(self) -> int:
        """Smallest count that is read: the extension of T mixes elements that are not t-frequent too."""
        return 1 if isinstance(self.constants.policy, WalkAsPublished) else self.least

    def depths(self, codes: IntArray) -> IntArray:
        """Depth of each value of records, shape (n, k)."""
        return np.column_stack([depth[codes[:, i]] for i, depth in enumerate(self.code_depth)])

    def elements_at(self, codes: IntArray, levels: LevelArray) -> list[IntArray]:
        """Nodes of records at levels of their own, per attribute."""
        return [ancestor[codes[:, i], levels[:, i]] for i, ancestor in enumerate(self.ancestor)]

    def consistent(self, elements: Elements, codes: IntArray, levels: LevelArray) -> LongArray:
        """``ρ`` of each record's element; may be 0 where it is not counted."""
        if isinstance(elements, StoredCounts):
            return consistent_elements(elements.load(), self.code_depth, codes, levels)
        disclosed = self.elements_at(codes, levels)
        classes = [r.node_class[node] for r, node in zip(elements.space.relations, disclosed, strict=True)]
        position, found = elements.index.find(classes, len(codes))
        if not len(elements.rows):
            return np.zeros(len(codes), dtype=np.int64)
        result: LongArray = np.where(found, elements.rows[position], 0)
        return result

    def weighed(self, codes: IntArray, levels: LevelArray) -> tuple[FloatArray, FloatArray]:
        """``Φ`` and utility of each record's element."""
        disclosed = self.elements_at(codes, levels)
        utility = np.zeros(len(codes))
        for of_node, node in zip(self.utility, disclosed, strict=True):
            utility += of_node[node]
        return self.sensitivity.phi(disclosed), utility

    def scores(self, counts: LongArray, phi: FloatArray, utility: FloatArray) -> FloatArray:
        """``f^a`` of eq 5.4, or ``-r^a``; Φ cut at its bound."""
        asked = self.constants.policy
        if isinstance(asked, ThresholdAsPublished):
            return negative_risk(counts, np.fmin(phi, asked.phi_u), count_cap=self.rows)
        return objective(
            counts, phi, utility, lam=asked.lambda_, kappa=asked.kappa, phi_min=asked.phi_l, count_cap=self.rows
        )

    def drawing(self, elements: Elements) -> Decide:
        """Return the function that samples the rows of a chunk and draws an element for each (steps 4 to 8)."""
        k = len(self.ancestor)
        asked, sample_key = self.constants.policy, self.keys.sample

        def run(table: pa.Table) -> Decided:
            codes = integers(table, schemas.codes(k))
            messages = keyed.record_messages(record_blocks(table))
            sampled = keyed.uniforms(keyed.prf(sample_key, messages)[:, 0])
            # What is not sampled counts as fully suppressed; nothing is drawn for it.
            levels, kept = self.depths(codes).astype(np.int8), np.zeros(len(codes), dtype=np.bool_)
            consistent = np.full(len(codes), self.rows, dtype=np.int64)
            rows = np.flatnonzero(sampled < 1.0 - asked.beta)
            if isinstance(asked, WalkAsPublished):
                drawn = self._walk(asked, elements, codes[rows], messages[rows])
            else:
                drawn = self._draw(elements, codes[rows], messages[rows], sampled[rows])
            for some, of_some, counts in drawn:
                levels[rows[some]], consistent[rows[some]], kept[rows[some]] = of_some, counts, True
            return Decided(
                table, self._decisions(codes, levels, consistent), np.arange(len(codes), dtype=np.int64), kept
            )

        return run

    def _draw(
        self, elements: Elements, codes: IntArray, messages: npt.NDArray[np.uint32], sampled: FloatArray
    ) -> Iterator[tuple[LongArray, LevelArray, LongArray]]:
        """Rows that get an element by Algorithm 6, its level vector and its count."""
        if not len(codes):
            return
        uniforms = keyed.uniforms(keyed.prf(self.keys.element, messages)[:, 0])
        first, member = grouped(list(codes.T))
        distinct = codes[first]
        asked = self.constants.policy
        floor = asked.utility_at_least if isinstance(asked, ThresholdAsPublished) else None
        blocks = frequent_elements(
            distinct,
            self.depths(distinct),
            lambda codes, levels: self.consistent(elements, codes, levels),
            least=self.least,
            at_once=_WEIGHED_AT_ONCE,
        )
        for block in blocks:
            of_element = distinct[block.begin : block.end][block.record]
            phi, utility = self.weighed(of_element, block.levels)
            scores = self.scores(block.consistent[None], phi[None], utility[None])[0]
            admitted = np.ones(len(scores), dtype=np.bool_)
            if floor is not None:
                admitted = reaches(utility, floor)
            of_block = np.flatnonzero((member >= block.begin) & (member < block.end))
            sizes = np.bincount(block.record, minlength=block.end - block.begin)
            begins = np.cumsum(sizes) - sizes
            for records in _alike(sizes):
                place = np.arange(sizes[records].max())
                there = place < sizes[records][:, None]
                element = np.where(there, begins[records][:, None] + place, 0)
                law = element_law(
                    scores[element],
                    there,
                    admitted[element],
                    epsilon_drawing=self.constants.epsilon_drawing,
                    rows=self.rows,
                )
                numbers = np.full(len(sizes), -1, dtype=np.int64)
                numbers[records] = np.arange(len(records))
                rows = of_block[numbers[member[of_block] - block.begin] >= 0]
                of_row = numbers[member[rows] - block.begin]
                chosen = algorithm_6(law, sampled[rows], uniforms[rows], beta=asked.beta, members=of_row)
                out = chosen != NOTHING
                drawn = element[of_row[out], chosen[out]]
                yield rows[out], block.levels[drawn], block.consistent[drawn]

    def _walk(
        self, asked: WalkAsPublished, elements: Elements, codes: IntArray, messages: npt.NDArray[np.uint32]
    ) -> Iterator[tuple[LongArray, LevelArray, LongArray]]:
        """Rows that get an element by Algorithm 7, its level vector and its count."""
        depths, counts = self.depths(codes), self._whole(elements)
        for alike in by_levels(depths.astype(np.int8)):
            heights = tuple(depths[alike[0]].tolist())
            first, member = grouped(list(codes[alike].T))
            order = np.argsort(member, kind="stable")
            lattice, walking = Lattice(heights), max(1, _WALKING_AT_ONCE // (sum(heights) + 2))
            records = max(1, _WEIGHED_AT_ONCE // lattice.n_nodes)
            begin = 0
            while begin < len(order):
                # As many rows as may walk at once, of as many records as may be weighed at once.
                beyond = np.searchsorted(member[order], member[order[begin]] + records)
                rows = order[begin : min(begin + walking, int(beyond))]
                begin += len(rows)
                lowest = member[rows[0]]
                distinct = codes[alike[first[lowest : member[rows[-1]] + 1]]]
                lattices = self._lattices(asked, counts, distinct, heights)
                nodes = self._walked(asked, lattices, member[rows] - lowest, messages[alike[rows]])
                out = nodes != NOTHING
                consistent = lattices.consistent[member[rows[out]] - lowest, nodes[out]]
                yield alike[rows[out]], lattice.levels(nodes[out]).astype(np.int8), consistent

    def _whole(self, elements: Elements) -> Callable[[IntArray, tuple[int, ...]], LongArray]:
        """Return what counts every element of records of the same depths, shape (m, n_nodes)."""
        if isinstance(elements, StoredCounts):
            return lattice_counts(elements.load()).of_records

        def looked_up(codes: IntArray, heights: tuple[int, ...]) -> LongArray:
            return self.consistent(elements, *_elements(codes, heights)).reshape(len(codes), -1)

        return looked_up

    def _lattices(
        self,
        asked: WalkAsPublished,
        counts: Callable[[IntArray, tuple[int, ...]], LongArray],
        codes: IntArray,
        heights: tuple[int, ...],
    ) -> LayeredLattices:
        """Count and weigh every element of distinct records of the same depths."""
        consistent = counts(codes, heights)
        roots = [np.full(len(codes), len(utility) - 1, dtype=np.int32) for utility in self.utility]
        # Φ is a sum over the attributes, so differences from the fully suppressed record add up.
        phi, utility = self.sensitivity.phi(roots)[:, None], np.zeros((len(codes), 1))
        bottom = phi[:, 0]
        for i, height in enumerate(heights):
            nodes = self.ancestor[i][codes[:, i], : height + 1]
            alone = [self.sensitivity.phi([*roots[:i], node, *roots[i + 1 :]]) - bottom for node in nodes.T]
            phi = (phi[:, :, None] + np.column_stack(alone)[:, None, :]).reshape(len(codes), -1)
            utility = (utility[:, :, None] + self.utility[i][nodes][:, None, :]).reshape(len(codes), -1)
        numerator = asked.lambda_ * consistent + phi * utility**asked.kappa
        return LayeredLattices(heights, consistent, phi, numerator, asked.phi_l, asked.phi_u)

    def _walked(
        self,
        asked: WalkAsPublished,
        lattices: LayeredLattices,
        members: LongArray,
        messages: npt.NDArray[np.uint32],
    ) -> LongArray:
        """Node of each row after a walk whose every step is a keyed function of the row and the step's number."""
        key = self.keys.element
        columns = sum(lattices.heights) + 2
        layers, rounding = _keyed(key, messages, 0, 2).T
        return sample_point(
            lattices,
            epsilon_drawing=self.constants.epsilon_drawing,
            width=asked.layer_width,
            rows=self.rows,
            t=self.t,
            sigma=asked.sigma,
            members=members,
            layers=layers,
            walk=(_keyed(key, messages, step + 1, columns) for step in range(asked.steps)),
            rounding=rounding,
        )

    def _decisions(self, codes: IntArray, levels: LevelArray, consistent: LongArray) -> Decisions:
        """Decisions of rows at their level vectors."""
        phi, utility = self.weighed(codes, levels)
        as_it_is = self.elements_at(codes, np.zeros_like(levels))
        return Decisions(
            levels=levels,
            nodes=np.column_stack(self.elements_at(codes, levels)).astype(np.int32, copy=False),
            risk=phi / consistent,
            # The count of the record as it is may not have been made: at most as if nobody else were like it.
            risk_before=self.sensitivity.phi(as_it_is),
            utility=utility,
            consistent=consistent,
            consistent_before=np.ones(len(codes), dtype=np.int64),
            feasible=np.ones(len(codes), dtype=np.bool_),
        )


def _elements(codes: IntArray, heights: tuple[int, ...]) -> tuple[IntArray, LevelArray]:
    """Every element of records of the same depths, record by record: the record's codes, and levels."""
    lattice = Lattice(heights)
    levels = lattice.levels(np.arange(lattice.n_nodes)).astype(np.int8)
    return np.repeat(codes, lattice.n_nodes, axis=0), np.tile(levels, (len(codes), 1))


def _alike(sizes: LongArray) -> Iterator[LongArray]:
    """Records with about as many elements each, so that tables of both are small and hold little padding."""
    order = np.argsort(sizes, kind="stable")
    begin = 0
    while begin < len(order):
        within = sizes[order[begin:]] * np.arange(1, len(order) - begin + 1) <= _WEIGHED_AT_ONCE
        end = begin + max(1, int(within.sum()))
        yield order[begin:end]
        begin = end


def _keyed(key: bytes, messages: npt.NDArray[np.uint32], number: int, columns: int) -> FloatArray:
    """Uniform numbers, shape (n, columns), by the key, the record's message and the number alone."""
    blocks = -(-columns // 2)
    counters = np.zeros((len(messages), blocks, 4), dtype=np.uint32)
    counters[:, :, 0], counters[:, :, 1] = number, np.arange(blocks)
    each = np.concatenate([np.repeat(messages[:, None, :], blocks, axis=1), counters], axis=2)
    words = keyed.prf(key, each.reshape(-1, 8)).reshape(len(messages), 2 * blocks)
    return keyed.uniforms(np.ascontiguousarray(words[:, :columns]))
