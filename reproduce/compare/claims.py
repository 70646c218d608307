"""What is claimed of protections and attacks, and what one table shows of it.

Sources: Torra, slides on privacy models (2020; T20); Nin, Herranz and Torra (2008) on rank swapping; Raschia, slides on
k-anonymity (2023; R23); Fouad (2012; F12). Sentences are made from the figures of the run; nothing in them is fixed but
the words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from privrisk_spark.extensions.attack.kernels.evidence import Found
from privrisk_spark.reporting.numbers import percent
from reproduce.result import Claim, held

_EQUAL = 1e-9

LEARNED, METHOD = "learned weights", ("the method is known", "levels of the scheme")
EQUAL_WEIGHTS = ("distance, any value", "distance")
"""Attacks that learned weights begin with: of tables over hierarchies, and of numbers."""


@dataclass(frozen=True)
class Tried:
    """A protected table and what was found of it.

    Attributes
    ----------
    lost : float
        Information, 0 to 1 over hierarchies, in IL1s for numbers.
    found : mapping of method to Found
        People whose row is found.
    of_rows : mapping of method to Found
        Rows whose person is found: the other direction.
    """

    family: str
    name: str
    lost: float
    found: Mapping[str, Found]
    of_rows: Mapping[str, Found] = field(default_factory=dict)

    @property
    def strongest(self) -> tuple[str, Found]:
        """The attack that finds the most; of equals the first."""
        return max(self.found.items(), key=lambda one: one[1].share)

    @property
    def strongest_of_rows(self) -> tuple[str, Found] | None:
        """Likewise, of the attacks that begin with a row."""
        return max(self.of_rows.items(), key=lambda one: one[1].share) if self.of_rows else None


def claims(data: str, tried: Sequence[Tried]) -> tuple[Claim, ...]:
    """Judge every claim that a table can say something of.

    Parameters
    ----------
    data : str
        Name of the table.
    """
    judged = (*_of_the_worst_case(tried), *_of_rank_swapping(tried), *_of_anonymity(tried), *_of_least_risk(tried))
    return tuple(Claim(source, claim, data, verdict, evidence) for source, claim, verdict, evidence in judged)


_Judged = tuple[str, str, str, str]


def _of_the_worst_case(tried: Sequence[Tried]) -> Iterator[_Judged]:
    pairs = [
        (one.found[LEARNED].share, next(one.found[name].share for name in EQUAL_WEIGHTS if name in one.found))
        for one in tried
        if LEARNED in one.found
    ]
    if pairs:
        more, most = sum(a > b + _EQUAL for a, b in pairs), max(a - b for a, b in pairs)
        fewest = min(a - b for a, b in pairs)
        yield (
            "Torra (2020)",
            "The best parameters of a distance are the worst case: weights that are learned find more.",
            held(more, len(pairs)),
            f"Of people they were not learned from they find {100 * fewest:+.1f} to {100 * most:+.1f} percentage "
            "points beside equal weights.",
        )
    known = [
        (next(one.found[name].share for name in METHOD if name in one.found), one.found)
        for one in tried
        if any(name in one.found for name in METHOD)
    ]
    if known:
        # What is compared must be of the same people: learned weights are tried on some.
        beside = [
            (share, max((of.share for name, of in by.items() if name not in (*METHOD, LEARNED)), default=0.0))
            for share, by in known
        ]
        most = sum(share >= other - _EQUAL for share, other in beside)
        yield (
            "Torra (2020)",
            "Who knows how a table was protected is the worst case: no other attack finds more.",
            held(most, len(beside)),
            f"It finds {100 * min(a - b for a, b in beside):+.1f} to {100 * max(a - b for a, b in beside):+.1f} "
            "percentage points beside the best attack without this knowledge.",
        )


def _of_rank_swapping(tried: Sequence[Tried]) -> Iterator[_Judged]:
    pairs = [
        (one.found["the method is known"].share, one.found["distance"].share, one.name)
        for one in tried
        if one.family == "rank swapping"
    ]
    if pairs:
        more = sum(a > b + _EQUAL for a, b, _ in pairs)
        told = "; ".join(f"{name}: {percent(a)} and {percent(b)}" for a, b, name in pairs)
        yield (
            "Nin, Herranz and Torra (2008)",
            "The ranks a value may come from, intersected, find more than the nearest row.",
            held(more, len(pairs)),
            f"Ranks and distance find: {told}.",
        )


def _of_anonymity(tried: Sequence[Tried]) -> Iterator[_Judged]:
    shares = [
        (one.strongest[1].share, int(one.name.rpartition("= ")[2])) for one in tried if one.family == "k-anonymous"
    ]
    if shares:
        most = max(share * k for share, k in shares)
        within = sum(share * k <= 1 + _EQUAL for share, k in shares)
        yield (
            "Raschia (2023)",
            "Nobody's row is found in a k-anonymous table with a probability above 1/k.",
            held(within, len(shares)),
            f"Of all people, those who may be suppressed included, the strongest attack finds at most {most:.2f}/k, "
            f"in {len(shares)} tables.",
        )


def _of_least_risk(tried: Sequence[Tried]) -> Iterator[_Judged]:
    risk = [one for one in tried if one.family == "by risk"]
    others = [one for one in tried if one.family == "k-anonymous"]
    if risk and others:
        beaten = sum(any(_beats(other, one) for other in others) for one in risk)
        beating = sum(any(_beats(one, other) for one in risk) for other in others)
        yield (
            "Fouad (2012)",
            "Disclosures of least risk have less risk than k-anonymous tables of the same utility.",
            _wins([(_beats(one, other), _beats(other, one)) for one in risk for other in others]),
            f"Of {len(risk)} disclosures {beaten} are beaten by a k-anonymous table, in what is lost and in who is "
            f"found; of {len(others)} k-anonymous tables {beating} by a disclosure. The risk they minimise is that of "
            "the other direction, from a row to the person.",
        )
        rows_risk = [(one.lost, of[1].share) for one in risk if (of := one.strongest_of_rows) is not None]
        rows_others = [(one.lost, of[1].share) for one in others if (of := one.strongest_of_rows) is not None]
        if rows_risk and rows_others:
            beaten = sum(any(_no_worse(other, one) for other in rows_others) for one in rows_risk)
            beating = sum(any(_no_worse(one, other) for one in rows_risk) for other in rows_others)
            yield (
                "Fouad (2012)",
                "The same, of the risk they minimise: who is found by somebody who begins with a row.",
                _wins([(_no_worse(one, other), _no_worse(other, one)) for one in rows_risk for other in rows_others]),
                f"Of {len(rows_risk)} disclosures {beaten} are beaten by a k-anonymous table, in what is lost and in "
                f"the rows whose person is found; of {len(rows_others)} k-anonymous tables {beating} by a disclosure.",
            )


def _wins(pairs: Sequence[tuple[bool, bool]]) -> str:
    """Verdict over the pairs of which one beats the other."""
    won = sum(mine for mine, _ in pairs)
    return held(won, won + sum(theirs for _, theirs in pairs))


def _beats(one: Tried, other: Tried) -> bool:
    """Whether a table is no worse in both and better in one."""
    return _no_worse((one.lost, one.strongest[1].share), (other.lost, other.strongest[1].share))


def _no_worse(mine: tuple[float, float], theirs: tuple[float, float]) -> bool:
    """Whether it is so, of what is lost and what is found."""
    return mine[0] <= theirs[0] and mine[1] <= theirs[1] and mine != theirs
