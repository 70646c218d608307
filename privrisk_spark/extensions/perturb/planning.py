"""What the masks of a policy ask: of all records in an order, and of each by itself.

Some methods depend on where a record stands among all (microaggregation, rank swapping, shuffling). Their records are
put in an order that no partitioning shows in, and this is cut into segments, each of which one task masks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from privrisk_spark.extensions.perturb.kernels.pram import invariant, transition_checked
from privrisk_spark.extensions.perturb.kernels.rank_swapping import swap_segments, swap_width
from privrisk_spark.hierarchies.numbers import equal_text
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.policy.masking import (
    NUMERIC,
    Mask,
    MaskedGuarantee,
    Microaggregation,
    Noise,
    NoMask,
    Pram,
    RankSwapping,
    Shuffle,
)
from privrisk_spark.policy.policy import Policy

EXACT_ROWS = 100_000
"""Records that MDAV groups all at once."""

BLOCK_ROWS = 50_000
"""Records of a block along the first principal axis, at least, where there are more."""

SEGMENT_ROWS = 2**20
"""Records that one task swaps, shuffles, or groups by one column."""

SAMPLED_ROWS = 20_000
"""Records by which the loss of blocks is compared with that of MDAV over all, about."""

MOST_CATEGORIES = 1_000
"""Categories that a column may have to be post-randomized."""

GAMMA = 0.2
"""Of V-MDAV, where the policy says nothing (Solanas and Martínez-Ballesté 2006)."""


@dataclass(frozen=True)
class Arranged:
    """Columns that are masked by where their records stand among all.

    Attributes
    ----------
    label : str
        Names what is drawn for them; no two of a policy have one.
    columns : tuple of str
        They are masked together.
    known : tuple of str
        Columns that decide with them and stay.
    """

    label: str
    columns: tuple[str, ...]
    known: tuple[str, ...]
    mask: Microaggregation | RankSwapping | Shuffle

    @property
    def together(self) -> bool:
        """Whether several columns are looked at as points."""
        return isinstance(self.mask, Microaggregation) and self.mask.algorithm != "univariate"


@dataclass(frozen=True)
class Segment:
    """Consecutive ranks that one task masks.

    Attributes
    ----------
    begin, end : int
        Ranks.
    pattern : int
        Bits of the columns that are missing in all of its records.
    suppressed : bool
        Whether there are too few records of the pattern to be a group: their values are missing then.
    """

    begin: int
    end: int
    pattern: int
    suppressed: bool = False


@dataclass(frozen=True)
class NoiseGroup:
    """Columns that get noise together; one column where it is independent."""

    columns: tuple[str, ...]
    mask: Noise


@dataclass(frozen=True)
class MaskPlan:
    """All that is done to the columns of a release.

    Attributes
    ----------
    masks : mapping of column to Mask
        Of those that are masked; others are released as they are.
    numbers : tuple of str
        Columns that are looked at as numbers, in the order of the policy.
    proved_k : int or None
        What microaggregation of all quasi-identifiers together proves of every released class; None where it does not.
    """

    masks: Mapping[str, Mask]
    numbers: tuple[str, ...]
    arranged: tuple[Arranged, ...]
    noise: tuple[NoiseGroup, ...]
    proved_k: int | None

    @property
    def masked_numbers(self) -> tuple[str, ...]:
        """Columns that are masked as numbers, in the order of the policy."""
        return tuple(name for name in self.numbers if name in self.masks)


def mask_plan(policy: Policy) -> MaskPlan:
    """Return what a policy of the kind 'masked' asks."""
    masks = {name: mask for name, mask in policy.masks.items() if not isinstance(mask, NoMask)}
    groups: dict[str, list[str]] = {}
    noise: dict[str, list[str]] = {}
    for name, mask in masks.items():
        if isinstance(mask, Microaggregation):
            groups.setdefault(_group(policy, name, mask), []).append(name)
        elif isinstance(mask, Noise):
            noise.setdefault(f"of {name}" if mask.group is None else f"group {mask.group}", []).append(name)
    arranged = []
    for label, names in groups.items():
        first = masks[names[0]]
        assert isinstance(first, Microaggregation)
        arranged.append(Arranged(f"microaggregation {label}", tuple(names), (), first))
    for name, mask in masks.items():
        if isinstance(mask, RankSwapping):
            arranged.append(Arranged(f"rank swapping {name}", (name,), (), mask))
        elif isinstance(mask, Shuffle):
            arranged.append(Arranged(f"shuffle {name}", (name,), mask.known, mask))
    noises = []
    for names in noise.values():
        of_group = masks[names[0]]
        assert isinstance(of_group, Noise)
        noises.append(NoiseGroup(tuple(names), of_group))
    wanted = {name for name, mask in masks.items() if isinstance(mask, NUMERIC)}
    wanted |= {name for one in arranged for name in one.known}
    numbers = tuple(name for name in policy.columns if name in wanted)
    return MaskPlan(masks, numbers, tuple(arranged), tuple(noises), _proved(policy, arranged))


def _group(policy: Policy, name: str, mask: Microaggregation) -> str:
    if mask.algorithm == "univariate":
        return f"of {name}"
    if mask.group is not None:
        return f"group {mask.group}"
    return "of quasi-identifiers" if name in policy.quasi_identifiers else f"of {name}"


def _proved(policy: Policy, arranged: list[Arranged]) -> int | None:
    quasi = set(policy.quasi_identifiers)
    for one in arranged:
        if isinstance(one.mask, Microaggregation) and quasi and quasi <= set(one.columns):
            return one.mask.k
    return None


def segments_of(one: Arranged, patterns: Mapping[int, int]) -> tuple[Segment, ...]:
    """Cut the records of an order into segments, the same however they are spread.

    Parameters
    ----------
    patterns : mapping of pattern to records
        In the order there are those of a lower pattern first.
    """
    found: list[Segment] = []
    begin = 0
    for pattern, rows in sorted(patterns.items()):
        if isinstance(one.mask, Microaggregation) and rows < one.mask.k:
            found.append(Segment(begin, begin + rows, pattern, suppressed=True))
        else:
            cuts = _cuts(one, rows)
            found += [Segment(begin + low, begin + high, pattern) for low, high in pairwise(cuts)]
        begin += rows
    return tuple(found)


def _cuts(one: Arranged, rows: int) -> list[int]:
    if isinstance(one.mask, RankSwapping):
        width = swap_width(rows, one.mask.percent)
        return [int(cut) for cut in swap_segments(rows, width, max(1, rows // SEGMENT_ROWS))]
    if one.together:
        assert isinstance(one.mask, Microaggregation)
        size = max(BLOCK_ROWS, 2 * one.mask.k)
        number = 1 if rows <= EXACT_ROWS else rows // size
    else:
        number = max(1, rows // SEGMENT_ROWS)
    return [rows * i // number for i in range(number + 1)]


def in_blocks(one: Arranged, patterns: Mapping[int, int]) -> bool:
    """Whether points are grouped in blocks, which loses something against MDAV over all."""
    return one.together and max(patterns.values(), default=0) > EXACT_ROWS


def transitions(mask: Pram, counts: Mapping[str, int], *, numbers: bool = False) -> tuple[list[str], FloatArray]:
    """Return the categories of a column, sorted, and its transition matrix.

    Parameters
    ----------
    counts : mapping of category to rows
    numbers : bool
        Whether the column holds numbers or booleans. Then ``34.0`` of a given matrix is the category ``34``.

    Returns
    -------
    list of str
    ndarray of float64, shape (c, c)

    Notes
    -----
    With the shares ``π`` and ``R = a I + (1 - a) 1 πᵀ``, ``πR = aπ + (1 - a) π = π``: a value stays with probability a,
    and is drawn from all values otherwise. No category is kept with a probability below a. A matrix of two stages is
    that of :func:`~privrisk_spark.extensions.perturb.kernels.pram.invariant`.
    """
    if mask.matrix is not None:
        equal = equal_text if numbers else str
        names = sorted(mask.matrix, key=equal)
        categories = [*map(equal, names)]
        given = np.array([[mask.matrix[row].get(name, 0.0) for name in names] for row in names])
        rows = np.array([counts.get(category, 0) for category in categories], dtype=np.float64)
        return categories, invariant(given, rows) if mask.two_stage and rows.any() else transition_checked(given)
    assert mask.invariant is not None
    names = sorted(counts)
    if not names:
        return names, np.zeros((0, 0))
    shares = np.array([counts[name] for name in names], dtype=np.float64)
    shares /= shares.sum()
    keep = mask.invariant.keep
    return names, transition_checked(keep * np.eye(len(names)) + (1 - keep) * shares)


def key_reference(policy: Policy) -> str | None:
    """Return where the key of a masked release is, if the policy says it."""
    assert isinstance(policy.guarantee, MaskedGuarantee)
    return policy.guarantee.key


def declared_masks(policy: Policy) -> dict[str, dict[str, Any]]:
    """Return what is done to each column, as a manifest may say it."""
    return {name: mask.declared() for name, mask in policy.masks.items()}
