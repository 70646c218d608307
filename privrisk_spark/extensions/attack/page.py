"""The page of an attack, and its plots: predictions next to findings."""

from __future__ import annotations

from collections.abc import Mapping

from privrisk_spark.errors import listing
from privrisk_spark.extensions.attack.planning.attacks import beyond, by_splink, in_words
from privrisk_spark.extensions.attack.policy import attack_of
from privrisk_spark.extensions.attack.results.attacks import AttackResult, Calibration
from privrisk_spark.extensions.attack.results.inferences import MembershipFound
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.explanation import leaves_and_levels
from privrisk_spark.reporting.page_templates import draw_plot, fill
from privrisk_spark.reporting.report import MEANINGS
from privrisk_spark.results.plots import Panel, Plot, Series


def calibration_plot(calibration: Calibration) -> Plot:
    """Share found over the mean prediction, by tenths of the records.

    Parameters
    ----------
    calibration : Calibration
        At least one group.

    Returns
    -------
    Plot
        With the 95 % limits of each share, and the line on which what is found is what was predicted. The axes are
        logarithmic if what was predicted spans more than a factor of 30.
    """
    groups = calibration.groups
    along = [0.0 if group.predicted is None else group.predicted for group in groups]
    ends = (("found", "share"), ("at least (95 %)", "low"), ("at most (95 %)", "high"))
    series = tuple(
        Series.of(name, along, [getattr(group.found, of) for group in groups], points=True) for name, of in ends
    )
    # Shares of 0 are not on a logarithmic axis; the table has them.
    wide = min(along) > 0 and max(along) > 30 * min(along)
    found = sum(group.found.correct for group in groups) / max(sum(group.found.tried for group in groups), 1)
    return Plot(
        key=calibration.prediction,
        title=f"Found over predicted: {calibration.prediction}",
        figure="",
        found=f"{100 * found:.3g} % were found.",
        panels=(
            Panel(
                "", "mean predicted probability", "share found", series, log_x=wide, log_y=wide, diagonal="as predicted"
            ),
        ),
    )


def render_attack(result: AttackResult) -> str:
    """Return an attack as a page, for the trusted zone."""
    attacks = [
        (
            attack,
            [(one, draw_plot(calibration_plot(one), prefix=attack.search.key)) for one in attack.calibrations],
        )
        for attack in result.attacks
    ]
    found = result.membership
    members = None if found is None else draw_plot(membership_plot(found), prefix="membership")
    return fill(
        "extensions/attack/templates/attack.html.j2",
        result=result,
        attacks=attacks,
        membership=members,
        meaning=MEANINGS[result.status],
    )


def membership_plot(found: MembershipFound) -> Plot:
    """Share of the members who are recognized, over that of the others who are taken for members."""
    along, right = zip(*found.points, strict=True)
    series = Series.of("members said to be members", list(along), list(right), points=len(along) < 20)
    return Plot(
        key="membership",
        title="Who is in the protected table",
        figure="",
        found=f"The advantage is {found.advantage:.3g}.",
        panels=(Panel("", "share of others said to be members", "share of members", (series,), diagonal="guessing"),),
    )


def explain_attack(policy: Policy, known: Mapping[str, Hierarchy], *, release: str) -> str:
    """Return what an attack will try, as text.

    Parameters
    ----------
    known : mapping of quasi-identifier to Hierarchy
        Those the intruder knows.
    release : str
        Title of the protected table.
    """
    asked = attack_of(policy)
    lines = [f"attacked: {release}", f"tried, where they can be: {', '.join(asked.tried)}"]
    for name, how in in_words(policy).items():
        of = f" ({leaves_and_levels(name, known[name]).partition(': ')[2]})" if name in known else ""
        lines.append(f"known column {name}: compared {how}{of}")
    lines.append(f"records: {100 * asked.intruder.share:g} %")
    lines.append(
        f"at most {asked.exact_pairs:,.0f} comparisons of distinct records with distinct rows; {beyond(asked)}"
    )
    if "probabilistic" in asked.tried:
        by = "Splink, on DuckDB" if by_splink(asked) else "our own EM algorithm"
        lines.append(f"match weights estimated by {by}: {listing(['m', *asked.probabilistic.estimated])}")
    return "\n".join(lines)
