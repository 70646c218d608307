from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linked_files import file_of, files
from strategies import aggregates

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.learned import searched
from privrisk_spark.extensions.attack.kernels.learned.families import Kind, family_of
from privrisk_spark.extensions.attack.kernels.learned.training import KnownRecords, Training, found_by
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile
from privrisk_spark.hierarchies.hierarchy import Hierarchy

every_kind = pytest.mark.parametrize("kind", get_args(Kind))


@st.composite
def cases(draw: st.DrawFn) -> tuple[SearchedFile, KnownRecords]:
    trees, weights, records, rows, known = draw(files())
    file, m = file_of(trees, weights, records, rows), len(known)
    own = draw(st.lists(st.integers(0, len(records) - 1), min_size=m, max_size=m))
    people = draw(st.lists(st.integers(1, 3), min_size=m, max_size=m))
    present = draw(st.lists(st.sampled_from([0.5, 1.0]), min_size=m, max_size=m))
    return file, KnownRecords(np.array(known, dtype=np.int32), np.array(own), np.array(people), np.array(present))


def vectors(file: SearchedFile, known: np.ndarray) -> np.ndarray:
    """Differences of each known record from each of the file; shape (m, p, n)."""
    tables = [one.of(known[:, i].copy()) for i, one in enumerate(file.differences)]
    return np.stack([table[:, file.cells[:, i]] for i, table in enumerate(tables)], axis=-1)


@every_kind
@given(cases(), st.data())
@settings(max_examples=60)
def test_looks_are_those_of_loops(kind: Kind, drawn: Any, data: st.DataObject) -> None:
    file, records = drawn
    n = len(file.weights)
    one = data.draw(aggregates(kind, n))
    training = Training(family_of(kind, n), file, records)
    wanted = np.array(data.draw(st.lists(st.sampled_from([-math.inf, 0.0, 0.2]), min_size=6, max_size=6)))
    wanted = wanted[: len(records.own)]
    look = training.look(one, np.maximum(wanted, 0.1), wanted, most=3)
    stakes, hopeless = training.prospects
    of = vectors(file, records.known)
    for i, own in enumerate(records.own.tolist()):
        sees = [tuple(sorted(d)) if kind == "ordered_weighted_average" else tuple(d) for d in of[i].tolist()]
        told = [j for j in range(len(sees)) if not np.allclose(sees[j], sees[own], rtol=0, atol=1e-9)]
        alike = sum(int(file.rows[j]) for j in range(len(sees)) if j not in told)
        assert stakes[i] == pytest.approx(records.people[i] * records.present[i] / alike, abs=1e-12)
        ahead = [j for j in told if all(a <= b + 1e-9 for a, b in zip(sees[j], sees[own], strict=True))]
        assert hopeless[i] == (bool(ahead) and kind != "bilinear")
        distances = one.distance(of[i])
        tied = distances <= distances.min() + 1e-8
        expected = records.present[i] / file.rows[tied].sum() if tied[own] else 0.0
        assert look.probability[i] == pytest.approx(expected, abs=1e-12)
        gap = min((distances[j] - distances[own] for j in told), default=math.inf)
        if abs(gap - max(wanted[i], 0.1)) < 1e-9 or abs(gap - wanted[i]) < 1e-9:
            continue  # rounding decides
        assert look.clearance[i] == (pytest.approx(gap, abs=1e-12) if gap < max(wanted[i], 0.1) else math.inf)
        named = look.place[look.record == i].tolist()
        assert len({sees[j] for j in named}) == len(named) <= 3
        assert set(named) <= set(told)
        assert bool(named) == (gap < wanted[i])
        if named:
            assert distances[named[0]] == pytest.approx(distances[own] + gap, abs=1e-12)
    others, own_seen = training.pairs(look.record[::-1], look.place[::-1])
    for c, (i, j) in enumerate(zip(look.record[::-1], look.place[::-1], strict=True)):
        assert others[:, c].tolist() == training.family.told_apart(of[i, j]).tolist()
        assert own_seen[:, c].tolist() == training.family.told_apart(of[i, records.own[i]]).tolist()


@every_kind
@given(cases(), st.data())
@settings(max_examples=30)
def test_what_a_look_finds_is_what_a_search_finds(kind: Kind, drawn: Any, data: st.DataObject) -> None:
    file, records = drawn
    one = data.draw(aggregates(kind, len(file.weights)))
    nothing = np.full(len(records.own), -np.inf)
    look = Training(family_of(kind, len(file.weights)), file, records).look(one, nothing, nothing, most=1)
    np.testing.assert_allclose(found_by(one, file, records), look.probability, atol=1e-12)
    assert not len(look.record)
    strangers = KnownRecords(records.known, np.full(len(records.own), -1), records.people, records.present)
    assert not found_by(one, file, strangers).any()


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(2)
    tree = Hierarchy.from_paths("a", [(f"v{i}", f"w{i // 3}") for i in range(9)])
    tuples = sorted({tuple(row) for row in generator.integers(0, tree.n_nodes, (80, 3)).tolist()})
    file = file_of([tree] * 3, [0.5, 0.3, 0.2], tuples, generator.integers(1, 4, len(tuples)).tolist())
    m = 30
    own = generator.integers(0, len(tuples), m)
    records = KnownRecords(
        generator.integers(0, 9, (m, 3)).astype(np.int32), own, np.ones(m, dtype=np.int64), np.ones(m)
    )
    family = family_of("weighted_mean", 3)
    one, wanted = family.aggregate(file.weights), np.full(m, 0.2)

    def told() -> list[Any]:
        training = Training(family, file, records)
        look = training.look(one, wanted, wanted, most=4)
        pairs = training.pairs(look.record, look.place)
        return [of.tolist() for of in (*training.prospects, *vars(look).values(), *pairs)]

    whole = told()
    monkeypatch.setattr(searched, "_PAIRS", 300)
    assert told() == whole


def test_arrays_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(InputError, match="each known record needs its own row"):
        KnownRecords(
            np.zeros((2, 1), dtype=np.int32), np.zeros(1, dtype=np.int64), np.ones(2, dtype=np.int64), np.ones(2)
        )
