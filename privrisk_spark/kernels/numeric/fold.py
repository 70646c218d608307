"""The contract of everything that is measured part by part and added up.

A table is measured in tasks, each of some part of it: chunks of rows, buckets of classes. What a task finds is a
*tally*: a frozen value of integers, exact sums, extremes and the like, which travels as JSON and is added to those of
the other tasks. Figures, which may round, are computed from the sum alone. So no figure depends on how the table was
divided, nor in which order tasks ended, down to the last bit.

For tallies ``a``, ``b``, ``c`` of parts of one table, made with the same question ``q`` (thresholds, bounds, ``k``, …):

* ``a.plus(b.plus(c)) == a.plus(b).plus(c)`` and ``a.plus(b) == b.plus(a)``;
* ``T.empty(q).plus(a) == a``;
* ``T.of(x + y, q) == T.of(x, q).plus(T.of(y, q))`` for parts ``x`` and ``y``, and ``T.of`` nothing is ``T.empty(q)``;
* ``from_json(T, json.loads(json.dumps(as_json(a), allow_nan=False))) == a``.

Equality is of every bit. ``tests/kernels/test_folds.py`` holds every tally to this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, Self, TypeVar

from privrisk_spark.errors import InternalError
from privrisk_spark.json_values import from_json


class Fold(Protocol):
    """A tally of a part of a table; a frozen dataclass. See the module's docstring for its laws."""

    @classmethod
    def of(cls, *part: Any, **question: Any) -> Self:
        """Tally a part.

        Parameters
        ----------
        *part : ndarrays
            What was found of the part.
        **question
            What is asked of the whole table, the same in every part.
        """
        ...

    @classmethod
    def empty(cls, *question: Any, **named: Any) -> Self:
        """Tally of nothing, the neutral element of :meth:`plus` among the tallies of the same question."""
        ...

    def plus(self, other: Self) -> Self:
        """Tally of both parts together.

        Raises
        ------
        InternalError
            If the two answer different questions.
        """
        ...


Tally = TypeVar("Tally", bound=Fold)


def folded(empty: Tally, parts: Iterable[Tally]) -> Tally:
    """Tally of all parts together; ``empty`` where there are none."""
    total = empty
    for part in parts:
        total = total.plus(part)
    return total


def folded_dicts(empty: Tally, parts: Iterable[Mapping[str, Any]]) -> Tally:
    """Tally of all parts together, each as JSON holds it; ``empty`` where there are none."""
    return folded(empty, (from_json(type(empty), part) for part in parts))


def refuse_other(one: object, other: object, what: str) -> None:
    """Refuse to add up tallies of different questions.

    Parameters
    ----------
    one, other : object
        The questions.
    what : str
        Names the tallies and what they were asked.

    Raises
    ------
    InternalError
        If the questions differ.
    """
    if one != other:
        raise InternalError(f"{what} can be added to their like only: {one!r} is not {other!r}.")
