"""Who holds which value, against sets of persons; shares of persons by the letter, in every search."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import naive_recoding
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_recoding import nodes_of, recoded
from recodings import MISSING, Held, Labels, Rows, holders_of, small_tables_of_persons, table_of_holders

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.classes.criteria import (
    ALPHA,
    BETA_LIKENESS,
    CLOSENESS,
    DELTA_DISCLOSURE,
    DISTINCT_DIVERSITY,
    ENHANCED_BETA_LIKENESS,
    ENTROPY_DIVERSITY,
    P_SENSITIVITY,
    RECURSIVE_C,
    Criterion,
)
from privrisk_spark.kernels.recoding.full_domain import NodeClasses
from privrisk_spark.kernels.recoding.holders import Holders
from privrisk_spark.kernels.recoding.local.algorithms import PARTITIONS, counting_persons
from privrisk_spark.kernels.recoding.metrics import METRICS, Measured
from privrisk_spark.kernels.recoding.persons import Persons
from privrisk_spark.kernels.recoding.problem import Problem, at_least, held_to
from privrisk_spark.kernels.recoding.searches import SEARCHES

VALUES = 3
Pair = tuple[int, int]
"""A person, and a value in one of the person's rows."""
Table = tuple[Labels, Rows, list[int], Held]


@st.composite
def tables(draw: st.DrawFn, most_rows: int = 12) -> Table:
    labels, rows, who = draw(small_tables_of_persons(most_rows))
    return labels, rows, who, [draw(st.integers(0, VALUES - 1)) for _ in rows]


# ------------------------------------------------------------------------------------------------ by the letter


def holders(pairs: Iterable[Pair], value: int) -> int:
    return len({person for person, held in pairs if held == value})


def shares(pairs: Sequence[Pair]) -> list[float]:
    """Of the pairs of a person and a value, each counted once, those of each value."""
    return [holders(pairs, value) / len(set(pairs)) for value in range(VALUES)]


def of_persons(pairs: Sequence[Pair]) -> list[float]:
    """Of the persons, those who hold each value."""
    return [holders(pairs, value) / len({person for person, _ in pairs}) for value in range(VALUES)]


def of_known(pairs: Sequence[Pair]) -> float:
    """Greatest share of the persons with a known value who hold the same one; 0 without any."""
    known = [(person, value) for person, value in pairs if value != MISSING]
    return max(of_persons(known)) if known else 0.0


def entropy(pairs: Sequence[Pair]) -> float:
    return math.exp(-sum(q * math.log(q) for q in shares(pairs) if q))


def least_c(pairs: Sequence[Pair], least_l: int) -> float:
    """Who holds the most frequent value, over who certainly holds none of the ``l - 1`` most frequent ones."""
    persons = len({person for person, _ in pairs})
    ranked = sorted((n for value in range(VALUES) if (n := holders(pairs, value))), reverse=True)
    rest = persons - sum(ranked[: least_l - 1])
    return ranked[0] / rest if len(ranked) >= least_l and rest > 0 else math.inf


def moved(pairs: Sequence[Pair], table: Sequence[Pair]) -> float:
    return sum(max(q - p, 0) for q, p in zip(shares(pairs), shares(table), strict=True))


def moved_by_rank(pairs: Sequence[Pair], table: Sequence[Pair]) -> float:
    last = max(value for _, value in table)
    behind = [sum(shares(pairs)[: i + 1]) - sum(shares(table)[: i + 1]) for i in range(last)]
    return sum(map(abs, behind)) / last if last else 0.0


def gain(pairs: Sequence[Pair], table: Sequence[Pair]) -> float:
    return max((q - p) / p if q > p else 0.0 for q, p in zip(shares(pairs), shares(table), strict=True) if p)


def enhanced(pairs: Sequence[Pair], table: Sequence[Pair]) -> float:
    over = any(q - p > p * -math.log(p) + 1e-9 for q, p in zip(shares(pairs), shares(table), strict=True) if p and q)
    return math.inf if over else gain(pairs, table)


def log_ratio(pairs: Sequence[Pair], table: Sequence[Pair]) -> float:
    ratios = [q / p for q, p in zip(shares(pairs), shares(table), strict=True) if p]
    return math.inf if 0.0 in ratios else max(abs(math.log(ratio)) for ratio in ratios)


Number = Callable[[Sequence[Pair], Sequence[Pair]], float]
OF_SHARES: dict[str, tuple[Criterion, tuple[int, ...], bool, float, Number]] = {
    "alpha": (ALPHA, (), False, 0.6, lambda pairs, _: max(of_persons(pairs))),
    "alpha, known values": (ALPHA, (), False, 0.6, lambda pairs, _: of_known(pairs)),
    "entropy": (ENTROPY_DIVERSITY, (), False, 1.7, lambda pairs, _: entropy(pairs)),
    "recursive": (RECURSIVE_C, (2,), False, 1.6, lambda pairs, _: least_c(pairs, 2)),
    "equal": (CLOSENESS["equal"], (), True, 0.3, moved),
    "ordered": (CLOSENESS["ordered"], (), True, 0.3, moved_by_rank),
    "beta": (BETA_LIKENESS, (), True, 0.7, gain),
    "enhanced": (ENHANCED_BETA_LIKENESS, (), True, 0.7, enhanced),
    "delta": (DELTA_DISCLOSURE, (), True, 0.9, log_ratio),
}
"""Criterion, what else it takes, whether it takes the table, a bound that some classes keep, and its number."""


def distribution(pairs: Sequence[Pair]) -> TableDistribution:
    last = max(value for _, value in pairs)
    return TableDistribution(np.array([holders(pairs, value) for value in range(last + 1)], dtype=np.int64))


def condition(name: str, table: Sequence[Pair]):
    criterion, more, of_table, bound, _ = OF_SHARES[name]
    missing = MISSING if name.endswith("known values") else None
    given = [distribution(table)] if of_table else []
    return held_to(criterion, bound, *more, *given, persons=True, missing=missing)


def meets(name: str, pairs: Sequence[Pair], table: Sequence[Pair]) -> bool:
    criterion, _, _, bound, number = OF_SHARES[name]
    found = number(pairs, table)
    if criterion.direction == "at least":
        return found >= bound - 1e-9
    return found < bound - 1e-9 if criterion.strict else found <= bound + 1e-9


# ------------------------------------------------------------------------------------------------ who holds what


@given(tables())
def test_holders_of_every_class_are_the_persons_of_its_rows(table: Table) -> None:
    """By every roll-up: who holds a value in two records, or two values, is usual."""
    labels, rows, who, held = table
    domain = table_of_holders(labels, rows, who, held)
    for levels, classes in domain.every_node():
        (one,) = classes.held
        assert isinstance(one, Holders)
        of: dict[tuple[int, ...], set[Pair]] = {}
        for node, *pair in zip(recoded(labels, rows, levels), who, held, strict=True):
            of.setdefault(node, set()).add((pair[0], pair[1]))
        runs = one.runs
        assert runs.n_classes == len(of)
        members = [tuple(int(code) for code in row) for row in domain.vectors[classes.member]]
        assert runs.persons is not None
        for j, node in enumerate(recoded(labels, members, levels)):
            part = slice(runs.class_start[j], runs.class_start[j + 1])
            expected = {value: n for value in range(VALUES) if (n := holders(of[node], value))}
            assert dict(zip(runs.value[part].tolist(), runs.count[part].tolist(), strict=True)) == expected
            assert runs.persons[j] == len({person for person, _ in of[node]})
            assert runs.known is not None
            assert runs.known[j] == len({person for person, value in of[node] if value != MISSING})


@given(tables(), st.data())
def test_what_is_left_of_some_classes_is_theirs(table: Table, data: st.DataObject) -> None:
    labels, rows, who, held = table
    domain = table_of_holders(labels, rows, who, held)
    (whole,) = domain.held
    kept = np.array([data.draw(st.booleans()) for _ in domain.counts], dtype=np.bool_)
    left = whole.where(kept)
    assert isinstance(whole, Holders)
    assert isinstance(left, Holders)
    for one, other in ((left.runs, whole.runs.where(kept)),):
        assert one.class_start.tolist() == other.class_start.tolist()
        assert (one.value.tolist(), one.count.tolist()) == (other.value.tolist(), other.count.tolist())
        assert one.persons is not None
        assert other.persons is not None
        assert one.persons.tolist() == other.persons.tolist()
        assert one.known is not None
        assert other.known is not None
        assert one.known.tolist() == other.known.tolist()


def test_what_does_not_fit_is_refused() -> None:
    owner, value, person = (np.array(of, dtype=np.int64) for of in ([0, 1], [0, 0], [0, 1]))
    with pytest.raises(InputError, match="codes of values must be at least 0"):
        Holders.of(owner, value - 1, person, 2)
    with pytest.raises(InputError, match="must have a number, at least 0"):
        Holders.of(owner, value, person, 1)
    with pytest.raises(InputError, match="at least one sensitive value"):
        Holders.of(owner, value, person, 3)
    one = Persons.of(owner, person, 2)
    with pytest.raises(InputError, match="counted of every cell and of every class"):
        Holders.beside(owner[:1], value[:1], one, one)
    runs = Holders.of(owner, value, person, 2)
    with pytest.raises(InternalError, match="shares of rows are not shares of persons"):
        held_to(ALPHA, 0.5).meets(NodeClasses(np.arange(2), np.array([1, 1]), (runs,)))


# ------------------------------------------------------------------------------------------------ conditions


@settings(max_examples=40)
@given(
    tables(), st.sampled_from(sorted(OF_SHARES)), st.integers(1, 3), st.integers(0, 5), st.sampled_from(["dm", "loss"])
)
def test_every_search_holds_shares_of_persons_as_the_letter_does(
    table: Table, which: str, k: int, limit: int, metric: str
) -> None:
    labels, rows, who, held = table
    pairs = list(zip(who, held, strict=True))
    if not rows:
        return
    measured = Measured.of(table_of_holders(labels, rows, who, held))
    problem = Problem(measured, (at_least(k), condition(which, pairs)), METRICS[metric], limit)
    assert not problem.monotone

    def fine(places: Sequence[int]) -> bool:
        return meets(which, [pairs[i] for i in places], pairs)

    members = [tuple(int(code) for code in row) for row in measured.table.vectors]
    for levels in nodes_of(labels):
        of: dict[tuple[int, ...], list[int]] = {}
        for i, node in enumerate(recoded(labels, rows, levels)):
            of.setdefault(node, []).append(i)
        bad = {node for node, those in of.items() if len({who[i] for i in those}) < k or not fine(those)}
        assert problem.suppressed(levels).tolist() == [one in bad for one in recoded(labels, members, levels)]

    def cost(levels: tuple[int, ...]) -> tuple[float, int]:
        return naive_recoding.metric(metric, labels, rows, levels, k, who, fine)

    best = naive_recoding.best(labels, rows, k, limit, cost, 1)
    # Where nothing is monotone the others are one of these.
    for name in ("exhaustive", "k_optimize", "top_down", "best"):
        found = SEARCHES[name](problem)
        assert (found is None) == (not best), name
        assert found is None or (found.levels in best and found.optimal), name


@given(
    tables(most_rows=16),
    st.sampled_from(sorted(OF_SHARES)),
    st.integers(1, 3),
    st.sampled_from(["mondrian", "hilbert", "bang"]),
)
def test_local_classes_hold_what_is_asked_of_persons(table: Table, which: str, k: int, algorithm: str) -> None:
    labels, rows, who, held = table
    labels = [[[*path, 0] for path in of] for of in labels]
    pairs = list(zip(who, held, strict=True))
    if not rows:
        return
    domain = table_of_holders(labels, rows, who, held)
    measured, also = counting_persons(Measured.of(domain), k, [condition(which, pairs)])
    found = PARTITIONS[algorithm](measured, k, also)
    by_row = {tuple(int(code) for code in domain.vectors[r]): c for r, c in zip(found.record, found.of, strict=True)}
    of: dict[int, list[Pair]] = {}
    for row, pair in zip(rows, pairs, strict=True):
        of.setdefault(int(by_row[row]), []).append(pair)
    of.pop(-1, None)
    for those in of.values():
        assert len({person for person, _ in those}) >= k
        assert meets(which, those, pairs)


# ------------------------------------------------------------------------------------------------ monotone in nothing


def subsets(of: Sequence[Pair]) -> list[tuple[Pair, ...]]:
    return [some for n in range(1, len(of) + 1) for some in itertools.combinations(of, n)]


OTHERS: list[Pair] = [(8, 0), (9, 0), (9, 1)]
"""Of the table, in neither class."""


def unions_worse(number: Number, criterion: Criterion, parts: Callable[[int], list[tuple[Pair, ...]]]) -> int:
    """Of all pairs of two classes those whose union is worse than both: none of what is monotone in generalization."""
    sign, found = (1 if criterion.direction == "at least" else -1), 0
    for one, other in itertools.product(parts(0), parts(1)):
        table = [*one, *other, *OTHERS]
        of = [sign * number(pairs, table) for pairs in (one, other, [*one, *other])]
        found += of[2] < min(of[:2]) - 1e-9
    return found


@pytest.mark.parametrize("name", OF_SHARES)
def test_shares_of_persons_are_not_monotone_and_those_of_rows_are(name: str) -> None:
    criterion, _, _, _, number = OF_SHARES[name]
    both = [(person, value) for person in (0, 1) for value in ((1, 2) if name == "alpha, known values" else (0, 1))]
    # The same two persons may be in both classes, with any values.
    assert unions_worse(number, criterion, lambda _: subsets(both)) > 0
    # Each class has persons of its own, and each of them one row: what is proved of rows.
    apart = [
        tuple((2 * side + i, v) for i, v in enumerate(of))
        for side in (0, 1)
        for n in (1, 2)
        for of in itertools.product((0, 1), repeat=n)
    ]
    assert unions_worse(number, criterion, lambda side: [one for one in apart if one[0][0] // 2 == side]) == 0
    held = condition(name, OTHERS)
    assert (held.monotone_in_generalization, held.monotone_in_suppression) == (False, False)
    assert criterion.monotone_in_generalization


def test_half_of_two_classes_hold_what_all_of_their_union_hold() -> None:
    """The case of the documents: with nothing suppressed the finer node is fine, and the coarser one is not."""
    labels: Labels = [[[0, 0], [1, 0]]]
    rows, who, held = [(0,), (0,), (1,), (1,)], [1, 2, 1, 2], [0, 1, 1, 0]
    problem = Problem(
        Measured.of(table_of_holders(labels, rows, who, held)), (held_to(ALPHA, 0.5, persons=True),), METRICS["height"]
    )
    assert [problem.suppressed([level]).any() for level in (0, 1)] == [False, True]
    for name in ("exhaustive", "incognito", "flash", "best", "k_optimize", "top_down"):
        found = SEARCHES[name](problem)
        assert found is not None
        assert found.levels == (0,), name


def test_how_many_values_there_are_stays_monotone_whoever_holds_them() -> None:
    for criterion in (DISTINCT_DIVERSITY, P_SENSITIVITY):
        held = held_to(criterion, 2, persons=True)
        assert (held.monotone_in_generalization, held.monotone_in_suppression) == (True, True)
    one = holders_of([(0, 1), (0, 1)], [3, 4], [0, 1], 1)
    assert held_to(DISTINCT_DIVERSITY, 2, persons=True).meets(NodeClasses(np.arange(1), np.array([2]), (one,))).all()
