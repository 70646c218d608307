"""How well a classifier predicts a label from quasi-identifiers: what a release is still good for.

A classifier of scikit-learn is fitted to all folds of a sample but one, and predicts the labels of that one; accuracy
is the share of all records whose label it predicts. Cells of a release are categories like values are, each an
indicator; numbers, as masked tables have them, are standardized by the folds that are fitted to, and one that is
missing is their mean and an indicator. Records are put in order and dealt to folds by a fixed seed, so that neither
their order nor their partitioning matters. It is an estimate by a sample, of one classifier of its kind with its usual
parameters.

Source: Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002, who measured releases so; LeFevre, DeWitt
and Ramakrishnan, "Workload-aware anonymization", KDD 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray, WordArray
from privrisk_spark.kernels.numeric import fingerprint

Model = Literal["logistic-regression", "random-forest"]

MODELS: tuple[Model, ...] = ("logistic-regression", "random-forest")

SEED = 20020723
"""Of folds and forests: the first day of the conference Iyengar spoke at; any other would do."""

_TREES = 100


def sampling_words(columns: Sequence[LongArray], times: LongArray) -> tuple[LongArray, WordArray]:
    """Word of each row by which a sample takes the least: a function of the row's values and its ordinal among equals.

    Parameters
    ----------
    columns : sequence of ndarrays of int64, shape (m,)
        Of the distinct rows.
    times : ndarray of int64, shape (m,)
        Rows that are alike.

    Returns
    -------
    ndarray of int64, shape (n,)
        Distinct row of each row.
    ndarray of uint64, shape (n,)
        Fingerprints of 64 bits.
    """
    row = np.repeat(np.arange(len(times)), times)
    ordinal = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
    of_columns = [fingerprint.of_integers(column)[row] for column in columns]
    return row, fingerprint.of_rows([*of_columns, fingerprint.of_integers(ordinal)], len(row))


@dataclass(frozen=True)
class Prediction:
    """Labels that were predicted rightly.

    Attributes
    ----------
    right : int
        By the classifier.
    majority : int
        By the most frequent label of the other folds, which knows nothing of the record.
    """

    records: int
    right: int
    majority: int

    @property
    def accuracy(self) -> float:
        """Share of the records; in [0, 1]."""
        return self.right / self.records

    @property
    def baseline(self) -> float:
        """Share of the records with the most frequent label; in [0, 1]."""
        return self.majority / self.records


def predicted(
    codes: IntArray, label: IntArray, *, model: Model, folds: int, numbers: FloatArray | None = None
) -> Prediction:
    """Predict labels of held-out folds.

    Parameters
    ----------
    codes : ndarray of int32, shape (n, k)
        Values or cells of each record.
    label : ndarray of int32, shape (n,)
    model : {"logistic-regression", "random-forest"}
        Logistic regression with a squared penalty of weight 1; a forest of 100 trees.
    folds : int
        At least 2.
    numbers : ndarray of float64, shape (n, c), optional
        Columns that are compared as numbers, besides; NaN where missing.

    Raises
    ------
    InputError
        If the shapes do not fit, or there are fewer records than folds.
    ImportError
        If scikit-learn is not installed.
    """
    if codes.ndim != 2 or label.shape != codes.shape[:1]:
        raise InputError(f"There must be one label per record. Got shapes {codes.shape} and {label.shape}.")
    if not 2 <= folds <= len(label):
        raise InputError(f"Records are dealt to 2 folds or more, none of them empty. Got {len(label)} and {folds}.")
    values = np.zeros((len(label), 0)) if numbers is None else numbers
    if values.ndim != 2 or len(values) != len(label):
        raise InputError(f"There must be one row of numbers per record. Got shapes {values.shape} and {label.shape}.")
    order = np.lexsort((*values.T[::-1], label, *codes.T[::-1]))
    codes, label, values = codes[order], label[order], values[order]
    right = 0
    for held in _held_out(len(label), folds):
        kept = np.ones(len(label), dtype=np.bool_)
        kept[held] = False
        most = int(np.bincount(label[kept]).argmax())
        if (label[kept] == most).all():  # nothing to tell apart
            right += int((label[held] == most).sum())
            continue
        inputs = _inputs(codes, values, kept)
        fitted = _classifier(model).fit(inputs[np.flatnonzero(kept)], label[kept])
        right += int((fitted.predict(inputs[held]) == label[held]).sum())
    return Prediction(len(label), right, int(np.bincount(label).max()))


def _inputs(codes: IntArray, values: FloatArray, kept: BoolArray) -> Any:
    """What a classifier sees of all records, sparse, by what the kept ones know."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.preprocessing import OneHotEncoder

    parts = []
    if codes.shape[1]:
        parts.append(OneHotEncoder(handle_unknown="ignore").fit(codes[kept]).transform(codes))
    for column in values.T:
        there = ~np.isnan(column)
        known = column[kept & there]
        if len(known):
            spread = float(known.std())
            scaled = (np.where(there, column, known.mean()) - known.mean()) / (spread if spread > 0 else 1.0)
            parts.append(csr_matrix(np.column_stack([scaled, ~there])))
    return hstack(parts, format="csr") if parts else csr_matrix((len(codes), 1))


def _held_out(n: int, folds: int) -> list[LongArray]:
    """Records of each fold, by a permutation that the seed decides."""
    from sklearn.model_selection import KFold

    dealt = KFold(folds, shuffle=True, random_state=SEED).split(np.zeros((n, 1)))
    return [held.astype(np.int64) for _, held in dealt]


def _classifier(model: Model) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    if model == "logistic-regression":
        return LogisticRegression(C=1.0, max_iter=1000)
    return RandomForestClassifier(_TREES, random_state=SEED, n_jobs=1)
