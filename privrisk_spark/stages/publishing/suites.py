"""A contract and its outcome in Great Expectations' form, for those who go on with them there.

Whether a rule holds is decided in :mod:`privrisk_spark.stages.publishing.contracts`. The documents are written without
Great Expectations, because its import takes longer than a small release; tests check that they are equal to its own.
Its pages are not made: they load scripts from other hosts when they are opened, and do not escape names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal

from privrisk_spark.json_values import as_json
from privrisk_spark.results.contract import FactRule

Contract = Literal["input", "release"]


def column_suite(contract: Contract, columns: Sequence[str], found: Sequence[str], holds: bool) -> dict[str, Any]:
    """Return the suite that asks for the columns, and its result.

    Parameters
    ----------
    contract : {"input", "release"}
    columns, found : sequence of str
        Columns there must be, in order for a release, and those there are.
    holds : bool
        Whether that is so.

    Returns
    -------
    dict
        ``suite`` and ``result``, JSON-safe.
    """
    if contract == "release":
        asked = _expectation("expect_table_columns_to_match_ordered_list", {"column_list": list(columns)})
    else:
        asked = _expectation("expect_table_columns_to_match_set", {"column_set": list(columns)})
    return _documents(f"{contract} columns", [asked], [holds], [list(found)])


def fact_suite(contract: Contract, rules: Sequence[FactRule], facts: Mapping[str, float | int]) -> dict[str, Any]:
    """Return the suite that asks a rule of each fact, a column of a table of one row, and its result.

    Parameters
    ----------
    contract : {"input", "release"}
    facts : mapping of fact name to number
        Holds every rule's fact.
    """
    asked = []
    for rule in rules:
        ends = {"min_value": rule.at_least, "max_value": rule.at_most}
        between = {"column": rule.name} | {name: float(end) for name, end in ends.items() if end is not None}
        asked.append(_expectation("expect_column_values_to_be_between", between) | {"notes": rule.text})
    values = [float(facts[rule.name]) for rule in rules]
    holds = [rule.holds(value) for rule, value in zip(rules, values, strict=True)]
    # An undefined number is null there.
    observed = [None if math.isnan(value) else value for value in values]
    return _documents(f"{contract} facts", asked, holds, observed)


def _expectation(kind: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": kind, "kwargs": dict(asked), "meta": {}, "severity": "critical"}


def _documents(
    title: str, expectations: Sequence[Mapping[str, Any]], holds: Sequence[bool], observed: Sequence[object]
) -> dict[str, Any]:
    passed = sum(holds)
    exception = {"raised_exception": False, "exception_traceback": None, "exception_message": None}
    results = [
        {
            "success": held,
            "expectation_config": expectation,
            "result": {"observed_value": value},
            "meta": {},
            "exception_info": exception,
        }
        for expectation, held, value in zip(expectations, holds, observed, strict=True)
    ]
    suite = {
        "name": title,
        "id": None,
        "expectations": expectations,
        "meta": {"great_expectations_version": version("great_expectations")},
        "notes": None,
    }
    result = {
        "success": passed == len(holds),
        "results": results,
        "suite_name": title,
        "suite_parameters": {},
        "statistics": {
            "evaluated_expectations": len(holds),
            "successful_expectations": passed,
            "unsuccessful_expectations": len(holds) - passed,
            "success_percent": 100 * passed / len(holds) if holds else None,
        },
        "meta": {},
        "id": None,
    }
    return {"suite": as_json(suite), "result": as_json(result)}
