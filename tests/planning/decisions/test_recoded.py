"""What is said of a table that is recoded by one scheme, and a contract that notices when it does not hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml
from policies import Document, changed

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.planning.decisions.recoded import MOST_SCHEMES, ByRecoding, refuse_many_schemes
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.rules import Recoding
from privrisk_spark.policy.reading import parse
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.facts import DecisionFacts, ReleaseFacts
from privrisk_spark.results.release import ChosenRule, Histogram, Section, Summary

BASE: Document = yaml.safe_load("""
version: 1
run: {name: ward}
table: {path: in/t.csv, format: csv}
columns:
  age: {role: quasi-identifier, hierarchy: {intervals: {widths: [10, 50], domain: [0, 99]}}}
  sex: {role: quasi-identifier, hierarchy: {flat: {values: [f, m]}}}
  sick: {role: sensitive}
  who: {role: identifier}
guarantee: {kind: k-anonymity, k: 5, suppression_limit: 0.29, method: flash, metric: dm}
output: {path: out, vault: vault}
""")
DIVERSE = ("guarantee.also", [{"l_diversity": {"column": "sick", "l": 2}}])

MEASURED = DecisionFacts(
    rows=100,
    sampled=100,
    infeasible=0,
    verbatim=0,
    risk_before=Summary(mean=0.5, max=0.9, min=0.1),
    risk_after=Summary(mean=0.2, max=0.25, min=0.1),
    utility=Summary(mean=2.0, max=3.0, min=1.5),
    levels=(),
    before=Histogram((0.0, 1.0), (100,)),
    after=Histogram((0.0, 1.0), (100,)),
    suppressed=29,
)
FILES = ReleaseFacts(rows=100, classes=4, min_class_size=5, off_hierarchy={}, label_rows={}, min_telling_size=5)
CHOSEN = ChosenRule("(1, 0)", {"age": 1, "sex": 0}, Section("recoding", "", "", "proved", {}))


def decision(*changes: tuple[str, Any]) -> ByRecoding:
    found = decision_of(parse(changed(BASE, *changes)))
    assert isinstance(found, ByRecoding)
    return found


def broken(found: ByRecoding, measured: DecisionFacts, files: ReleaseFacts) -> list[str]:
    def within(rule: FactRule, fact: float) -> bool:
        return (rule.at_least is None or rule.at_least <= fact) and (rule.at_most is None or fact <= rule.at_most)

    return [rule.name for rule, fact in found.contract(measured, files) if not within(rule, fact)]


def test_the_search_is_that_of_the_policy_and_says_over_what() -> None:
    found = decision()
    hierarchies = {name: build(one.hierarchy, name) for name, one in found.policy.quasi_identifiers.items()}
    assert found.procedure(hierarchies) == Recoding(found.asked)
    choice = found.choice(hierarchies)
    assert (choice.method, choice.reason) == ("flash", "8 schemes, the least dm of those within the limit")
    assert found.objective(risk="") == (
        "the level of each attribute that costs least by the metric 'dm', every released class having at least 5 rows, "
        "with at most 0.29 of the rows suppressed"
    )
    assert found.parameters() == {
        "k": 5,
        "counted": "rows",
        "suppression_limit": 0.29,
        "metric": "dm",
        "suppressed": "keep",
    }
    more = decision(DIVERSE, ("guarantee.suppressed", "drop"))
    assert "every released class having at least 5 rows and at least 2 distinct values of 'sick'" in more.objective(
        risk=""
    )
    assert more.parameters()["also"] == [{"l_diversity": {"column": "sick", "l": 2.0, "kind": "distinct"}}]
    tree = {"distance": "hierarchical", "hierarchy": {"tree": {"*": ["flu", {"nerves": ["ms"]}]}}}
    near = decision(("guarantee.also", [{"t_closeness": {"column": "sick", "t": 0.2, **tree}}]))
    assert near.parameters()["also"] == [{"t_closeness": {"column": "sick", "t": 0.2, "distance": "hierarchical"}}]
    persons = decision(("table.entity_id", "who"))
    assert persons.parameters()["counted"] == "persons"
    assert "at least 5 persons" in persons.objective(risk="")


def test_what_is_promised_of_suppressed_rows_depends_on_whether_they_are_released() -> None:
    def said(found: ByRecoding, suppressed: int) -> str:
        return found.statement("", replace(MEASURED, suppressed=suppressed), method="flash", rule=CHOSEN)

    every = "Every class of released rows that are alike in all quasi-identifiers has at least 5 rows"
    keep, drop = decision(DIVERSE), decision(("guarantee.suppressed", "drop"))
    assert said(keep, 0) == f"{every} and at least 2 distinct values of 'sick' (missing ones do not count)."
    assert said(drop, 0) == f"{every}."
    assert "Not so the 1,029 suppressed rows" in said(keep, 1029)
    assert "nothing is promised of their number or their other columns" in said(keep, 1)
    assert said(drop, 7) == f"{every}. Rows of classes that have not are left out."
    assert "has at least 5 persons" in said(decision(("table.entity_id", "who")), 0)


def test_a_contract_holds_of_what_is_asked_and_notices_what_is_not() -> None:
    keep, drop = decision(), decision(("guarantee.suppressed", "drop"))
    assert broken(keep, MEASURED, FILES) == broken(drop, MEASURED, FILES) == []
    assert broken(keep, replace(MEASURED, suppressed=30), FILES) == ["suppressed rows"]
    # The suppressed rows are few, and a class of their own in the files.
    few = replace(FILES, min_class_size=2)
    assert broken(keep, MEASURED, few) == []
    assert broken(drop, MEASURED, few) == ["smallest released class"]
    assert broken(keep, replace(MEASURED, suppressed=0), few) == ["smallest released class"], "nothing is suppressed"
    assert broken(keep, MEASURED, replace(FILES, min_telling_size=4)) == ["smallest released class"]
    # All rows are suppressed, or none released: there is no class of which anything is promised.
    assert broken(keep, MEASURED, replace(FILES, min_telling_size=None)) == []
    assert broken(drop, MEASURED, replace(FILES, rows=0, min_class_size=0)) == []
    ((limit, fact), (least, size)) = keep.contract(MEASURED, FILES)
    assert (limit.at_most, fact) == (29, 29)
    assert (least.at_least, size) == (5, 5)


def test_lattices_that_cannot_be_held_are_refused_with_what_would_do() -> None:
    refuse_many_schemes("flash", MOST_SCHEMES)
    with pytest.raises(InputError, match=r"guarantee\.method: 'flash' goes through at most 16,777,216 schemes") as said:
        refuse_many_schemes("flash", MOST_SCHEMES + 1)
    assert "allow for 16,777,217. Choose 'best', use hierarchies of fewer levels" in str(said.value)
    for method in ("best", "top_down", "datafly"):
        refuse_many_schemes(method, 2**60)
    # 25 attributes of 2 levels.
    columns = {f"c{i}": {"role": "quasi-identifier", "hierarchy": {"flat": {"values": ["f", "m"]}}} for i in range(25)}
    found = decision(("columns", columns))
    hierarchies = {name: build(one.hierarchy, name) for name, one in found.policy.quasi_identifiers.items()}
    with pytest.raises(InputError, match="allow for 33,554,432"):
        found.procedure(hierarchies)
    best = decision(("columns", columns), ("guarantee.method", "best"))
    assert isinstance(best.procedure(hierarchies), Recoding)
