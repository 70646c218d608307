"""A policy as commented YAML reads as the document it was written from."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.policy.writing import DECIDE, Remark, policy_text

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Co", "Cn", "Zl", "Zp")), max_size=30)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | TEXTS
    | st.sampled_from(["02134", "yes", "1e3", "*", "# x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), VALUES)
def test_it_reads_as_it_was_meant(columns: dict[str, Any], risk: Any) -> None:
    document = {"version": 1, "columns": columns, "risk": risk}
    remarks = {("columns", name): Remark((f"why {name}" * 9,), "is it so?") for name in columns}
    text = policy_text(document, remarks, head=("head",))
    assert yaml.safe_load(text) == document
    assert text.count(f"  {DECIDE}: is it so?") >= len(columns)


@pytest.mark.parametrize("name", ["age\xa0", "\xa0", "\u2003age", " age ", "\u3000"])
def test_blanks_at_either_end_of_a_name_stay(name: str) -> None:
    document = {"columns": {name: {"role": "sensitive"}}, "risk": {name: name}}
    assert yaml.safe_load(policy_text(document, {})) == document


def test_policy_text_question_stands_at_the_line_of_its_column() -> None:
    text = policy_text({"columns": {"age": {"role": "sensitive"}}}, {("columns", "age"): Remark(("why",), "is it?")})
    assert text == "columns:\n  # why\n  age: {role: sensitive}  # DECIDE: is it?\n"
    steering = policy_text({"run": 1}, {("run",): Remark(("a \x1b[31m\u202e name",))})
    assert steering == "# a \\u001b[31m\\u202e name\nrun: 1\n"
