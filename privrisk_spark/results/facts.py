"""What is measured of a table, of the decisions made for it, and of its release: exact, for the vault."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from privrisk_spark.results.release import AttributeLevels, Histogram, Summary


@dataclass(frozen=True)
class HistoryFacts:
    """Facts of decisions beside earlier releases; exact, for the vault.

    Attributes
    ----------
    records, changed : int
        Records that earlier releases hold; those some value of which was another in one of them.
    beyond : int
        Records that are suppressed because what is out already exceeds what is asked.
    raised : int
        Records whose risk this release raises beyond that of what is out already.
    alone, out, bounded : Summary
        Risk of this release alone; of earlier ones alone; of all, over the records that are not beyond.
    histogram : Histogram
        Records by risk of this release alone.
    """

    records: int
    changed: int
    beyond: int
    raised: int
    alone: Summary
    out: Summary
    bounded: Summary
    histogram: Histogram


@dataclass(frozen=True)
class DecisionFacts:
    """Facts of DECIDED; exact, for the vault.

    Attributes
    ----------
    rows, sampled, infeasible, verbatim : int
        Records; those drawn into the sample (all outside dp); those that could not reach the floor; those released with
        every original value.
    before, after : Histogram
        Records by risk.
    unproved : int
        Records for which a search stopped before it was proved that there is no better decision.
    gap : float
        What the worst of these could gain at most, in units of what was optimized.
    history : HistoryFacts or None
        Where the release composes with earlier ones, ``risk_after`` is that of all together.
    suppressed : int
        Records suppressed as wholes because their class under the scheme of a table does not meet what is asked.
    identified_before, identified_after : Summary or None
        Probability that a record is found among the dictionary rows that fit it, 1/ρ.
    """

    rows: int
    sampled: int
    infeasible: int
    verbatim: int
    risk_before: Summary
    risk_after: Summary
    utility: Summary
    levels: tuple[AttributeLevels, ...]
    before: Histogram
    after: Histogram
    unproved: int = 0
    gap: float = 0.0
    history: HistoryFacts | None = None
    suppressed: int = 0
    identified_before: Summary | None = None
    identified_after: Summary | None = None

    @property
    def beyond(self) -> int:
        """Records for which nothing is feasible only because of what is out already."""
        return 0 if self.history is None else self.history.beyond

    @property
    def greatest_bounded_risk(self) -> float:
        """Largest risk of the records that are not disclosed beyond what is asked already."""
        return self.risk_after.max if self.history is None else self.history.bounded.max


@dataclass(frozen=True)
class ReleaseFacts:
    """Facts read back from the staged files.

    Attributes
    ----------
    rows, classes : int
        Released rows and distinct combinations of released quasi-identifiers.
    min_class_size : int
        0 for an empty release.
    min_telling_size : int or None
        The same of the classes with a label that is not its attribute's root; None if there is none.
    failing : dict of words to int
        Released classes that do not meet what is asked of sensitive values, by what is asked.
    off_hierarchy : dict of attribute to rows whose text is no node of the hierarchy
    label_rows : dict of attribute, and "" for tuples, to a fingerprint of how many rows each label stands in
        Of the first node with each label (:func:`privrisk_spark.kernels.numeric.fingerprint.of_counts`).
    unique_by_cells : int
        Rows no other has the released quasi-identifiers of. Where persons are counted: persons with a row of released
        quasi-identifiers that exactly one person has, in however many rows; likewise below.
    unique_by_kept : dict of kept column to rows no other has the value of; missing values are none
    unique_by_all : int or None
        Rows no other has the released quasi-identifiers and kept columns of; None without kept columns.
    persons : int or None
        Distinct persons, where the policy names them and a column is kept; None: rows are counted.
    """

    rows: int
    classes: int
    min_class_size: int
    off_hierarchy: dict[str, int]
    label_rows: dict[str, int]
    unique_by_cells: int = 0
    unique_by_kept: dict[str, int] = field(default_factory=dict)
    unique_by_all: int | None = None
    persons: int | None = None
    min_telling_size: int | None = None
    failing: dict[str, int] = field(default_factory=dict)

    @property
    def counted(self) -> int:
        """What uniques are among: persons where they are counted, else released rows."""
        return self.rows if self.persons is None else self.persons

    @property
    def unique_by_adding_kept(self) -> int:
        """Rows, or persons, that kept columns point out with released quasi-identifiers, which alone do not."""
        return 0 if self.unique_by_all is None else self.unique_by_all - self.unique_by_cells

    def share(self, uniques: int) -> float:
        """Share of the persons where they are counted, else of the released rows."""
        return uniques / self.counted if self.counted else 0.0


@dataclass(frozen=True)
class ClassFacts:
    """Facts of the released classes; exact, for the vault.

    Attributes
    ----------
    classes, rows : int
        Distinct combinations of released quasi-identifiers, and their records.
    smallest, uniques : int
        Records of the smallest class, ``min f_k``, and classes with one record.
    fewest_persons, single_persons : int or None
        Persons of the class with the fewest, and classes of one person; None without ``entity_id``.
    fewest_telling_persons : int or None
        Persons of the class with the fewest, of those that are not suppressed in every quasi-identifier; None where
        there is none, or without ``entity_id``.
    least_population, population : float or None
        Weighted size of the class with the least, ``min F_k``, and of all; None without sampling weights.
    """

    classes: int
    rows: int
    smallest: int
    uniques: int
    fewest_persons: int | None
    single_persons: int | None
    least_population: float | None
    population: float | None
    fewest_telling_persons: int | None = None


@dataclass(frozen=True)
class InputFacts:
    """Facts of the encoded table.

    Attributes
    ----------
    nulls, unknown : dict of attribute to rows
    bad_weights : dict of weight column to rows that are missing, NaN or negative
    infinite_weights : dict of weight column to rows
    snapshot : str
        Identity of the content: independent of order and partitioning; private.
    """

    rows: int
    null_ids: int
    duplicate_ids: int
    null_entities: int
    nulls: dict[str, int]
    unknown: dict[str, int]
    bad_weights: dict[str, int]
    infinite_weights: dict[str, int]
    snapshot: str


@dataclass(frozen=True)
class FilesRead:
    """Files of a table on a local or mounted path, and the rows in them.

    Attributes
    ----------
    expected, processed : int
        Data files that are there, and those that Spark reads.
    rows : int or None
        That the files themselves say they have; None where they do not.
    malformed, garbled : int
        Rows whose line is cut, too long or not of its format, and rows with bytes that are no text; where they are
        counted.
    version : dict or None
        Which version of a lake table is read: format, number and time.
    rounded : tuple of str
        Columns of times in nanoseconds, which are rounded down to microseconds.
    """

    expected: int
    processed: int
    rows: int | None = None
    malformed: int = 0
    garbled: int = 0
    version: dict[str, Any] | None = None
    rounded: tuple[str, ...] = ()


@dataclass(frozen=True)
class ValuesRead:
    """What reading a column changed; private.

    Attributes
    ----------
    key : str
        Of the policy, such as ``columns.sex.read``.
    changed : dict of step to number of values
    uncast : int
        Values that cannot be read as what ``cast`` says, and are missing then.
    """

    key: str
    changed: dict[str, int]
    uncast: int = 0


def values_changed(values: Iterable[ValuesRead]) -> dict[str, int]:
    """Return how many values each step of each reading changed, by its key."""
    return {f"{one.key}.{step}": number for one in values for step, number in one.changed.items()}
