from __future__ import annotations

import itertools
import random
from functools import reduce
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.kernels.numeric.fingerprint import (
    mixed,
    of_bytes,
    of_counts,
    of_integers,
    of_rows,
    of_table,
    of_tuples,
    sampled,
)

WORD = 2**64


def mix(value: int) -> int:
    """The finalizer of splitmix64 in plain integers."""
    z = (value + 0x9E3779B97F4A7C15) % WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


def literal(text: bytes) -> int:
    result = mix(len(text))
    if len(text) > 2**14:
        blocks = [literal(text[begin : begin + 2**11]) for begin in range(0, len(text), 2**11)]
        return mix(result ^ literal(b"".join(block.to_bytes(8, "little") for block in blocks)))
    for begin in range(0, len(text), 8):
        result = mix(result ^ int.from_bytes(text[begin : begin + 8].ljust(8, b"\0"), "little"))
    return result


def hashes(texts: list[bytes], *, before: bytes = b"", after: bytes = b"", gap: int = 0) -> list[int]:
    """Fingerprints of texts that lie in the middle of other bytes."""
    data = np.frombuffer(before + b"".join(texts) + after, dtype=np.uint8)
    offsets = np.cumsum([len(before), *[len(text) for text in texts]]).astype(np.int64)
    found = of_bytes(data, offsets[gap:])
    assert found.dtype == np.uint64
    return [int(value) for value in found]


texts_of = st.lists(st.binary(max_size=40), max_size=12)


@given(texts_of, st.binary(max_size=20), st.binary(max_size=20), st.integers(0, 3))
def test_equal_bytes_have_equal_fingerprints_wherever_they_lie(texts, before, after, gap):
    wanted = [literal(text) for text in texts]
    assert hashes(texts) == hashes(texts, before=before) == hashes(texts, after=after) == wanted
    gap = min(gap, len(texts))
    assert hashes(texts, before=before, after=after, gap=gap) == wanted[gap:]


def test_the_mixing_is_that_of_splitmix64():
    # First outputs of splitmix64 from seed 0 (Steele, Lea & Flood 2014; the generator of java.util.SplittableRandom).
    state, outputs = 0, []
    for _ in range(3):
        outputs.append(int(mixed(np.array([state], dtype=np.uint64))[0]))
        state = (state + 0x9E3779B97F4A7C15) % WORD
    assert outputs == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    numbers = [0, 1, 2**63, WORD - 1, 0x9E3779B97F4A7C15]
    assert mixed(np.array(numbers, dtype=np.uint64)).tolist() == [mix(number) for number in numbers]


def test_different_strings_differ():
    """Lengths 0 to 40 of zeros, of ones, one bit apart at every place, and with zeros behind."""
    texts = {bytes(n) for n in range(41)} | {b"\1" * n for n in range(41)} | {b"\xff" * n for n in range(41)}
    for n in (1, 7, 8, 9, 15, 16, 17, 39, 40):
        texts |= {bytes(i) + bytes([1 << bit]) + bytes(n - i - 1) for i in range(n) for bit in range(8)}
    for text in (b"a", b"abcdefg", b"abcdefgh", b"abcdefghi"):
        texts |= {text + bytes(n) for n in range(20)} | {bytes(n) + text for n in range(20)}
    # Words in another order, and the same word twice.
    texts |= {b"".join(order) for order in itertools.product([b"aaaaaaaa", b"bbbbbbbb", b"cccccccc"], repeat=3)}
    every = sorted(texts)
    assert len(set(hashes(every))) == len(every) > 1500
    # Fingerprints must not agree in their halves either: sorted ranges are read by their high bits.
    highs = [value >> 32 for value in hashes(every)]
    assert len(set(highs)) > 0.999 * len(every)


def test_long_texts_among_short_ones():
    """Around the length from which on blocks are taken, of two levels of blocks, and one bit apart anywhere."""
    pick = random.Random(3)
    whole = pick.randbytes(2**22 + 17)
    texts = [whole[:n] for n in (0, 3, 2**14 - 1, 2**14, 2**14 + 1, 2**14 + 7, 9 * 2**11, 9 * 2**11 + 1, len(whole))]
    assert hashes(texts, before=b"xyz") == [literal(text) for text in texts]
    base = bytearray(whole[: 2**15 + 5])
    changed = {bytes(base)}
    for place in (0, 7, 2**11 - 1, 2**11, 2**14, 2**15, 2**15 + 4):
        base[place] ^= 1
        changed.add(bytes(base))
    swapped = whole[2**11 : 2**12] + whole[: 2**11] + whole[2**12 : 2**15]
    changed |= {swapped, whole[: 2**15], whole[: 2**15] + b"\0", whole[: 2**15 - 1]}
    assert len(set(hashes(sorted(changed)))) == len(changed) == 12


def test_the_cost_of_a_text_does_not_depend_on_how_many_others_there_are(monkeypatch):
    """Words mixed are those of the texts, whether one of 50,000 rows is long or all are short."""
    import privrisk_spark.kernels.numeric.fingerprint as module

    calls: list[int] = []

    def counting(values):
        calls.append(len(values))
        return mixed(values)

    monkeypatch.setattr(module, "mixed", counting)
    texts = [b"ab"] * 50_000 + [bytes(50_000)] + [bytes(3_000_000)]
    module.of_bytes(np.frombuffer(b"".join(texts), dtype=np.uint8), np.cumsum([0, *map(len, texts)]))
    assert sum(calls) < 4 * 50_000 + 1.2 * 3_050_000 / 8
    assert len(calls) < 5_000, "words are mixed many at a time"


def test_nothing_at_all_and_empty_strings():
    assert hashes([]) == []
    assert hashes([b""]) == [mix(0)]
    assert hashes([b"", b"a", b""]) == [mix(0), literal(b"a"), mix(0)]
    assert hashes([b""] * 3, before=b"xyz", after=b"xyz") == [mix(0)] * 3


def test_different_integers_differ():
    numbers = [*range(-300, 300), *[2**i for i in range(63)], *[-(2**i) for i in range(64)], 2**63 - 1]
    found = of_integers(np.array(numbers, dtype=np.int64)).tolist()
    assert found == [mix(number % WORD) for number in numbers]
    assert len(set(found)) == len(set(numbers))
    small = of_integers(np.array([-1, 0, 7], dtype=np.int8)).tolist()  # type: ignore[arg-type]
    assert small == [mix(WORD - 1), mix(0), mix(7)]


def columns_of(*columns: list[int]) -> list[Any]:
    return [np.array(column, dtype=np.uint64) for column in columns]


words = st.integers(0, WORD - 1)


@given(st.lists(st.tuples(words, words, words), max_size=10))
def test_rows_are_told_apart_by_the_place_of_a_value(rows):
    columns = [[row[i] for row in rows] for i in range(3)]
    found = of_rows(columns_of(*columns), len(rows)).tolist()
    assert found == [
        reduce(lambda held, part: mix((held * 3 + part[1] + part[0]) % WORD), enumerate(row), 0) for row in rows
    ]
    by_row = dict(zip(rows, found, strict=True))
    assert len(set(by_row.values())) == len(by_row)
    for order in itertools.permutations(range(3)):
        moved = of_rows(columns_of(*[columns[i] for i in order]), len(rows)).tolist()
        for row, one, other in zip(rows, found, moved, strict=True):
            assert (one == other) == (tuple(row[i] for i in order) == row)


def test_small_values_do_not_stand_for_each_other():
    """Codes are small integers, and a shift from one column to the next must show."""
    rows = list(itertools.product(range(6), repeat=4))
    columns = [of_integers(np.array([row[i] for row in rows], dtype=np.int64)) for i in range(4)]
    assert len(set(of_rows(columns, len(rows)).tolist())) == len(rows)
    plain = of_rows(columns_of(*[[row[i] for row in rows] for i in range(4)]), len(rows))
    assert len(set(plain.tolist())) == len(rows)
    assert of_rows([], 3).tolist() == [0, 0, 0]


@given(st.lists(words, max_size=12), st.integers(0, 2**32), st.integers(1, 4))
def test_a_table_is_the_same_in_any_order_and_split(rows, seed, parts):
    pick = random.Random(seed)
    whole = of_table(np.array(rows, dtype=np.uint64))
    split: list[list[int]] = [[] for _ in range(parts)]
    for row in pick.sample(rows, len(rows)):
        split[pick.randrange(parts)].append(row)
    found = [of_table(np.array(part, dtype=np.uint64)) for part in split]
    assert sum(total for total, _ in found) % WORD == whole[0]
    assert reduce(lambda a, b: a ^ b, (other for _, other in found), 0) == whole[1]
    assert whole[0] == sum(rows) % WORD
    assert of_table(np.array([], dtype=np.uint64)) == (0, 0)


def test_the_two_words_of_a_table_are_not_fooled_together():
    # A pair of equal rows leaves no trace in an exclusive or, and moving a unit from row to row none in a sum.
    one = of_table(np.array([5, 9, 9], dtype=np.uint64))
    assert one[1] == of_table(np.array([5], dtype=np.uint64))[1]
    assert one[0] != of_table(np.array([5], dtype=np.uint64))[0]
    other = of_table(np.array([6, 9, 8], dtype=np.uint64))
    assert one[0] == other[0]
    assert one[1] != other[1]


@given(st.lists(st.integers(0, 2**40), max_size=12), st.integers(0, 12))
def test_counts_have_the_sum_of_what_they_count(counts, cut):
    found = of_counts(np.array(counts, dtype=np.int64))
    assert found == sum(count * mix(number) for number, count in enumerate(counts)) % WORD
    first, rest = np.array(counts, dtype=np.int64), np.array(counts, dtype=np.int64)
    first[cut:] = 0
    rest[:cut] = 0
    assert found == (of_counts(first) + of_counts(rest)) % WORD


@given(
    st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 3), st.integers(0, 2**40)), max_size=12), st.integers(0, 12)
)
def test_tuples_have_the_sum_of_what_they_stand_for(rows, cut):
    def found(rows):
        first, second, times = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        return of_tuples([first.astype(np.int32), second], times)

    literal = sum(times * int(of_rows([of_integers(np.array([one])) for one in (a, b)], 1)[0]) for a, b, times in rows)
    assert found(rows) == literal % WORD
    assert found(rows) == (found(rows[:cut]) + found(rows[cut:])) % WORD
    assert found(rows) == found(rows[::-1])


def test_tuples_that_are_put_together_otherwise_differ():
    """With the same numbers in each column, and with the columns changed for each other."""
    columns, rows = [np.array([0, 1, 0]), np.array([0, 1, 2])], np.array([5, 5, 5])
    others = [np.array([1, 0, 2]), columns[0]], [columns[1], columns[0]], [columns[0], columns[1] + 1]
    found = [of_tuples(one, rows) for one in (columns, *others)]
    assert len(set(found)) == len(found)


def test_counts_that_are_swapped_or_moved_differ():
    counts = [40, 25, 25, 0]
    others = [[25, 40, 25, 0], [65, 0, 25, 0], [40, 24, 26, 0], [40, 25, 0, 25]]
    found = [of_counts(np.array(one, dtype=np.int64)) for one in (counts, *others)]
    assert len(set(found)) == len(found)


def test_sampled_words_are_a_share_of_all_and_depend_on_the_words_only():
    words = of_integers(np.arange(100_000))
    assert sampled(words, 1.0).all()
    found = sampled(words, 0.1)
    assert 9_500 < np.count_nonzero(found) < 10_500
    assert (sampled(words[::-1], 0.1) == found[::-1]).all()
    assert not (found & ~sampled(words, 0.2)).any()
