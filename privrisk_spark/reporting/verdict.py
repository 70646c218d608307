"""Is this table anonymous, and why not: one paragraph made from the figures of an assessment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from privrisk_spark.kernels.measures.catalogue import CATALOGUE
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.results.assessment import Measured, Subject, Verdict


def paragraph(subjects: Sequence[Subject], verdicts: Sequence[Verdict]) -> str:
    """Answer for the last subject, with what the others were.

    Parameters
    ----------
    subjects : sequence of Subject
        The table, then the release if there is one.
    verdicts : sequence of Verdict
        Of the last one.
    """
    last = subjects[-1]
    what = "table" if last.name == "table" else "release"
    sentences = [_answer(what, last, verdicts), _identity(what, last)]
    if len(subjects) > 1:
        sentences.append(_before(subjects[0], last))
    sentences += [_population(last), _attribute(last), _attack(last)]
    sentences.append(
        "These figures are about the quasi-identifiers, populations and adversary named here; they guarantee nothing "
        "against whoever knows more."
    )
    return " ".join(sentence for sentence in sentences if sentence)


def _answer(what: str, subject: Subject, verdicts: Sequence[Verdict]) -> str:
    failed = [verdict for verdict in verdicts if not verdict.passed]
    if failed:
        reasons = "; ".join(f"{verdict.rule}, and it is {_shown(verdict.observed)}" for verdict in failed)
        return f"No: this {what} misses {len(failed)} of {len(verdicts)} thresholds. Asked was {reasons}."
    if verdicts:
        return f"By the thresholds asked, yes: this {what} meets all {len(verdicts)} of them."
    k = _one(subject, "k")
    if k is not None and k.value == 1:
        return f"No: in this {what} some records are one of a kind."
    return f"That depends on the risk you accept, and no thresholds were given to hold this {what} against."


def _identity(what: str, subject: Subject) -> str:
    records, uniques, k, mean = (_one(subject, name) for name in ("records", "uniques", "k", "prosecutor_mean"))
    if not (records and uniques and k and mean) or not records.value:
        return ""
    alone = (
        "no record is unique"
        if uniques.value == 0
        else f"{_shown(uniques.value)} of {_shown(records.value)} records are unique in their quasi-identifiers, so "
        "that whoever knows these values of a person known to be there finds the record"
    )
    return (
        f"The smallest class of the {what} has {_shown(k.value)} {'record' if k.value == 1 else 'records'} "
        f"(k = {_shown(k.value)}); {alone}. A record taken at random is found with probability {_shown(mean.value)}."
    )


def _before(table: Subject, release: Subject) -> str:
    before, after = _one(table, "prosecutor_mean"), _one(release, "prosecutor_mean")
    k = _one(table, "k")
    if before is None or after is None or k is None:
        return ""
    return f"The table itself has k = {_shown(k.value)} and a mean prosecutor risk of {_shown(before.value)}."


def _population(subject: Subject) -> str:
    k_map, marketer = _one(subject, "k_map"), _one(subject, "marketer")
    if k_map is not None and k_map.value is not None and marketer is not None:
        return (
            f"In the population every covered combination is shared by at least {_shown(k_map.value)} people, and "
            f"{_percent(marketer.value)} of the records would be matched rightly by linking each of them."
        )
    risk = _one(subject, "expected_reidentifications")
    if risk is not None and risk.value is not None:
        return f"Estimated from the sample, {_shown(risk.value)} records would be re-identified if all were tried."
    return ""


def _attribute(subject: Subject) -> str:
    worst = [one for one in subject.find("homogeneity_share") if one.value]
    if not worst:
        return ""
    one = max(worst, key=lambda found: float(found.value or 0))
    return (
        f"For {_percent(one.value)} of the records the class holds a single value of {one.parameters.get('column')}, "
        "which knowing the class gives away."
    )


def _attack(subject: Subject) -> str:
    attacked, threshold = _one(subject, "attacked_records"), _one(subject, "access_threshold")
    if attacked is None or threshold is None:
        return ""
    if not attacked.value:
        return "An adversary with the costs assumed would attack nobody."
    return (
        f"An adversary with the costs assumed would attack {_shown(attacked.value)} records, those with fewer than "
        f"about {_shown(threshold.value)} candidates."
    )


def _one(subject: Subject, name: str) -> Measured | None:
    assert name in CATALOGUE
    found = subject.find(name)
    return found[0] if found else None


def _percent(value: float | int | None) -> str:
    return "an unknown share" if value is None else f"{100 * float(value):.3g} %"


def _shown(value: float | int | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int) else short_number(value) if abs(value) >= 1e-3 else f"{value:.2g}"


def assessment_notes(policy: Policy, *, release: bool, released_persons: bool, wildcard: bool) -> Iterator[str]:
    """What a reader of an assessment must know besides.

    Parameters
    ----------
    policy : Policy
    release : bool
        Whether the table is held against a release.
    released_persons : bool
        Whether the classes of the last subject count persons.
    wildcard : bool
        Whether classes of the table were counted with missing values that may be any.
    """
    table = policy.table
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
    if release and wildcard:
        yield "In the release a suppressed value is a value of its own: classes are counted by equality there."


_NULLS = {
    "suppress": "suppressed, a value that tells nothing and is equal to other suppressed ones",
    "own-value": "a value like any other",
    "wildcard": "may be any value, so that such a record is compatible with many classes",
    "forbid": "none, they are an error",
}
