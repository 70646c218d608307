"""Whether what an audit found refutes what is claimed of the mechanism."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.dp.audit import (
    certify,
    choice_conformance,
    conformance,
    difference,
    false_alarm,
    noise_conformance,
    published_law,
)
from privrisk_spark.ledger.calibrated import Choosing
from privrisk_spark.planning.audit import law_of_choice, law_of_noise
from privrisk_spark.planning.audit_experiments import Experiment
from privrisk_spark.results.audit import ALPHA, Bound, Claim, Findings, FittedCell

WHOSE = ("target's", "others'")
"""The two kinds of records, in words."""

_MOST_TUPLES = 64
"""Different tuples whose rows are features; a mechanism without fault releases fewer."""


def alpha_of_bound(experiments: Sequence[Experiment]) -> float:
    """Share of :data:`ALPHA` for each bound: what the tests of conformance leave, by pairs and directions.

    A union bound over every comparison of an audit, so :data:`ALPHA` holds for all of them together. The invariant and
    the repetitions have no false alarms. Certified bounds hold this exactly; the tests of conformance as far as their
    normal and chi-square approximations are good. The probability is over keys: under one seed, an audit of the same
    code ends the same way every time.
    """
    spent = sum(false_alarm(moments=cell.large) for experiment in experiments for cell in experiment.cells)
    # Of each noisy cell, and of each one's difference from the first.
    spent += sum(false_alarm(moments=True) * max(0, 2 * len(one.noisy) - 1) for one in experiments)
    # The picks of each table.
    spent += sum(false_alarm(moments=False) * len(one.tables) for one in experiments if one.chooses)
    return (ALPHA - spent) / sum(2 * len(experiment.pairs) for experiment in experiments)


def judge(
    experiment: Experiment,
    *,
    trials: int,
    nodes: npt.NDArray[np.int32],
    rows: LongArray,
    cells: LongArray,
    manifest: Mapping[str, LongArray],
    released_as: Mapping[tuple[int, int], tuple[int, ...]],
    alpha: float,
) -> Findings:
    """Hold what was published against what is claimed.

    Parameters
    ----------
    trials : int
        n, of each of T tables.
    nodes : ndarray of int32, shape (m, 1 + k)
        Released tuples; the first column is the trial, ``table * n + number``.
    rows : ndarray of int64, shape (m,)
    cells : ndarray of int64, shape (n T, w, 2)
        Noisy counts of admitted cells, -1 if not admitted.
    manifest : mapping of str to ndarray of int64, shape (n T,)
    released_as : mapping of pairs of int to tuple of k int
        What either kind is released as under each scheme, by kind and number of the scheme; the one after the last is
        full suppression.
    alpha : float
        Of each bound.
    """
    total = trials * len(experiment.tables)
    counted, names = _rows_by_tuple(nodes, rows, total)
    words: dict[tuple[int, ...], str] = {}
    for (kind, scheme), released in released_as.items():
        suppressed = scheme == len(experiment.mechanism.schemes)
        under = f" under scheme {scheme + 1}" if len(experiment.mechanism.schemes) > 1 else ""
        words[released] = "suppressed rows" if suppressed else f"rows of the {WHOSE[kind]} tuple{under}"
    columns = {words.get(name, f"rows of tuple {i + 1}"): counted[:, i] for i, name in enumerate(names)}
    for j in range(cells.shape[1]):
        for kind, whose in enumerate(WHOSE):
            columns[f"noisy count of the {whose} cell under scheme {j + 1}"] = cells[:, j, kind]
    columns |= {f"{name} in the manifest": numbers for name, numbers in manifest.items()}
    features = np.column_stack(list(columns.values())).reshape(len(experiment.tables), trials, -1)
    bounds = _bounds(experiment, features, list(columns), alpha)
    place = {name: i for i, name in enumerate(names)}
    fitted = []
    for cell in experiment.cells:
        released = released_as[cell.kind, cell.scheme]
        column = counted[:, place[released]] if released in place else np.zeros(total, dtype=np.int64)
        sample = column.reshape(len(experiment.tables), trials)[list(cell.tables)].ravel()
        crowd = experiment.mechanism.crowd
        fit = conformance(sample, rows=cell.rows, keep=cell.keep, crowd=crowd, moments=cell.large)
        law = published_law(cell.rows, cell.keep, crowd) if cell.large else np.zeros(0)
        shares = np.bincount(sample, minlength=cell.rows + 1) / len(sample) if cell.large else np.zeros(0)
        fitted.append(FittedCell(cell.name, fit, tuple(shares.tolist()), tuple(law.tolist())))
    fitted += _fitted_noise(experiment, cells)
    return Findings(
        experiment=Claim(
            experiment.name, experiment.title, experiment.epsilon, experiment.delta, experiment.mechanism.crowd
        ),
        trials=trials,
        rows=trials * sum(map(sum, experiment.tables)),
        bounds=bounds,
        least=int(rows.min()) if len(rows) else None,
        below=int(np.count_nonzero(rows < experiment.mechanism.crowd)),
        tuples=len(rows),
        cells=tuple(fitted),
    )


def judge_choice(experiment: Experiment, drawn: Sequence[LongArray], *, alpha: float) -> Findings:
    """Hold the schemes that were chosen against what is claimed of the choice.

    Parameters
    ----------
    experiment : Experiment
        That chooses.
    drawn : sequence of ndarrays of int64, shape (n, w)
        Numbers of the candidates, in the order drawn, of every trial of each table.
    alpha : float
        Of each bound.
    """
    choice = experiment.mechanism
    assert isinstance(choice, Choosing)
    outcomes = list(itertools.permutations(range(len(choice.candidates)), choice.picks))
    number_of = {outcome: number for number, outcome in enumerate(outcomes)}
    numbers = [np.array([number_of[tuple(row)] for row in of_table.tolist()], dtype=np.int64) for of_table in drawn]
    names = ["draws of the candidates " + ", ".join(str(one + 1) for one in outcome) for outcome in outcomes]
    features = np.stack([(of_table[:, None] == np.arange(len(outcomes))).astype(np.int64) for of_table in numbers])
    fitted = []
    for table, of_table in zip(experiment.tables, numbers, strict=True):
        law = law_of_choice(choice, table)
        fit = choice_conformance(of_table, [law[outcome] for outcome in outcomes])
        fitted.append(FittedCell(f"{table[0]} and {table[1]} rows, the likeliest choice", fit, unit="of the trials"))
    return Findings(
        experiment=Claim(experiment.name, experiment.title, experiment.epsilon, experiment.delta, None),
        trials=len(drawn[0]),
        rows=sum(len(of_table) * sum(table) for of_table, table in zip(drawn, experiment.tables, strict=True)),
        bounds=_bounds(experiment, features, names, alpha),
        least=None,
        below=0,
        tuples=0,
        cells=tuple(fitted),
    )


def _bounds(experiment: Experiment, features: LongArray, names: Sequence[str], alpha: float) -> tuple[Bound, ...]:
    """Certify every pair in both directions; features of shape (tables, trials, columns)."""
    what = "person" if experiment.people else "row"
    bounds = []
    for pair in experiment.pairs:
        for one, other, likelier in ((pair.one, pair.other, "with"), (pair.other, pair.one, "without")):
            found = certify(features[one], features[other], delta=experiment.delta, alpha=alpha)
            event = f"{names[found.event.feature]} {found.event.relation} {found.event.value}"
            if found.hits == found.other_hits == found.trials:
                event = "none tells them apart"
            side = f"{likelier} the {what}"
            bounds.append(Bound(pair.name, side, event, experiment.epsilon, experiment.delta, alpha, found))
    return tuple(bounds)


def _fitted_noise(experiment: Experiment, cells: LongArray) -> list[FittedCell]:
    """Hold the noise of counts against its law, and its independence from one count of a release to the next."""
    admission = experiment.mechanism.admission
    if not experiment.noisy or admission is None:
        return []
    law = law_of_noise(admission)
    noises = [cells[:, cell.scheme, cell.kind] - cell.rows for cell in experiment.noisy]
    fitted = [
        FittedCell(
            f"{cell.rows} rows, noise of its count under scheme {cell.scheme + 1}", noise_conformance(noise, law)
        )
        for cell, noise in zip(experiment.noisy, noises, strict=True)
    ]
    for cell, noise in zip(experiment.noisy[1:], noises[1:], strict=True):
        name = f"{cell.rows} rows, noise of its counts under the schemes 1 and {cell.scheme + 1}, their difference"
        fitted.append(FittedCell(name, noise_conformance(noises[0] - noise, difference(law))))
    return fitted


def _rows_by_tuple(
    nodes: npt.NDArray[np.int32], rows: LongArray, total: int
) -> tuple[LongArray, list[tuple[int, ...]]]:
    """Published rows of each trial and tuple, shape (trials, tuples), and the tuples without the trial."""
    distinct, which, times = np.unique(nodes[:, 1:], axis=0, return_inverse=True, return_counts=True)
    commonest = np.sort(np.argsort(-times, kind="stable")[:_MOST_TUPLES])
    column = np.full(len(distinct), -1, dtype=np.int64)
    column[commonest] = np.arange(len(commonest))
    place = column[which.reshape(-1)]
    counted = np.zeros((total, len(commonest)), dtype=np.int64)
    known = place >= 0
    np.add.at(counted, (nodes[known, 0], place[known]), rows[known])
    return counted, [tuple(map(int, distinct[i])) for i in commonest.tolist()]
