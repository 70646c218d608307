"""Sizes of the experiments on dictionaries, and what was found as one result."""

from __future__ import annotations

from dataclasses import dataclass, replace

from privrisk_spark.kernels.lattice.lattice import Lattice
from reproduce.deciding.subject import Subject
from reproduce.dictionaries.claims import claims
from reproduce.dictionaries.growth import Growth, Nested, grow
from reproduce.dictionaries.plots import plots
from reproduce.dictionaries.rules import Rules, every_rule
from reproduce.result import Findings, Remark, plain
from reproduce.sizes import size

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Sizes of the dictionaries: a tenth of the table to all of it (F12 §3.1)."""

FLOORS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Least utilities, as shares of the greatest."""

BOUNDS = 40

MOST_RULES = 500
"""Nodes of the lattice whose rules are all measured."""


@dataclass(frozen=True)
class DictionarySizes:
    """How much is run.

    Attributes
    ----------
    rows, attributes : int
        Of the generated table, whose first tenth is released.
    """

    rows: int = size(40_000, 20)
    attributes: int = size(8, 2, 10)
    seed: int = size(2006, 0)

    @classmethod
    def quick(cls, seed: int = 2006) -> DictionarySizes:
        """Sizes for a look."""
        return cls(rows=2_000, attributes=4, seed=seed)


@dataclass(frozen=True, eq=False)
class Found:
    """Everything about the generated table."""

    data: str
    growth: Growth
    rules: Rules


def run(sizes: DictionarySizes) -> tuple[Subject, Found]:
    """Generate a table and make both experiments on it."""
    subject = Subject.generated(sizes.seed, sizes.rows, sizes.attributes)
    few = Nested.of(subject.within(MOST_RULES), sizes.seed, SHARES)
    growth = grow(Nested.of(subject, sizes.seed, SHARES), few, FLOORS)
    return subject, Found("generated", growth, every_rule(few, FLOORS, BOUNDS))


def findings(subject: Subject, found: Found) -> Findings:
    """Put together what was found."""
    few = subject.within(MOST_RULES)
    return Findings(
        statement="What the attacker's dictionary and the choice of one rule do to risk: Lebanon, Scannapieco, Fouad "
        "and Bertino, Beyond k-anonymity (2006), section 5, and Fouad (2012), chapter 3.",
        tables=(
            Remark(
                f"{subject.rows:,} rows stand for all people; {found.growth.rows[0]:,} of them, in a keyed order, are "
                f"released. {subject.k} attributes with hierarchies of heights {', '.join(map(str, subject.heights))}.",
                found.data,
            ),
        ),
        remarks=(
            Remark(
                "The papers have a table of articles of a store and call records consistent whose labels are alike "
                "(Jaro); here they are consistent where one generalizes the other, under which the theorems hold. "
                "Weights are random, as in the papers."
            ),
            Remark(
                f"Lattices are those of the first {few.k} attributes: {Lattice(few.heights).n_nodes:,} nodes, each of "
                "which is a rule for the whole table; rules are measured against all people."
            ),
        ),
        plots=tuple((replace(plot, data=found.data),) for plot in plots(found.growth, found.rules)),
        figures={"experiments": [plain(found)]},
        claims=claims(found.data, found.growth, found.rules),
    )
