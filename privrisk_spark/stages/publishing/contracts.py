"""Great Expectations contracts on the input and on the release (suites generated from the policy).

Two kinds of batch are validated: the frame itself, for what its schema tells without a scan, and a one-row table of
facts measured in the passes a run makes anyway, so that validation never scans the table again. Results hold counts of
rows, never rows: Great Expectations' own result formats would print offending values.
"""

from __future__ import annotations

import importlib
import logging
import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from privrisk_spark.errors import CheckError, SchemaError
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.contract import FactRule, Level
from privrisk_spark.results.facts import ClassFacts, DecisionFacts, InputFacts, ReleaseFacts
from privrisk_spark.results.release import Check
from privrisk_spark.runs.places import write_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Contract = Literal["input", "release"]


def prepare() -> None:
    """Import Great Expectations, which takes seconds, at a moment of the caller's choice."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    with warnings.catch_warnings():
        # It and its marshmallow warn about their own future on import and on use.
        warnings.simplefilter("ignore")
        importlib.import_module("great_expectations")


def validate(
    contract: Contract,
    *,
    facts: Mapping[str, float | int],
    rules: Sequence[FactRule],
    frame: DataFrame,
    columns: Sequence[str],
    vault: Path,
) -> list[Check]:
    """Run a contract and render its Data Docs.

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
        The suites go to ``contracts/``, the Data Docs to ``data_docs/``.

    Returns
    -------
    list of Check
        The column rule first, then one per rule.
    """
    prepare()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("great_expectations").setLevel(logging.ERROR)
        results = _run(contract, facts, rules, frame, columns, vault)
    checks = [Check(contract, "columns", "error", results[0], _column_text(contract), None)]
    for rule, passed in zip(rules, results[1:], strict=True):
        checks.append(Check(contract, rule.name, rule.level, passed, rule.text, facts[rule.name]))
    return checks


def _view(name: str) -> dict[str, str]:
    return {"module_name": "privrisk_spark.engine.fast.data_docs", "class_name": name}


def _column_text(contract: Contract) -> str:
    if contract == "release":
        return "the release has exactly the columns the policy releases, and no direct identifier"
    return "the table has exactly the columns the policy mentions"


def _run(
    contract: Contract,
    facts: Mapping[str, float | int],
    rules: Sequence[FactRule],
    frame: DataFrame,
    columns: Sequence[str],
    vault: Path,
) -> list[bool]:
    import great_expectations as gx
    from great_expectations import expectations as gxe

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    for name, site in list(context.variables.data_docs_sites.items()):
        # An ephemeral context makes a temporary directory for a site of its own; neither is wanted.
        context.delete_data_docs_site(name)
        shutil.rmtree(site["store_backend"]["base_directory"], ignore_errors=True)
    context.add_data_docs_site(
        site_name=contract,
        site_config={
            "class_name": "SiteBuilder",
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder", "view": _view("IndexPageView")},
            "site_section_builders": {
                section: {"view": _view("PageView")} for section in ("expectations", "validations", "profiling")
            },
            "store_backend": {
                "class_name": "TupleFilesystemStoreBackend",
                "base_directory": str((vault / "data_docs" / contract).resolve()),
            },
        },
    )
    if contract == "release":
        column_rule = gxe.ExpectTableColumnsToMatchOrderedList(column_list=list(columns))
    else:
        column_rule = gxe.ExpectTableColumnsToMatchSet(column_set=list(columns), exact_match=True)
    schema_suite = context.suites.add(gx.ExpectationSuite(f"{contract} columns", expectations=[column_rule]))
    facts_suite = context.suites.add(
        gx.ExpectationSuite(
            f"{contract} facts",
            expectations=[
                gxe.ExpectColumnValuesToBeBetween(
                    column=rule.name, min_value=rule.at_least, max_value=rule.at_most, notes=rule.text, meta={"rule": i}
                )
                for i, rule in enumerate(rules)
            ],
        )
    )
    spark_batch = (
        # By default it would persist the frame: raw rows in Spark's storage, and in place of the files for later runs.
        context.data_sources.add_spark("frame", persist=False)
        .add_dataframe_asset(contract)
        .add_batch_definition_whole_dataframe("whole")
    )
    facts_batch = (
        context.data_sources.add_pandas("facts")
        .add_dataframe_asset(contract)
        .add_batch_definition_whole_dataframe("whole")
    )
    frames: list[tuple[str, Any, Any, Any]] = [
        ("columns", spark_batch, schema_suite, frame),
        ("facts", facts_batch, facts_suite, pd.DataFrame([{name: float(value) for name, value in facts.items()}])),
    ]
    outcomes: list[bool] = []
    for name, batch, suite, data in frames:
        definition = context.validation_definitions.add(
            gx.ValidationDefinition(name=f"{contract} {name}", data=batch, suite=suite)
        )
        checkpoint = gx.Checkpoint(
            name=f"{contract} {name}",
            validation_definitions=[definition],
            # Column names and counts only: no unexpected value is ever listed.
            result_format={"result_format": "BASIC", "partial_unexpected_count": 0},
        )
        result = checkpoint.run(batch_parameters={"dataframe": data})
        (run,) = result.run_results.values()
        found = sorted(run.results, key=lambda r: (r.expectation_config.meta or {}).get("rule", 0))
        outcomes += [bool(r.success) for r in found]
        directory = vault / "contracts"
        directory.mkdir(exist_ok=True)
        write_json(directory / f"{contract}-{name}.json", suite.to_json_dict())
    # Once for both: a build compiles every template again, which costs more than all it validates.
    context.build_data_docs(site_names=[contract])
    return outcomes


def input_rules(policy: Policy, facts: InputFacts) -> tuple[list[FactRule], dict[str, float | int]]:
    """Rules of the input contract and the facts they read.

    Under differential privacy only what the unit of the guarantee rests on: whether a run goes on must not tell about
    the values in the table.
    """
    rules = [
        FactRule("null record ids", "every record has an id", at_most=0),
        FactRule("duplicate record ids", "no two records share an id", at_most=0),
    ]
    values: dict[str, float | int] = {
        "null record ids": facts.null_ids,
        "duplicate record ids": facts.duplicate_ids,
    }
    if policy.guarantee.kind != "risk":
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


def release_rules(policy: Policy, released: ReleaseFacts) -> tuple[list[FactRule], dict[str, float | int]]:
    """Rules on the staged files alone, and the facts they read."""
    rules = []
    values: dict[str, float | int] = {}
    for name, rows in released.off_hierarchy.items():
        fact = f"texts of {name} outside its hierarchy"
        rules.append(FactRule(fact, "every released text is a node of its hierarchy", at_most=0))
        values[fact] = rows
    size = policy.checks.min_class_size
    if size is not None:
        rules.append(FactRule("smallest class", f"every released class has at least {size} rows", at_least=size))
        values["smallest class"] = released.min_class_size if released.rows else size
    return rules, values


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
    values: dict[str, float | int] = {"released rows": released.rows}
    for rule, value in decision_of(policy).contract(measured):
        rules.append(rule)
        values[rule.name] = value
    if checks.min_class_size is not None and classes is not None and classes.fewest_persons is not None:
        size = checks.min_class_size
        rules.append(FactRule("fewest persons", f"every released class has at least {size} persons", at_least=size))
        values["fewest persons"] = classes.fewest_persons
    if checks.max_mean_risk is not None:
        limit = checks.max_mean_risk
        rules.append(FactRule("mean risk", f"the mean risk is at most {limit:g}", at_most=limit))
        values["mean risk"] = measured.risk_after.mean
    if checks.max_risk is not None:
        limit = checks.max_risk
        rules.append(FactRule("largest risk", f"no record's risk exceeds {limit:g}", at_most=limit))
        values["largest risk"] = measured.risk_after.max
    if checks.forbid_verbatim:
        rules.append(FactRule("verbatim records", "no record is released with all its original values", at_most=0))
        values["verbatim records"] = measured.verbatim
    return rules, values


def refuse_failures(checks: Sequence[Check], *, fail_on: Level) -> None:
    """Forbid publication when a check failed that the policy counts as an error.

    Raises
    ------
    CheckError
        Naming every such check and the count or measure it saw.
    """
    wrong = [check for check in checks if not check.passed and (check.level == "error" or fail_on == "warning")]
    if not wrong:
        return
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
