"""Is this table anonymous, and why not: one paragraph made from the figures of an assessment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.results.assessment import Measured, Subject, Verdict


def paragraph(subjects: Sequence[Subject], verdicts: Sequence[Verdict]) -> str:
    """Answer for the last subject, with what the others were.

    Every sentence is about the set of quasi-identifiers for which it is worst, and names it where there are several.

    Parameters
    ----------
    subjects : sequence of Subject
        The table, then the release if there is one.
    verdicts : sequence of Verdict
        Of the last one.
    """
    last = subjects[-1]
    what = "table" if last.name == "table" else "release"
    sentences = [_answer(what, last, verdicts), _identity(what, last), _suppressed(last)]
    if len(subjects) > 1:
        sentences.append(_before(subjects[0]))
    sentences += [_population(last), _attribute(last), _intervals(last), _attack(last)]
    sentences.append(
        "These figures are about the quasi-identifiers, populations and adversary named here; they guarantee nothing "
        "against whoever knows more."
    )
    return " ".join(sentence for sentence in sentences if sentence)


def _answer(what: str, subject: Subject, verdicts: Sequence[Verdict]) -> str:
    failed = [verdict for verdict in verdicts if not verdict.passed]
    if failed:
        reasons = "; ".join(
            f"{verdict.rule}, and it is {_shown(verdict.observed)}{_by(subject, verdict)}" for verdict in failed
        )
        return f"No: this {what} misses {len(failed)} of {len(verdicts)} thresholds. Asked was {reasons}."
    if verdicts:
        return f"By the thresholds asked, yes: this {what} meets all {len(verdicts)} of them."
    k = subject.worst_of("k")
    if k is not None and k.value == 1:
        return f"No: in this {what} some records are one of a kind{_by(subject, k)}."
    return f"That depends on the risk you accept, and no thresholds were given to hold this {what} against."


def _identity(what: str, subject: Subject) -> str:
    k, uniques, mean = (subject.worst_of(name) for name in ("k", "uniques", "prosecutor_mean"))
    if k is None or uniques is None or mean is None:
        return ""
    (records,) = subject.find("records", set=uniques.parameters.get("set"))
    if not records.value:
        return ""
    several = len(_sets(subject)) > 1
    alone = (
        f"no record is unique{' by any set' if several else ''}"
        if uniques.value == 0
        else f"{_shown(uniques.value)} of {_shown(records.value)} records are unique in their quasi-identifiers"
        f"{_by(subject, uniques)}, so that whoever knows these values of a person known to be there finds the record"
    )
    return (
        f"The smallest class of the {what} has {_shown(k.value)} {'record' if k.value == 1 else 'records'} "
        f"(k = {_shown(k.value)}){_by(subject, k)}; {alone}. A record taken at random is found with probability "
        f"{_shown(mean.value)}{_by(subject, mean)}."
    )


_COUNTED = {
    "apart": "they are in no class, and in none of these figures",
    "compatible": "each of them is taken to be compatible with every record",
    "class": "so is every record there, which makes one class of them",
}


def _suppressed(subject: Subject) -> str:
    one = subject.worst_of("suppressed_records")
    if one is None or not one.value:
        return ""
    (records,) = subject.find("records", set=one.parameters.get("set"))
    return (
        f"{_shown(one.value)} of {_shown(records.value)} records are suppressed whole{_by(subject, one)}; "
        f"{_COUNTED[str(one.parameters['counted'])]}."
    )


def _before(table: Subject) -> str:
    k, mean = table.worst_of("k"), table.worst_of("prosecutor_mean")
    if k is None or mean is None:
        return ""
    return (
        f"The table itself has k = {_shown(k.value)}{_by(table, k)} and a mean prosecutor risk of {_shown(mean.value)}"
        f"{_by(table, mean)}."
    )


def _population(subject: Subject) -> str:
    k_map, marketer = subject.worst_of("k_map"), subject.worst_of("marketer")
    if k_map is not None and marketer is not None:
        return (
            f"In the population every covered combination is shared by at least {_shown(k_map.value)} people"
            f"{_by(subject, k_map)}, and {_percent(marketer.value)} of the records would be matched rightly by linking "
            f"each of them{_by(subject, marketer)}."
        )
    risk, alone = subject.worst_of("expected_reidentifications"), _believed(subject)
    sentences = []
    if risk is not None:
        sentences.append(
            f"Estimated from the sample ({risk.parameters.get('model')}), {_shown(risk.value)} records would be "
            f"re-identified if all were tried{_by(subject, risk)}."
        )
    if alone is not None:
        sentences.append(
            f"Of the population, {_shown(round(float(alone.value or 0)))} people are estimated to be alone with their "
            f"values{_by(subject, alone)}; of the estimates, the one to believe is that of the model "
            f"{alone.parameters.get('model')}."
        )
    return " ".join(sentences)


def _believed(subject: Subject) -> Measured | None:
    """The estimate of population uniques that a rule takes, for the set with the most."""
    chosen = [one for one in subject.find("estimated_population_uniques") if "rule" in one.parameters]
    return max(chosen, key=lambda one: float(one.value or 0), default=None)


def _attribute(subject: Subject) -> str:
    one = subject.worst_of("homogeneity_share")
    if one is None or not one.value:
        return ""
    return (
        f"For {_percent(one.value)} of the records the class holds a single value of {one.parameters.get('column')}"
        f"{_by(subject, one)}, which knowing the class gives away."
    )


def _intervals(subject: Subject) -> str:
    one = subject.worst_of("rid")
    if one is None:
        return ""
    half = _shown(float(str(one.parameters["p"])) / 2)
    return (
        f"For {_percent(one.value)} of the records the true value of '{one.parameters['column']}' lies within {half} % "
        "of the ranks about the masked one, of all masked columns the most."
    )


def _attack(subject: Subject) -> str:
    attacked = subject.worst_of("attacked_records")
    if attacked is None:
        return ""
    (threshold,) = subject.find("access_threshold", set=attacked.parameters.get("set"))
    if not attacked.value:
        return "An adversary with the costs assumed would attack nobody."
    return (
        f"An adversary with the costs assumed would attack {_shown(attacked.value)} records, those with fewer than "
        f"about {_shown(threshold.value)} candidates{_by(subject, attacked)}."
    )


def _sets(subject: Subject) -> list[object]:
    return list(dict.fromkeys(one.parameters["set"] for one in subject.measured if "set" in one.parameters))


def _by(subject: Subject, one: Measured | Verdict) -> str:
    """Name the set a value is of, where there are several."""
    return f" by the set '{one.parameters['set']}'" if len(_sets(subject)) > 1 and "set" in one.parameters else ""


def _percent(value: float | int | None) -> str:
    return "an unknown share" if value is None else f"{100 * float(value):.3g} %"


def _shown(value: float | int | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int) else short_number(value) if abs(value) >= 1e-3 else f"{value:.2g}"


def assessment_notes(policy: Policy, *, release: bool, released_persons: bool, masked: bool = False) -> Iterator[str]:
    """What a reader of an assessment must know besides.

    Parameters
    ----------
    release : bool
        Whether the table is held against a release.
    released_persons : bool
        Whether the classes of the last subject count persons.
    masked : bool
        Whether the table is held against a masked release.
    """
    table = policy.table
    if masked:
        yield _MASKED
    if table.entity_id is not None:
        yield "Class sizes, k and risks count distinct persons; sensitive values count persons who hold them."
        if release and not released_persons:
            yield (
                "The release does not name its records (assess.release.record_id), so its classes count rows: one "
                "person with several rows hides behind himself."
            )
    if table.weight is not None:
        yield "Sampling weights are told beside the class sizes; thresholds are about class sizes."
    nulls = sorted({column.nulls for column in policy.quasi_identifiers.values()})
    yield "Missing values: " + ", ".join(_NULLS[kind] for kind in nulls) + "."
    if release and set(nulls) - {"wildcard"}:
        yield (
            "In the release a suppressed cell is equal to suppressed cells only, unless its column has nulls: wildcard."
        )
    if "wildcard" in nulls:
        yield (
            "Where a missing or suppressed value may be any, class sizes and risks count compatible records; sensitive "
            "values and special uniques are of records that are equal."
        )


_MASKED = (
    "The release is masked: its values are others than the table's, so that how many rows are alike tells a risk only "
    "where microaggregation of all quasi-identifiers makes them so, and is told there alone. What an intruder finds in "
    "spite of the masks, privrisk attack measures."
)

_NULLS = {
    "suppress": "suppressed, a value that tells nothing and is equal to other suppressed ones",
    "own-value": "a value like any other",
    "wildcard": "may be any value, so that such a record is compatible with many classes",
    "forbid": "none, they are an error",
}
