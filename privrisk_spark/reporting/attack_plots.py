"""Plots of attacks: what was predicted beside what was found."""

from __future__ import annotations

from privrisk_spark.results.attacks import Calibration
from privrisk_spark.results.inferences import MembershipFound
from privrisk_spark.results.plots import Panel, Plot, Series

__all__ = ["calibration_plot", "membership_plot"]


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


def membership_plot(found: MembershipFound) -> Plot:
    """Share of the members who are recognized, over that of the others who are taken for members.

    Parameters
    ----------
    found : MembershipFound
    """
    along, right = zip(*found.points, strict=True)
    series = Series.of("members said to be members", list(along), list(right), points=len(along) < 20)
    return Plot(
        key="membership",
        title="Who is in the protected table",
        figure="",
        found=f"The advantage is {found.advantage:.3g}.",
        panels=(Panel("", "share of others said to be members", "share of members", (series,), diagonal="guessing"),),
    )
