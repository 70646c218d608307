"""Contracts on the input and on the release: rules made from the policy, and whether they hold.

Two things are looked at: the columns of a frame, without a scan, and facts measured in the passes a run makes anyway,
so that validation never scans the table again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from privrisk_spark.errors import CheckError, SchemaError
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.policy.guarantees import anonymity_of
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.page_templates import fill
from privrisk_spark.results.contract import FactRule, Level
from privrisk_spark.results.facts import ClassFacts, DecisionFacts, InputFacts, ReleaseFacts
from privrisk_spark.results.release import Check
from privrisk_spark.stages.publishing.suites import Contract, column_suite, fact_suite
from privrisk_spark.storage.directories import make_missing
from privrisk_spark.storage.documents import write_json, write_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_OF_IDS = ("null record ids", "duplicate record ids")


def validate(
    contract: Contract,
    *,
    facts: Mapping[str, float | int],
    rules: Sequence[FactRule],
    frame: DataFrame,
    columns: Sequence[str],
    vault: Path,
) -> list[Check]:
    """Hold a frame's columns and measured facts against a contract, and write it down with its outcome.

    Parameters
    ----------
    contract : {"input", "release"}
    facts : mapping of fact name to number
        Holds every rule's fact.
    rules : sequence of FactRule
    frame : DataFrame
        Whose columns are checked; not scanned.
    columns : sequence of str
        Columns the frame must have, in order for a release.
    vault : Path
        A page, and suites and results in Great Expectations' form, go to ``contracts/``.

    Returns
    -------
    list of Check
        The column rule first, then one per rule.
    """
    there = frame.schema.names
    has_columns = there == list(columns) if contract == "release" else set(there) == set(columns)
    checks = [Check(contract, "columns", "error", has_columns, _column_text(contract), None)]
    for rule in rules:
        value = facts[rule.name]
        checks.append(Check(contract, rule.name, rule.level, rule.holds(float(value)), rule.text, value))
    directory = vault / "contracts"
    make_missing(directory)
    for name, documents in (
        ("columns", column_suite(contract, columns, there, has_columns)),
        ("facts", fact_suite(contract, rules, facts)),
    ):
        write_json(directory / f"{contract}-{name}.json", documents["suite"])
        write_json(directory / f"{contract}-{name}-result.json", documents["result"])
    missing, surplus = ([name for name in a if name not in b] for a, b in ((columns, there), (there, columns)))
    failed = sum(not check.passed for check in checks)
    told = {"contract": contract, "checks": checks, "failed": failed, "missing": missing, "surplus": surplus}
    write_text(directory / f"{contract}.html", fill("contract.html.j2", **told))
    return checks


def _column_text(contract: Contract) -> str:
    if contract == "release":
        return "the release has exactly the columns the policy releases, and no direct identifier"
    return "the table has exactly the columns the policy mentions"


def input_rules(policy: Policy, facts: InputFacts) -> tuple[list[FactRule], dict[str, float | int]]:
    """Rules of the input contract and the facts they read.

    Under differential privacy none: whether a run goes on must not tell about the values in the table, ids included
    (:mod:`privrisk_spark.tables.record_ids`).
    """
    if policy.guarantee.private:
        return [], {}
    rules = [
        FactRule(_OF_IDS[0], "every record has an id", at_most=0),
        FactRule(_OF_IDS[1], "no two records share an id", at_most=0),
    ]
    values: dict[str, float | int] = {
        "null record ids": facts.null_ids,
        "duplicate record ids": facts.duplicate_ids,
    }
    if not policy.decides:
        return rules, values
    allowed = policy.checks.row_count
    rules.append(FactRule("rows", "the number of rows is in the expected range", allowed.at_least, allowed.at_most))
    values["rows"] = facts.rows
    for name, rows in facts.unknown.items():
        fact = f"suppressed unknown values of {name}"
        rules.append(
            FactRule(fact, "at most half of the rows are outside the hierarchy", None, facts.rows / 2, "warning")
        )
        values[fact] = rows
    return rules, values


def release_rules(
    policy: Policy, released: ReleaseFacts, label_rows: Mapping[str, int]
) -> tuple[list[FactRule], dict[str, float | int]]:
    """Rules on the staged files, and the facts they read.

    Parameters
    ----------
    label_rows : mapping of attribute, and "" for tuples, to a fingerprint of how many rows each label must stand in
        As ``released.label_rows`` has it of the rows each label stands in.
    """
    rules = []
    values: dict[str, float | int] = {}
    for name, rows in released.off_hierarchy.items():
        fact = f"texts of {name} outside its hierarchy"
        rules.append(FactRule(fact, "every released text is a node of its hierarchy", at_most=0))
        values[fact] = rows
    for name, rows in label_rows.items():
        fact = f"labels of {name} in other rows" if name else "tuples of labels in other rows"
        rule = "every label stands in as many rows as were decided for its values"
        rules.append(FactRule(fact, rule if name else f"{rule}, and with those that were decided beside it", at_most=0))
        values[fact] = int(released.label_rows[name] != rows)
    size = policy.checks.min_class_size
    if size is not None:
        rules.append(FactRule("smallest class", f"every released class has at least {size} rows", at_least=size))
        values["smallest class"] = released.min_class_size if released.rows else size
    return rules, values


def refuse_missing(missing: Mapping[str, int]) -> None:
    """Refuse columns with missing values, of which the policy says that there are none.

    Parameters
    ----------
    missing : mapping of column to rows

    Raises
    ------
    SchemaError
        Naming every such column and its rows.
    """
    faults = [
        f"columns.{name}: {rows:,} rows have no value, and columns.{name}.nulls is 'forbid'; mend them, or choose "
        "'suppress'."
        for name, rows in missing.items()
        if rows
    ]
    if faults:
        raise SchemaError(" | ".join(faults))


def decision_rules(
    policy: Policy,
    facts: InputFacts,
    measured: DecisionFacts,
    released: ReleaseFacts,
    classes: ClassFacts | None = None,
) -> tuple[list[FactRule], dict[str, float | int]]:
    """Rules on exact measures of the decisions, and the facts they read; never under differential privacy."""
    checks = policy.checks
    rules = [FactRule("released rows", "every record read is released", facts.rows, facts.rows)]
    if measured.sampled < measured.rows:
        kept = facts.rows - measured.suppressed
        rules = [FactRule("released rows", "every record that is not suppressed is released", kept, kept)]
    values: dict[str, float | int] = {"released rows": released.rows}
    for rule, value in decision_of(policy).contract(measured, released):
        rules.append(rule)
        values[rule.name] = value
    if checks.min_class_size is not None and classes is not None and classes.fewest_persons is not None:
        size = checks.min_class_size
        rules.append(FactRule("fewest persons", f"every released class has at least {size} persons", at_least=size))
        values["fewest persons"] = classes.fewest_persons
    asked = anonymity_of(policy.guarantee)
    if asked is not None and classes is not None:
        # Rows suppressed as wholes are a class of their own, of which nothing is promised.
        apart = measured.suppressed and asked.suppressed == "keep"
        fewest = classes.fewest_telling_persons if apart else classes.fewest_persons
        if fewest is not None:
            text = f"every released class that is not suppressed has at least {asked.k:,} persons"
            rules.append(FactRule("fewest persons", text, at_least=asked.k))
            values["fewest persons"] = fewest
    if checks.max_mean_risk is not None:
        limit = checks.max_mean_risk
        rules.append(FactRule("mean risk", f"the mean risk is at most {limit:g}", at_most=limit))
        values["mean risk"] = measured.risk_after.mean
    if checks.max_risk is not None:
        limit = checks.max_risk
        text = f"no record's risk exceeds {limit:g}"
        if measured.history is not None:
            text += ", earlier releases included, but for records disclosed beyond the decision's bound already"
        rules.append(FactRule("largest risk", text, at_most=limit))
        values["largest risk"] = measured.greatest_bounded_risk
    if checks.kept_uniqueness_at_most is not None:
        most = checks.kept_uniqueness_at_most
        one, many = ("row", "rows") if released.persons is None else ("person", "persons")
        from privrisk_spark.reporting.kept_columns import TOGETHER_WAY_OUT, way_out

        for name, uniques in released.unique_by_kept.items():
            fact = f"uniqueness of {name}"
            text = f"at most {most:.4g} of the {many} have a value of '{name}' that no other {one} has: {way_out(name)}"
            rules.append(FactRule(fact, text, at_most=most))
            values[fact] = released.share(uniques)
        if released.unique_by_all is not None:
            text = (
                f"at most {most:.4g} of the {many} differ from every other {one} by kept columns together with "
                f"released quasi-identifiers, which alone do not tell them apart: {TOGETHER_WAY_OUT}"
            )
            rules.append(FactRule("uniqueness by all kept columns", text, at_most=most))
            values["uniqueness by all kept columns"] = released.share(released.unique_by_adding_kept)
    if checks.forbid_verbatim:
        rules.append(FactRule("verbatim records", "no record is released with all its original values", at_most=0))
        values["verbatim records"] = measured.verbatim
    return rules, values


def refuse_failures(checks: Sequence[Check], *, fail_on: Level) -> None:
    """Forbid publication when a check failed that the policy counts as an error.

    Raises
    ------
    SchemaError
        If records have no ids of their own: the table must be mended.
    CheckError
        Naming every such check and the count or measure it saw.
    """
    wrong = [check for check in checks if not check.passed and (check.level == "error" or fail_on == "warning")]
    if not wrong:
        return
    of_ids = [f"{check.rule} ({check.name}: {check.observed:g})" for check in wrong if check.name in _OF_IDS]
    if of_ids:
        raise SchemaError(
            f"table.record_id: must hold that {' and that '.join(of_ids)}. Mend the column, or leave the key out."
        )
    parts = [
        f"{check.contract} contract: {check.rule} ({check.name}"
        + ("" if check.observed is None else f": {check.observed:g}")
        + ")"
        for check in wrong
    ]
    raise CheckError("Not published. " + " | ".join(parts) + ".")


def refuse_infinite(facts: InputFacts, search: str) -> None:
    """Refuse infinite weights, for a search that takes none.

    Raises
    ------
    SchemaError
        Naming column and number of rows.
    """
    for name, rows in facts.infinite_weights.items():
        if rows:
            raise SchemaError(
                f"columns.{name}: {rows:,} rows have an infinite weight, which decision.method '{search}' does not "
                "take; give a large one, or use 'exact' or 'exhaustive'."
            )
