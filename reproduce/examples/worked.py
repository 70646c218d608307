"""The worked examples: of each the number that is printed, and the number the kernels find.

Sources: Fouad (2012; F12), section 3.2; Raschia, slides on k-anonymity (2023; R23); Torra, slides on privacy models
(2020; T20); Machanavajjhala et al. (2006); Benschop, Machingauta and Welch, the practice guide; Xia et al. (2015; X15)
have an experiment of their own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.classes.diversity import SensitiveRuns, entropy_diversity, greatest_share
from privrisk_spark.kernels.disclosure.risk import identification_risk
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity, harmonic_weights
from privrisk_spark.kernels.disclosure.utility import node_utility
from privrisk_spark.kernels.measures.classification import ClassificationTally
from privrisk_spark.kernels.measures.identity import SizeHistogram
from privrisk_spark.kernels.measures.loss import CellTally, SizeTally, record_penalty, share_loss, step_loss
from privrisk_spark.kernels.measures.population_risk import negative_binomial_risk
from privrisk_spark.kernels.recoding.datafly import datafly
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.metrics import METRICS, Measured
from privrisk_spark.kernels.recoding.problem import Problem, at_least
from reproduce.examples.walks import FIGURE, aruba, basic_top_down

FOUAD, RASCHIA, TORRA = "Fouad (2012), section 3.2", "Raschia (2023)", "Torra (2020)"


@dataclass(frozen=True)
class Example:
    """A number of a source.

    Attributes
    ----------
    digits : int
        Decimals that are printed.
    cut : bool
        Whether the source cut the digits that follow, in place of rounding.
    note : str
        Why they differ, or what had to be read into the source; empty for nothing.
    """

    source: str
    what: str
    printed: float
    found: float
    digits: int
    cut: bool = False
    note: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the number found, with as many decimals, is the printed one."""
        if not math.isfinite(self.found):
            return False
        scale = float(10**self.digits)
        shown = math.floor(self.found * scale + 1e-9) if self.cut else round(self.found * scale)
        return shown == round(self.printed * scale)


def examples() -> tuple[Example, ...]:
    """Compute every example."""
    return (
        *_of_risk(),
        *_of_walks(),
        *_of_losses(),
        *_of_datafly(),
        *_of_identity(),
        *_of_attributes(),
        *_of_samples(),
    )


def _of_risk() -> Iterator[Example]:
    """Four attributes: city, race, date of birth, income; a record as it is, and generalized."""
    days = Hierarchy.from_paths("birthdate", [(f"1990-01-{day:02d}", "1990-01", "1990") for day in range(1, 32)])
    cities = Hierarchy.from_paths(
        "city", [("c0", "k0", "s0", "r0"), ("c1", "k0", "s0", "r0"), ("c2", "k1", "s0", "r0")]
    )
    races = Hierarchy.from_paths("race", [("r0", "g0"), ("r1", "g0"), ("r2", "g1")])
    # 80 incomes below the bracket, which is one step under the root, and four levels in all.
    brackets = [(f"i{i}", f"b{i // 10}", f"c{i // 40}", "[20k,99k]") for i in range(80)]
    incomes = Hierarchy.from_paths("income", [*brackets, ("i80", "b8", "c2", "more")])
    of, weights = (cities, races, days, incomes), (0.3, 0.4, 0.5, 0.75)
    phi = Sensitivity(
        "multiplicative",
        tuple(
            harmonic_weights(one.parent, one.depth, one.n_leaves, np.full(one.n_leaves, weight))
            for one, weight in zip(of, weights, strict=True)
        ),
    )
    full = [one.find(label) for one, label in zip(of, ("c0", "r0", "1990-01-01", "i0"), strict=True)]
    part = [cities.find("c0"), races.root, days.find("1990-01"), incomes.find("[20k,99k]")]
    nodes = [np.array([a, b], dtype=np.int32) for a, b in zip(full, part, strict=True)]
    found = phi.phi(nodes)
    risk = identification_risk("I", found, np.array([7, 198]), dictionary_rows=5_667_004)
    depth = [node_utility("depth", one.depth, one.n_under) for one in of]
    yield Example(FOUAD, "sensitivity of a record as it is", 7.03, float(found[0]), 2)
    yield Example(FOUAD, "its risk with 7 consistent people", 1.004, float(risk[0]), 3)
    yield Example(FOUAD, "sensitivity of the generalized record", 1.38, float(found[1]), 2)
    yield Example(FOUAD, "its risk with 198 consistent people", 0.007, float(risk[1]), 3)
    utility = sum(float(values[node]) for values, node in zip(depth, full, strict=True))
    yield Example(FOUAD, "utility of the record as it is", 13, utility, 0)
    yield Example(
        FOUAD,
        "utility of the generalized record",
        7,
        sum(float(values[node]) for values, node in zip(depth, part, strict=True)),
        0,
    )


def _of_walks() -> Iterator[Example]:
    """The lattice of Fig. 4.4, walked by both algorithms: the visits of Fig. 4.5."""
    of, top_down, walked = "Fouad (2012), section 4.5.3", basic_top_down(), aruba()
    yield Example(of, "nodes that Algorithm 2 visits", 18, len(top_down.visited), 0)
    yield Example(of, "its iterations", 16, top_down.steps, 0)
    yield Example(of, "nodes that Algorithm 3 visits", 11, len(walked.visited), 0)
    yield Example(of, "of them, those in the printed table", 11, len({*walked.visited} & {*"acfjeinbdhm"}), 0)
    risk = next(risk for name, risk, _ in FIGURE.values() if name == walked.found)
    note = "The text calls f the optimal node; e has less risk, and the figure marks it with a star."
    yield Example(of, "risk of the optimal node, f", 62, risk, 0, note=note)


_PATIENTS = (
    *(("130**", "<30"),) * 4,
    *(("1485*", ">=40"),) * 4,
    *(("130**", "[30,40)"),) * 5,
)
"""The 4-anonymous release of 13 patients: postal code and age; nationality is suppressed."""


def _coded(values: Sequence[str], order: Sequence[str]) -> LongArray:
    return np.array([order.index(value) for value in values], dtype=np.int64)


def _of_losses() -> Iterator[Example]:
    classes = list(dict.fromkeys(_PATIENTS))
    rows = np.array([_PATIENTS.count(one) for one in classes], dtype=np.int64)
    zips = _coded([zip_code for zip_code, _ in classes], ["130**", "1485*"])
    ages = _coded([age for _, age in classes], ["<30", "[30,40)", ">=40"])
    nodes = np.column_stack([zips, ages, np.zeros(len(classes), dtype=np.int64)]).astype(np.int32)
    sizes = SizeTally.of(rows, k=4)
    yield Example(RASCHIA, "average size of a class, C_avg, for k = 4", 1.08, sizes.average_size, 2)
    yield Example(RASCHIA, "discernibility, C_dsc", 57, float(sizes.discernibility), 0)
    levels = [np.array(level, dtype=np.int32) for level in ([2, 1, 0, 5], [1, 1, 1, 3], [1, 0])]
    precision = CellTally.of(nodes, rows, [step_loss(level) for level in levels])
    yield Example(
        RASCHIA,
        "precision, C_prc",
        0.44,
        precision.retained,
        2,
        note="With two levels taken of nine postal codes and one of four; heights 5, 3 and 1.",
    )
    losses = [
        share_loss(np.array([100, 10]), 100_000),
        share_loss(np.array([30, 10, 60]), 100),
        share_loss(np.array([10]), 10),
    ]
    yield Example(
        RASCHIA,
        "general information loss, C_gil",
        0.438,
        CellTally.of(nodes, rows, losses).mean,
        3,
        cut=True,
        note="The denominator of the last term is printed as 100; the printed result needs 10, the nationalities.",
    )
    leaves = [np.array([1, 10]), np.array([1, 10])]
    penalty = record_penalty(np.array([[0, 0], [1, 1]], dtype=np.int32), leaves)
    yield Example(RASCHIA, "penalty of (1485*, [40-50))", 0.99, float(penalty[1]), 2)
    charged = ClassificationTally.of(
        np.array([0, 2, 5, 6]), np.array([1, 2, 0, 1, 2, 0], dtype=np.int32), np.array([2, 2, 1, 1, 2, 5])
    )
    yield Example(RASCHIA, "classification metric: rows outside their class's majority", 4, float(charged.minority), 0)


_DATAFLY = (
    ("black", "9/20/65", "male", "02141"), ("black", "2/14/65", "male", "02141"),
    ("black", "10/23/65", "female", "02138"), ("black", "8/24/65", "female", "02138"),
    ("black", "11/7/64", "female", "02138"), ("black", "12/1/64", "female", "02138"),
    ("white", "10/23/64", "male", "02138"), ("white", "3/15/65", "female", "02139"),
    ("white", "8/13/64", "male", "02139"), ("white", "5/5/64", "male", "02139"),
    ("white", "2/13/67", "male", "02138"), ("white", "3/21/67", "male", "02138"),
)  # fmt: skip
"""The table of Sweeney (2002) that Datafly makes 2-anonymous."""


def _of_datafly() -> Iterator[Example]:
    """Datafly with k = 2, and at most k rows suppressed: a birth date goes up to its year, all else to the root."""
    columns = list(zip(*_DATAFLY, strict=True))
    of = [
        Hierarchy.from_paths(
            name, [(value, value.rpartition("/")[2]) if name == "birth" else (value,) for value in values]
        )
        for name, values in zip(("race", "birth", "gender", "zip"), map(dict.fromkeys, columns), strict=True)
    ]
    codes = [[one.code_of[value] for value in values] for one, values in zip(of, columns, strict=True)]
    vectors = np.array(codes, dtype=np.int32).T
    table = FullDomain.of([one.ancestor for one in of], vectors, np.ones(len(vectors), dtype=np.int64))
    measured = Measured.of(table, [one.n_under[one.ancestor] for one in of])
    found = datafly(Problem(measured, (at_least(2),), METRICS["loss"], 2))
    source = "Raschia (2023), Sweeney (2002)"
    assert found is not None
    shown = table.ancestors[1][vectors[:, 1], found.levels[1]]
    yield Example(source, "Datafly: distinct birth dates once they are years", 3, len(np.unique(shown)), 0)
    others = sum(level > 0 for i, level in enumerate(found.levels) if i != 1)
    yield Example(source, "Datafly: other attributes that are generalized", 0, others, 0)
    yield Example(source, "Datafly: rows that are suppressed", 2, found.facts.suppressed, 0)
    yield Example(source, "Datafly: rows of the released table", 10, len(vectors) - found.facts.suppressed, 0)
    yield Example(source, "Datafly: its classes", 5, found.facts.classes, 0)


def _sizes(rows: Sequence[object]) -> LongArray:
    return np.array(list(Counter(rows).values()), dtype=np.int64)


def _of_identity() -> Iterator[Example]:
    after = SizeHistogram.of(_sizes(_PATIENTS)).risk()
    yield Example(RASCHIA, "k of the release of 13 patients", 4, float(after.k), 0)
    yield Example(RASCHIA, "prosecutor risk, highest", 0.25, after.prosecutor_max, 2)
    cities = [("Barcelona", 30)] * 2 + [("Tarragona", 60)] * 3
    yield Example(TORRA, "k of the table of cities and ages", 2, float(SizeHistogram.of(_sizes(cities)).risk().k), 0)


def _runs(classes: Sequence[Sequence[str]]) -> SensitiveRuns:
    order = sorted({value for one in classes for value in one})
    counts = [sorted(Counter(order.index(value) for value in one).items()) for one in classes]
    value, count = zip(*(pair for one in counts for pair in one), strict=True)
    return SensitiveRuns(
        np.cumsum([0, *map(len, counts)]), np.array(value, dtype=np.int32), np.array(count, dtype=np.int64)
    )


def _of_attributes() -> Iterator[Example]:
    found = greatest_share(_runs([["cancer"] * 2, ["AIDS", "AIDS", "heart attack"]]))
    yield Example(TORRA, "who is in Barcelona and 30 has cancer, with probability", 1, float(found[0]), 0)
    diseases = (("heart", "viral", "cancer", "cancer"), ("cancer", "heart", "viral", "viral"))
    yield Example(
        "Machanavajjhala et al. (2006)",
        "entropy l-diversity of the inpatients",
        2.8,
        float(entropy_diversity(_runs(diseases)).min()),
        1,
        cut=True,
    )


def _of_samples() -> Iterator[Example]:
    """Table 4.1 of the practice guide: seven classes of ten records with sampling weights."""
    sizes = np.array([2, 1, 2, 1, 1, 1, 2], dtype=np.int64)
    weights = np.array([360, 215, 152, 186, 180, 215, 262], dtype=np.float64)
    printed = (0.0054, 0.0251, 0.0126, 0.0282, 0.0290, 0.0251, 0.0074)
    risks = negative_binomial_risk(sizes, sizes / weights).tolist()
    for at, (said, found) in enumerate(zip(printed, risks, strict=True), start=1):
        yield Example("Benschop et al., table 4.1", f"individual risk of class {at}", said, float(found), 4)
