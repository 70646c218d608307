"""A sample of the decided records, and the riskiest released classes, as facts of the parts that tasks write.

A record is sampled by a fingerprint of its id, so that the same ones are under any partitioning. What a task reports is
bounded by the sample wanted, not by its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import grouped
from privrisk_spark.engine.decided import Decided, WeightColumns, floats, integers
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.risk import Attacker, found_in_part
from privrisk_spark.kernels.search.trade_off import Fits, TradeOff, floors_between
from privrisk_spark.planning.trade_off import ANONYMITY, DRAWN, FLOORS, PARTS, SHOWN, SUPPRESSED_AT_MOST, SampleSize
from privrisk_spark.results.trade_off import (
    AnonymousPoint,
    PartPoint,
    RecodingPoint,
    RiskyClass,
    RowPair,
    TradeOffFacts,
)

_DRAWS = 2**64


@dataclass(frozen=True)
class Sampling:
    """What is sampled of the decisions.

    Attributes
    ----------
    records : int
        Records of the sample.
    of : int
        Records of the table.
    weights : int
        Weight columns a record has.
    """

    records: int
    of: int
    weights: int

    @property
    def below(self) -> int:
        """Fingerprints below this are reported: more than are wanted, so that the smallest of all are among them."""
        enough = self.records + 8 * int(self.records**0.5) + 8
        return _DRAWS if enough >= self.of else _DRAWS * enough // self.of


def sampled_facts(
    decided: Decided, sampling: Sampling, named: Sequence[npt.NDArray[np.int32]], *, k: int
) -> dict[str, Any]:
    """Return the sampled records and the riskiest classes of a chunk, for JSON.

    Parameters
    ----------
    named : sequence of k ndarrays of int32, shape (n_nodes_i,)
        The node that stands for each in a release; empty: each for itself.
    k : int
        Number of quasi-identifiers.
    """
    draw = fingerprints(decided.table.column(schemas.RECORD_ID))
    rows = np.flatnonzero(draw <= np.uint64(sampling.below - 1))
    table, of, decisions = decided.table.take(rows), decided.rows[rows], decided.decisions
    sample = {
        "draw": draw[rows].tolist(),
        "codes": integers(table, schemas.codes(k)).tolist(),
        "weights": floats(table, schemas.weights(sampling.weights)).tolist(),
        "levels": decisions.levels[of].tolist(),
        "released": decided.kept[rows].tolist(),
        "risk_before": decisions.risk_before[of].tolist(),
        "risk": decisions.risk[of].tolist(),
        "utility": decisions.utility[of].tolist(),
        "consistent": decisions.consistent[of].tolist(),
    }
    return {"sample": sample, "riskiest": _riskiest(decided, named, k=k)}


def _riskiest(
    decided: Decided, named: Sequence[npt.NDArray[np.int32]], *, k: int
) -> list[tuple[list[int], float, int]]:
    """Nodes, greatest risk and fewest consistent rows of the riskiest classes of a chunk."""
    kept = np.flatnonzero(decided.kept)
    if not len(kept):
        return []
    nodes = [decided.node(i)[kept] for i in range(k)]
    if named:
        nodes = [of[node] for of, node in zip(named, nodes, strict=True)]
    first, member = grouped(nodes)
    of = decided.rows[kept]
    risk, consistent = np.zeros(len(first)), np.full(len(first), np.iinfo(np.int64).max)
    np.maximum.at(risk, member, decided.decisions.risk[of])
    np.minimum.at(consistent, member, decided.decisions.consistent[of])
    columns = np.column_stack([node[first] for node in nodes])
    # Of many classes only those that can be among the first are sorted.
    few = np.flatnonzero(risk >= np.partition(risk, -SHOWN)[-SHOWN]) if len(risk) > SHOWN else np.arange(len(risk))
    best = few[np.lexsort((*columns[few].T[::-1], -risk[few]))[:SHOWN]]
    return [(columns[c].tolist(), float(risk[c]), int(consistent[c])) for c in best]


@dataclass(frozen=True, eq=False)
class Sample:
    """Sampled records and their decisions, by ascending fingerprint of their ids.

    Attributes
    ----------
    codes : ndarray of int32, shape (n, k)
    weights : ndarray of float64, shape (n, n_weights)
    levels : ndarray of int64, shape (n, k)
    released : ndarray of bool, shape (n,)
        False of records whose class is not released.
    risk_before, risk, utility : ndarray of float64, shape (n,)
    consistent : ndarray of int64, shape (n,)
    riskiest : tuple of (nodes, risk, consistent)
        Released classes by falling risk.
    """

    codes: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float64]
    levels: npt.NDArray[np.int64]
    released: npt.NDArray[np.bool_]
    risk_before: npt.NDArray[np.float64]
    risk: npt.NDArray[np.float64]
    utility: npt.NDArray[np.float64]
    consistent: npt.NDArray[np.int64]
    riskiest: tuple[tuple[tuple[int, ...], float, int], ...]

    @classmethod
    def of_parts(cls, parts: Sequence[Mapping[str, Any]], sampling: Sampling, *, k: int) -> Sample:
        """Put the samples of the parts together."""
        rows = sorted(row for part in parts for row in zip(*(part["sample"][name] for name in _COLUMNS), strict=True))[
            : sampling.records
        ]
        columns = dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(_COLUMNS, ())
        n = len(rows)
        classes: dict[tuple[int, ...], tuple[float, int]] = {}
        for part in parts:
            for nodes, risk, consistent in part["riskiest"]:
                known = classes.get(tuple(nodes), (risk, consistent))
                classes[tuple(nodes)] = (max(risk, known[0]), min(consistent, known[1]))
        riskiest = sorted(((nodes, *found) for nodes, found in classes.items()), key=lambda one: (-one[1], one[0]))
        return cls(
            codes=np.array(columns["codes"], dtype=np.int32).reshape(n, k),
            weights=np.array(columns["weights"], dtype=np.float64).reshape(n, sampling.weights),
            levels=np.array(columns["levels"], dtype=np.int64).reshape(n, k),
            released=np.array(columns["released"], dtype=np.bool_),
            risk_before=np.array(columns["risk_before"], dtype=np.float64),
            risk=np.array(columns["risk"], dtype=np.float64),
            utility=np.array(columns["utility"], dtype=np.float64),
            consistent=np.array(columns["consistent"], dtype=np.int64),
            riskiest=tuple(riskiest[:SHOWN]),
        )

    def pairs(self, hierarchies: Sequence[Hierarchy]) -> tuple[RowPair, ...]:
        """Return the first records as a reader sees them, before and after."""
        found = []
        for r in range(min(SHOWN, len(self.codes))):
            before, after = [], []
            for hierarchy, code, level in zip(hierarchies, self.codes[r], self.levels[r], strict=True):
                before.append(None if code == hierarchy.n_leaves else hierarchy.labels[code])
                after.append(hierarchy.labels[hierarchy.ancestor[code, level]])
            shown = tuple(after) if self.released[r] else ()
            found.append(RowPair(tuple(before), shown, float(self.risk_before[r]), float(self.risk[r])))
        return tuple(found)

    def risky_classes(self, hierarchies: Sequence[Hierarchy]) -> tuple[RiskyClass, ...]:
        """Return the riskiest released classes by their labels."""
        return tuple(
            RiskyClass(tuple(h.labels[n] for h, n in zip(hierarchies, nodes, strict=True)), risk, consistent)
            for nodes, risk, consistent in self.riskiest
        )


_COLUMNS = ("draw", "codes", "weights", "levels", "released", "risk_before", "risk", "utility", "consistent")


def trade_off(
    sample: Sample,
    disclosure: Disclosure,
    attacker: Attacker,
    weights: WeightColumns,
    *,
    size: SampleSize,
    own: bool,
    floor: float | None,
) -> TradeOffFacts:
    """Evaluate sampled records at every level vector or some, and hold the release against that.

    Parameters
    ----------
    attacker : Attacker
        With counts that are dense or sorted.
    size : SampleSize
        The first so many records are evaluated, at least one, at the levels it keeps.
    own : bool
        Whether the dictionary is the table itself.
    floor : float or None
        Least utility that this release asked of a record.
    """
    records = size.evaluated
    given = sample.weights[:records]
    whole = TradeOff.of(
        disclosure,
        attacker,
        sample.codes[:records],
        personal=weights.personal(given),
        record_weight=weights.of_record(given),
        kept=size.levels,
    )
    drawn = whole.spread(columns=DRAWN[0], rows=DRAWN[1])
    place = {int(node): i for i, node in enumerate(drawn)}
    levels = [tuple(row) for row in whole.levels(np.arange(whole.n_nodes)).tolist()]
    found = (whole.anonymous(k, suppressed=SUPPRESSED_AT_MOST) for k in ANONYMITY)
    shown = sample.released[:records]
    risk = whole.released(sample.risk[:records], shown, whole.risk)
    utility = whole.released(sample.utility[:records], shown, whole.utility)
    consistent = whole.released(sample.consistent[:records], shown, whole.consistent)
    as_is, as_released = whole.consistent[:, 0], consistent.astype(np.int64)
    return TradeOffFacts(
        records=len(given),
        nodes=whole.n_nodes,
        of_nodes=size.of_nodes,
        kept=tuple(tuple(of_attribute.tolist()) for of_attribute in whole.kept),
        own=own,
        recodings=tuple(
            RecodingPoint(levels[n], float(whole.mean_risk[n]), float(whole.mean_utility[n])) for n in drawn.tolist()
        ),
        frontier=tuple(place[n] for n in whole.frontier().tolist()),
        floors=tuple(map(whole.at_floor, floors_between(whole, FLOORS, and_at=floor))),
        anonymous=tuple(
            AnonymousPoint(one.k, levels[one.node], one.risk, one.utility, one.suppressed)
            for one in found
            if one is not None
        ),
        suppressed_at_most=SUPPRESSED_AT_MOST,
        risk=float(risk.mean()),
        utility=float(utility.mean()),
        fits_before=Fits.of(as_is),
        fits_after=Fits.of(as_released),
        parts=tuple(
            PartPoint(share, *(float(found_in_part(fit, share).mean()) for fit in (as_is, as_released)))
            for share in PARTS
        ),
    )
