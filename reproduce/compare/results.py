"""The risk-utility map: what is found of each protected table over what it has lost, and what nothing beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privrisk_spark.results.plots import Plot
from reproduce.compare.claims import Tried, claims
from reproduce.compare.learning import TRAINING
from reproduce.compare.plots import map_of_rows, of_attacks, risk_utility_map
from reproduce.result import Claim, Findings, Listing, Remark, plain
from reproduce.sizes import size


@dataclass(frozen=True)
class CompareSizes:
    """How much is run.

    Attributes
    ----------
    rows, attributes : int
        Of the generated table over hierarchies.
    records, columns : int
        Of the generated table of numbers.
    suppressed : int
        Rows that may be suppressed, in per cent, 0 to 100.
    """

    rows: int = size(2_000)
    attributes: int = size(5, 2, 10)
    records: int = size(1_080, 2)
    columns: int = size(13, 1, 50)
    suppressed: int = size(5, 0, 100)
    seed: int = size(2008, 0)

    @classmethod
    def quick(cls, suppressed: int = 5, seed: int = 2008) -> CompareSizes:
        """Return small generated tables: seconds, to see what the page looks like. A policy's table stays whole."""
        return cls(rows=200, attributes=3, records=120, columns=6, suppressed=suppressed, seed=seed)


@dataclass(frozen=True, eq=False)
class Compared:
    """Everything about one table.

    Attributes
    ----------
    measure : str
        Of the loss, in words.
    """

    data: str
    basis: str
    rows: int
    measure: str
    tried: tuple[Tried, ...]

    @property
    def front(self) -> tuple[Tried, ...]:
        """Tables that none beats in both, in the order of what they lose."""
        return pareto(self.tried)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What was claimed, and what was found."""
        return claims(self.data, self.tried)

    @property
    def plots(self) -> tuple[Plot, ...]:
        """Plots, in the order of the page."""
        points = [(one.family, one.name, one.lost, one.strongest[1].share) for one in self.tried]
        front = {one.name for one in self.front}
        shares = [(one.name, {method: of.share for method, of in one.found.items()}) for one in self.tried]
        of_rows = [
            (one.family, one.name, one.lost, one.strongest_of_rows[1].share)
            for one in self.tried
            if one.strongest_of_rows is not None
        ]
        return (
            risk_utility_map(self.data, self.measure, points, front),
            map_of_rows(self.data, self.measure, of_rows),
            of_attacks(self.data, [(name, one.lost, of) for (name, of), one in zip(shares, self.tried, strict=True)]),
        )


def pareto(tried: Sequence[Tried]) -> tuple[Tried, ...]:
    """Return the tables than which no other loses less and gives fewer people away, ascending by what they lose.

    A table that is beaten in one and equalled in the other is none of them; of tables equal in both all are.
    """
    ordered = sorted(tried, key=lambda one: (one.lost, one.strongest[1].share))
    front: list[Tried] = []
    for one in ordered:
        share = one.strongest[1].share
        if not front:
            front.append(one)
            continue
        last = front[-1]
        equal = one.lost == last.lost and share == last.strongest[1].share
        if share < last.strongest[1].share or equal:
            front.append(one)
    return tuple(front)


def findings(found: Sequence[Compared], sizes: CompareSizes, notes: Sequence[str] = ()) -> Findings:
    """Put together what was found on every table.

    Parameters
    ----------
    found : sequence of Compared
        At least one.
    notes : sequence of str, default ()
    """
    return Findings(
        statement="Ways to protect a table against ways to find its people: measured re-identification over the loss "
        "of information (the risk-utility map of the masking literature).",
        tables=tuple(Remark(one.basis, one.data) for one in found),
        remarks=(
            Remark(
                "The intruder knows all columns of everybody, and takes the nearest or likeliest row; among ties he "
                "draws. Of several attacks the one that finds the most is shown."
            ),
            Remark(
                f"Weights are learned from {TRAINING} true pairs, or half of all, and tried on all other people. Who "
                "knows the method has all originals as well: he masks them again where chance has no part, and "
                "intersects ranks after rank swapping."
            ),
            Remark(
                "Of rows the people nearest to them are sought: the risk that a disclosure by least risk bounds. "
                "Nothing is learned there."
            ),
            Remark(
                "Differentially private releases are simulated from the seed with the kernels of a release (delta "
                "1e-9, local recoding, half of the rows that epsilon lets be sampled); one that publishes no row is "
                "left out. Whose row is not published is not found, and has lost what a suppressed row has. Their "
                "figures are exact, too, which only a policy of the kind risk allows."
            ),
            Remark(
                f"Up to {sizes.suppressed} % of the rows of a k-anonymous table may be suppressed. Disclosures by risk "
                "are decided against the table itself."
            ),
            Remark(
                "What a table over hierarchies has lost is the mean difference of a true value from a draw of those "
                "its cell covers, 0 to 1, which is defined for generalized and for changed cells alike; of numbers it "
                "is IL1s."
            ),
            Remark("Everything is a function of data, sizes and seed."),
        ),
        plots=tuple(
            tuple(plot for one in found for plot in one.plots if plot.key == key)
            for key in ("compare-map", "compare-map-rows", "compare-attacks")
        ),
        figures={"tables": [_figures(one) for one in found]},
        claims=tuple(claim for one in found for claim in one.claims),
        notes=tuple(notes),
        listings=tuple(_listing(one) for one in found),
    )


def _figures(one: Compared) -> dict[str, object]:
    front = {tried.name for tried in one.front}
    return {
        "data": one.data,
        "rows": one.rows,
        "loss": one.measure,
        "protected": [
            {
                "family": tried.family,
                "name": tried.name,
                "loss": tried.lost,
                "strongest": tried.strongest[0],
                "front": tried.name in front,
                "found": {method: plain(of) for method, of in tried.found.items()},
                "found_from_rows": {method: plain(of) for method, of in tried.of_rows.items()},
            }
            for tried in one.tried
        ],
    }


def _listing(one: Compared) -> Listing:
    front = {tried.name for tried in one.front}
    return Listing(
        f"compared-{one.data}".replace(" ", "-"),
        f"Every protected table: {one.data}",
        f"protected tables of {one.data}",
        (
            "Protected by",
            "Parameter",
            "Lost",
            "Found, %",
            "at least",
            "at most",
            "Strongest attack",
            "From a row, %",
            "Beaten by none",
        ),
        tuple(
            (
                tried.family,
                tried.name,
                tried.lost,
                100 * tried.strongest[1].share,
                100 * tried.strongest[1].low,
                100 * tried.strongest[1].high,
                tried.strongest[0],
                None if tried.strongest_of_rows is None else 100 * tried.strongest_of_rows[1].share,
                "yes" if tried.name in front else "",
            )
            for tried in sorted(one.tried, key=lambda tried: tried.lost)
        ),
        numbers=(2, 3, 4, 5, 7),
        strong=(8,),
        long=True,
    )
