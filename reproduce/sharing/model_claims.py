"""What is claimed of diffusion, access control and trust in F12 §7.2 to §7.4 and §7.6, and what this run shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from privrisk_spark.reporting.numbers import percent, rounded, short_number
from reproduce.result import held, judged, undecided
from reproduce.sharing.aggregate import TradedOff
from reproduce.sharing.aggregate_claims import Judged
from reproduce.sharing.diffusing import DENSE, ERROR, Diffusing
from reproduce.sharing.limits import AccessControl
from reproduce.sharing.trusting import BASELINE, COMMON, ONE_CLASS, Sensitivity
from reproduce.texts import least_to_most

_EQUAL = 1e-9
_ROUNDING = 1e-9
_NEAR_LIMIT = 1e-3
_ALIKE = 0.05
"""Share of the pairs up to which decisions count as the same."""


def of_diffusion(found: Diffusing) -> Iterator[Judged]:
    """What is said of L, K and R."""
    matrix = {one.name: one for one in found.matrices}
    laplacian = matrix["A - D"]
    of = f"{found.users} users"
    rows = ", ".join(f"{rounded(round(one.rows, 9))} of {one.name}" for one in found.matrices)
    yield (
        "§7.3",
        "L is stochastic (rows sum to one), and is the Laplacian.",
        of,
        judged(abs(laplacian.rows - 1) < _ROUNDING),
        f"Rows sum to {rows}. The Laplacian and the row-stochastic matrix are two, with different kernels.",
    )
    yield (
        "§7.3",
        "L is positive definite.",
        of,
        judged(laplacian.smallest > _ROUNDING),
        f"Eigenvalues of A - D, as the thesis writes it, lie between {rounded(laplacian.smallest)} and "
        f"{rounded(round(laplacian.largest, 9))}: it is negative semidefinite, or its kernel would grow.",
    )
    right = [one for one in found.matrices if one.eigen < _ROUNDING]
    wrong = [one.eigen for one in found.matrices if one.eigen >= _ROUNDING]
    yield (
        "§7.3",
        "K = Σ v e^(tλ) v' over normalized eigenvectors of L.",
        of,
        held(len(right), len(found.matrices)),
        f"So it is of {', '.join(one.name for one in right) or 'none'}. A matrix that is not symmetric has no such "
        f"eigenvectors; taken for one, its entries are up to {rounded(max(wrong, default=0.0))} off.",
    )
    sums = max(one.rows for one in found.kernels)
    columns = max(one.columns for one in found.kernels if one.leak == "stochastic")
    yield (
        "§7.3",
        "The diffusion kernel is stochastic, or can be normalized.",
        of,
        judged(sums < _ROUNDING),
        f"Rows of exp(tL) sum to one but for {rounded(sums)}, under both matrices. Columns under the stochastic one "
        f"miss that by up to {rounded(columns)}.",
    )
    one, two, four, whole = found.reached
    yield (
        "§7.3",
        "The kernel is better than L^p: it takes random walks of different steps into account.",
        of,
        judged(whole > max(one, two, four)),
        f"Of pairs in one component exp(L) connects {percent(whole)}; L, L² and L⁴ of the leak matrix {percent(one)}, "
        f"{percent(two)} and {percent(four)}.",
    )
    falls, rises, pairs = found.rises
    yield (
        "§7.3",
        "R(u, x, v) = Φ Σ K T is the risk of transmitting x to v.",
        of,
        held(falls, pairs),
        f"A risk falls with trust. With 1 more trust in everybody R falls for {falls:,} of {pairs:,} pairs and rises "
        f"for {rises:,}. With f(T) for T it is one, which is what 'privrisk share' computes.",
    )
    starts = [[one for one in found.kernels if one.leak == leak] for leak in ("laplacian", "stochastic")]
    left = [some[-1].left for some in starts]
    falling = all(a.left >= b.left - _ROUNDING for some in starts for a, b in pairwise(some))
    yield (
        "§7.3",
        "t is the diffusion time and controls the amount of diffusion.",
        of,
        judged(falling and max(left) < _NEAR_LIMIT),
        f"From t = {rounded(starts[0][0].time)} to {rounded(starts[0][-1].time)} a row comes from "
        f"{rounded(starts[0][0].moved)} and {rounded(starts[1][0].moved)} from its start to {rounded(max(left))} at "
        "most from its limit: all users alike under A - D, in proportion to friends under D⁻¹A - I.",
    )
    ways = [one for one in found.computed if one.method != DENSE]
    worst = {
        name: max(one.error for one in ways if one.method == name) for name in dict.fromkeys(one.method for one in ways)
    }
    told = "; ".join(f"{name}: {rounded(value)}" for name, value in worst.items())
    yield (
        "§7.3",
        "There is no need to compute the infinite series.",
        of,
        held(sum(one.held for one in ways), len(ways)),
        f"So many series that are cut off are within what they say of the dense exponential. Asked for {ERROR:g} in a "
        f"row's 1-norm they are off by at most: {told}. The ego network, of which an average is taken, says itself "
        "what left it.",
    )


def of_risk_alone(access: AccessControl, traded: Sequence[TradedOff]) -> Iterator[Judged]:
    """What is shown where only the risk counts."""
    first = access.traded[0]
    yield (
        "§7.2",
        "Risk as the sole factor would result in no access being granted.",
        "access control",
        judged(first.utility == 0),
        f"At λ = {short_number(first.trade_off)} the least loss shows {percent(first.utility)} of the levels.",
    )
    most = max(one.trade_off for one in traded)
    last = [one for one in traded if one.trade_off == most]
    nothing = sum(one.nothing for one in last)
    yield (
        "§7.2",
        "Risk as the sole factor would result in no access being granted.",
        "Modified-Aggregate",
        held(nothing, sum(one.pairs for one in last)),
        f"At λ = {short_number(most)}, the greatest, {least_to_most([100 * one.shown for one in last])} % of the "
        "levels are shown. The layers begin at the least positive Φ, so that showing nothing is no candidate.",
    )


def of_access_control(found: AccessControl) -> Iterator[Judged]:
    """What is said of the three problems, and of connections."""
    repeated, tried = sum(one.repeated for one in found.traded), 2 * len(found.traded)
    yield (
        "§7.4",
        "max U with a limit of L, min L with a limit of U and min L - λU define optimal policies alike.",
        "access control",
        held(repeated, tried),
        f"With the loss or the utility of the optimum of a λ for their limit, {repeated} of {tried} limited problems "
        "have no better answer. The other way round it fails: between the optima of two λ lie answers that only a "
        "limit finds.",
    )
    exact = [one for one in found.small if one.short <= _EQUAL]
    short = max((one.short for one in found.small), default=0.0)
    yield (
        "§7.4",
        "The limited problems are hard, and approximated.",
        "access control",
        held(sum(one.short <= one.gap + _EQUAL for one in found.small), len(found.small)),
        f"So often the rounded relaxation of a small instance is within the gap it states. It is the optimum in "
        f"{len(exact)} of {len(found.small)}, else up to {percent(short)} short. Over {found.entries:,} values the gap "
        f"is at most {percent(max(one.gap for one in found.limited))}: at most one value is rounded.",
    )
    steps = list(pairwise(found.linked))
    told_apart = sum(b.largest > a.largest or (b.largest == a.largest and b.diameter < a.diameter) for a, b in steps)
    some = [one for one in found.linked if one.links]
    path = "; ".join(
        f"{percent(one.utility)}: {percent(one.largest / one.users)} and {one.diameter}"
        for one in some[:: len(some) // 3 or 1]
    )
    yield (
        "§7.4.2",
        "The utility of a network could be measured by its connectivity or diameter.",
        f"{found.linked[0].users if found.linked else 0:,} users",
        held(told_apart, len(steps)),
        "So often the largest part grows, or its diameter falls, where more is shown. Levels shown, users in the "
        f"part, and diameter at least: {path or 'no link'}.",
    )


def of_trust(found: Sensitivity) -> Iterator[Judged]:
    """What is said of kinds of trust and of f."""
    others = [one for one in found.decided if one.trust != BASELINE[0] and one.exposure == BASELINE[1]]
    same = sum(one.changed_pairs < _ALIKE for one in others)
    yield (
        "§7.4.1",
        "T = n, the number of common friends, is a simple estimate of trust.",
        f"{found.pairs:,} pairs",
        held(same, len(others)),
        f"Of {len(others)} other kinds {same} decide all but {percent(_ALIKE)} of the pairs alike. They decide "
        f"{least_to_most([100 * one.changed for one in others])} % of the values in another way, in "
        f"{least_to_most([100 * one.changed_pairs for one in others])} % of the pairs; at half of the utility they "
        f"cost {least_to_most([100 * one.excess for one in others])} % more if common friends are right.",
    )
    forms = [one for one in found.decided if one.trust == COMMON and one.exposure != BASELINE[1]]
    less = sum(one.changed < min(other.changed for other in others) for one in forms)
    yield (
        "§7.4",
        "f may be any function that is inversely related to trust.",
        f"{found.pairs:,} pairs",
        held(sum(one.changed_pairs < _ALIKE for one in forms), len(forms)),
        f"Other f change {least_to_most([100 * one.changed for one in forms])} % of the values, in "
        f"{least_to_most([100 * one.changed_pairs for one in forms])} % of the pairs, and at half of the utility cost "
        f"{least_to_most([100 * one.excess for one in forms])} % more; "
        + ("each less than any other kind of trust." if less == len(forms) else "as much as another kind of trust."),
    )
    of_kind = {one.trust: one for one in found.trusted}
    if ONE_CLASS in of_kind:
        one = of_kind[ONE_CLASS]
        means = {"friends": one.friends, "friends of friends": one.others, "strangers": one.strangers}
        there = {name: mean for name, mean in means.items() if not math.isnan(mean)}
        apart = [there["friends"] > mean for name, mean in there.items() if name != "friends" and "friends" in there]
        verdict = judged(all(apart)) if apart else undecided("nothing to compare")
        yield (
            "§7.4.1",
            "One-class classification tells trusted users from others by a list of trusted ones.",
            f"{found.pairs:,} pairs",
            verdict,
            f"{percent(one.positive)} of the pairs are trusted. The mean T is "
            f"{', '.join(f'{rounded(mean)} of {name}' for name, mean in there.items())}.",
        )


def of_the_study(traded: Sequence[TradedOff], access: AccessControl) -> Iterator[Judged]:
    """Whether more is shown to those with more common friends."""
    for of, some in (
        ("Modified-Aggregate", [(one.few, one.many) for one in traded]),
        ("access control", [(one.few, one.many) for one in access.traded]),
    ):
        there = [(few, many) for few, many in some if not (math.isnan(few) or math.isnan(many))]
        differences = [100 * (many - few) for few, many in there]
        yield (
            "§7.6",
            "The number of common friends is the first condition of sharing: the more, the more is shown.",
            of,
            held(sum(many >= few for few, many in there), len(there)),
            f"Over {len(there)} values of λ pairs with more common friends than the median show "
            f"{least_to_most(differences) if differences else 0} percentage points more of their levels than the "
            "others." + (" ξ grows as less is shown." if of == "Modified-Aggregate" else ""),
        )
