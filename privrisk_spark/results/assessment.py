"""What an assessment found, as frozen values a program and a person can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from privrisk_spark.claims import Status
from privrisk_spark.json_values import as_json
from privrisk_spark.results.measures import Measure, read_measures
from privrisk_spark.results.page import html_table
from privrisk_spark.results.plots import Plot
from privrisk_spark.results.release import StageRecord

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Measured:
    """One number.

    Attributes
    ----------
    name : str
        Of the catalogue.
    value : float or int or None
        None if it could not be computed, and ``parameters["reason"]`` says why; or if there is nothing it could be
        of, and ``parameters["none"]`` says what, which meets every threshold.
    parameters : mapping
        What it was computed of: ``subject`` and ``set``, a column, a threshold.
    """

    name: str
    value: float | int | None
    parameters: Mapping[str, object] = field(default_factory=dict)

    json_keys = ("name", "value", "unit:measure.unit", "parameters", "status")

    @property
    def measure(self) -> Measure:
        """What it means."""
        return read_measures()[self.name]

    @property
    def status(self) -> Status:
        """How sure it is."""
        return self.measure.status


@dataclass(frozen=True)
class WorstClass:
    """A class at the unsafe end of a measure; its labels are for the vault only.

    Attributes
    ----------
    name : str
        Of the measure.
    labels : tuple of str
        Of its quasi-identifiers.
    """

    name: str
    labels: tuple[str, ...]
    value: float | int
    records: int
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """A threshold and how it came out.

    Attributes
    ----------
    name : str
        Of the measure.
    observed : float or int or None
        The worst of the values it was held against; None if there was none, which fails unless nothing is concerned.
    parameters : mapping
        Of the worst.
    """

    name: str
    bound: float
    passed: bool
    observed: float | int | None
    parameters: Mapping[str, object] = field(default_factory=dict)

    json_keys = ("name", "rule", "bound", "passed", "observed", "parameters")

    @property
    def rule(self) -> str:
        """What was asked, in words."""
        side = "at least" if read_measures()[self.name].safe == "high" else "at most"
        return f"{read_measures()[self.name].title} {side} {self.bound:g}"


@dataclass(frozen=True)
class Subject:
    """What was measured.

    Attributes
    ----------
    name : {"table", "release"}
    """

    name: str
    title: str
    measured: tuple[Measured, ...]
    worst: tuple[WorstClass, ...] = ()
    plots: tuple[Plot, ...] = ()

    def find(self, name: str, **parameters: object) -> list[Measured]:
        """Values of a measure with these parameters, in order."""
        return [
            one
            for one in self.measured
            if one.name == name and all(one.parameters.get(key) == value for key, value in parameters.items())
        ]

    def worst_of(self, name: str, **parameters: object) -> Measured | None:
        """The worst known value of a measure with these parameters over all sets; of equal ones the first.

        Of a measure without a safe side the greatest is.
        """
        known = [one for one in self.find(name, **parameters) if one.value is not None]
        sign = 1 if read_measures()[name].safe == "high" else -1
        return min(known, key=lambda one: sign * float(one.value or 0), default=None)

    def families(self) -> list[str]:
        """Families there are values of, in the order of the catalogue."""
        return list(
            dict.fromkeys(m.family for n, m in read_measures().items() if any(one.name == n for one in self.measured))
        )


@dataclass(frozen=True)
class Assumption:
    """What is assumed of the adversary.

    Attributes
    ----------
    name : str
        Its key in the policy, in words.
    unit : str
        Empty for what has none.
    means : str
        In plain words, a sentence.
    given : bool
        Whether the policy says so, and not the default.
    """

    name: str
    value: float | int | str | None
    unit: str
    means: str
    given: bool


@dataclass(frozen=True)
class Assessment:
    """Everything an assessment has to say.

    Attributes
    ----------
    subjects : tuple of Subject
        The table, then the release if there is one.
    paragraph : str
        Whether the table is anonymous, and why not.
    assumptions : tuple of Assumption
        Of the adversary, if there is one.
    """

    title: str
    run_id: str
    created: str
    version: str
    subjects: tuple[Subject, ...]
    verdicts: tuple[Verdict, ...]
    paragraph: str
    notes: tuple[str, ...] = ()
    stages: tuple[StageRecord, ...] = ()
    assumptions: tuple[Assumption, ...] = ()

    json_keys = (
        "run_id", "name:title", "date:created", "version", "passed", "paragraph", "verdicts", "worst_classes",
        "notes", "assumptions", "stages",
    )  # fmt: skip

    @property
    def worst_classes(self) -> list[WorstClass]:
        """Those of all subjects."""
        return [one for subject in self.subjects for one in subject.worst]

    @property
    def passed(self) -> bool | None:
        """Whether every threshold is met; None if there is no threshold."""
        return all(verdict.passed for verdict in self.verdicts) if self.verdicts else None

    def measures(self) -> list[dict[str, Any]]:
        """Every number, for ``measures.json``."""
        return [as_json(one) for subject in self.subjects for one in subject.measured]

    def to_pandas(self) -> pd.DataFrame:
        """Return every number as a row.

        Returns
        -------
        pandas.DataFrame of shape (n_measures, 6)
            ``subject`` (``table`` or ``release``), ``name``, ``value`` (float64, NaN if it could not be computed),
            ``unit``, ``status`` and ``parameters`` (a mapping: set, column, threshold).
        """
        import pandas as pd  # only who asks for it waits for it

        rows = [
            {
                "subject": subject.name,
                "name": one.name,
                "value": float("nan") if one.value is None else float(one.value),
                "unit": one.measure.unit,
                "status": one.status,
                "parameters": {key: value for key, value in one.parameters.items() if key != "subject"},
            }
            for subject in self.subjects
            for one in subject.measured
        ]
        columns = ["subject", "name", "value", "unit", "status", "parameters"]
        return pd.DataFrame(rows, columns=columns).astype({"value": "float64"})

    def _repr_html_(self) -> str:
        if self.verdicts:
            head: tuple[str, ...] = ("threshold", "found", "")
            rows: list[tuple[object, ...]] = [
                (one.rule, one.observed, "met" if one.passed else "missed") for one in self.verdicts
            ]
        else:
            head = ("measure", "of", "value")
            rows = [
                (read_measures()[name].title, f"{subject.name}, set {one.parameters.get('set', 'all')}", one.value)
                for subject in self.subjects
                for name in dict.fromkeys(one.name for one in subject.measured)
                if read_measures()[name].safe is not None and (one := subject.worst_of(name)) is not None
            ]
        return html_table(f"Assessment of {self.title}", head, rows, notes=(self.paragraph, *self.notes))


def judged(thresholds: Mapping[str, float], subject: Subject) -> tuple[Verdict, ...]:
    """Hold a subject against thresholds; each bound is for the worst of the measure's values.

    Parameters
    ----------
    thresholds : mapping of measure to bound
        Measures with a safe side.
    subject : Subject
        A value that leaves records out, and says in its parameters what is sure of all (``at_least``, ``at_most``), is
        judged by that. A set of quasi-identifiers of which nothing is known misses the threshold.
    """
    verdicts = []
    for name, bound in thresholds.items():
        high = read_measures()[name].safe == "high"
        found = subject.find(name)
        known = [(value, one) for one in found if (value := _sure(one, high=high)) is not None]
        nobody = [one for one in found if one.value is None and "none" in one.parameters]
        told = {one.parameters.get("set") for one in (*nobody, *(one for _, one in known))}
        unknown = [one for one in found if one.parameters.get("set") not in told]
        if unknown or not known:
            passed = not unknown and bool(nobody)
            shown = (*unknown, *nobody)
            verdicts.append(Verdict(name, bound, passed, None, shown[0].parameters if shown else {}))
            continue

        observed, worst = (min if high else max)(known, key=lambda pair: float(pair[0]))
        passed = observed >= bound if high else observed <= bound
        verdicts.append(Verdict(name, bound, passed, observed, worst.parameters))
    return tuple(verdicts)


def _sure(one: Measured, *, high: bool) -> float | int | None:
    """What is sure of every record: the value, unless it leaves some out and says so; None if nothing is known."""
    value = one.parameters.get("at_least" if high else "at_most", one.value)
    assert value is None or isinstance(value, int | float)
    return value
