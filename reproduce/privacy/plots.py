"""Plots of the experiments on privacy: what Fouad (2012; F12) claims, whether it holds in this run, and lines."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.reporting.numbers import percent, rounded
from privrisk_spark.results.plots import Panel, Plot, Series, lines
from reproduce.privacy.sampling import ELL, LEVELS, WAYS, Compared, Unsampled, WorstCase
from reproduce.result import LITTLE, MUCH, held_in_each, judged, undecided
from reproduce.texts import least_to_most


def plots(data: str, whole: Unsampled, epsilon: Compared, sampling: Compared, sizes: Compared) -> tuple[Plot, ...]:
    """All plots of one table, in the order of the page."""
    found = [unsampled_plot(whole), sampling_plot(sampling, whole), epsilon_plot(epsilon), sizes_plot(sizes)]
    return tuple(replace(plot, data=data) for plot in found)


def unsampled_plot(whole: Unsampled) -> Plot:
    """The draw over all elements and over frequent ones, against the optimum (F12 Fig. 6.1(a))."""
    parts = []
    for i, name in enumerate(("λ = 1", "the λ that weighs risk and utility alike")):
        gained = np.abs(whole.whole[i] - whole.uniform[i]).max()
        parts.append(
            f"With {name} the draw over the whole lattice has {_shares(whole.whole[i])} of the optimal objective; a "
            f"uniform draw, which ignores the objective, has {percent(whole.uniform[i, 0])}, so that at most "
            f"{percent(gained)} of the optimum is owed to it. The draw over t-frequent elements has "
            f"{_shares(whole.frequent[i])}."
        )
    least, most = rounded(whole.preference.min()), rounded(whole.preference.max())
    met = whole.condition >= 1
    large = whole.condition[~np.isnan(whole.condition)]
    of_theorem = (
        held_in_each(whole.reached[met] >= 1 - 3 / ELL)
        if met.any()
        else undecided("no optimum is as large as the theorem asks for")
    )
    found = " ".join(parts) + (
        f" No generalization can be more than {least} times likelier than another at ε = {rounded(whole.at[0])}, "
        f"{most} times at ε = {rounded(whole.at[-1])}."
    )
    if len(large):
        found += f" The optimum is at most {_number_of(large.max())} times what Theorem 6.4.1 asks for with ℓ = {ELL}."
    return Plot(
        key="unsampled",
        title="Draw against optimum",
        figure="Fouad 2012, Fig. 6.1(a)",
        found=found,
        claims=(
            (
                "Differential privacy occurs at the cost of sacrificing a little data utility, over the whole lattice.",
                held_in_each(whole.whole >= 1 - LITTLE),
            ),
            (
                "Theorem 6.4.1 (ii): where the optimum is large enough, the expected utility is at least "
                "(1 − β)(1 − 3/ℓ) of it.",
                of_theorem,
            ),
        ),
        panels=tuple(
            Panel(
                title,
                "ε",
                "mean objective over optimum",
                (
                    Series.of("optimum", whole.at, (1.0,) * len(whole.at)),
                    Series.of("draw over the whole lattice", whole.at, whole.whole[i]),
                    Series.of("draw over t-frequent elements, least t", whole.at, whole.frequent[i]),
                    Series.of("uniform draw over the whole lattice", whole.at, whole.uniform[i]),
                ),
            )
            for i, title in enumerate(("λ = 1", f"λ = {_number_of(whole.lams[1])}"))
        ),
    )


def sampling_plot(sampling: Compared, whole: Unsampled) -> Plot:
    """Utility over the share of rows sampled (F12 Fig. 6.1(b))."""
    known = sampling.precision[:, 0][~np.isnan(sampling.precision[:, 0])]
    least, random = sampling.precision[:, 1], sampling.precision[:, 2]
    inside = ~np.isnan(least)
    if inside.any():
        first, last = int(np.flatnonzero(inside)[0]), int(np.flatnonzero(inside)[-1])
        way = "rises" if least[last] > least[first] else "falls"
        found = (
            f"Algorithm 6 with the least t of its proof {way} from precision {rounded(least[first])} with "
            f"{percent(sampling.at[first])} of the rows sampled to {rounded(least[last])} with "
            f"{percent(sampling.at[last])}, as t goes from {rounded(sampling.t[first])} to "
            f"{rounded(sampling.t[last])}; with its random t it has {_span(random)}."
        )
        outside = sampling.at[~inside]
        if len(outside):
            found += f" No t is admitted with {', '.join(percent(x) for x in outside.tolist())} sampled."
    else:
        found = "No t below |D| satisfies the proof of Algorithm 6 at any of these rates."
    found += (
        f" The release with a proof has precision {_span(known)} at every rate it allows; it drops "
        f"{_shares(sampling.suppressed)} of its sample for want of a crowd (k from "
        f"{rounded(sampling.crowd[sampling.crowd > 0].min())} to {rounded(sampling.crowd.max())}). The draw over "
        f"t-frequent elements, λ = 1, has {_shares(whole.sampled)} of the optimal objective."
    )
    drawn = whole.sampled[~np.isnan(whole.sampled)]
    return Plot(
        key="sampling",
        title="Share of rows sampled",
        figure="Fouad 2012, Fig. 6.1(b)",
        found=found,
        claims=(
            (
                "Differential privacy sacrifices a little utility whatever the size of the sample, over t-frequent "
                "elements.",
                held_in_each(drawn >= 1 - LITTLE),
            ),
        ),
        panels=_panels(sampling, "share sampled, 1 − β"),
    )


def epsilon_plot(epsilon: Compared) -> Plot:
    """Utility over epsilon."""
    return Plot(
        key="epsilon",
        title="Privacy budget",
        figure="Fouad 2012, Theorem 6.4.1",
        found=_against(epsilon, "ε"),
        panels=_panels(epsilon, "ε"),
    )


def sizes_plot(sizes: Compared) -> Plot:
    """Utility over the size of the table."""
    return Plot(
        key="sizes",
        title="Size of the table",
        figure="Fouad 2012, section 6.4",
        found=_against(sizes, "rows", unit=" rows"),
        panels=_panels(sizes, "rows of the table", log_x=True),
    )


def worst_case_plot(worst: WorstCase) -> Plot:
    """True delta of Algorithm 6 against the claimed one."""
    ratio = worst.chains / worst.claimed
    close = worst.chains / worst.limit
    found = (
        f"Two chains of {LEVELS} elements whose counts differ by one make δ at least {_scientific(worst.chains[-1])} "
        f"with {rounded(worst.rows[-1])} rows, {rounded(worst.chains[-1] / worst.single[-1])} times 1/|D| and "
        f"{_scientific(ratio[-1])} times the hidden term (at {rounded(worst.rows[0])} rows {rounded(ratio[0])} times). "
        f"It is {percent(close[-1])} of h/(|D|(1 − θ₀)), so the hidden term is of order hᵏ/|D|. With two leaves and "
        f"{rounded(worst.few[-1])} rows δ is exactly {rounded(worst.fixed[-1])} for fixed t and "
        f"{rounded(worst.random[-1])} for random t, where the hidden term is {rounded(worst.claimed_few[-1])}."
    )
    return Plot(
        key="worst-case",
        title="True δ of Algorithm 6",
        figure="Fouad 2012, Theorem 6.4.1",
        found=found,
        claims=(
            (
                "Algorithm 6 satisfies (ε, δ + o(1))-differential privacy, where o(1) is of the order of hᵏ/|D|².",
                judged(ratio[-1] <= MUCH * ratio[0]),
            ),
        ),
        panels=(
            Panel(
                f"twin chains, h = {LEVELS}, ε = 1, β = 0.5, θ₀ = 0.1",
                "rows of the table",
                "δ",
                (
                    Series.of("true δ, lower bound", worst.rows, worst.chains),
                    Series.of("claimed hidden term hᵏ/|D|²", worst.rows, worst.claimed),
                    Series.of("1/|D|: one row published as it is", worst.rows, worst.single),
                ),
                log_x=True,
                log_y=True,
            ),
            Panel(
                "two leaves, ε = 1, β = 0.5, θ₀ = 0.3",
                "rows of the table",
                "δ",
                (
                    Series.of("fixed t, exact", worst.few, worst.fixed),
                    Series.of("random t, exact", worst.few, worst.random),
                    Series.of("claimed hidden term hᵏ/|D|²", worst.few, worst.claimed_few),
                ),
                log_y=True,
            ),
        ),
    )


def _panels(one: Compared, label: str, *, log_x: bool = False) -> tuple[Panel, ...]:
    parts = (
        ("rows published", "share of the rows", one.share),
        ("precision", "of published rows", one.precision),
        ("kept in all", "precision per row of the table", one.retained),
    )
    return tuple(
        Panel(title, label, y_label, lines(WAYS, one.at, values), log_x=log_x) for title, y_label, values in parts
    )


def _against(one: Compared, name: str, *, unit: str = "") -> str:
    """Compare the ways at the first and the last point."""

    def told(i: int) -> str:
        at = f"{rounded(one.at[i])}{unit}" if unit else f"{name} = {rounded(one.at[i])}"
        if not one.share[i, 0] > 0:
            said = f"At {at} the release with a proof publishes nothing"
        else:
            said = (
                f"At {at} the release with a proof publishes {percent(one.share[i, 0])} of the rows with precision "
                f"{rounded(one.precision[i, 0])}"
            )
        if np.isnan(one.precision[i, 1]):
            return f"{said}; Algorithm 6 has no instance."
        return (
            f"{said}; Algorithm 6, with no guarantee, {percent(one.share[i, 1])} with {rounded(one.precision[i, 1])} "
            f"at the least t and {rounded(one.precision[i, 2])} at a random one."
        )

    comparable = ~np.isnan(one.retained[:, 2])
    best, printed = (int((one.retained[:, 0] > one.retained[:, way])[comparable].sum()) for way in (1, 2))
    return (
        f"{told(0)} {told(len(one.at) - 1)} Per row of the table the release keeps more precision than Algorithm 6 "
        f"with its random t at {printed} of the {int(comparable.sum())} points where that has an instance, and more "
        f"than with the least t at {best}."
    )


def _shares(values: FloatArray) -> str:
    known = values[~np.isnan(values)]
    if not len(known):
        return "no instance"
    low, high = percent(known.min()), percent(known.max())
    return low if low == high else f"{low} to {high}"


def _span(values: FloatArray) -> str:
    known = values[~np.isnan(values)].tolist()
    return least_to_most(known) if known else "no value"


def _scientific(value: float) -> str:
    exponent = math.floor(math.log10(value))
    digits = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{value / 10**exponent:.1f}·10{digits}"


def _number_of(value: float) -> str:
    return rounded(value) if value >= 0.001 else _scientific(value)
