from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import HierarchyError
from privrisk_spark.hierarchies.files import paths_of_tree, read_arx, read_tree
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.hierarchies.paths import MAX_HEIGHT

ADULT = Path(os.environ.get("PRIVRISK_ADULT") or Path(__file__).resolve().parents[3] / "shared" / "data" / "adult")
needs_adult = pytest.mark.skipif(
    not (ADULT / "adult_hierarchy_age.csv").is_file(), reason="no Adult hierarchies; set PRIVRISK_ADULT"
)


@st.composite
def leaf_paths(draw: st.DrawFn) -> list[tuple[str, ...]]:
    """Unbalanced trees with unary chains; few inner labels, so that one label stands on several branches."""
    branches = draw(st.lists(st.lists(st.sampled_from("ABC"), max_size=4), min_size=1, max_size=14))
    return [(f"leaf{i}", *branch) for i, branch in enumerate(branches)]


def chain(path: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Keys of a leaf and of all above it, the root last: the key of a node is its path from the root."""
    return [path[i:] for i in range(len(path) + 1)]


def keys_of(h: Hierarchy) -> list[tuple[str, ...]]:
    """Key of each numbered node, by walking parents."""
    keys = []
    for start in range(h.n_nodes):
        key, node = [], start
        while node != h.root:
            key.append(h.labels[node])
            node = int(h.parent[node])
        keys.append(tuple(key))
    return keys


@settings(max_examples=150, deadline=None)
@given(paths=leaf_paths(), null_leaf=st.booleans())
def test_every_array_is_what_walking_the_tree_says(paths: list[tuple[str, ...]], null_leaf: bool) -> None:
    h = Hierarchy.from_paths("a", paths, null_leaf=null_leaf)
    whole: list[tuple[Any, ...]] = [*paths, *([(None,)] if null_leaf else [])]
    keys = keys_of(h)

    # The nodes are exactly the paths' suffixes, each once: equal labels on different branches stay apart.
    assert sorted(map(str, keys)) == sorted({str(key) for path in whole for key in chain(path)})
    assert sorted(map(str, keys[: h.n_leaves])) == sorted(map(str, whole))
    assert keys[h.root] == ()
    assert h.labels[h.root] == "*"

    height = max(len(path) for path in whole)
    assert h.height == height
    assert h.ancestor.shape == (len(whole) + 1, height + 1)
    for node, key in enumerate(keys):
        under = [leaf for leaf in range(h.n_leaves) if keys[leaf][len(keys[leaf]) - len(key) :] == key]
        assert h.depth[node] == len(key)
        assert h.n_under[node] == len(under)
        assert list(range(h.first_leaf[node], h.last_leaf[node])) == under
        for depth in range(height + 1):
            want = keys.index(key[len(key) - depth :]) if depth <= len(key) else -1
            assert h.at_depth[node, depth] == want
    for leaf in range(h.n_leaves):
        for level in range(height + 1):
            assert keys[h.ancestor[leaf, level]] == keys[leaf][level:]
    assert (h.ancestor[h.n_leaves] == h.root).all()

    assert (h.parent[:-1] > np.arange(h.n_nodes - 1)).all()
    for name in ("parent", "depth", "first_leaf", "last_leaf", "ancestor", "at_depth"):
        assert getattr(h, name).dtype == np.int32
    assert h.n_under.dtype == np.int64


@given(paths=leaf_paths())
def test_bottom_up_meets_every_child_before_its_parent(paths: list[tuple[str, ...]]) -> None:
    h = Hierarchy.from_paths("a", paths)
    done: set[int] = set()
    for nodes, parents in h.bottom_up():
        assert parents.tolist() == h.parent[nodes].tolist()
        for node in nodes.tolist():
            assert {v for v in range(h.root) if h.parent[v] == node} <= done
        done |= set(nodes.tolist())
    assert done == set(range(h.root))


@given(paths=leaf_paths(), data=st.data())
def test_order_of_paths_changes_numbers_only(paths: list[tuple[str, ...]], data: st.DataObject) -> None:
    h = Hierarchy.from_paths("a", paths)
    other = Hierarchy.from_paths("a", data.draw(st.permutations(paths)))
    assert sorted(zip(keys_of(h), h.n_under.tolist(), strict=True)) == sorted(
        zip(keys_of(other), other.n_under.tolist(), strict=True)
    )


def test_siblings_keep_the_order_of_first_appearance_and_leaves_go_depth_first() -> None:
    # "d" joins its sibling "a" under North although it comes last; the lone "b" stands between the regions.
    paths = [("a", "North"), ("b",), ("c", "South"), ("d", "North")]
    h = Hierarchy.from_paths("region", paths, null_leaf=True)
    assert h.labels == ("a", "d", "b", "c", None, "North", "South", "*")
    assert h.parent.tolist() == [5, 5, 7, 6, 7, 7, 7, 7]
    assert h.code_of == {"a": 0, "d": 1, "b": 2, "c": 3}
    assert h.n_under[h.root] == 5  # null as a value of its own counts in n(⊥)


def test_unary_chains_keep_every_node() -> None:
    h = Hierarchy.from_paths("a", [("x", "x", "x"), ("y",)])
    assert (h.n_nodes, h.height) == (5, 3)
    assert [h.labels[node] for node in h.ancestor[0]] == ["x", "x", "x", "*"]
    assert h.ancestor[1].tolist() == [1, h.root, h.root, h.root]  # a short branch stays at the root
    assert len(set(h.ancestor[0].tolist())) == 4


@pytest.mark.parametrize(("null_leaf", "null"), [(True, 2), (False, 2)])
def test_encode(null_leaf: bool, null: int) -> None:
    h = Hierarchy.from_paths("a", [("x",), ("y",)], null_leaf=null_leaf)
    codes = h.encode(["y", None, "nobody", "x", "*"])
    assert codes.tolist() == [1, null, -1, 0, -1]
    assert codes.dtype == np.int32
    assert h.encode([]).shape == (0,)
    # The same code 2 means a leaf of its own, or the root from the start.
    assert (h.ancestor[codes[1], 0] == h.root) is np.bool_(not null_leaf)
    assert h.code_of_null == null


def test_arrays_are_read_only_and_survive_pickling() -> None:
    h = Hierarchy.from_paths("a", [("x", "X"), ("y", "X")])
    with pytest.raises(ValueError, match="read-only"):
        h.parent[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        h.ancestor[0, 0] = 1
    again = pickle.loads(pickle.dumps(h))
    assert again.ancestor.tolist() == h.ancestor.tolist()
    assert again.labels == h.labels


def test_find_and_levels() -> None:
    h = Hierarchy.from_paths("city", [("a", "North"), ("b", "North", "East"), ("c", "South"), ("d",)])
    assert h.labels[h.find("South")] == "South"
    assert h.nodes_at_level(0).tolist() == [0, 1, 2, 3]
    assert h.nodes_at_level(3).tolist() == [h.root]
    assert {h.labels[node] for node in h.nodes_at_level(2)} == {"East", "*"}
    assert h.find("*", level=2) == h.root
    with pytest.raises(HierarchyError, match=r"'city': 2 nodes are labelled 'North'; name one of the levels 1 "):
        h.find("North")
    with pytest.raises(HierarchyError, match="2 nodes at level 1 are labelled 'North'"):
        h.find("North", level=1)
    with pytest.raises(HierarchyError, match=r"no node is labelled 'Sooth' \(did you mean 'South'\?\)"):
        h.find("Sooth")
    with pytest.raises(HierarchyError, match="no node at level 2 is labelled 'South'"):
        h.find("South", level=2)
    with pytest.raises(HierarchyError, match=r"level must be between 0 and 3\. Got 4"):
        h.nodes_at_level(4)
    assert (h.attribute, h.n_leaves, h.height) == ("city", 4, 3)
    assert h.code_of_null >= h.n_leaves, "no value is missing"
    assert [h.nodes_at_level(level).size for level in range(4)] == [4, 4, 2, 1]


def test_level_tells_equal_labels_apart() -> None:
    h = Hierarchy.from_paths("a", [("x", "x"), ("y", "Y")])
    assert h.find("x", level=0) == 0
    assert h.find("x", level=1) == h.parent[0]


def test_labels_from_records_are_never_named() -> None:
    h = Hierarchy.from_paths("ssn", [("078-05-1120",), ("219-09-9999",)], public=False)
    with pytest.raises(HierarchyError) as caught:
        h.find("078-05-1121")
    assert "1120" not in str(caught.value)
    for paths in ([("078-05-1120",), ("078-05-1120", "x")], [("078-05-1120",), ("x", "078-05-1120")]):
        with pytest.raises(HierarchyError) as caught:
            Hierarchy.from_paths("ssn", paths, public=False)
        assert "1120" not in str(caught.value)


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "hierarchy of 'city': it has no leaf"),
        ([("a",), ()], "a path is empty"),
        ([("a", "N"), ("a", "N")], "value 'a' is listed twice"),
        ([("a", "N"), ("a", "S")], "value 'a' has two parents 'N' and 'S'"),
        ([("a", "N"), ("a",)], "value 'a' has two parents 'N' and '*'"),
        ([("a", "N", "E"), ("a", "N", "W")], r"has two parents '\* > E > N' and '\* > W > N'"),
        ([("a", "*"), ("b",)], "the root label '\\*' may not stand below the root"),
        ([("*",)], "the root label '\\*' may not stand below the root"),
        ([("a",), ("b", "a")], "'a' is a leaf and also above 'b'"),
        ([("b", "x", "a"), ("x", "a")], "'x' is a leaf and also above 'b'"),
        ([("a", *(str(i) for i in range(MAX_HEIGHT)))], "at most 127 levels are possible. Got 128"),
    ],
)
def test_paths_refused_by_name(paths: list[tuple[str, ...]], message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        Hierarchy.from_paths("city", paths)


@pytest.mark.parametrize(
    ("labels", "parent", "n_leaves", "message"),
    [
        (("a", "*"), [1, 1, 1], 1, "one label and one parent per node"),
        (("*",), [0], 1, "one label and one parent per node"),
        (
            ("a", "N", "*"),
            [2, 1, 2],
            1,
            "every parent must come after its child",
        ),  # N is its own parent: a cycle
        (("a", "N", "*"), [1, 2, 0], 1, "every parent must come after its child"),
        (("a", "N", "*"), [2, 2, 2], 1, "exactly those after the leaves"),  # N has no leaf
        (("a", "b", "c", "N", "*"), [3, 4, 3, 4, 4], 3, "depth-first"),
        (("a", None, "N", "*"), [2, 2, 3, 3], 2, "directly under the root"),
        (("a", "a", "*"), [2, 2, 2], 2, "a label of its own"),
    ],
)
def test_numbers_that_are_no_tree_are_refused(
    labels: tuple[str | None, ...], parent: list[int], n_leaves: int, message: str
) -> None:
    with pytest.raises(HierarchyError, match=message):
        Hierarchy("a", labels, np.array(parent, dtype=np.int32), n_leaves)


# ------------------------------------------------------------------------------------------------ ARX files


def arx(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "h.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_read_arx(tmp_path: Path) -> None:
    text = '\ufeff"a;1";North;"say ""N""";*\r\nb;South;*;*\r\n\r\nc;*;*;*\r\n'
    paths, root = read_arx(arx(tmp_path, text), attribute="city")
    assert root == "*"
    assert paths == [("a;1", "North", 'say "N"'), ("b", "South"), ("c",)]
    assert Hierarchy.from_paths("city", paths).height == 3


def test_read_arx_with_another_separator_and_root(tmp_path: Path) -> None:
    path = arx(tmp_path, "a,N,ANY\nb,N,ANY")
    assert read_arx(path, attribute="a", separator=",") == ([("a", "N"), ("b", "N")], "ANY")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a;N;*\nb;*\n", r"line 2: every row must have 3 columns like the first\. Got 2"),
        ("a;N;*\nb;;*\n", "line 2, column 2: the cell is empty"),
        ("a;N;*\nb;  ;*\n", "line 2, column 2: the cell is empty"),
        ("a;N;*;X;*\nb;N;*;*;*\n", r"line 1, column 4: the root label '\*' is followed by 'X'"),
        ("a;N;*\n*;*;*\n", r"line 2: the value is the root label '\*' itself"),
        ("a;N;*\nb;S;*\na;N;*\n", "line 3: value 'a' is listed twice"),
        ("a;N;*\nb;S;*\na;S;*\n", "line 3: value 'a' has two parents 'N' and 'S'"),
        ("a;*;*\nb;a;*\n", "line 1: 'a' is a leaf and also above 'b'"),
        ('"a\nb";N;*\nc;N;*\n"c";S;*\n', "line 4: value 'c' has two parents"),  # a cell may span lines
        ("", "the file has no rows"),
        ("\n\n", "the file has no rows"),
        ("a,N,*\nb,N,*\n", "line 1: a row must have at least a value and the root.*separator another"),
        (
            "a;N\nb;N\nc;S\n",
            r"line 3: the last column must be the root's label in every row, such as '\*'; found 2 .* labels: N, S",
        ),
        ("a;N;*\nb;N;ALL\n", r"line 2: the last column must be the root's.*found 2 different labels: \*, ALL"),
        ('a;N;*\n"b"x;N;*\n', "line 2: not readable as CSV"),
        ('a;N;*\n"b;N;*\n', "not readable as CSV"),
        (b"a;N;*\nb\xe9;N;*\n", r"line 2, byte 2: not UTF-8 \(0xe9\)"),
        (b"\xef\xbb\xbfa;N;*\nb;\xff;*\n", r"line 2, byte 3: not UTF-8 \(0xff\)"),
        ("a;N;*\n".encode("utf-16"), "line 1, byte 1: not UTF-8"),
    ],
)
def test_arx_file_refused_by_attribute_file_and_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = arx(tmp_path, text)
    with pytest.raises(HierarchyError, match=message) as caught:
        read_arx(path, attribute="city")
    assert str(caught.value).startswith(f"hierarchy of 'city', file '{path}'")


@pytest.mark.parametrize("separator", ["", ";;", '"', "\n"])
def test_bad_separator(tmp_path: Path, separator: str) -> None:
    with pytest.raises(HierarchyError, match="separator must be one character"):
        read_arx(arx(tmp_path, "a;*\n"), attribute="city", separator=separator)


@pytest.mark.parametrize("read", [read_arx, read_tree])
def test_missing_file_is_named(tmp_path: Path, read: Any) -> None:
    path = tmp_path / "gone.csv"
    with pytest.raises(HierarchyError, match=r"hierarchy of 'city', file '.*gone\.csv': the file cannot be read"):
        read(path, attribute="city")
    with pytest.raises(HierarchyError, match="cannot be read"):
        read(tmp_path, attribute="city")


# --------------------------------------------------------------------------------------------------- trees


def test_tree_forms() -> None:
    assert paths_of_tree({"*": {"North": ["a", 7], "South": {"x": "c"}}}, "r") == [
        ("a", "North"),
        ("7", "North"),
        ("c", "x", "South"),
    ]
    # Without the root on top, the top keys are put under it; a list may hold leaves and inner nodes.
    assert paths_of_tree({"N": ["a", {"x": ["b"]}], "S": ["c"]}, "r") == [
        ("a", "N"),
        ("b", "x", "N"),
        ("c", "S"),
    ]
    assert paths_of_tree({"*": ["a", "b"]}, "r") == [("a",), ("b",)]
    assert paths_of_tree({"ANY": {"N": ["a"]}}, "r", "ANY") == [("a", "N")]


def cyclic() -> dict[str, Any]:
    tree: dict[str, Any] = {"N": ["a"]}
    tree["S"] = {"deep": [{"x": tree}]}
    return tree


def deep(levels: int) -> dict[str, Any]:
    tree: Any = ["a"]
    for level in range(levels):
        tree = {f"n{level}": tree}
    return tree  # type: ignore[no-any-return]


SHARED = ["a", "b"]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (["a"], "a tree must be a mapping"),
        ({}, r"'\*' has nothing under it"),
        ({"*": {"N": []}}, r"'\* > N' has nothing under it"),
        ({"*": {"N": {"x": {}}}}, r"'\* > N > x' has nothing under it"),
        ({"N": None}, r"'\* > N' has nothing under it"),
        ({"*": ["a"], "S": ["b"]}, r"the root '\*' must be the only top key\. Got S beside it"),
        ({"N": ["a", "a"]}, "value 'a' is listed twice"),
        ({"N": ["a"], "S": ["a"]}, "value 'a' has two parents 'N' and 'S'"),
        ({"N": SHARED, "S": SHARED}, "value 'a' has two parents 'N' and 'S'"),
        ({"N": [["a"]]}, r"under '\* > N' a list stands in a list"),
        ({"N": [None]}, r"under '\* > N' a label reads as None; write it in quotes"),
        ({None: ["a"]}, r"under '\*' a label reads as None"),
        ({"N": [""]}, r"under '\* > N' a label is empty"),
        ({"N": {"*": ["a"]}}, r"the root label '\*' may not stand below the root"),
        ({"N": ["a", "*"]}, r"the root label '\*' may not stand below the root"),
        ({"N": ["a", {"a": ["b"]}]}, "'a' is a leaf and also above 'b'"),
        (cyclic(), r"'\* > S > deep > x' contains itself"),
        (deep(2000), "nested too deeply; at most 127 levels"),
    ],
)
def test_tree_refused_by_name(tree: Any, message: str) -> None:
    with pytest.raises(HierarchyError, match=message) as caught:
        paths_of_tree(tree, "region")
    assert str(caught.value).startswith("hierarchy of 'region': ")


def test_deepest_tree_is_accepted() -> None:
    paths = paths_of_tree(deep(MAX_HEIGHT - 1), "a")
    assert Hierarchy.from_paths("a", paths).height == MAX_HEIGHT


def test_read_tree_yaml_and_json(tmp_path: Path) -> None:
    want = [("a", "North"), ("1990-05-17", "North"), ("c", "x", "South")]
    yaml_file, json_file = tmp_path / "t.yaml", tmp_path / "t.json"
    yaml_file.write_text("'*':\n  North: [a, 1990-05-17]\n  South: {x: [c]}\n")
    json_file.write_text(json.dumps({"*": {"North": ["a", "1990-05-17"], "South": {"x": ["c"]}}}))
    assert read_tree(yaml_file, attribute="r") == want
    assert read_tree(json_file, attribute="r") == want


ODD = [
    "010", "01.10", "12:30", "1_000", "0x1F", "NO", "yes", "True", "true", "false", "1e3", "1.0e+3", "1.10", "1.0",
    "10", "1", "01", "-0", "+5", ".5", "5.", "2020-1-5", "2020-13-45", "2001-01-01 10:00:00", ".inf",
    "0b1", "0o7", "=", "1:2",
]  # fmt: skip
"""Scalars that YAML 1.1 reads as numbers, dates or truth values, some of them as equal ones."""


def test_read_tree_of_scalars_without_quotes_keeps_their_texts(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("".join(f"{text}: [{text}x]\n" for text in ODD))
    assert read_tree(path, attribute="r") == [(f"{text}x", text) for text in ODD]
    path.write_text(f"N: [{', '.join(ODD)}]\n")
    assert read_tree(path, attribute="r") == [(text, "N") for text in ODD]
    numbers = ["10", "1.10", "1e3", "-0", "true"]
    path = tmp_path / "t.json"
    path.write_text(f'{{"N": [{", ".join(numbers)}]}}')
    assert [leaf for leaf, _ in read_tree(path, attribute="r")] == numbers


LAUGHS = "a0: &a0 [x, y]\n" + "".join(f"a{i}: &a{i} {{p: *a{i - 1}, q: *a{i - 1}}}\n" for i in range(1, 60))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.yaml", "N: &n [a, {x: *n}]\n", "stands for something it is itself a part of"),
        ("t.yaml", "&top\nN: *top\n", "stands for something it is itself a part of"),
        ("t.yaml", LAUGHS, "more than 4,000,000 values"),
        ("t.yaml", "N: &n [a]\nS: *n\n", "two parents"),
        ("t.yaml", "N: [a]\nS: [b]\nN: [c]\n", "line 3, column 1: the key 'N' is given twice"),
        ("t.yaml", "01: [a]\n'01': [b]\n", "the key '01' is given twice"),
        ("t.yaml", "*:\n  N: [a]\n", "line 1, column 2: expected alphabetic"),  # an unquoted * is an alias
        ("t.yaml", "N: [a\n", "expected ',' or ']'"),
        ("t.yaml", "N: !!python/object/apply:os.getcwd []\n", "could not determine a constructor"),
        ("t.yaml", "N: [null]\n", "reads as None; write it in quotes"),
        ("t.yaml", "~: [a]\n", "the key '~' is not read as text; write it in quotes"),
        ("t.yaml", "", "a tree must be a mapping"),
        ("t.yaml", "[a, b]", "a tree must be a mapping"),
        ("t.yaml", "[" * 5000, "nested too deeply"),
        ("t.json", '{"N": ["a"], "N": ["b"]}', "key 'N' is given twice"),
        ("t.json", '{"N": ["a"],}', "line 1: not readable as JSON"),
        ("t.json", '{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_tree_file_refused_by_attribute_and_file(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(HierarchyError, match=message) as caught:
        read_tree(path, attribute="region")
    assert str(caught.value).startswith(f"hierarchy of 'region', file '{path}'")


# --------------------------------------------------------------------------------------------------- Adult


@pytest.mark.adult
@needs_adult
def test_adult_hierarchies() -> None:
    built = {
        path.stem.removeprefix("adult_hierarchy_"): Hierarchy.from_paths("a", read_arx(path, attribute=path.stem)[0])
        for path in ADULT.glob("adult_hierarchy_*.csv")
    }
    # Heights as counted by hand from the columns of the files (columns - 1).
    assert {name: h.height for name, h in built.items()} == {
        "age": 4,
        "education": 3,
        "marital-status": 2,
        "native-country": 2,
        "occupation": 2,
        "race": 1,
        "salary-class": 1,
        "sex": 1,
        "workclass": 2,
    }
    # Size of the full-domain lattice: 5 · 4 · 3 · 3 · 3 · 2 · 2 · 2 · 3.
    assert np.prod([h.height + 1 for h in built.values()]) == 12_960
    assert built["age"].n_leaves == 100
    age = built["age"]
    assert [age.labels[node] for node in age.ancestor[age.code_of["39"]]] == [
        "39",
        "35-39",
        "30-39",
        "20-39",
        "*",
    ]


@pytest.mark.adult
@needs_adult
def test_every_adult_record_encodes() -> None:
    lines = (ADULT / "adult.csv").read_text(encoding="utf-8").splitlines()
    columns = list(zip(*(line.split(";") for line in lines), strict=True))
    for name, *values in columns:
        path = ADULT / f"adult_hierarchy_{name}.csv"
        h = Hierarchy.from_paths(name, read_arx(path, attribute=name)[0])
        assert (h.encode(values) >= 0).all()


def test_what_a_label_should_say() -> None:
    """Up a chain of only children one label says the same; of different values it does not."""
    chain = Hierarchy.from_paths("a", [("x", "x"), ("y", "north"), ("z", "south")])
    first = [chain.labels.index(label) for label in chain.labels]
    assert chain.named.tolist() == chain.meant.tolist() == first
    assert first != list(range(chain.n_nodes))
    alike = Hierarchy.from_paths("a", [("x", "north", "n1"), ("y", "north", "s1"), ("z", "south", "s1")])
    north = [node for node, label in enumerate(alike.labels) if label == "north"]
    assert alike.named[north].tolist() == [north[0]] * 2
    assert alike.meant.tolist() == list(range(alike.n_nodes))
