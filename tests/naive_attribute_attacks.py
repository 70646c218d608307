"""Attacks that need no search, by the letter: loops over people, over what an intruder may know, and over tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product

Value = int
Members = Sequence[Value]
"""Sensitive value of each member of a class."""


def is_certain(members: Members) -> bool:
    return len(set(members)) == 1


def guess_is_right(members: Members, value: Value) -> Fraction:
    """One of the most frequent values is drawn."""
    counts = Counter(members)
    likeliest = [one for one, count in counts.items() if count == max(counts.values())]
    return Fraction(value in likeliest, len(likeliest))


def mean(numbers: Iterable[Fraction | int]) -> Fraction:
    held = list(numbers)
    return Fraction(sum(held), len(held))


def homogeneity(members: Members) -> tuple[Fraction, Fraction]:
    """Share of the members whose value is certain, and whose value is guessed."""
    return Fraction(is_certain(members)), mean(guess_is_right(members, value) for value in members)


def without_own_row(members: Members, of: Callable[[Iterable[Fraction]], Fraction]) -> tuple[Fraction, Fraction]:
    """The same for a member of whom ``of`` says which of the others counts: ``max`` or ``mean``."""
    if len(members) == 1:
        return homogeneity(members)
    certain, right = [], []
    for v, value in enumerate(members):
        left = [[one for i, one in enumerate(members) if i != a] for a in range(len(members)) if a != v]
        certain.append(of(Fraction(is_certain(some)) for some in left))
        right.append(of(guess_is_right(some, value) for some in left))
    return mean(certain), mean(right)


def excluding(
    members: Members, known: int, values: int, of: Callable[[Iterable[Fraction]], Fraction]
) -> tuple[Fraction, Fraction]:
    """The same where some of the table's values are known to be false, for each victim in every possible way."""
    certain, right = [], []
    for value in members:
        false = [one for one in range(values) if one != value]
        ways = list(combinations(false, min(known, len(false))))
        left = [[one for one in members if one not in way] for way in ways]
        certain.append(of(Fraction(is_certain(some)) for some in left))
        right.append(of(guess_is_right(some, value) for some in left))
    return mean(certain), mean(right)


Held = dict[int, frozenset[Value]]
"""Values that an individual holds in each class."""


def learned_of_individuals(people: Sequence[Held], factor: Fraction) -> list[list[Fraction]]:
    """What is learned of each individual: homogeneity, guess, marginal, external, background, skewness.

    In the order of :data:`privrisk_spark.extensions.attack.kernels.individuals.LEARNED`.
    """
    classes = sorted({place for one in people for place in one})
    members = {c: [i for i, one in enumerate(people) if c in one] for c in classes}
    every = [frozenset().union(*one.values()) for one in people]
    values = sorted(frozenset().union(*every))

    def all_hold(some: Iterable[int], c: int) -> bool:
        of = [people[i][c] for i in some]
        return bool(of) and bool(frozenset.intersection(*of))

    result = []
    for x, mine in enumerate(people):
        certain = external = background = skewed = False
        missed = Fraction(1)
        for c, held in mine.items():
            others = members[c]
            certain |= all_hold(others, c)
            counts = Counter(value for i in others for value in people[i][c])
            likeliest = [v for v, count in counts.items() if count == max(counts.values())]
            missed *= 1 - Fraction(sum(v in held for v in likeliest), len(likeliest))
            for a in others:
                external |= a != x and all_hold([i for i in others if i != a], c)
            for v in values:
                background |= v not in held and all_hold([i for i in others if v not in people[i][c]], c)
            for v in held:
                table = Fraction(sum(v in one for one in every), len(people))
                skewed |= Fraction(counts[v], len(others)) > factor * table
        of_table = Counter(value for one in every for value in one)
        common = [v for v, count in of_table.items() if count == max(of_table.values())]
        marginal = Fraction(sum(v in every[x] for v in common), len(common))
        result.append(
            [
                Fraction(certain),
                1 - missed,
                marginal,
                Fraction(external or certain),
                Fraction(background or certain),
                Fraction(skewed),
            ]
        )
    return result


def certain_after(people: Sequence[Sequence[Held]], places: Sequence[int]) -> list[bool]:
    """Whether a value is certain of a record by its classes in the first releases, by all worlds that are possible.

    ``people[r]`` says who holds what in release r, ``places[r]`` the record's class there. A world chooses in each
    release somebody of the class, all of whom hold one value together, that of the record.
    """
    result, choices = [], []
    for release, place in zip(people, places, strict=True):
        if place >= 0:
            choices.append([one[place] for one in release if place in one])
        worlds = [way for way in product(*choices) if choices and frozenset.intersection(*way)]
        held = [frozenset().union(*way) for way in worlds]
        result.append(bool(held) and bool(frozenset.intersection(*held)))
    return result


def gain(members: Members, table: Members, value: Value) -> Fraction:
    return Fraction(members.count(value), len(members)) / Fraction(table.count(value), len(table))


def credibility(
    classes: Sequence[tuple[Sequence[int], Sequence[Value]]], alpha: Fraction, k: int
) -> list[dict[tuple[int, Value], Fraction]] | None:
    """Probability that a member of a part holds a value, by class: sizes of its parts, and the values of its rows.

    All orders of the values of each class are equally likely; those stay in which the finer scheme violates (alpha, k),
    for any part and value. None if no order is ruled out, or all are.
    """
    parts = [[p for p, size in enumerate(sizes) for _ in range(size)] for sizes, _ in classes]
    kept: list[Sequence[tuple[Value, ...]]] = []
    every = 0
    for table in product(*(set(permutations(values)) for _, values in classes)):
        every += 1
        for of, (sizes, _), shown in zip(parts, classes, table, strict=True):
            counts = Counter(zip(of, shown, strict=True))
            if min(sizes) < k or any(count > alpha * sizes[p] for (p, _), count in counts.items()):
                kept.append(table)
                break
    if len(kept) in (0, every):
        return None
    result = []
    for c, (sizes, values) in enumerate(classes):
        hits = Counter((p, value) for table in kept for p, value in zip(parts[c], table[c], strict=True))
        pairs = product(range(len(sizes)), set(values))
        result.append({pair: Fraction(hits[pair], len(kept) * sizes[pair[0]]) for pair in pairs})
    return result


def left_after(classes: Sequence[Sequence[set[Value]]], places: Sequence[int]) -> list[set[Value] | None]:
    """Values that are left of somebody after each release; None before the first he is in."""
    left: set[Value] | None = None
    result = []
    for held, place in zip(classes, places, strict=True):
        if place >= 0:
            left = set(held[place]) if left is None else left & held[place]
        result.append(left)
    return result


def area(members: Sequence[Fraction], others: Sequence[Fraction]) -> Fraction:
    """Probability that a member has a higher score than somebody else, ties counting half; of people one by one."""
    return mean(Fraction(1 if m > o else 0) + Fraction(m == o, 2) for m in members for o in others)


def advantage(members: Sequence[Fraction], others: Sequence[Fraction]) -> Fraction:
    """Greatest difference of the shares of members and of others at a score or above, or nobody's."""
    scores = set(members) | set(others)
    return max([Fraction(0), *(mean(int(m >= s) for m in members) - mean(int(o >= s) for o in others) for s in scores)])


def best_advantage(members: Sequence[int], others: Sequence[int]) -> Fraction:
    """The same over all sets of groups of people that may be called members."""
    n = range(len(members))
    return max(
        Fraction(sum(members[i] for i in some), sum(members)) - Fraction(sum(others[i] for i in some), sum(others))
        for size in range(len(members) + 1)
        for some in combinations(n, size)
    )


def exact_links(people: Sequence[int], released: Sequence[int], *, kept: bool) -> tuple[list[Fraction], list[Fraction]]:
    """Right links of each class, from people to rows and from rows to people, person by person."""
    rows = [("class", c) for c, n in enumerate(released) for _ in range(n)]
    hidden = [c for c, (n, f) in enumerate(zip(people, released, strict=True)) for _ in range(n - f)]
    rows += [("lost", c) for c in hidden] if kept else []
    of_people, of_rows = [], []
    for c, (n, f) in enumerate(zip(people, released, strict=True)):
        found = Fraction(0)
        sought = [row for row in rows if row == ("class", c)] or [row for row in rows if row[0] == "lost"]
        for person in range(n):
            own = ("class", c) if person < f else ("lost", c)
            found += Fraction(own in sought, max(len(sought), 1))
        of_people.append(found / n)
        suspects = sum(people[other] for other in set(hidden))
        mine = [row for row in rows if row[1] == c]
        right = sum((Fraction(1, n if row[0] == "class" else suspects) for row in mine), Fraction(0))
        of_rows.append(right / max(len(mine), 1))
    return of_people, of_rows
