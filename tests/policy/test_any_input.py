"""Whatever a policy or a hierarchy file holds, what comes out is a policy, a hierarchy, or an error of ours."""

from __future__ import annotations

import contextlib
import copy
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from policies import DP, RISK, Document

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.builders import build, is_public
from privrisk_spark.hierarchies.files import read_arx, read_tree
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import load, parse

ASSESSED: Document = {
    **{name: part for name, part in RISK.items() if name not in ("decision", "output", "checks", "guarantee")},
    "dictionary": {"kind": "self"},
    "assess": {"sets": {"few": ["age", "sex"]}, "k": 3, "thresholds": {"k": 2}, "adversary": {"prior": 0.5}},
}

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, 1, -1, 2**31, 2**63, 2**64]),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(
        ["*", "", " ", "\x00", "${HOME}", "{ds}", "env:X", "self", "dp", "2000-01-01", "1e400", "../x", "é"]
    ),
    st.dates(),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.integers(-2, 9), inner, max_size=3)
    ),
    max_leaves=6,
)


def paths(node: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document."""
    yield above
    if isinstance(node, dict):
        for key, value in node.items():
            yield from paths(value, (*above, key))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from paths(value, (*above, i))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


@st.composite
def documents(draw: st.DrawFn) -> Any:
    """A valid document in which a few places hold something else, are gone, or are another place's."""
    document = copy.deepcopy(draw(st.sampled_from([RISK, DP, ASSESSED])))
    for _ in range(draw(st.integers(1, 3))):
        *above, last = draw(st.sampled_from([path for path in paths(document) if path]))
        holder = at(document, tuple(above))
        what = draw(st.integers(0, 3))
        if what == 0:
            del holder[last]
        elif what == 1:
            holder[last] = copy.deepcopy(at(document, draw(st.sampled_from([p for p in paths(document) if p]))))
        elif what == 2 and isinstance(holder, dict):
            holder[draw(st.text(max_size=5) | st.sampled_from(["kind", "role", "method", "weight", "entity_id"]))] = (
                draw(values)
            )
        else:
            holder[last] = draw(values)
    return document


def used(policy: Policy) -> None:
    """What is done with a policy before anything is opened."""
    assert len(policy.digest()) >= 32
    for name, spec in policy.quasi_identifiers.items():
        if not is_public(spec.hierarchy):
            continue
        with contextlib.suppress(InputError):  # of one column; others are built all the same
            assert build(spec.hierarchy, name, values=None, null_leaf=spec.nulls == "own-value").n_leaves > 0


@pytest.mark.parametrize("document", [RISK, DP, ASSESSED], ids=["risk", "dp", "assess"])
def test_what_is_spoiled_is_a_policy_before(document: Document) -> None:
    used(parse(document, releasing="assess" not in document))


@settings(max_examples=400)
@given(documents())
def test_any_document_is_a_policy_or_a_fault_of_the_users(document: Any) -> None:
    with contextlib.suppress(InputError):
        used(parse(document, releasing="assess" not in document))


@settings(max_examples=200)
@given(documents(), st.data())
def test_any_text_is_a_policy_or_a_fault_of_the_users(document: Any, data: st.DataObject) -> None:
    """Also what no YAML writer would write: characters taken out of it and put into it."""
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(text)))
        text = (
            text[:place]
            + data.draw(st.text("&*!{}[]:,-|>%@\"'#\t\n x\x00\x85\ud800", max_size=3))
            + text[place + data.draw(st.integers(0, 3)) :]
        )
    raw = text.encode("utf-8", "surrogatepass")
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "policy.yaml")
        file.write_bytes(raw)
        with contextlib.suppress(InputError):
            used(load([file], environment={}))


cells = st.text("ab*;,\"'\n\r\t \\é\x00", max_size=4) | st.sampled_from(["*", "a", "b", "north"])


@settings(max_examples=300)
@given(
    st.lists(st.lists(cells, max_size=5), max_size=6),
    st.sampled_from([";", ",", "\t"]),
    st.booleans(),
    st.binary(max_size=4),
)
def test_any_hierarchy_file_is_a_hierarchy_or_a_fault_of_the_users(
    rows: list[list[str]], separator: str, qualify: bool, more: bytes
) -> None:
    raw = "\n".join(separator.join(row) for row in rows).encode() + more
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "h.csv")
        Path(file).write_bytes(raw)
        try:
            found, root = read_arx(file, attribute="x", separator=separator, qualify=qualify)
            assert Hierarchy.from_paths("x", found, root=root).n_leaves == len(found)
        except InputError:
            pass


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
@settings(max_examples=150)
@given(values, st.binary(max_size=3), st.booleans())
def test_any_tree_file_is_a_hierarchy_or_a_fault_of_the_users(
    suffix: str, tree: Any, more: bytes, qualify: bool
) -> None:
    raw = yaml.safe_dump({"*": tree}, default_flow_style=suffix == ".json").encode() + more
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, f"h{suffix}")
        file.write_bytes(raw)
        try:
            found = read_tree(file, attribute="x", qualify=qualify)
            assert Hierarchy.from_paths("x", found).n_leaves == len(found)
        except InputError:
            pass
