"""What is said of a release that composes with earlier ones of the same records."""

from __future__ import annotations

from collections.abc import Sequence

from privrisk_spark.claims import Status
from privrisk_spark.json_values import as_json
from privrisk_spark.planning.history import EarlierRelease
from privrisk_spark.results.facts import DecisionFacts
from privrisk_spark.results.release import Section


def _named(earlier: Sequence[EarlierRelease]) -> str:
    names = ", ".join(f"'{one.run_id}'" for one in earlier)
    return f"the earlier release {names}" if len(earlier) == 1 else f"{len(earlier)} earlier releases ({names})"


def history_sentence(earlier: Sequence[EarlierRelease]) -> str:
    """Say what the decisions reckon with, after a blank; nothing where nothing is out."""
    return f" Risk is that of this release together with {_named(earlier)}." if earlier else ""


def composition_statement(earlier: Sequence[EarlierRelease]) -> str:
    """Say of whom the composed risk is, after a blank; nothing where nothing is out."""
    if not earlier:
        return ""
    return (
        f" The risk is that of this release together with {_named(earlier)}: of an attacker who can tell which of "
        "their rows are one record's, and so knows the finest cell of each value, counted in the dictionary of now. A "
        "value that has changed since is as if that release had suppressed it."
    )


def beyond_sentence(measured: DecisionFacts) -> str:
    """Say how many records no suppression brings within the bound."""
    return (
        f"{measured.beyond:,} of {measured.rows:,} records are already disclosed beyond the bound by earlier releases; "
        "they are suppressed whole in this one."
    )


def history_section(measured: DecisionFacts, earlier: Sequence[EarlierRelease], *, status: Status) -> Section | None:
    """Return composed risk beside that of the release alone; None where nothing is out."""
    found = measured.history
    if found is None:
        return None
    summaries = {
        "of this release alone": found.alone,
        "of earlier releases alone": found.out,
        "of all together": measured.risk_after,
    }
    facts: dict[str, str | int | float] = {
        "earlier releases": len(earlier),
        "records in an earlier release": found.records,
        "records whose values have changed since": found.changed,
        "records whose risk this release raises": found.raised,
        "records disclosed beyond the bound already": found.beyond,
        **{f"mean risk {name}": summary.mean for name, summary in summaries.items()},
        **{f"largest risk {name}": summary.max for name, summary in summaries.items()},
    }
    text = (
        f"Of {measured.rows:,} records, {found.records:,} are in an earlier release. By {_named(earlier)} the mean "
        f"risk of all records is {found.out.mean:.4g} already, and {measured.risk_after.mean:.4g} together with this "
        f"release, which raises the risk of {found.raised:,} records; of this release alone it is "
        f"{found.alone.mean:.4g}."
    )
    remarks = [
        "Risk after several releases is that at the finest cell of each value: all cells of one value lie on one path "
        "of its hierarchy. The attacker is one who can tell which rows of the releases are the same record's.",
        "To disclose again what is out already adds no risk, so this release is at least as fine as those before it, "
        "but for records that are suppressed whole.",
    ]
    if found.changed:
        remarks.append(
            f"{found.changed:,} records have values that were others in an earlier release. What was released of the "
            "old values says nothing of the new ones and is left out; whether it helps to link rows is not measured."
        )
    if found.beyond:
        remarks.append(beyond_sentence(measured))
    return Section(
        "history",
        "After earlier releases",
        text,
        status,
        facts,
        tuple(remarks),
        {
            "releases": [one.public for one in earlier],
            "records": found.records,
            "changed": found.changed,
            "raised": found.raised,
            "beyond": found.beyond,
            "risk_alone": as_json(found.alone),
            "risk_of_history": as_json(found.out),
            "risk_composed": as_json(measured.risk_after),
            "histogram_alone": as_json(found.histogram),
        },
    )
