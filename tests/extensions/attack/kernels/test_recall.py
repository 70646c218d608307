from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.recall import Recall, drawn_people, drawn_tuples, recall


def test_recall_is_of_all_and_limits_are_of_those_who_are_drawn() -> None:
    """Half of 1000 is proved; of 40 others 30 lose nothing: (500 + 500 · 30/40) / 1000."""
    found = recall(1000, 500, drawn=40, kept=30)
    limits = binomtest(30, 40).proportion_ci(0.95, "exact")
    assert found.share == pytest.approx(0.875)
    assert (found.low, found.high) == pytest.approx((0.5 + limits.low / 2, 0.5 + limits.high / 2))
    assert recall(7, 7, drawn=0, kept=0) == Recall(7, 7, 0, 0, 1.0, 1.0, 1.0)
    assert recall(7, 0, drawn=5, kept=5).high == 1.0
    assert recall(7, 0, drawn=5, kept=5).low < 1.0
    for wrong in ((5, 6, 1, 1), (5, 1, 0, 0), (5, 1, 2, 3), (0, 0, 1, 1)):
        with pytest.raises(InputError, match="a recall must be of people"):
            recall(wrong[0], wrong[1], drawn=wrong[2], kept=wrong[3])


def test_people_are_drawn_alike_and_the_same_again() -> None:
    drawn = drawn_people(10, 20_000, seed=3)
    assert (np.diff(drawn) >= 0).all()
    assert np.bincount(drawn, minlength=10).min() > 1800
    assert np.bincount(drawn).max() < 2200
    assert drawn.tolist() == drawn_people(10, 20_000, seed=3).tolist()
    assert drawn.tolist() != drawn_people(10, 20_000, seed=4).tolist()
    assert drawn_people(1, 3, seed=0).tolist() == [0, 0, 0]
    assert drawn_people(10, 100, seed=3).tolist() != drawn_people(10, 100, seed=3, purpose="a model").tolist()


def test_tuples_are_drawn_as_often_as_they_have_people() -> None:
    """Of 1, 0, 3 and 6 people: a tenth, none, three tenths and six tenths of the draws."""
    places, times = drawn_tuples(np.array([1, 0, 3, 6]), 20_000, seed=3, purpose="a model")
    assert places.tolist() == [0, 2, 3]
    assert times.sum() == 20_000
    assert times / 20_000 == pytest.approx([0.1, 0.3, 0.6], abs=0.01)
