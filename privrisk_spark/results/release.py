"""What a run has to say, as frozen values: stages, checks, summaries, guarantees, and their report.

Every class has ``to_dict``, whose result `json.dumps` takes as it is and a program can read (see
:mod:`privrisk_spark.json_values`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from privrisk_spark.claims import Status
from privrisk_spark.kernels.numeric.moments import Moments
from privrisk_spark.results.headline import Compared, Headline
from privrisk_spark.results.trade_off import Evidence

__all__ = [
    "AttributeLevels",
    "Check",
    "ChosenRule",
    "Guarantee",
    "Histogram",
    "LinkageFacts",
    "Report",
    "Section",
    "StageRecord",
    "Status",
    "Summary",
]


@dataclass(frozen=True)
class StageRecord:
    """One stage of a run, in a sentence.

    Attributes
    ----------
    name : str
        Short name, such as ``count``.
    sentence : str
        What was done, as a full sentence.
    parameters : mapping
        What it was done with.
    status : {'proved', 'tested', 'heuristic'} or None
        How far its result is guaranteed; None if it makes no claim.
    seconds : float or None
        Wall-clock time.
    """

    name: str
    sentence: str
    parameters: Mapping[str, object]
    status: Status | None
    seconds: float | None


@dataclass(frozen=True)
class Check:
    """One rule of the input or release contract, and how it came out.

    Attributes
    ----------
    contract : {'input', 'release'}
        Which contract.
    name : str
        Short name.
    level : {'error', 'warning'}
        A failed error forbids publication.
    passed : bool
        How it came out.
    rule : str
        What was asked, in words.
    observed : float or int or None
        The number seen, often a count of rows. Never a record's value.
    """

    contract: Literal["input", "release"]
    name: str
    level: Literal["error", "warning"]
    passed: bool
    rule: str
    observed: float | int | None


@dataclass(frozen=True)
class Summary:
    """Mean, maximum and minimum of a number over the records; each may be infinite.

    Attributes
    ----------
    mean, max, min : float
        The three.
    """

    mean: float
    max: float
    min: float

    @classmethod
    def of(cls, moments: Moments) -> Summary:
        """Of exact moments; zeros of nothing."""
        return cls(moments.mean, moments.most, moments.least) if moments.n else cls(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Histogram:
    """Counts of records by bin; bin i is ``[edges[i], edges[i + 1])``, the last one closed.

    Attributes
    ----------
    edges : tuple of float
        Strictly increasing, one longer than ``counts``. The first may be 0 or -Infinity and the last
        Infinity, so that a bin can hold what a logarithmic scale has no place for.
    counts : tuple of int
        Records.

    Raises
    ------
    ValueError
        If edges and counts do not fit.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.counts or len(self.edges) != len(self.counts) + 1:
            raise ValueError("edges must be one longer than counts, and counts not empty")
        if not all(low < high for low, high in zip(self.edges, self.edges[1:], strict=False)):
            raise ValueError("edges must increase strictly")
        if min(self.counts) < 0:
            raise ValueError("counts must not be negative")


@dataclass(frozen=True)
class AttributeLevels:
    """How many rows disclose an attribute at each level of its value generalization hierarchy.

    Attributes
    ----------
    attribute : str
        Column name.
    height : int
        Height of the hierarchy, at least 1.
    level_names : tuple of str
        Names of levels 0 to ``height``.
    rows : tuple of int
        Rows at levels 0 (as is) to ``height`` (suppressed).

    Raises
    ------
    ValueError
        If there are not ``height + 1`` names and numbers.
    """

    attribute: str
    height: int
    level_names: tuple[str, ...]
    rows: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.height < 1 or not len(self.level_names) == len(self.rows) == self.height + 1:
            raise ValueError("level_names and rows must each have height + 1 entries, with height at least 1")
        if min(self.rows) < 0:
            raise ValueError("rows must not be negative")


@dataclass(frozen=True)
class LinkageFacts:
    """Risk of the decisions when an attacker links records to further attributes (F12 §2.7).

    Attributes
    ----------
    attributes : tuple of str
        What links add.
    rows : int
        Records.
    linked : int
        Records with a link.
    links : int
        Links in all.
    contradicted : int
        Links that the dictionary has no consistent row for; the record is then counted as a row of its own.
    unlinked_risk, linked_risk, greatest_risk : Summary
        ``ℓ(δ(x), θ)``, its expectation over the links and the greatest loss that may happen; the means of the first two
        are ``R`` and ``R_link``.
    """

    attributes: tuple[str, ...]
    rows: int
    linked: int
    links: int
    contradicted: int
    unlinked_risk: Summary
    linked_risk: Summary
    greatest_risk: Summary


@dataclass(frozen=True)
class Section:
    """A finding that not every run has, with its exact figures; for the vault's report unless it is public.

    Attributes
    ----------
    name : str
        Its key in ``summary.json``.
    paragraph : str
        What was found, in sentences.
    status : {'proved', 'tested', 'heuristic'}
        How far it is guaranteed.
    facts : mapping of str to str, int or float
        Numbers by name, in the order shown.
    remarks : tuple of str
        What a reader must know besides, such as the conditions that do not hold.
    figures : mapping
        All of it for a program.
    public : bool
        Whether it was found from the release alone, so that everybody could.
    """

    name: str
    heading: str
    paragraph: str
    status: Status
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    figures: Mapping[str, object] = field(default_factory=dict)
    public: bool = False


@dataclass(frozen=True)
class ChosenRule:
    """A rule that was chosen for the whole table.

    Attributes
    ----------
    levels : mapping of attribute to int
        Level of every value, cut at its depth.
    section : Section
        What it was chosen by; for the vault.
    """

    name: str
    levels: Mapping[str, int]
    section: Section


_EXACT = (
    "risk_before", "risk_after", "risk_histogram_before", "risk_histogram_after", "linkage", "identified_before",
    "identified_after",
)  # fmt: skip
"""Parts of a report that depend on the table otherwise than through a mechanism."""


@dataclass(frozen=True)
class Report:
    """Everything a report shows. What is None or empty is left out of it.

    Attributes
    ----------
    edition : {'public', 'vault'}
        The public edition travels with the release, the vault edition stays inside the trusted zone.
    title, run_id : str
        What the release is, and which run made it.
    created : str
        When, as text. A public edition under differential privacy should give a date that does not depend
        on how long the run took, such as the scheduled one.
    version : str
        Version of this package.
    guarantee : Guarantee
        What the release promises.
    stages : tuple of StageRecord
        What was done, in order.
    checks : tuple of Check
        How the contracts came out.
    facts : mapping of str to str, int or float
        Key numbers by name, in the order shown.
    risk_before, risk_after : Summary or None
        Risk over the records, of the table as it stood and of the release.
    risk_histogram_before, risk_histogram_after : Histogram or None
        The same, distributed; if both are given, on the same edges.
    utility : Summary or None
        Utility over the records.
    utility_max : float or None
        What it would be if nothing were generalized.
    levels : tuple of AttributeLevels
        Generalization by attribute.
    linkage : LinkageFacts or None
        Risk after record linkage.
    identified_before, identified_after : Summary or None
        Probability that a record is found among the dictionary rows that fit it, 1/ρ, of the table and of the release.
    risk_model : {'I', 'II', 'III'}
        Says what the risk is: weighted by sensitivity, the probability itself, or weighted and in nats.
    sections : tuple of Section
        Findings with exact figures; none in a public edition.
    compared : tuple of Compared
        The table and its release side by side; of a public edition the release alone.
    floor : float or None
        Least utility of a record that was asked.
    evidence : Evidence
        Rows before and after, the riskiest classes and other recodings; of a public edition fictitious rows alone.

    Raises
    ------
    ValueError
        If the two histograms have different edges, if a public edition has sections, rows with a risk, riskiest classes
        or other recodings, or if that of a
        differentially private release holds what depends on the table otherwise than through the mechanism:
        risk, observations of the input contract, or run times. Such numbers are
        outputs too, and would void the guarantee they are printed next to. For the same reason ``facts``,
        ``utility`` and ``levels`` of such an edition must come from released rows and public parameters only;
        that cannot be checked here.
    """

    edition: Literal["public", "vault"]
    title: str
    run_id: str
    created: str
    version: str
    guarantee: Guarantee
    stages: tuple[StageRecord, ...]
    checks: tuple[Check, ...]
    facts: Mapping[str, str | int | float]
    risk_before: Summary | None
    risk_after: Summary | None
    risk_histogram_before: Histogram | None
    risk_histogram_after: Histogram | None
    utility: Summary | None
    utility_max: float | None
    levels: tuple[AttributeLevels, ...]
    linkage: LinkageFacts | None = None
    identified_before: Summary | None = None
    identified_after: Summary | None = None
    risk_model: Literal["I", "II", "III"] = "I"
    sections: tuple[Section, ...] = ()
    headline: Headline | None = None
    compared: tuple[Compared, ...] = ()
    floor: float | None = None
    evidence: Evidence = field(default_factory=Evidence)

    def __post_init__(self) -> None:
        before, after = self.risk_histogram_before, self.risk_histogram_after
        if before is not None and after is not None and before.edges != after.edges:
            raise ValueError("risk_histogram_before and risk_histogram_after must have the same edges")
        if self.edition == "public" and not all(section.public for section in self.sections):
            raise ValueError("a public edition cannot hold sections, whose figures are exact")
        if self.edition == "public" and not self.evidence.fictitious:
            raise ValueError("a public edition cannot hold evidence from records of the table")
        if self.edition == "public" and self.guarantee.kind == "dp":
            exact = [name for name in _EXACT if getattr(self, name) is not None]
            told = any(item.before is not None for item in self.compared)
            exact += ["compared.before"] if told else []
            exact += ["stages.seconds"] if any(stage.seconds is not None for stage in self.stages) else []
            observed = any(check.contract == "input" and check.observed is not None for check in self.checks)
            exact += ["checks.observed of the input contract"] if observed else []
            if exact:
                raise ValueError(
                    f"the public edition of a differentially private release cannot hold {', '.join(exact)}"
                )


@dataclass(frozen=True)
class Guarantee:
    """What a release promises.

    Attributes
    ----------
    kind : {'risk', 'k-anonymity', 'masked', 'dp', 'as-published'}
        A disclosure-risk statement about the records that were there, what every released class has, nothing (masked
        values), differential privacy, or nothing: an algorithm of the literature whose proof does not hold.
    statement : str
        The promise in one plain paragraph. For ``dp``: (epsilon, delta), the neighbouring relation, the
        unit, and the assumption on the pseudo-random function.
    status : {'proved', 'tested', 'heuristic'}
        How far it is guaranteed.
    parameters : mapping
        Its numbers. For ``dp``, ``epsilon_keep`` (the epsilon of the sampling stage) lets the report say
        which share of the rows can be published at most.
    """

    kind: Literal["risk", "k-anonymity", "masked", "dp", "as-published"]
    statement: str
    status: Status
    parameters: Mapping[str, object]
