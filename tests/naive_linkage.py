"""Distance-based record linkage by the letter: two loops over records, and distances from paths to the root."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from privrisk_spark.hierarchies.hierarchy import Hierarchy


def path(hierarchy: Hierarchy, node: int) -> list[int]:
    """From the root down to a node."""
    found = [node]
    while found[-1] != hierarchy.root:
        found.append(int(hierarchy.parent[found[-1]]))
    return found[::-1]


def leaves(hierarchy: Hierarchy, node: int) -> list[int]:
    return [leaf for leaf in range(hierarchy.n_leaves) if node in path(hierarchy, leaf)]


def drawn_difference(hierarchy: Hierarchy, known: int, cell: int) -> float:
    """Mean over all leaves below one node and all below the other, two equal ones being at no difference."""
    mine, theirs = leaves(hierarchy, known), leaves(hierarchy, cell)
    return sum(level_difference(hierarchy, a, b) for a in mine for b in theirs) / len(mine) / len(theirs)


def level_difference(hierarchy: Hierarchy, known: int, cell: int) -> float:
    """Height of the lowest common ancestor over the height; nothing if one of the nodes covers the other."""
    mine, theirs = path(hierarchy, known), path(hierarchy, cell)
    common = [a for a, b in zip(mine, theirs, strict=False) if a == b][-1]
    if common in (known, cell):
        return 0.0
    return (hierarchy.height - (len(path(hierarchy, common)) - 1)) / hierarchy.height


def linked(
    hierarchies: Sequence[Hierarchy],
    weights: Sequence[float],
    known: Sequence[Sequence[int]],
    protected: Sequence[Sequence[int]],
    rows: Sequence[int],
    difference: Callable[[Hierarchy, int, int], float] = level_difference,
) -> list[tuple[float, int, set[int]]]:
    """Least distance of each known record, the rows at it, and which protected records those are."""
    found = []
    for mine in known:
        distances = [
            sum(w * difference(h, a, b) for w, h, a, b in zip(weights, hierarchies, mine, theirs, strict=True))
            for theirs in protected
        ]
        least = min(distances)
        tied = {j for j, d in enumerate(distances) if d <= least + 1e-7}
        found.append((least, sum(rows[j] for j in tied), tied))
    return found


def jaro(one: str, other: str) -> float:
    """Characters that match, at most half the longer text less one apart, and half of those out of order."""
    if not one or not other:
        return float(one == other)
    window = max(max(len(one), len(other)) // 2 - 1, 0)
    taken = [False] * len(other)
    mine = []
    for i, character in enumerate(one):
        for j in range(max(0, i - window), min(len(other), i + window + 1)):
            if not taken[j] and other[j] == character:
                taken[j] = True
                mine.append(character)
                break
    theirs = [character for character, there in zip(other, taken, strict=True) if there]
    m = len(mine)
    if not m:
        return 0.0
    t = sum(a != b for a, b in zip(mine, theirs, strict=True)) // 2
    return (m / len(one) + m / len(other) + (m - t) / m) / 3


def winkler(one: str, other: str) -> float:
    """Jaro similarity, and a tenth of what it lacks for each of up to four first characters in common."""
    found = jaro(one, other)
    common = 0
    while common < min(4, len(one), len(other)) and one[common] == other[common]:
        common += 1
    return found + common * 0.1 * (1 - found) if found > 0.7 else found
