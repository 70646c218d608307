"""What the experiments on sharing find together (Fouad 2012, chapter 7)."""

from __future__ import annotations

from dataclasses import dataclass

from privrisk_spark.reporting.numbers import short_number
from reproduce.generated.network import CIRCLE, DEGREE
from reproduce.result import Findings, Listing, Remark, plain
from reproduce.sharing.aggregate import (
    EPSILON,
    FEW,
    FEWER,
    KAPPA,
    SMALL,
    TRADE_OFF,
)
from reproduce.sharing.claims import Shared, claims
from reproduce.sharing.diffusing import ERROR, RADIUS
from reproduce.sharing.limits import INSTANCES
from reproduce.sharing.plots import plots
from reproduce.sharing.trusting import BASELINE, EXPOSURES, ONE_CLASS, Sensitivity
from reproduce.sharing.trusting import TRADE_OFF as DECIDED_AT
from reproduce.sizes import size

STEP = 10
"""Between the numbers of attributes that are tried."""

MEASURED = ("seconds",)
"""Figures that are times; everything else is a function of sizes and seed."""


@dataclass(frozen=True)
class SharingSizes:
    """How much is run.

    Attributes
    ----------
    users : int
        Of the generated network.
    pairs : int
        Whom to decide for, about.
    attributes : int
        Most attributes of a profile, at least 2: all multiples of 10 up to there are tried, or this number alone.
    """

    users: int = size(50_000, 100, 10_000_000)
    pairs: int = size(1_000, 10)
    attributes: int = size(70, 2, 90)
    seed: int = size(2012, 0)

    @classmethod
    def quick(cls, seed: int = 2012) -> SharingSizes:
        """Return a small network: seconds, to see what the page looks like."""
        return cls(users=1_000, pairs=60, attributes=20, seed=seed)

    @property
    def ks(self) -> tuple[int, ...]:
        """Numbers of attributes."""
        return tuple(range(STEP, self.attributes + 1, STEP)) or (self.attributes,)


def findings(found: Shared, sizes: SharingSizes, *, decided_users: int, linked_users: int, decided_k: int) -> Findings:
    """Put together what was found.

    Parameters
    ----------
    decided_users, linked_users, decided_k : int
        Of the networks on which trust and access control, and connections, were tried, and their attributes.
    """
    common = sum(one.common for one in found.sizes) / len(found.sizes)
    smallest = min(one.users for one in found.diffusing.computed)
    notes = []
    if ONE_CLASS not in {one.trust for one in found.trust.trusted}:
        notes.append("Trust by likeness is left out: scikit-learn is not installed (the extra 'ml').")
    if found.access.refused:
        notes.append(
            f"HiGHS passed the limit by rounding in {found.access.refused} small instances; they are left out."
        )
    return Findings(
        statement="Fouad (2012), chapter 7, run again on a generated network: what Modified-Aggregate finds beside the "
        "exact algorithm, access control, trust, and diffusion.",
        tables=(
            Remark(
                f"{sizes.users:,} users with a heavy-tailed number of friends, {DEGREE} drawn for each, half of them "
                f"in a circle of {CIRCLE}; profiles of 1 to k attributes, categorical and numeric, heights 1 to 10; "
                f"{found.sizes[0].pairs:,} pairs drawn by walks of two friendships, with {short_number(common)} common "
                "friends on average.",
                "Modified-Aggregate",
            ),
            Remark(
                f"{found.trust.pairs:,} pairs of a network of {decided_users:,} users and {decided_k} attributes: "
                f"{found.trust.friends:,} of friends, {found.trust.others:,} of friends of friends, "
                f"{found.trust.strangers:,} of strangers.",
                "trust and access control",
            ),
            Remark(f"All friends of a network of {linked_users:,} users.", "connections"),
            Remark(
                f"Networks of {smallest} to {found.diffusing.users} users, the largest with {found.diffusing.edges:,} "
                "friendships.",
                "diffusion",
            ),
        ),
        remarks=(
            Remark(
                "A shown level costs its owner 0.1, 0.2, … or 1, drawn for each attribute, and is worth 1. "
                f"λ = {TRADE_OFF:g} and κ = {KAPPA:g} as in the thesis (§7.7); ε = {EPSILON:g}. No consistent friend "
                "is an infinite risk, as the formula says: 1/risk is 0, and only the utility counts."
            ),
            Remark(
                "Step 5 of Algorithm 8 maximizes over Φ(x) = τ. It is read in three ways: by the letter; over the "
                "layer τ ≤ Φ(x) < (1 + ε)τ; and with the constraint left out. The first two enumerate, and are run on "
                f"{FEWER} pairs at most of up to {SMALL:,} level vectors; the third is run on {FEW} at most. Each is "
                "held against the exact answer for the same pairs."
            ),
            Remark(
                "The exact answer is the product's: bounds, boxes and minimum cuts for consistency in all attributes, "
                "branch and bound for any."
            ),
            Remark(
                f"Under each kind of trust the same values are decided, at λ = {DECIDED_AT:g}, and once more so that "
                f"half of all utility is reached at the least loss. They are held against '{BASELINE[0]}' with the "
                f"{BASELINE[1]} f. Stated trust is drawn by the first row of the thesis' Table 7.4."
            ),
            Remark(
                f"{INSTANCES} small instances of both limited problems are solved by HiGHS as well. Series of "
                f"diffusion may miss {ERROR:g}; the ego network has a radius of {RADIUS}."
            ),
            Remark(
                "Times are CPU times of one process on one machine, compilation left out, and differ from run to run; "
                "everything else is a function of sizes and seed."
            ),
        ),
        plots=tuple((plot,) for plot in plots(found)),
        figures={
            "measured": list(MEASURED),
            "pairs": [plain(one) for one in found.sizes],
            "modified_aggregate": [plain(one) for one in found.runs],
            "trade_offs": {"attributes": found.traded_k, "found": [plain(one) for one in found.traded]},
            "ended_early": {"attributes": found.traded_k, "found": [plain(one) for one in found.stopped]},
            "drawn_evenly": plain(found.evenly),
            "supermodular": {
                "counterexamples": {name: plain(one) if one else None for name, one in found.counterexamples.items()},
                "squares": [plain(one) for one in found.squares],
            },
            "access_control": plain(found.access),
            "trust": plain(found.trust),
            "diffusion": plain(found.diffusing),
        },
        claims=claims(found),
        notes=tuple(notes),
        listings=(_decisions(found.trust), _runs(found)),
    )


def _decisions(found: Sensitivity) -> Listing:
    return Listing(
        "decisions",
        "Decisions by kind of trust and f(T)",
        "decisions by kind of trust",
        (
            "Trust", "f(T)", "Loss, %", "Utility, %", "Values changed, %", "Pairs changed, %",
            "Changed at half the utility, %", "Costs more there, %",
        ),
        tuple(
            (one.trust, one.exposure, *(100 * value for value in (
                one.loss, one.utility, one.changed, one.changed_pairs, one.moved, one.excess,
            )))
            for one in found.decided
        ),
        numbers=(2, 3, 4, 5, 6, 7),
        strong=(),
        long=len(EXPOSURES) > 1,
    )  # fmt: skip


def _runs(found: Shared) -> Listing:
    return Listing(
        "runs",
        "Every run of Modified-Aggregate",
        "runs of Modified-Aggregate",
        (
            "Consistent in", "Method", "k", "Pairs", "ms a pair", "f over the exact one's", "least", "Optimal",
            "Proved", "Everything shown", "Nothing shown", "Infinite risk",
        ),
        tuple(
            (
                one.consistency, one.method, one.k, one.pairs, 1000 * one.seconds, one.value, one.least, one.optimal,
                one.proved, one.whole, one.nothing, one.unlimited,
            )
            for one in found.runs
        ),
        numbers=tuple(range(2, 12)),
        long=True,
    )  # fmt: skip
