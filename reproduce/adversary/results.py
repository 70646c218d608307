"""The case study of a planned attack on each table, its findings and its figures (Xia et al. 2015; X15)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.results.plots import Plot
from reproduce.adversary.case_study import (
    BASELINE,
    CONSTANT,
    GROWING,
    ONCE,
    SETTINGS,
    ByGroup,
    Changed,
    Deterred,
    Groups,
    OfTable,
    Runtime,
    by_group,
    changed,
    deterred,
    of_table,
    parts,
    runtime,
)
from reproduce.adversary.plots import partial, plots, plots_of_none
from reproduce.generated.registry import ROWS, Persons, Registry
from reproduce.result import Claim, Findings, Remark, held, held_in_each, judged, plain, undecided
from reproduce.sizes import size

MEASURED = ("seconds",)


@dataclass(frozen=True)
class AdversarySizes:
    """How much is run.

    Attributes
    ----------
    rows : int
        Of the registry.
    records : int
        Of the generated table.
    """

    rows: int = size(ROWS, 1, 100_000_000)
    records: int = size(32_561)
    seed: int = size(2015, 0)


@dataclass(frozen=True)
class Figure:
    """A published figure beside the one found.

    Attributes
    ----------
    data : str
        Name of the table; empty for none.
    """

    what: str
    published: float
    found: float
    data: str = ""

    @property
    def claim(self) -> Claim:
        """Whether the found one is the published one, to the two digits that are published of shares."""
        found = round(self.found, 2) if self.published < 1 else self.found
        verdict = judged(found == self.published) if self.found == self.found else undecided("there is none")
        what = f"{self.what}: {self.published:g}"
        return Claim("Xia et al. (2015)", what, self.data, verdict, f"Found: {self.found:.6g}.")


@dataclass(frozen=True, eq=False)
class TableResult:
    """Everything about one table."""

    data: str
    basis: str
    table: OfTable
    changed: Changed
    runtime: Runtime


def run_on(name: str, persons: Persons, groups: Groups, sizes: AdversarySizes) -> TableResult:
    """Make every experiment on one table.

    Parameters
    ----------
    persons : Persons
        The records before postal codes were put to them.
    groups : tuple of three ndarrays of int64, shape (m,)
        Registered people and all people in each cell that holds records, and its records.
    """
    registry = Registry(sizes.rows, sizes.seed)
    rows, people = registry.rows, registry.people
    return TableResult(
        data=name,
        basis=basis(persons, groups),
        table=of_table(groups, rows=rows, people=people),
        changed=changed(persons, groups, rows=rows, people=people),
        runtime=runtime(groups, people=people, seed=sizes.seed),
    )


def run_without_table() -> tuple[ByGroup, Deterred]:
    """Make the experiments that need no table."""
    return by_group(), deterred()


def basis(persons: Persons, groups: Groups) -> str:
    """What a table is, in words."""
    return (
        f"{persons.total:,} records with age, race and sex, {len(persons.records):,} of them distinct; with a postal "
        f"code put to each, in {len(groups[0]):,} cells."
    )


def claims(groups: ByGroup, experiments: Sequence[TableResult]) -> Iterator[Claim]:
    """Judge findings 1 to 5 of X15 by the figures of a run."""

    def claim(number: int, finding: str, verdict: str, evidence: str) -> Claim:
        return Claim(f"Xia et al. (2015), finding {number}", finding, "", verdict, evidence)

    exceeding = int((groups.risk[-1] > groups.risk[:-1] + 1e-12).any(axis=0).sum())
    records = sum(one.table.exceeding for one in experiments)
    yield claim(
        1,
        "The baseline risk never exceeds that of the planned attack.",
        judged(exceeding + records == 0),
        f"It does at {exceeding} of {len(groups.sizes)} group sizes, and for {records:,} records.",
    )
    constant, growing = (list(SETTINGS).index(name) for name in (CONSTANT, GROWING))
    split = parts(groups.exploited[constant], groups.sizes)
    whole = int((groups.exploited[constant] > 0).sum())
    yield claim(
        2,
        "With constant detection and a fine for each, all candidates are exploited or none.",
        held(whole - split, whole),
        f"{whole} group sizes are attacked, {split} of them in part.",
    )
    grown = parts(groups.exploited[growing], groups.sizes)
    few = int((groups.subsets > 0).sum())
    limits = ", ".join(map(str, groups.few_fines.tolist()))
    yield claim(
        3,
        "With growing detection, or a limit of the fines, a part of the candidates is exploited.",
        held_in_each([grown > 0, few > 0]),
        f"With growing detection at {grown} group sizes. With constant detection and at most {limits} fines, under "
        f"{few} of the {len(groups.few_fines)} limits; otherwise whoever starts means to exploit all.",
    )
    for number, word, counts in (
        (4, "lower", [one.table.lower for one in experiments]),
        (5, "higher", [one.table.higher for one in experiments]),
    ):
        told = ", ".join(
            f"{count:,} of {one.table.records:,} ({one.data})" for count, one in zip(counts, experiments, strict=True)
        )
        yield claim(
            number,
            f"Where the adversary does not know the group size, the risk can be {word}.",
            held_in_each([count > 0 for count in counts]),
            f"{word.capitalize()} for these records: {told}.",
        )


def figures(groups: ByGroup, deterrents: Deterred, experiments: Sequence[TableResult]) -> Iterator[Figure]:
    """Figures that X15 states in its text, and those of this run."""
    once = list(SETTINGS).index(ONCE)
    first, last = partial(groups)
    yield Figure(f"least group size not worth access, {ONCE}", 48, int(groups.known[once]))
    yield Figure(f"the same once access is paid, {ONCE}", 51, int(groups.sunk[once]))
    yield Figure(f"k, least group size exploited in part, {GROWING}", 14, first)
    yield Figure(f"k', least group size not attacked, {GROWING}", 29, last)
    for penalty, published, at in zip(("$10,000", "$50,000"), (9, 2), deterrents.told[once].tolist(), strict=True):
        yield Figure(f"least group size not attacked at a penalty of {penalty}, §7.3", published, at)
    for one in experiments:
        table, other = one.table, one.table.lower + one.table.higher
        yield Figure("share at the same risk, known or not", 0.94, 1 - other / table.records, one.data)
        yield Figure("of the others, share at less risk if not known", 0.58, _share(table.lower, other), one.data)
        yield Figure("of the others, share at more risk", 0.42, _share(table.higher, other), one.data)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float(np.nan)


def findings(
    found: Sequence[TableResult],
    groups: ByGroup,
    deterrents: Deterred,
    sizes: AdversarySizes,
    notes: Sequence[str] = (),
) -> Findings:
    """Put together what was found on every table, and what needs none.

    Parameters
    ----------
    found : sequence of TableResult
        At least one.
    sizes : AdversarySizes
        Those it was found with.
    notes : sequence of str, default ()
        What a reader must know besides.
    """
    beside = [one.claim for one in figures(groups, deterrents, found)]
    return Findings(
        statement="The case study of Xia et al., Process-driven data privacy (CIKM 2015): an adversary with a voter "
        "registry plans how many of the people who match a record he exploits, and stops when it no longer pays.",
        tables=tuple(Remark(one.basis, one.data) for one in found),
        remarks=tuple(_remarks(Registry(sizes.rows, sizes.seed))),
        plots=tuple(_plots(found, groups, deterrents)),
        figures={
            "measured": list(MEASURED),
            "settings": [*SETTINGS, BASELINE],
            "groups": plain(groups),
            "deterred": {
                name: {"values": plain(deterrents.values[name]), "thresholds": plain(thresholds)}
                for name, thresholds in deterrents.thresholds.items()
            },
            "experiments": [plain(one) for one in found],
        },
        claims=(*claims(groups, found), *beside),
        notes=tuple(notes),
    )


def _plots(found: Sequence[TableResult], groups: ByGroup, deterrents: Deterred) -> Iterator[tuple[Plot, ...]]:
    """Plots of the same kind together, in the order of X15's figures."""
    of_tables = list(zip(*(plots(one.data, one.table, one.changed, one.runtime, groups) for one in found), strict=True))
    payoff, exploits, *rest = ((plot,) for plot in plots_of_none(groups, deterrents))
    yield from (*of_tables[:3], payoff, exploits, of_tables[3], *rest)


def _remarks(registry: Registry) -> Iterator[Remark]:
    """How the case study is computed here."""
    yield Remark(
        f"{registry.rows:,} rows, a uniform sample of {registry.people:,} people drawn from public laws of place, "
        f"race, age and sex over {short_number(registry.law.codes)} postal codes. Those laws were shaped so that 64 % "
        "of the generated records have more than 55 candidates, as the paper reports of Adult; every record's postal "
        "code is drawn from them, given its race, and an age top-coded at 90 becomes one from 90 to 120.",
        "The registry is synthetic",
    )
    yield Remark(
        "Gain $8,000, penalty $10,000, access $100, exploit $10, linking nothing; prior 0.63; detection with h0 = "
        "−4.59 (0.01). The discount, which the paper does not state, is 0.9: with it the published thresholds 48, 14 "
        "and 29 come out. In three settings n_f limits the fines and h1 lets detection grow."
    )
    yield Remark(
        "Times are CPU times of one process on one machine and differ from run to run; everything else is a function "
        "of data, sizes and seed."
    )
