"""Experiments of an audit: adversarial tables, what is claimed of their releases, and what has a known law."""

from __future__ import annotations

from dataclasses import dataclass

from privrisk_spark.ledger.calibrated import Calibrated, Choosing

TARGET, FILLER = 0, 1
"""The two kinds of records: the target's, which the neighbouring tables differ in, and all others'."""


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables.

    Attributes
    ----------
    one, other : int
        Numbers of the tables with and without the row.
    """

    name: str
    one: int
    other: int


@dataclass(frozen=True)
class Cell:
    """A cell whose published rows have a known law: ``T_k(Bin(rows, keep))``.

    Attributes
    ----------
    kind : int
        Records in it.
    scheme : int
        Number of the scheme they are released under; the one after the last is full suppression.
    tables : tuple of int
        Tables in which it has so many rows.
    keep : float
        Probability that a row of the table is published in it.
    large : bool
        Whether mean and variance are held against the law.
    """

    name: str
    kind: int
    scheme: int
    tables: tuple[int, ...]
    rows: int
    keep: float
    large: bool


@dataclass(frozen=True)
class People:
    """Persons who have equally many rows of either kind.

    Attributes
    ----------
    targets, others : int
        Rows of each, of the target's and of the other kind.
    named : bool
        Whether the rows name their person; one that does not is a person by itself.
    """

    number: int
    targets: int
    others: int
    named: bool = True


@dataclass(frozen=True)
class NoisyCell:
    """A cell whose noisy count is admitted in every trial, so that its noise can be held against its law.

    Attributes
    ----------
    kind : int
        Records in it.
    scheme : int
        Number of the scheme it is a cell of.
    rows : int
        In every table.
    """

    kind: int
    scheme: int
    rows: int


@dataclass(frozen=True)
class Experiment:
    """Adversarial tables, and what is claimed of their releases.

    Attributes
    ----------
    mechanism : Calibrated
        Of the profile; levels of its schemes are those of the trial column and the quasi-identifiers.
    epsilon, delta : float
        Claimed.
    tables : tuple of pairs of int
        Rows of the target's and of the other kind.
    admitted : tuple of pairs of int, or None
        Scheme and kind of the cells admitted beforehand, as if they were public; None admits under noise.
    as_read : bool
        Rows come from a table Spark reads, with derived record ids; else tasks make them with ids of their own.
    noisy : tuple of NoisyCell
        Their noises are independent.
    people : tuple of tuples of People
        Whose the rows of each table are, where neighbours differ in a person with all their rows, of which a release
        draws one; else every row is a person.
    most_trials : int or None
        More are not run, where fewer refute all that is looked for.
    """

    name: str
    title: str
    mechanism: Calibrated
    epsilon: float
    delta: float
    tables: tuple[tuple[int, int], ...]
    pairs: tuple[Pair, ...]
    cells: tuple[Cell, ...]
    admitted: tuple[tuple[int, int], ...] | None
    as_read: bool = False
    noisy: tuple[NoisyCell, ...] = ()
    people: tuple[tuple[People, ...], ...] = ()
    most_trials: int | None = None

    @property
    def chooses(self) -> bool:
        """Whether the picks of schemes are what is published; else they are known, and it is rows."""
        return isinstance(self.mechanism, Choosing) and not self.mechanism.schemes

    def trials_of(self, asked: int) -> int:
        """Trials of each table where so many are asked for."""
        return asked if self.most_trials is None else min(asked, self.most_trials)
