from __future__ import annotations

from dataclasses import replace
from typing import Any

import naive_linkage
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linked_files import file_of, files

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.learned.aggregates import OrderedWeightedAverage, WeightedMean
from privrisk_spark.extensions.attack.kernels.learned.persons import KnownPersons, persons_found_by


@given(files(), st.data())
@settings(max_examples=80, deadline=None)
def test_persons_are_found_as_loops_find_them(drawn: Any, data: st.DataObject) -> None:
    """Rows of a file are dealt to persons, some to nobody; each known record is linked by two loops."""
    trees, weights, records, rows, known = drawn
    file = file_of(trees, weights, records, rows)
    m = data.draw(st.integers(1, len(known)))
    owner = sorted(
        [*range(m), *data.draw(st.lists(st.integers(0, m - 1), min_size=len(known) - m, max_size=len(known) - m))]
    )
    times = data.draw(st.lists(st.integers(1, 3), min_size=len(known), max_size=len(known)))
    held = data.draw(
        st.lists(st.lists(st.integers(0, len(records) - 1), max_size=3, unique=True), min_size=m, max_size=m)
    )
    lacking = data.draw(st.integers(0, m - 1))
    persons = KnownPersons(
        np.bincount(owner, minlength=m),
        np.array(known, dtype=np.int32),
        np.array(times),
        np.array([len(own) + (i == lacking) for i, own in enumerate(held)]),
        np.array([r for i, own in enumerate(held) for r in [*own, *([-1] if i == lacking else [])]], dtype=np.int64),
        np.array(
            [x for i, own in enumerate(held) for x in [*(rows[r] / 2 for r in own), *([9.0] if i == lacking else [])]]
        ),
    )
    found = persons_found_by(WeightedMean(file.weights), file, persons)
    links = naive_linkage.linked(trees, weights, known, records, rows)
    total = 0.0
    for person in range(m):
        missed, drawn_by_chance = 1.0, 1.0
        theirs = sum(rows[r] / 2 for r in held[person]) / sum(rows)
        for i, (_, tied, near) in enumerate(links):
            if owner[i] == person:
                right = sum(rows[r] / 2 for r in held[person] if r in near) / tied
                missed *= (1 - right) ** times[i]
                drawn_by_chance *= (1 - theirs) ** times[i]
                total += right * times[i]
        assert found.found[person] == pytest.approx(1 - missed, abs=1e-9)
        assert found.guessed[person] == pytest.approx(1 - drawn_by_chance, abs=1e-9)
    assert found.right == pytest.approx(total, abs=1e-9)
    if len(trees) == 1:
        other = persons_found_by(OrderedWeightedAverage(np.ones(1)), file, persons)
        np.testing.assert_allclose(other.found, found.found, atol=1e-9)


def test_arrays_that_do_not_belong_together_are_refused() -> None:
    one = np.array([1])
    good = KnownPersons(one, np.zeros((1, 2), dtype=np.int32), one, one, np.zeros(1, dtype=np.int64), np.ones(1))
    for changes in (
        {"begun": np.array([2])},
        {"records": np.array([1, 1])},
        {"rows": np.ones(2)},
        {"searched": one[:0]},
    ):
        with pytest.raises(InputError, match="every person needs the records"):
            replace(good, **changes)
