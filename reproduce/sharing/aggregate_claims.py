"""What is claimed of Modified-Aggregate in F12 §7.1, §7.5 and §7.7, and what this run shows of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from privrisk_spark.reporting.numbers import percent
from reproduce.result import MUCH, held, judged
from reproduce.sharing.aggregate import (
    CONSISTENCIES,
    ENUMERATED,
    EPSILON,
    EXACT,
    LAYERS,
    LEFT_OUT,
    LETTER,
    TRADE_OFF,
    Evenly,
    Run,
)
from reproduce.sharing.proposition import Counterexample, Squares
from reproduce.texts import least_to_most

Judged = tuple[str, str, str, str, str]
"""Section, claim, what it is judged of, verdict, evidence."""


def _of(runs: Sequence[Run], method: str, consistency: str | None = None) -> list[Run]:
    return [one for one in runs if one.method == method and consistency in (None, one.consistency)]


def of_all_or_none(runs: Sequence[Run]) -> Iterator[Judged]:
    """Whether a level between all and none is recommended."""
    for consistency in CONSISTENCIES:
        exact = _of(runs, EXACT, consistency)
        pairs = sum(one.pairs for one in exact)
        whole, nothing = sum(one.whole for one in exact), sum(one.nothing for one in exact)
        unlimited = sum(one.unlimited for one in exact)
        yield (
            "§7.1",
            "Sharing is no all-or-none decision: a level is recommended in between.",
            f"consistent in {consistency}",
            held(pairs - whole - nothing, pairs),
            f"At λ = {TRADE_OFF:g} the optimum shows everything in {percent(whole / pairs)} of the cases. In "
            f"{percent(unlimited / pairs)} no common friend is consistent with what is shown, which is an infinite "
            "risk.",
        )


def of_supermodularity(squares: Sequence[Squares], smallest: Mapping[str, Counterexample | None]) -> Iterator[Judged]:
    """Whether ξ and what is maximized are supermodular."""
    for consistency, words in (("any", "at least one consistent attribute"), ("all", "all attributes consistent")):
        some = [one for one in squares if one.consistency == consistency]
        pairs, violated = sum(one.pairs for one in some), sum(one.violated for one in some)
        total, below, above = (sum(getattr(one, name) for one in some) for name in ("squares", "below", "above"))
        exposed, all_pairs = sum(one.exposed for one in some), sum(one.all_pairs for one in some)
        one = smallest[consistency]
        example = "no small lattice violates it" if one is None else f"smallest counterexample: {_in_words(one)}"
        large = (
            f" With large lattices, {exposed:,} of {all_pairs:,} pairs violate it."
            if consistency == "any"
            else " This is what the proof is of."
        )
        yield (
            "Proposition 7.5.1",
            f"ξ, the number of common friends with {words}, is supermodular.",
            f"consistent in {consistency}",
            held(pairs - violated, pairs),
            f"Of {total:,} unit squares of {pairs:,} enumerated lattices {below:,} violate it, and {above:,} violate "
            f"submodularity; {example}." + large,
        )
    falls, nodes = sum(one.falls for one in squares), sum(one.squares for one in squares)
    yield (
        "Proposition 7.5.1",
        "ξ is monotonically increasing in the generalization.",
        "both consistencies",
        judged(not falls),
        f"In lattices of {nodes:,} squares ξ falls on {falls:,} steps up.",
    )
    for consistency in CONSISTENCIES:
        some = [one for one in squares if one.consistency == consistency]
        pairs, bent = sum(one.pairs for one in some), sum(one.bent for one in some)
        total, numerator = sum(one.squares for one in some), sum(one.numerator for one in some)
        yield (
            "Theorem 7.5.1",
            "Φ, u and ξ are modular (proof).",
            f"consistent in {consistency}",
            held(pairs - bent, pairs),
            f"Φ and u are; ξ is not in {bent:,} of {pairs:,} lattices.",
        )
        yield (
            "Theorem 7.5.1",
            "λξ + Φu is supermodular, so that it is maximized in polynomial time.",
            f"consistent in {consistency}",
            judged(not numerator),
            f"{numerator:,} of {total:,} unit squares violate it.",
        )


def _in_words(one: Counterexample) -> str:
    friends = " and ".join(f"({', '.join(map(str, friend))})" for friend in one.friends)
    count = "one friend" if len(one.friends) == 1 else f"{len(one.friends)} friends"
    return (
        f"{count} who agrees from levels {friends} on, heights {', '.join(map(str, one.heights))}: ξ = "
        f"{', '.join(map(str, one.counts))}"
    )


def of_algorithm_8(runs: Sequence[Run]) -> Iterator[Judged]:
    """What the published algorithm finds."""
    for consistency in CONSISTENCIES:
        letter = _of(runs, LETTER, consistency)
        solved, layers = (sum(getattr(one, of) * one.pairs for one in letter) for of in ("visited", "layers"))
        yield (
            "Algorithm 8, step 5",
            "Each layer Φ(x) = τ has an optimal solution.",
            f"consistent in {consistency}",
            held(round(solved), round(layers)),
            f"Of the layers of {sum(one.pairs for one in letter):,} pairs "
            f"{percent(solved / layers if layers else 0.0)} have any level vector at all. The constraint is none of a "
            "lattice.",
        )
    for method in (LETTER, LAYERS, LEFT_OUT):
        for consistency in CONSISTENCIES:
            some = _of(runs, method, consistency)
            pairs, near, optimal = (sum(getattr(one, of) for one in some) for of in ("pairs", "near", "optimal"))
            if not pairs:
                continue
            yield (
                "Theorem 7.5.1",
                "The output approximately maximizes f, within decent bounds.",
                f"{method.partition(', ')[2]}, {consistency}",
                held(near, pairs),
                f"{near:,} of {pairs:,} pairs are within a factor of 1 + ε = {1 + EPSILON:g}, {optimal:,} are optimal. "
                f"On average of each k it finds {least_to_most([100 * one.value for one in some])} % of the greatest "
                f"f, at worst {percent(min(one.least for one in some))}.",
            )
    exact = [one for method in (EXACT, LAYERS, LETTER) for one in _of(runs, method)]
    rejected, pairs = sum(one.nothing for one in exact), sum(one.pairs for one in exact)
    yield (
        "§7.5",
        "A user decides by it whether to accept or to reject an invitation.",
        "Modified-Aggregate",
        judged(rejected),
        "Rejecting is showing nothing, where Φ = 0; layers begin at the least positive Φ, so that it is no candidate. "
        f"It is the answer for {rejected:,} of {pairs:,} pairs.",
    )


def of_the_experiment(runs: Sequence[Run], evenly: Evenly) -> Iterator[Judged]:
    """Whether Fig. 7.3 is found again."""
    yield (
        "§7.7",
        "Random pairs of users tell what the algorithm recommends.",
        f"{evenly.pairs:,} pairs drawn evenly",
        held(evenly.pairs - evenly.alone, evenly.pairs),
        f"{percent(evenly.alone / evenly.pairs)} have no common friend. Then 1/risk is 0 whatever is shown, and "
        f"{evenly.whole:,} of {evenly.alone:,} show a stranger everything.",
    )
    for consistency in CONSISTENCIES:
        exact = {one.k: one for one in _of(runs, EXACT, consistency)}
        left_out = [one for one in _of(runs, LEFT_OUT, consistency) if exact[one.k].seconds > 0]
        enumerated = {one.k: one for one in _of(runs, ENUMERATED, consistency)}
        layered = [one for one in _of(runs, LAYERS, consistency) if enumerated[one.k].seconds > 0]
        faster = sum(MUCH * one.seconds <= exact[one.k].seconds for one in left_out)
        ratios = [one.seconds / exact[one.k].seconds for one in left_out]
        beside = [one.seconds / enumerated[one.k].seconds for one in layered]
        yield (
            "Fig. 7.3 (a)",
            "Modified-Aggregate significantly outperforms the exact algorithm in running time: it takes at most half.",
            f"consistent in {consistency}",
            held(faster, len(left_out)),
            f"With the constraint left out it takes {_times(ratios)} the CPU time of the exact one; by layers, "
            f"{_times(beside)} that of enumerating small lattices. It solves as many problems as there are layers, "
            f"{least_to_most([one.layers for one in _of(runs, LEFT_OUT, consistency)])} of a pair on average.",
        )
        some = _of(runs, LEFT_OUT, consistency)
        pairs, alike = sum(one.pairs for one in some), sum(one.comparable for one in some)
        others = [one for method in (LETTER, LAYERS) for one in _of(runs, method, consistency)]
        told = "; ".join(
            f"{method.partition(', ')[2]} {sum(one.comparable for one in others if one.method == method):,} of "
            f"{sum(one.pairs for one in others if one.method == method):,}"
            for method in (LETTER, LAYERS)
        )
        yield (
            "Fig. 7.3 (b)",
            "Both algorithms have comparable risks.",
            f"consistent in {consistency}",
            held(alike, pairs),
            "With the constraint left out the risk is within a tenth of the exact one's, or infinite as there, in "
            f"{alike:,} of {pairs:,} pairs; {told}.",
        )


def _times(ratios: Sequence[float]) -> str:
    return f"{least_to_most(ratios)} times" if ratios else "(nothing was measured)"
