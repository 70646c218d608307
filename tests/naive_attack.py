"""The planned attack straight from its recurrences, in rational numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from hypothesis import strategies as st

from privrisk_spark.kernels.adversary.process import Attack

TOLERANCE = Fraction(1, 10**9)


def binomial(k: int, n: int, p: Fraction) -> Fraction:
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


class Twin:
    """Literal: one function for each symbol."""

    def __init__(self, attack: Attack) -> None:
        self.attack = attack
        self.prior, self.gamma = Fraction(attack.prior), Fraction(attack.gamma)
        self.gain, self.penalty = Fraction(attack.gain), Fraction(attack.penalty)
        self.access, self.link = Fraction(attack.cost_access), Fraction(attack.cost_link)
        self.exploit = Fraction(attack.cost_exploit)
        self.q = cache(self.q)
        self.d = cache(self.d)

    def s(self, g: int, r: int) -> Fraction:
        return 1 / (r + g * (1 - self.prior) / self.prior)

    def d(self, a: int) -> Fraction:
        return Fraction(1 / (1 + math.exp(-(self.attack.h0 + self.attack.h1 * a))))

    def fine(self, p: int) -> Fraction:
        most = self.attack.fines_paid
        return self.penalty if most is None or p < most else Fraction(0)

    def next(self, p: int) -> int:
        most = self.attack.fines_paid
        return p + 1 if most is None else min(p + 1, most)

    def q(self, g: int, r: int, p: int) -> Fraction:
        s, d = self.s(g, r), self.d(g - r)
        after = (1 - d) * self.value(g, r - 1, p) + d * self.value(g, r - 1, self.next(p))
        return -self.exploit + self.gamma * (s * self.gain - d * self.fine(p) + (1 - s) * after)

    def value(self, g: int, r: int, p: int) -> Fraction:
        return Fraction(0) if r == 0 else max(Fraction(0), self.q(g, r, p))

    def start(self, g: int) -> Fraction:
        return self.value(g, g, 0)

    def linked(self, g: int) -> Fraction:
        return Fraction(0) if g == 0 else max(Fraction(0), -self.link + self.gamma * self.start(g))

    def known(self, g: int) -> Fraction:
        return -self.access + self.gamma * self.linked(g)

    def unknown(self, n: int, p: Fraction) -> Fraction:
        return -self.access + self.gamma * sum(
            (binomial(k, n, p) * self.linked(k) for k in range(1, n + 1)), Fraction(0)
        )

    def clear(self, *payoffs: Fraction) -> bool:
        """Whether rounding cannot change on which side of the tolerance any number is."""
        return not any(TOLERANCE / 2 < one < TOLERANCE * 2 for one in payoffs)

    def decisions(self, g: int) -> list[Fraction]:
        return [self.q(g, r, p) for r in range(1, g + 1) for p in range(g - r + 1)]

    def exploitation(self, g: int) -> tuple[Fraction, Fraction, Fraction]:
        """P_reid after access, exploits planned, exploits made: forwards, with all masses at hand."""
        zero = Fraction(0)
        if g == 0 or self.linked(g) <= TOLERANCE:
            return zero, zero, zero
        mass, plan = {0: Fraction(1)}, {0: Fraction(1)}  # with and without successes
        probability = planned = made = zero
        for r in range(g, 0, -1):
            s, d = self.s(g, r), self.d(g - r)
            exploited = {p: m for p, m in mass.items() if self.q(g, r, p) > TOLERANCE}
            probability += s * sum(exploited.values(), zero)
            made += sum(exploited.values(), zero)
            plans = {p: m for p, m in plan.items() if self.q(g, r, p) > TOLERANCE}
            planned += sum(plans.values(), zero)
            mass, plan = {}, {}
            for source, target, share in ((exploited, mass, 1 - s), (plans, plan, Fraction(1))):
                for p, m in source.items():
                    target[p] = target.get(p, zero) + share * (1 - d) * m
                    after = self.next(p)
                    target[after] = target.get(after, zero) + share * d * m
        return probability, planned, made


def attacks() -> st.SearchStrategy[Attack]:
    """Attacks of small numbers."""
    return st.builds(
        Attack,
        prior=st.sampled_from([0.05, 0.3, 0.63, 1.0]),
        gain=st.integers(1, 300).map(float),
        penalty=st.integers(0, 300).map(float),
        fines_paid=st.sampled_from([None, 1, 2]),
        cost_access=st.sampled_from([0.0, 1.0, 20.0]),
        cost_link=st.sampled_from([0.0, 2.0]),
        cost_exploit=st.sampled_from([2.0, 5.0, 20.0]),
        h0=st.sampled_from([-3.0, -1.0, 0.0]),
        h1=st.sampled_from([0.0, 0.5, -0.5]),
        gamma=st.sampled_from([0.9, 1.0]),
    )
