"""The adversary of an assessment: what the policy assumes of him, and what he would do to each record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.adversary.deterrence import Table, least_group, least_penalty
from privrisk_spark.kernels.adversary.process import Attack, Solution, solve
from privrisk_spark.kernels.adversary.risk import Assessment, assess
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.measures.identity import SizeHistogram
from privrisk_spark.kernels.measures.population_sizes import PopulationHistogram
from privrisk_spark.policy.assessment import AdversaryPolicy
from privrisk_spark.results.assessment import Measured

NONE_NEEDED = "none needed: every record is under the bound as it is"


def attack_of(policy: AdversaryPolicy) -> Attack:
    """What the policy assumes of the adversary."""
    return Attack(
        prior=policy.prior,
        gain=policy.gain,
        penalty=policy.penalty,
        fines_paid=policy.fines,
        cost_access=policy.cost_access,
        cost_link=policy.cost_link,
        cost_exploit=policy.cost_exploit,
        h0=policy.detection.h0,
        h1=policy.detection.h1,
        gamma=policy.discount,
    )


@dataclass(frozen=True, eq=False)
class Groups:
    """Candidates of the records, as far as the adversary tells records apart.

    Attributes
    ----------
    sizes : ndarray of int64, shape (n,)
        Different group sizes, ascending.
    records : ndarray of int64, shape (n,)
        Records with each.
    people : int
        Rows of the identified table: the population if it is known or estimated, else the table.
    basis : str
        What groups are counted in, in words.
    """

    sizes: LongArray
    records: LongArray
    people: int
    basis: str

    @classmethod
    def of_population(cls, histogram: PopulationHistogram, people: int) -> Groups:
        """Groups counted in a population table."""
        return cls(*histogram.candidates, people, "people of the population in the record's class")

    @classmethod
    def of_table(cls, histogram: SizeHistogram | PopulationHistogram, fraction: float | None) -> Groups:
        """Groups counted in the table, scaled to the population if its share of it is known.

        Where missing values may be any, the "population" of a class is what it is compatible with in the table.
        """
        basis = "records of the table in the record's class"
        if isinstance(histogram, PopulationHistogram):
            basis = "records of the table the record is compatible with"
        sizes, records = histogram.candidates
        people = int(records.sum())
        if fraction is not None:
            basis += f", over the sampling fraction {fraction:g}"
            sizes, people = scaled(sizes, fraction), max(people, round(people / fraction))
        return cls(*_summed(sizes, records), people, basis)


def scaled(sizes: LongArray, fraction: float | None) -> LongArray:
    """Class sizes in the population, rounded; as they are if the fraction is not known."""
    return sizes if fraction is None else np.maximum(sizes, np.rint(sizes / fraction).astype(np.int64))


def _summed(sizes: LongArray, records: LongArray) -> tuple[LongArray, LongArray]:
    distinct, at = np.unique(sizes, return_inverse=True)
    sums = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(sums, at, records)
    return distinct, sums


@dataclass(frozen=True, eq=False)
class AttackTable:
    """What the adversary does, by group size.

    Attributes
    ----------
    sizes : ndarray of int64, shape (n,)
        Ascending.
    assessment : Assessment
        Of each.
    """

    sizes: LongArray
    assessment: Assessment
    loss: float

    def columns(self, group_sizes: LongArray) -> dict[str, FloatArray]:
        """Columns of records with these group sizes, each of which is among the sizes or of no use."""
        at = np.minimum(np.searchsorted(self.sizes, group_sizes), len(self.sizes) - 1)
        found = self.assessment
        return {
            "p_reid": found.p_reid[at],
            "expected_payoff": found.expected_payoff[at],
            "exploits": found.exploits[at],
            "p_reid_baseline": found.p_reid_baseline[at],
            "risk": found.p_reid[at] * self.loss,
        }


def planned(policy: AdversaryPolicy, groups: Groups) -> tuple[Solution, AttackTable]:
    """Solve the adversary's problem for the groups of a subject.

    Raises
    ------
    InputError
        If the attack pays on groups of too many sizes to solve.
    """
    try:
        return _planned(policy, groups)
    except InputError as error:
        raise InputError(f"assess.adversary: {error} Or leave the attack out: adversary: null.") from None


def _planned(policy: AdversaryPolicy, groups: Groups) -> tuple[Solution, AttackTable]:
    attack = attack_of(policy)
    unknown = policy.group == "unknown"
    largest = int(groups.sizes.max(initial=1))
    bounded = attack.most_groups is not None
    solution = solve(attack, None if bounded else max(largest, groups.people if unknown else 1))
    return solution, played(policy, solution, groups.sizes, groups.people)


def played(policy: AdversaryPolicy, solution: Solution, sizes: LongArray, people: int) -> AttackTable:
    """What the adversary does to groups of these sizes, ascending; he knows them, or that there are so many people."""
    if policy.group == "unknown":
        rows = np.full(len(sizes), people, dtype=np.int64)
        return AttackTable(sizes, assess(solution, sizes, rows, sizes / max(people, 1)), policy.loss)
    return AttackTable(sizes, assess(solution, sizes), policy.loss)


def attacked(
    policy: AdversaryPolicy, groups: Groups, solution: Solution, table: AttackTable, of: Mapping[str, object]
) -> Iterator[Measured]:
    """Measures of the attack over the records."""
    about = {**of, "group": policy.group, "candidates": groups.basis}
    found, records = table.assessment, groups.records
    total = int(records.sum())

    def mean(values: FloatArray) -> float:
        return math.fsum((values * records).tolist()) / total if total else 0.0

    yield Measured("attacked_records", int(records[found.exploits > 0].sum()), about)
    yield Measured("p_reid_max", float(found.p_reid.max(initial=0.0)), about)
    yield Measured("p_reid_mean", mean(found.p_reid), about)
    yield Measured("expected_loss", mean(found.p_reid) * total * policy.loss, {**about, "loss": policy.loss})
    yield Measured("p_reid_baseline_mean", mean(found.p_reid_baseline), about)
    money = {"currency": policy.currency}
    yield Measured("expected_payoff_max", float(found.expected_payoff.max(initial=0.0)), {**about, **money})
    reason = {"reason": "no cost limits the groups worth attacking"}
    for name, threshold in (
        ("access_threshold", solution.known_threshold),
        ("sunk_threshold", solution.sunk_threshold),
    ):
        yield Measured(name, threshold, about if threshold is not None else {**about, **reason})
    bound = policy.risk_at_most
    if bound is None or not total:
        return
    about = {**about, "risk_at_most": bound}
    ones = np.ones(len(groups.sizes))
    plain = Table(groups.sizes, records, ones)
    if found.p_reid.max(initial=0.0) <= bound:
        yield Measured("least_group_size", None, {**about, "none": NONE_NEEDED})
    else:
        group = least_group(
            solution.attack, plain, bound, accessed=policy.group == "unknown", largest_group=_largest(solution, groups)
        )
        yield Measured(
            "least_group_size",
            None if group is None else group.group_size,
            about if group is not None else {**about, "reason": "no group size up to the largest solved suffices"},
        )
    believed = plain
    if policy.group == "unknown":
        people = np.full(len(groups.sizes), groups.people, dtype=np.int64)
        believed = Table(groups.sizes, records, ones, people, groups.sizes / max(groups.people, 1))
    why = "no finite fine suffices"
    try:
        penalty = least_penalty(solution.attack, believed, bound)
    except InputError:
        penalty, why = None, "without a fine, groups of too many sizes are worth attacking"
    yield Measured(
        "least_penalty",
        None if penalty is None else penalty.penalty,
        {**about, **money} if penalty is not None else {**about, "reason": why},
    )


def _largest(solution: Solution, groups: Groups) -> int | None:
    """Largest group to solve again, where costs alone give no limit: no further than it was solved already."""
    if solution.attack.most_groups is not None:
        return None
    return max(int(groups.sizes.max(initial=1)), len(solution.values) - (not solution.complete))
