"""A contract and its outcome in Great Expectations' form, for those who go on with them there.

Whether a rule holds is decided in :mod:`privrisk_spark.stages.publishing.contracts`. Great Expectations' own pages are
not made: they load scripts from other hosts when they are opened, and do not escape names.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.json_values import json_safe

Contract = Literal["input", "release"]


def prepare() -> None:
    """Import Great Expectations, which takes seconds, at a moment of the caller's choice."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    with warnings.catch_warnings():
        # It and its marshmallow warn about their own future on import and on use.
        warnings.simplefilter("ignore")
        importlib.import_module("great_expectations")


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
    prepare()
    from great_expectations import expectations as gxe

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if contract == "release":
            asked: Any = gxe.ExpectTableColumnsToMatchOrderedList(column_list=list(columns))
        else:
            asked = gxe.ExpectTableColumnsToMatchSet(column_set=list(columns), exact_match=True)
        return _documents(f"{contract} columns", [asked], [holds], [list(found)])


def fact_suite(contract: Contract, rules: Sequence[FactRule], facts: Mapping[str, float | int]) -> dict[str, Any]:
    """Return the suite that asks a rule of each fact, a column of a table of one row, and its result.

    Parameters
    ----------
    contract : {"input", "release"}
    rules : sequence of FactRule
    facts : mapping of fact name to number
        Holds every rule's fact.
    """
    prepare()
    from great_expectations import expectations as gxe

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked = [
            gxe.ExpectColumnValuesToBeBetween(
                column=rule.name, min_value=rule.at_least, max_value=rule.at_most, notes=rule.text
            )
            for rule in rules
        ]
        values = [float(facts[rule.name]) for rule in rules]
        holds = [rule.holds(value) for rule, value in zip(rules, values, strict=True)]
        return _documents(f"{contract} facts", asked, holds, values)


def _documents(
    title: str, expectations: Sequence[Any], holds: Sequence[bool], observed: Sequence[object]
) -> dict[str, Any]:
    import great_expectations as gx
    from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult

    results = [
        ExpectationValidationResult(
            success=held,
            expectation_config=expectation.configuration,
            result={"observed_value": value},
            exception_info={"raised_exception": False, "exception_traceback": None, "exception_message": None},
        )
        for expectation, held, value in zip(expectations, holds, observed, strict=True)
    ]
    passed = sum(holds)
    result = ExpectationSuiteValidationResult(
        success=passed == len(holds),
        results=results,
        suite_name=title,
        statistics={
            "evaluated_expectations": len(holds),
            "successful_expectations": passed,
            "unsuccessful_expectations": len(holds) - passed,
            "success_percent": 100 * passed / len(holds) if holds else None,
        },
        meta={},
    )
    suite = gx.ExpectationSuite(title, expectations=list(expectations))
    return {"suite": json_safe(suite.to_json_dict()), "result": json_safe(result.to_json_dict())}
