"""The worked examples as one result."""

from __future__ import annotations

from dataclasses import dataclass

from reproduce.examples.worked import Example
from reproduce.result import Claim, Findings, Remark, judged, plain
from reproduce.sizes import size


@dataclass(frozen=True)
class ExampleSizes:
    """There is nothing to choose.

    Attributes
    ----------
    seed : int
        Nothing is drawn.
    """

    seed: int = size(0, 0)


def claim(one: Example) -> Claim:
    """Return an example as a claim and what was found."""
    return Claim(
        one.source,
        f"{one.what}: {one.printed:.{one.digits}f}",
        "worked examples",
        judged(one.agrees),
        f"Found {one.found:.6g}." + (f" {one.note}" if one.note else ""),
    )


def findings(found: tuple[Example, ...]) -> Findings:
    """Put together what was found."""
    agree = sum(one.agrees for one in found)
    return Findings(
        statement="Worked examples of the sources, computed again: the number that is printed beside the number found.",
        tables=(Remark(f"{len(found)} numbers; {agree} come out as printed.", "worked examples"),),
        remarks=(Remark("A number agrees if it is the printed one when written with as many decimals."),),
        plots=(),
        figures={"experiments": [plain(one) for one in found]},
        claims=tuple(claim(one) for one in found),
    )
