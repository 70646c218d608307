"""Tallies of one number per equivalence class: what is achieved, what fails, and the worst classes.

Every Boolean privacy model here gives each class one number and asks that none is on the wrong side of a bound. Numbers
are functions of their class alone; a tally holds extremes, integers, an exact sum and the first few classes in a total
order, so merging tallies of any division of the classes into parts gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.numeric.moments import Moments

TOLERANCE = 1e-12
"""Numbers that are not counts are taken as equal to a bound ``b`` within ``TOLERANCE · max(1, b)``."""


@dataclass(frozen=True)
class Criterion:
    """How the number of a class is held against a bound.

    Attributes
    ----------
    name : str
        Of the model, as in :data:`CRITERIA`.
    worst : {"least", "greatest"}
        Which numbers are the worst: a class of the least k, or one at the greatest distance.
    strict : bool
        Whether a number equal to the bound fails.
    whole : bool
        Whether numbers are counts, which are compared exactly.
    """

    name: str
    worst: Literal["least", "greatest"]
    strict: bool = False
    whole: bool = False

    def fails(self, values: FloatArray, asked: float) -> BoolArray:
        """Which numbers are on the wrong side of the bound.

        Parameters
        ----------
        values : ndarray of float64
            No NaN; +inf allowed.
        asked : float
            Finite.

        Returns
        -------
        ndarray of bool
            Unless the numbers are counts, those within :data:`TOLERANCE` of the bound are equal to it.
        """
        slack = 0.0 if self.whole else TOLERANCE * max(1.0, abs(asked))
        if self.worst == "least":
            return values <= asked + slack if self.strict else values < asked - slack
        return values >= asked - slack if self.strict else values > asked + slack


K_ANONYMITY = Criterion("k-anonymity", "least", whole=True)
"""Rows, or persons, of the class."""
K_MAP = Criterion("k-map", "least", whole=True)
"""Persons of the population in the class."""
DISTINCT_DIVERSITY = Criterion("distinct l-diversity", "least", whole=True)
"""Sensitive values in the class; p-sensitivity, and with 2 asked the homogeneity attack, are the same number."""
ENTROPY_DIVERSITY = Criterion("entropy l-diversity", "least")
"""``exp(H)`` of the class."""
RECURSIVE_C = Criterion("recursive (c,l)-diversity: c", "greatest", strict=True)
"""Least ``c``, not itself allowed, for a given ``l``."""
RECURSIVE_L = Criterion("recursive (c,l)-diversity: l", "least", whole=True)
"""Greatest ``l`` for a given ``c``."""
ALPHA = Criterion("alpha", "greatest")
"""Greatest share of a sensitive value."""
T_CLOSENESS = Criterion("t-closeness", "greatest")
"""Earth mover's distance between class and table."""
BETA_LIKENESS = Criterion("beta-likeness", "greatest")
"""Greatest relative gain of a sensitive value."""
DELTA_DISCLOSURE = Criterion("delta-disclosure", "greatest", strict=True)
"""Greatest ``|ln(q/p)|``."""
ONE_K = Criterion("(1,k)-anonymity", "least", whole=True)
"""Released rows consistent with the original record."""
K_ONE = Criterion("(k,1)-anonymity", "least", whole=True)
"""Original rows consistent with the released record."""
K_CONCEALMENT = Criterion("k-concealment", "least", whole=True)
"""Released rows that are a match of the original record."""
K_CONFUSION = Criterion("k-confusion", "least", whole=True)
"""Released rows the original record may be linked to."""

CRITERIA = {
    criterion.name: criterion
    for criterion in (
        K_ANONYMITY,
        K_MAP,
        DISTINCT_DIVERSITY,
        ENTROPY_DIVERSITY,
        RECURSIVE_C,
        RECURSIVE_L,
        ALPHA,
        T_CLOSENESS,
        BETA_LIKENESS,
        DELTA_DISCLOSURE,
        ONE_K,
        K_ONE,
        K_CONCEALMENT,
        K_CONFUSION,
    )
}
"""By name."""


@dataclass(frozen=True)
class WorstClass:
    """One of the worst classes.

    Attributes
    ----------
    key : tuple of int
        Its quasi-identifier codes. Not for a message or a public report.
    value : float
        Its number.
    rows : int
    """

    key: tuple[int, ...]
    value: float
    rows: int


def worst_classes(criterion: Criterion, values: FloatArray, keys: IntArray, most: int) -> LongArray:
    """Positions of the worst classes, the worst first.

    Parameters
    ----------
    criterion : Criterion
    values : ndarray of float64, shape (m,)
    keys : ndarray of int32, shape (m, q)
        Quasi-identifier codes, different for different classes.
    most : int
        Classes wanted at most.

    Returns
    -------
    ndarray of int64, shape (min(most, m),)
        By value; classes of equal value by their codes, lexicographically ascending.
    """
    most = min(most, len(values))
    if not most:
        return np.zeros(0, dtype=np.int64)
    columns = [values if criterion.worst == "least" else -values, *keys.T]
    candidates = np.arange(len(values))
    chosen: list[LongArray] = []
    for column in columns:
        # What is below the most-th number is in; of what equals it the next column decides.
        number, missing = column[candidates], most - sum(len(part) for part in chosen)
        bound = _smallest(number, missing)
        chosen.append(candidates[number < bound])
        candidates = candidates[number == bound]
    found = np.concatenate([*chosen, candidates[: most - sum(len(part) for part in chosen)]])
    return found[np.lexsort([column[found] for column in reversed(columns)])].astype(np.int64)


def _smallest(values: npt.NDArray[Any], n: int) -> Any:
    """The n-th smallest value; in one look where as many are the smallest, which is what classes of one are."""
    least = values.min()
    if np.count_nonzero(values == least) >= n:
        return least
    return np.partition(values, n - 1)[n - 1]


@dataclass(frozen=True)
class ClassTally:
    """One number of every class of a part of the table, held against a bound.

    Attributes
    ----------
    criterion : Criterion
    asked : float
        The bound.
    most : int
        Worst classes kept at most.
    classes : int
    moments : Moments
        Of the classes' numbers, each as often as the class has rows.
    failing_classes, failing_rows : int
        On the wrong side of ``asked``.
    worst : tuple of WorstClass
        The worst first; equal ones by their codes.
    """

    criterion: Criterion
    asked: float
    most: int
    classes: int
    moments: Moments
    failing_classes: int
    failing_rows: int
    worst: tuple[WorstClass, ...]

    @classmethod
    def of(
        cls,
        criterion: Criterion,
        values: FloatArray | LongArray,
        rows: LongArray,
        keys: IntArray,
        *,
        asked: float,
        most: int = 10,
    ) -> ClassTally:
        """Tally whole classes.

        Parameters
        ----------
        criterion : Criterion
        values : ndarray of float64 or int64, shape (m,)
            Number of each class: non-negative, no NaN, +inf allowed; counts below 2^53.
        rows : ndarray of int64, shape (m,)
            Rows of each class, at least 1; at most 2^36 in sum.
        keys : ndarray of int32, shape (m, q)
            Quasi-identifier codes of each class; no class occurs twice, here or in a tally merged with this one.
        asked : float
            Bound, finite and at least 0.
        most : int
            Worst classes to keep.

        Raises
        ------
        InputError
            If the bound is out of range, the shapes differ, or a number or size is.
        """
        if not (math.isfinite(asked) and asked >= 0):
            raise InputError(f"{criterion.name}: the bound must be a finite number of at least 0, not {asked}.")
        if most < 0:
            raise InputError(f"{criterion.name}: the worst classes kept must be at least 0, not {most}.")
        if not (values.shape == rows.shape == keys.shape[:1] and keys.ndim == 2):
            raise InputError(
                f"{criterion.name}: a number, rows and codes of every class are needed, not arrays of the shapes "
                f"{values.shape}, {rows.shape} and {keys.shape}."
            )
        number = values.astype(np.float64)
        if not (number >= 0).all():
            raise InputError(f"{criterion.name}: the number of a class must be at least 0 and not NaN.")
        if (rows < 1).any():
            raise InputError(f"{criterion.name}: a class must have at least 1 row.")
        failing = criterion.fails(number, asked)
        worst = worst_classes(criterion, number, keys, most)
        return cls(
            criterion=criterion,
            asked=float(asked),
            most=most,
            classes=len(number),
            moments=Moments.of(number, rows),
            failing_classes=int(failing.sum()),
            failing_rows=int(rows[failing].sum()),
            worst=tuple(
                WorstClass(tuple(key), value, size)
                for key, value, size in zip(
                    keys[worst].tolist(), number[worst].tolist(), rows[worst].tolist(), strict=True
                )
            ),
        )

    def plus(self, other: ClassTally) -> ClassTally:
        """Tally of the classes of both.

        Raises
        ------
        InternalError
            If criterion, bound or number of worst classes differ.
        """
        if (self.criterion, self.asked, self.most) != (other.criterion, other.asked, other.most):
            raise InternalError("Tallies of different models, bounds or lengths were merged.")
        sign = 1 if self.criterion.worst == "least" else -1
        worst = sorted((*self.worst, *other.worst), key=lambda one: (sign * one.value, one.key))
        return ClassTally(
            self.criterion,
            self.asked,
            self.most,
            self.classes + other.classes,
            self.moments.plus(other.moments),
            self.failing_classes + other.failing_classes,
            self.failing_rows + other.failing_rows,
            tuple(worst[: self.most]),
        )

    @property
    def rows(self) -> int:
        """Rows of all classes."""
        return self.moments.n

    @property
    def achieved(self) -> float:
        """The worst number of a class; of no class inf where the least is the worst, else 0."""
        return self.moments.least if self.criterion.worst == "least" else max(self.moments.most, 0.0)

    @property
    def passed(self) -> bool:
        """Whether no class fails at the bound asked."""
        return self.failing_classes == 0

    def passes(self, asked: float) -> bool:
        """Whether no class would fail at this bound."""
        return not bool(self.criterion.fails(np.array([self.achieved]), asked)[0]) if self.classes else True

    @property
    def failing_share(self) -> float:
        """Share of the rows that are in a failing class; 0 of no rows."""
        return self.failing_rows / self.rows if self.rows else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; inf is written as text."""
        return {
            "criterion": self.criterion.name,
            "asked": self.asked,
            "most": self.most,
            "classes": self.classes,
            "failing_classes": self.failing_classes,
            "failing_rows": self.failing_rows,
            "moments": {
                "n": self.moments.n,
                "total": str(self.moments.total),
                "infinite": self.moments.infinite,
                "least": _written(self.moments.least),
                "most": _written(self.moments.most),
            },
            "worst": [{"key": list(one.key), "value": _written(one.value), "rows": one.rows} for one in self.worst],
        }

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> ClassTally:
        """Read what :meth:`to_dict` gave."""
        moments = written["moments"]
        return cls(
            criterion=CRITERIA[written["criterion"]],
            asked=float(written["asked"]),
            most=int(written["most"]),
            classes=int(written["classes"]),
            moments=Moments(
                n=int(moments["n"]),
                total=int(moments["total"]),
                infinite=int(moments["infinite"]),
                least=float(moments["least"]),
                most=float(moments["most"]),
            ),
            failing_classes=int(written["failing_classes"]),
            failing_rows=int(written["failing_rows"]),
            worst=tuple(
                WorstClass(tuple(one["key"]), float(one["value"]), int(one["rows"])) for one in written["worst"]
            ),
        )


@dataclass(frozen=True)
class JointTally:
    """Several criteria of which a class must meet all, such as p-sensitive k-anonymity or (α,k)-anonymity.

    Attributes
    ----------
    parts : tuple of ClassTally
        Of the same classes.
    failing_classes, failing_rows : int
        That fail at least one.
    """

    parts: tuple[ClassTally, ...]
    failing_classes: int
    failing_rows: int

    @classmethod
    def of(
        cls,
        criteria: Sequence[tuple[Criterion, FloatArray | LongArray, float]],
        rows: LongArray,
        keys: IntArray,
        *,
        most: int = 10,
    ) -> JointTally:
        """Tally whole classes.

        Parameters
        ----------
        criteria : sequence of (Criterion, ndarray of shape (m,), float)
            Each criterion with the classes' numbers and the bound.
        rows, keys, most
            As in :meth:`ClassTally.of`.

        Raises
        ------
        InputError
            As :meth:`ClassTally.of`.
        """
        parts = tuple(
            ClassTally.of(criterion, values, rows, keys, asked=asked, most=most)
            for criterion, values, asked in criteria
        )
        failing = np.zeros(len(rows), dtype=np.bool_)
        for criterion, values, asked in criteria:
            failing |= criterion.fails(values.astype(np.float64), asked)
        return cls(parts, int(failing.sum()), int(rows[failing].sum()))

    def plus(self, other: JointTally) -> JointTally:
        """Tally of the classes of both."""
        if len(self.parts) != len(other.parts):
            raise InternalError("Joint tallies of different models were merged.")
        parts = tuple(one.plus(two) for one, two in zip(self.parts, other.parts, strict=True))
        return JointTally(parts, self.failing_classes + other.failing_classes, self.failing_rows + other.failing_rows)

    @property
    def achieved(self) -> tuple[float, ...]:
        """The worst number of a class under each criterion."""
        return tuple(part.achieved for part in self.parts)

    @property
    def passed(self) -> bool:
        """Whether no class fails any criterion at the bounds asked."""
        return self.failing_classes == 0

    def passes(self, asked: Sequence[float]) -> bool:
        """Whether no class would fail any criterion at these bounds, one each."""
        return all(part.passes(bound) for part, bound in zip(self.parts, asked, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "parts": [part.to_dict() for part in self.parts],
            "failing_classes": self.failing_classes,
            "failing_rows": self.failing_rows,
        }

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> JointTally:
        """Read what :meth:`to_dict` gave."""
        parts = tuple(ClassTally.from_dict(part) for part in written["parts"])
        return cls(parts, int(written["failing_classes"]), int(written["failing_rows"]))


def _written(value: float) -> float | str:
    """A number as JSON can hold it, read back by ``float``."""
    return value if math.isfinite(value) else str(value)
