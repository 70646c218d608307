"""Accuracy of classifiers: what must be found, what must not, and that the order of the records is nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, kstest

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.measures.prediction import Prediction, predicted, sampling_words

pytest.importorskip("sklearn")

MODELS = ("logistic-regression", "random-forest")
PICK = np.random.default_rng(5)
CODES = PICK.integers(0, 4, (400, 3)).astype(np.int32)


@pytest.mark.parametrize("model", MODELS)
def test_a_label_that_follows_from_a_column_is_predicted(model: str) -> None:
    """And is not, where the column is gone: what is left is the most frequent label, give or take chance."""
    label = (CODES[:, 1] == 2).astype(np.int32)
    found = predicted(CODES, label, model=model, folds=4)  # type: ignore[arg-type]
    assert (found.records, found.right) == (400, 400)
    assert found.majority == 400 - label.sum()
    hidden = CODES.copy()
    hidden[:, 1] = 9
    lost = predicted(hidden, label, model=model, folds=4)  # type: ignore[arg-type]
    assert lost.accuracy <= found.baseline + 0.02


@pytest.mark.parametrize("model", MODELS)
def test_the_order_of_the_records_is_nothing(model: str) -> None:
    label = ((CODES[:, 0] + CODES[:, 2] + PICK.integers(0, 3, 400)) % 3).astype(np.int32)
    found = predicted(CODES, label, model=model, folds=5)  # type: ignore[arg-type]
    order = PICK.permutation(400)
    assert predicted(CODES[order], label[order], model=model, folds=5) == found  # type: ignore[arg-type]


@pytest.mark.parametrize("model", MODELS)
def test_numbers_are_learned_as_numbers(model: str) -> None:
    """No two alike, a third missing, of any unit: a label they bound is predicted, as categories never would."""
    values = PICK.normal(1e6, 1e3, (400, 2))
    label = (values[:, 1] > 1e6).astype(np.int32)
    values[::3, 0] = np.nan
    none = np.zeros((400, 0), dtype=np.int32)
    found = predicted(none, label, model=model, folds=4, numbers=values)  # type: ignore[arg-type]
    assert found.accuracy > 0.95
    gone = np.column_stack([values[:, 0], np.full(400, np.nan)])
    assert predicted(none, label, model=model, folds=4, numbers=gone).accuracy < 0.65  # type: ignore[arg-type]
    # That a number is missing may tell something, too.
    lost = np.isnan(values[:, 0]).astype(np.int32)
    assert predicted(none, lost, model=model, folds=4, numbers=values).accuracy > 0.95  # type: ignore[arg-type]
    order = PICK.permutation(400)
    mixed = {"numbers": values[order], "model": model, "folds": 4}
    assert predicted(CODES[order], label[order], **mixed) == predicted(  # type: ignore[arg-type]
        CODES,
        label,
        model=model,
        folds=4,
        numbers=values,  # type: ignore[arg-type]
    )
    with pytest.raises(InputError, match="one row of numbers per record"):
        predicted(none, label, model="random-forest", folds=4, numbers=values[:5])


def test_nothing_of_a_record_is_used_to_predict_it() -> None:
    """A column of a value a record and a label by chance: fitted and predicted on the same records it is all right."""
    label = PICK.integers(0, 2, 300).astype(np.int32)
    named = np.arange(300, dtype=np.int32)[:, None]
    found = predicted(named, label, model="random-forest", folds=3)
    assert 0.3 < found.accuracy < 0.65


def test_one_label_and_what_is_refused() -> None:
    codes = np.zeros((4, 1), dtype=np.int32)
    label = np.array([0, 0, 0, 1], dtype=np.int32)
    # Where the other folds hold one label, that is what is said.
    assert predicted(codes, label, model="logistic-regression", folds=4) == Prediction(4, 3, 3)
    with pytest.raises(InputError, match="2 folds or more"):
        predicted(codes, label, model="random-forest", folds=5)
    with pytest.raises(InputError, match="one label per record"):
        predicted(codes, label[:2], model="random-forest", folds=2)


@pytest.mark.parametrize("model", MODELS)
def test_predicted_majority_of_a_near_tie_is_the_share_of_the_most_frequent_label(model: str) -> None:
    """Of 7 and 6 the folds without a 7 hold 6 of each, and would say either."""
    label = np.array([0] * 7 + [1] * 6, dtype=np.int32)
    found = predicted(np.zeros((13, 1), dtype=np.int32), label, model=model, folds=13)  # type: ignore[arg-type]
    assert found.baseline == 7 / 13


def test_equal_rows_are_drawn_each_for_itself() -> None:
    """No two rows have one word, those of one tuple are uniform, and so are those of all tuples at one ordinal."""
    columns = [np.arange(300) // 30, np.arange(300) % 30]
    times = np.full(300, 40)
    times[7], times[8] = 4000, 0
    row, words = sampling_words(columns, times)
    assert (np.bincount(row, minlength=300) == times).all()
    assert len(np.unique(words)) == len(words) == times.sum()
    for chosen in (row == 7, np.concatenate([np.flatnonzero(row == i)[:1] for i in range(300) if i != 8])):
        assert kstest(words[chosen] / 2.0**64, "uniform").pvalue > 1e-4
    drawn = words < np.uint64(2**61)
    assert binomtest(int(drawn.sum()), len(words), 0.125).pvalue > 1e-4
    # Of the copies of a tuple some are drawn and some are not, as many as a fair draw would.
    of_tuple = np.bincount(row, weights=drawn, minlength=300)[times == 40]
    assert 0.6 < of_tuple.var() / (40 * 0.125 * 0.875) < 1.6
