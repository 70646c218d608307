from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.value_codes import ValueCodes
from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.extensions.attack.kernels.inference import guessed
from privrisk_spark.extensions.attack.kernels.minimality import credibility
from privrisk_spark.extensions.attack.kernels.transparency import exact_links
from privrisk_spark.extensions.attack.stages.classes import (
    SensitiveClasses,
    beside_values,
    collect_sensitive_classes,
    finer_parts,
    matched,
    parts_of_classes,
    scheme_classes,
    with_values,
)
from privrisk_spark.extensions.attack.stages.protected import Tuples
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.classes.diversity import SensitiveRuns

AGE = Hierarchy.from_paths("age", [("1", "low"), ("2", "low"), ("8", "high"), ("9", "high")], null_leaf=True)
CITY = Hierarchy.from_paths("city", [("Ulm",), ("Bonn",)])
ONE, TWO, EIGHT, NINE, NULL = range(5)
LOW, HIGH, ROOT = (AGE.labels.index(label) for label in ("low", "high", "*"))
ULM, BONN, ANY = range(3)
FLU, ASTHMA, MISSING = range(3)
CODES = (ValueCodes.of({"flu": FLU, "asthma": ASTHMA}), 2)

Row = tuple[str | None, str | None, int | None, int, int]
"""Record id, person, two nodes, code of a sensitive value."""

ROWS: list[Row] = [
    ("a", "p", LOW, ULM, FLU),
    ("b", "p", LOW, ULM, FLU),
    ("c", "q", LOW, ULM, ASTHMA),
    ("d", None, LOW, ULM, ASTHMA),
    ("e", None, LOW, ULM, FLU),
    ("f", "r", ROOT, ANY, MISSING),
    ("g", "s", NULL, BONN, FLU),
    (None, "p", -1, -1, FLU),  # nobody shows this
    (None, None, None, ULM, FLU),
]


def frame_of(spark: Any, rows: list[Row], parts: int) -> Batches:
    shuffled = random.Random(parts).sample(rows, len(rows))
    columns = list(zip(*shuffled, strict=True)) if rows else [()] * 5
    kinds = (pa.string(), pa.string(), pa.int32(), pa.int32(), pa.int32())
    names = ["record_id", "entity", "n0", "n1", "s0"]
    table = pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names)
    return Batches.of_frame(spark.createDataFrame(table, from_arrow_schema(table.schema)).repartition(parts))


def told(classes: SensitiveClasses) -> dict[tuple[int, ...], tuple[int, int, dict[int, int]]]:
    """Rows, members and holders of each value, by class."""
    (runs,) = classes.held
    found: dict[tuple[int, ...], dict[int, int]] = defaultdict(dict)
    for owner, value, count in zip(runs.owner, runs.value.tolist(), runs.count.tolist(), strict=True):
        found[tuple(classes.tuples.nodes[owner].tolist())][value] = count
    keys = [tuple(node) for node in classes.tuples.nodes.tolist()]
    assert keys == sorted(keys)
    return {
        key: (rows, members, found[key])
        for key, rows, members in zip(keys, classes.tuples.rows.tolist(), runs.members.tolist(), strict=True)
    }


@pytest.mark.parametrize("parts", [1, 4, 11])
def test_classes_do_not_depend_on_partitions(spark: Any, parts: int) -> None:
    found = collect_sensitive_classes(frame_of(spark, ROWS, parts), ["n0", "n1"], ["s0"], most=10, key="table")
    assert told(found) == {
        (LOW, ULM): (5, 5, {FLU: 3, ASTHMA: 2}),
        (ROOT, ANY): (1, 1, {MISSING: 1}),
        (NULL, BONN): (1, 1, {FLU: 1}),
    }
    assert found.tuples.nodes.dtype == np.int32


def test_several_columns_and_one_node_are_told_alike(spark: Any) -> None:
    rows = frame_of(spark, ROWS, 3)
    again = Batches.of_frame(rows.frame().withColumn("s1", rows.frame()["s0"]))
    found = collect_sensitive_classes(again, ["n1"], ["s0", "s1"], most=10, key="table")
    assert found.tuples.nodes.tolist() == [[ULM], [BONN], [ANY]]
    one, other = found.held
    assert one.count.tolist() == other.count.tolist() == [4, 2, 1, 1]  # with the row that shows no age


def test_what_is_too_much_or_nothing_is_refused(spark: Any) -> None:
    names = ["n0", "n1"]
    with pytest.raises(InputError, match="table has more than 2 distinct rows"):
        collect_sensitive_classes(frame_of(spark, ROWS, 2), names, ["s0"], most=2, key="table")
    with pytest.raises(InputError, match="table: there are no rows"):
        collect_sensitive_classes(frame_of(spark, [], 2), names, ["s0"], most=2, key="table")
    with pytest.raises(InputError, match="needs a sensitive column"):
        collect_sensitive_classes(frame_of(spark, ROWS, 2), names, [], most=9, key="table")


def encoded_of(spark: Any, rows: list[tuple[Any, ...]], parts: int) -> Batches:
    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    kinds = (pa.string(), pa.string(), pa.string(), pa.int32(), pa.int32())
    names = ["record_id", "entity", "r0", "q0", "q1"]
    table = pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names)
    return Batches.of_frame(spark.createDataFrame(table, from_arrow_schema(table.schema)).repartition(parts))


@pytest.mark.parametrize("parts", [1, 4])
def test_people_carry_what_they_hold(spark: Any, parts: int) -> None:
    """Missing and strange values have the code after the last; a suppressed value is its root; the columns change."""
    rows = [
        ("a", "p", "flu", BONN, ONE),
        ("b", None, None, ULM, NULL),
        ("c", "q", "measles", CITY.n_leaves, AGE.n_leaves),
    ]
    found = with_values(encoded_of(spark, rows, parts), [AGE, CITY], [1, 0], {"r0": CODES})
    assert found.schema == found.frame().schema
    assert sorted(tuple(row) for row in found.frame().collect()) == [
        ("a", "p", ONE, BONN, FLU),
        ("b", None, NULL, ULM, MISSING),
        ("c", "q", ROOT, ANY, MISSING),
    ]
    shown = frame_of(spark, [("c", None, ROOT, ANY, 0), ("a", None, LOW, BONN, 0), ("z", None, LOW, ULM, 0)], parts)
    both = beside_values(shown, found, 2, 1).frame()
    assert both.columns == ["record_id", "entity", "q0", "q1", "n0", "n1", "s0"]
    assert sorted(tuple(row) for row in both.collect()) == [
        ("a", "p", ONE, BONN, LOW, BONN, FLU),
        ("c", "q", ROOT, ANY, ROOT, ANY, MISSING),
    ]
    nobody = with_values(encoded_of(spark, [], 1), [AGE, CITY], [1, 0], {"r0": CODES})
    assert nobody.frame().count() == 0


def classes_of(rows: dict[tuple[int, ...], list[int]]) -> SensitiveClasses:
    nodes = np.array(sorted(rows), dtype=np.int32)
    entries = [(c, v, rows[key].count(v)) for c, key in enumerate(sorted(rows)) for v in sorted(set(rows[key]))]
    owner, value, count = (np.array(column, dtype=np.int64) for column in zip(*entries, strict=True))
    runs = SensitiveRuns.of_entries(owner, value, count, len(nodes))
    return SensitiveClasses(Tuples(nodes, runs.rows), (runs,))


SHOWN = classes_of({(LOW, ULM): [FLU, FLU], (LOW, ANY): [ASTHMA], (ROOT, ANY): [FLU, MISSING]})


def test_people_beside_the_class_they_are_taken_for() -> None:
    people = classes_of({(NULL, BONN): [FLU], (LOW, ULM): [FLU, ASTHMA], (ROOT, ANY): [MISSING]})
    there, mine, theirs = matched(people, SHOWN)
    assert there.tolist() == [False, True, True]
    assert mine.tuples.nodes.tolist() == theirs.tuples.nodes.tolist() == [[LOW, ULM], [ROOT, ANY]]
    found = guessed(theirs.held[0], mine.held[0])
    assert found.certain.tolist() == [0.5, 0]  # the one with asthma is taken for one with the flu, surely
    assert found.right.tolist() == [0.5, 0.5]


KNOWN = Tuples(
    np.array([[ONE, ULM], [TWO, ULM], [EIGHT, ULM], [NINE, BONN], [NULL, BONN]], dtype=np.int32),
    np.array([2, 3, 1, 4, 2]),
)


def test_schemes_put_people_and_rows_together() -> None:
    """By levels (1, 0): low in Ulm 5, high in Ulm 1, high in Bonn 4, and two of no age in Bonn; k = 4."""
    null = int(AGE.named[AGE.ancestor[NULL, 1]])
    shown = Tuples(np.array([[LOW, ULM], [HIGH, BONN], [ROOT, ANY]], dtype=np.int32), np.array([5, 4, 3]))
    found = scheme_classes(KNOWN, shown, [AGE, CITY], [1, 0], key="attack")
    by_class = dict(zip(map(tuple, found.tuples.nodes.tolist()), found.tuples.rows.tolist(), strict=True))
    assert by_class == {(LOW, ULM): 5, (HIGH, ULM): 1, (HIGH, BONN): 4, (null, BONN): 2}
    released = dict(zip(by_class, found.released.tolist(), strict=True))
    assert released == {(LOW, ULM): 5, (HIGH, ULM): 0, (HIGH, BONN): 4, (null, BONN): 0}
    assert found.suppressed == 3
    links = exact_links(found.tuples.rows, found.released, kept=True, k=4)
    assert (links.suspects, links.people_found.correct) == (3, pytest.approx(3, abs=1e-12))
    with pytest.raises(InputError, match=r"nobody has at the levels \[0, 0\]"):
        scheme_classes(KNOWN, shown, [AGE, CITY], [0, 0], key="attack")


def test_finer_parts_are_what_a_class_was_made_of() -> None:
    """All were recoded to any age since, by low and high, some class of Ulm would have had too much flu."""
    top = AGE.height
    shown = Tuples(np.array([[ROOT, ULM], [ROOT, BONN]], dtype=np.int32), np.array([6, 6]))
    scheme = scheme_classes(KNOWN, shown, [AGE, CITY], [top, 0], key="attack")
    finer = finer_parts(KNOWN, scheme, [AGE, CITY], [top - 1, 0], key="attack")
    owner, people = finer.owner, finer.people
    assert np.bincount(finer.member, KNOWN.rows).tolist() == people.tolist()
    assert (owner[finer.member] == scheme.member).all()
    parts = [(scheme.tuples.nodes[c, 1], n) for c, n in zip(owner, people.tolist(), strict=True)]
    assert sorted(parts) == [(ULM, 1), (ULM, 5), (BONN, 2), (BONN, 4)]
    shown = classes_of({(ROOT, ULM): [FLU] + 5 * [ASTHMA], (ROOT, BONN): 3 * [FLU] + 3 * [ASTHMA]})
    told = parts_of_classes(finer, scheme, shown, 0)
    assert (told.owner.tolist(), told.rows.tolist()) == (owner.tolist(), people.tolist())
    # The one of high age in Ulm has some illness, which all of that part have.
    assert credibility(told, alpha=0.85) is None
    with pytest.raises(InternalError, match="not those of the release"):
        parts_of_classes(finer, scheme, classes_of({(ROOT, ULM): [FLU]}), 0)
