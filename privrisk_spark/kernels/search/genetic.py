"""Genetic search of one record's lattice (F12 Algorithm 4): a heuristic for the least risk subject to ``u(x) >= c``.

An individual is a path from the top to the bottom, a word in which attribute i occurs ``h_i`` times; it stands for the
first feasible node on it, which is always a frontier node (or the top, if that is feasible). F12 leaves much open; here

* selection is by rank of risk, the better of two ranks preferred linearly (F12 says "in direct proportion to its
  utility", but the fitness is the risk);
* the two best of a generation go on unchanged;
* the last fifth are immigrants, random paths;
* of the others 60% are crossovers, the first half of one path up to its node and the second half of another, and the
  rest mutations, in which the step in the middle of the path, or one beside it, is of another attribute;
* steps of exhausted attributes are skipped, and what is missing is completed at random;
* the number of generations is fixed ("while accuracy is low" is not defined).

Status: heuristic. Optimal for few attributes and a generous budget; on larger lattices tens of percent above the least
risk have been seen. Branch and bound is faster at comparable quality.
"""

from __future__ import annotations

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.disclosure.objective import LeastRisk, Valued, preferred
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.search.branch_and_bound import root_bound
from privrisk_spark.kernels.search.evaluation import Evaluation
from privrisk_spark.kernels.search.record import Answer, RecordLattice, answer

_ELITE = 2
_CROSSOVER = 0.6
_IMMIGRANTS = 0.2
_CHOICES = 5


def uniforms_per_individual(lattice: RecordLattice) -> int:
    """Uniform numbers that :func:`genetic` takes per individual: five choices and the order of a random path."""
    return _CHOICES + int(lattice.heights.sum())


def genetic(lattice: RecordLattice, objective: LeastRisk, uniforms: FloatArray) -> Answer | None:
    """Least risk found by a fixed number of generations.

    Parameters
    ----------
    lattice : RecordLattice
        Weights must be finite.
    uniforms : ndarray of float64, shape (1 + generations, population, :func:`uniforms_per_individual`)
        In (0, 1); all the randomness there is, so equal numbers give equal answers. The population is at least 4.

    Returns
    -------
    Answer or None
        Heuristic; ``bound`` is that of the whole lattice as one box, ``visited`` counts distinct nodes evaluated. None
        if no node is feasible.

    Raises
    ------
    InputError
        If the uniform numbers do not have this shape.
    """
    width = uniforms_per_individual(lattice)
    if uniforms.ndim != 3 or uniforms.shape[0] < 1 or uniforms.shape[1] < 4 or uniforms.shape[2] != width:
        raise InputError(
            f"uniforms: must have shape (1 + generations, population >= 4, {width}). Got shape {uniforms.shape}."
        )
    evaluation = Evaluation(lattice, floor=objective.floor)
    floor = objective.floor - TOLERANCE * max(1.0, abs(objective.floor))
    if evaluation.utility(np.zeros((1, lattice.k), dtype=np.int64))[0] < floor:
        return None
    bound = root_bound(lattice, objective)
    letters = np.repeat(np.arange(lattice.k), lattice.heights)
    population = uniforms.shape[1]
    known: dict[bytes, float] = {}
    paths = letters[np.argsort(uniforms[0, :, _CHOICES:], axis=1, kind="stable")]
    steps = np.zeros(population, dtype=np.int64)
    best: Valued | None = None
    immigrants = int(population * _IMMIGRANTS)
    for generation in range(uniforms.shape[0]):
        draws = uniforms[generation]
        if generation:
            random = letters[np.argsort(draws[:, _CHOICES:], axis=1, kind="stable")]
            offspring = _offspring(paths, steps, draws, lattice.k)
            offspring[population - immigrants :] = random[population - immigrants :]
            offspring[:_ELITE] = paths[:_ELITE]
            paths = _completed(offspring, random, lattice.heights)
        levels, steps = _first_feasible(paths, evaluation, floor)
        risk = _risks(levels, evaluation, known)
        best = preferred(objective, best, levels, risk, evaluation.utility(levels))
        order = np.argsort(risk, kind="stable")
        paths, steps = paths[order], steps[order]
    assert best is not None
    chosen = np.array(best[2], dtype=np.int64)
    least = lattice.risk(chosen)
    return answer(lattice, chosen, objective=least, bound=min(bound, least), visited=len(known), proved=False)


def _offspring(paths: LongArray, steps: LongArray, draws: FloatArray, k: int) -> LongArray:
    """Crossovers and mutations of paths in ascending order of risk; their letters may not fit."""
    n, length = paths.shape
    # Linear rank selection: density 2 (1 - rank).
    parents = (n * (1 - np.sqrt(1 - draws[:, 1:3]))).astype(np.int64).clip(0, n - 1)
    first, second = parents[:, 0], parents[:, 1]
    half = (steps[first] + 1) // 2
    at = np.arange(length)[None, :]
    crossed = np.where(at < half[:, None], paths[first], paths[second])
    mutated = paths[first].copy()
    if length and k > 1:
        place = (steps[first] // 2 + (3 * draws[:, 3]).astype(np.int64) - 1).clip(0, length - 1)
        rows = np.arange(n)
        other = 1 + ((k - 1) * draws[:, 4]).astype(np.int64).clip(0, k - 2)
        mutated[rows, place] = (mutated[rows, place] + other) % k
    offspring: LongArray = np.where((draws[:, 0] < _CROSSOVER)[:, None], crossed, mutated)
    return offspring


def _completed(words: LongArray, random: LongArray, heights: LongArray) -> LongArray:
    """Words with each letter at most as often as it may be, completed by the random ones to full paths."""
    long = np.concatenate([words, random], axis=1)
    keep = np.zeros(long.shape, dtype=np.bool_)
    for i, height in enumerate(heights.tolist()):
        is_i = long == i
        keep |= is_i & (np.cumsum(is_i, axis=1) <= height)
    completed: LongArray = long[keep].reshape(words.shape)
    return completed


def _first_feasible(paths: LongArray, evaluation: Evaluation, floor: float) -> tuple[LongArray, LongArray]:
    """First node of each path from the top that reaches the floor, and the steps to it."""
    levels = np.tile(evaluation.lattice.heights, (len(paths), 1))
    steps = np.zeros(len(paths), dtype=np.int64)
    for step in paths.T:
        going = np.flatnonzero(evaluation.utility(levels) < floor)
        levels[going, step[going]] -= 1
        steps[going] += 1
    return levels, steps


def _risks(levels: LongArray, evaluation: Evaluation, known: dict[bytes, float]) -> FloatArray:
    keys = [node.tobytes() for node in levels]
    fresh = list({key: j for j, key in enumerate(keys) if key not in known}.items())
    if fresh:
        risks = evaluation.risk(levels[[j for _, j in fresh]]).tolist()
        known.update(zip((key for key, _ in fresh), risks, strict=True))
    return np.array([known[key] for key in keys])
