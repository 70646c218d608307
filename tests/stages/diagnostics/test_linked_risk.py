from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive_records import (
    OUTSIDE,
    ROOT,
    by,
    count,
    generalized,
    identification_risk,
    layouts,
    leaves_of,
    node_of,
    path,
    policy_of,
    quasi,
    shuffled,
    together,
    under,
)
from parts import at
from pyspark.sql import functions as F

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Scratch
from privrisk_spark.engine.counts import SpreadVectors, StoredAttacker
from privrisk_spark.engine.decided import WeightColumns
from privrisk_spark.engine.links import Linked
from privrisk_spark.engine.value_codes import resolve
from privrisk_spark.errors import HierarchyError, InputError, SchemaError
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.disclosure.linked import enlarged
from privrisk_spark.pipelines.release.diagnosed import linkage_facts
from privrisk_spark.planning.counting import plan_of
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.planning.disclosure import disclosure_of, sensitivity
from privrisk_spark.results.release import LinkageFacts
from privrisk_spark.stages.counting.dense_sorted import collect_counts, count_and_store
from privrisk_spark.stages.deciding.decide import decided, deciding
from privrisk_spark.stages.diagnostics.linked_risk import measure_linkage, with_linked_risk
from privrisk_spark.tables.encode import dictionary_rows, encode
from privrisk_spark.tables.links import LinkFaults, OpenLinks, collect_links, measure_link_faults
from privrisk_spark.tables.opening import collect_hierarchies

PLACE = {"*": ["z", {"north": ["a", "b", {"far": ["c"]}]}, {"south": ["d", "e"]}]}
ILLNESS = {"*": [{"mild": ["flu", "cold"]}, "hiv"]}
JOB = {"*": ["clerk", "baker"]}
TREES = [PLACE, ILLNESS, JOB]
LEAVES = [leaves_of(tree["*"]) for tree in TREES]
RISK = {
    "model": "I",
    "sensitivity": {
        "form": "linear",
        "weights": {"illness": 3},
        "personal": {"columns": {"place": "w"}, "factor": "f"},
    },
}
COLUMNS = {"w": {"role": "weight"}, "f": {"role": "weight"}}
RELEASED = policy_of({"place": quasi({"tree": PLACE})}, risk={"model": "I", "sensitivity": {"form": "linear"}})
# The policy of all attributes stands for what the caller knows of the added ones.
WHOLE = policy_of(
    {n: quasi({"tree": t}) for n, t in zip(["place", "illness", "job"], TREES, strict=True)} | COLUMNS, risk=RISK
)
HIERARCHIES = collect_hierarchies(WHOLE, None, None)  # type: ignore[arg-type] - every leaf is declared
NODES = list(HIERARCHIES.values())
LINKS = "record_id string, linked_id string, probability double, z0 int, z1 int"
NO_NAMES = "record_id string, probability double, z0 int, z1 int"
DECIDED = "record_id string, q0 int, l0 tinyint, w0 double, w1 double, risk double"


def test_linked_risk_is_that_of_a_loop(spark, tmp_path):
    pick = random.Random(4)
    all_axes = tuple(Axis(h.at_depth, h.ancestor) for h in NODES)
    own = {"place": HIERARCHIES["place"]}
    weights_of = sensitivity(WHOLE.risk.sensitivity, HIERARCHIES).weights
    disclosure = enlarged(disclosure_of(RELEASED, own, all_axes[:1]), all_axes[1:], weights_of[1:])
    columns = WeightColumns.of_policy(WHOLE, list(HIERARCHIES))
    theta = np.array([[pick.randrange(h.n_leaves) for h in NODES] for _ in range(15)])
    vectors, n = np.unique(theta, axis=0, return_counts=True)
    counts = count_and_store("dense", all_axes, vectors.astype(np.int32), n, at(tmp_path / "c"))
    known = [tuple(path(h, int(v)) for h, v in zip(NODES, row, strict=True)) for row in theta]

    def node(i: int, code: int) -> Any:
        return ROOT if code == NODES[i].n_leaves else path(NODES[i], code)

    def loss(row: tuple[Any, ...], z: tuple[int, int]) -> tuple[float, bool]:
        _, q, level, w, f, _ = row
        original = [node(0, q), node(1, z[0]), node(2, z[1])]
        shown = [generalized(original[0], level), *original[1:]]
        absent = count(original, known, "subsumes", ["suppress"] * 3) == 0
        rho = count(shown, known, "subsumes", ["suppress"] * 3) + absent
        phi = 0.0
        for i, (place, scale) in enumerate(zip(shown, (w, 3.0, 1.0), strict=True)):
            if place != ROOT:
                phi += f * scale / sum(under(leaf, place) for leaf in LEAVES[i].values())
        return phi / rho, absent

    rows, links, wanted = [], [], {}
    for i in range(20):
        q = pick.randrange(NODES[0].n_leaves + 1)
        row = (f"r{i}", q, pick.randrange(NODES[0].height + 1), pick.choice([0.0, 2.0]), pick.choice([0.5, 4.0]), 0.0)
        alone = loss(row, (NODES[1].n_leaves, NODES[2].n_leaves))[0]
        rows.append((*row[:-1], alone))
        total, left, greatest, contradicted = 0.0, 1.0, alone, 0
        # Thirty different probabilities add up to other last bits in another order.
        for j in range(30 if i < 4 else pick.choice([0, 1, 3, 7])):
            z = (pick.randrange(NODES[1].n_leaves + 1), pick.randrange(NODES[2].n_leaves + 1))
            p = 1 / (31 + j) if i < 4 else pick.choice([0.0, 0.1, 1 / 7])
            links.append((f"r{i}", f"z{j}", p, *z))
            risk, absent = loss(row, z)
            total, left = total + p * risk, left - p
            greatest = max(greatest, risk if p else 0.0)
            contradicted += absent
        held = sum(link[0] == f"r{i}" for link in links)
        wanted[f"r{i}"] = (held, alone, total + left * alone, greatest, contradicted)
    frames = zip(layouts(spark, rows, DECIDED), layouts(spark, [*links, ("?", "z", 0.5, 0, 0)], LINKS), strict=True)
    found = [
        with_linked_risk(decided, table, disclosure, counts, k=1, m=2, weights=columns) for decided, table in frames
    ]
    first, second, third = together([risks.frame() for risks in found])
    assert by("record_id", first) == by("record_id", second) == by("record_id", third), "to the last bit"
    for identity, got in by("record_id", first).items():
        held, alone, expected, greatest, contradicted = wanted[identity]
        assert (got["links"], got["contradicted"]) == (held, contradicted)
        values = (got["unlinked_risk"], got["linked_risk"], got["greatest_risk"])
        assert values == pytest.approx((alone, expected, greatest), rel=1e-12)
        assert got["linked_risk"] >= got["unlinked_risk"] * (1 - 1e-12)
    assert len(first) == 20
    facts = measure_linkage(found[2], ["illness", "job"])
    assert (facts.attributes, facts.rows, facts.links) == (("illness", "job"), 20, len(links))
    assert facts.linked == sum(value[0] > 0 for value in wanted.values())
    assert facts.contradicted == sum(value[4] for value in wanted.values()) > 0
    summaries = (facts.unlinked_risk, facts.linked_risk, facts.greatest_risk)
    for i, summary in enumerate(summaries, 1):
        values = [value[i] for value in wanted.values()]
        assert summary.mean == pytest.approx(math.fsum(values) / 20, rel=1e-12)
        assert (summary.max, summary.min) == pytest.approx((max(values), min(values)))
    decided = spark.createDataFrame(rows, DECIDED)
    unlinked = measure_linkage(
        with_linked_risk(decided, spark.createDataFrame([], LINKS), disclosure, counts, k=1, m=2, weights=columns), []
    )
    assert (unlinked.linked, unlinked.links) == (0, 0)
    assert unlinked.linked_risk == unlinked.unlinked_risk == facts.unlinked_risk


def test_every_fault_of_a_linkage_table_is_counted(spark):
    records = spark.createDataFrame([(name,) for name in "abcdef"], "record_id string")
    third = 1 / 3
    good = [("a", "x", third, 0, 0), ("a", "y", third, 3, 2), ("a", "z", third, 1, 1), ("b", "x", 1 + 5e-10, 2, 0)]
    no_fault = measure_link_faults(spark.createDataFrame(good, LINKS), records, [3, 2])
    assert no_fault == LinkFaults(4, 0, 0, 0, 0, 0, (0, 0))
    assert no_fault.rules(["illness", "job"]) == []
    rows = [
        *good,
        ("c", "x", 0.6, 0, 0), ("c", "y", 0.4 + 2e-9, 0, 0),  # over one
        ("d", "x", 1e300, 0, 0),  # over one
        ("e", "x", math.inf, 0, 0),  # over one
        ("f", "x", math.nan, 0, 0), ("f", "y", None, 0, 0), ("f", "z", -1e-9, 0, 0),  # no probabilities
        ("a", "x", 0.0, 0, 0), ("a", "x", 0.0, 1, 1),  # the pair stands already
        (None, "x", 0.1, 0, 0), ("a", None, 0.0, 0, 0),
        ("g", "x", 0.1, 0, 0), ("g", "y", 0.1, 0, 0), ("", "y", 0.1, 0, 0),  # no records
        ("b", "p", 0.0, 4, 0), ("b", "q", 0.0, 0, -1), ("b", "r", 0.0, None, 3),  # no codes
    ]  # fmt: skip
    for frame in layouts(spark, rows, LINKS)[1:]:
        found = measure_link_faults(frame, records, [3, 2])
        assert found == LinkFaults(21, 2, 3, 2, 3, 3, (2, 2))
    said = found.rules(["illness", "job"])
    assert [line.partition(" ")[0] for line in said] == [
        "linkage.record_id:", "linkage.record_id:", "linkage.linked_id:", "linkage.probability:",
        "linkage.probability:", "linkage.columns.illness.hierarchy:", "linkage.columns.job.hierarchy:",
    ]  # fmt: skip
    assert [int(line.split()[1]) for line in said] == [2, 3, 2, 3, 3, 2, 2]
    nothing = measure_link_faults(spark.createDataFrame([], LINKS), records.where(F.lit(False)), [3, 2])
    assert nothing == LinkFaults(0, 0, 0, 0, 0, 0, (0, 0))


def test_rows_without_a_name_are_links_of_their_own(spark):
    records = spark.createDataFrame([("a",), ("b",)], "record_id string")
    rows = [("a", 0.5, 0, 0), ("a", 0.5, 0, 0), ("b", 0.6, 0, 0), ("b", 0.6, 1, 0), ("c", 0.1, 0, 0), (None, 0.1, 0, 0)]
    found = measure_link_faults(spark.createDataFrame(rows, NO_NAMES), records, [3, 2])
    assert found == LinkFaults(6, 1, 1, 0, 0, 1, (0, 0))


def test_other_columns_of_the_tables_do_no_harm(spark, tmp_path):
    all_axes = tuple(Axis(h.at_depth, h.ancestor) for h in NODES)
    weights_of = sensitivity(WHOLE.risk.sensitivity, HIERARCHIES).weights
    disclosure = enlarged(disclosure_of(RELEASED, {"place": NODES[0]}, all_axes[:1]), all_axes[1:2], weights_of[1:2])
    theta = np.array([[0, 0], [1, 2]], dtype=np.int32)
    counts = count_and_store("sorted", all_axes[:2], theta, np.array([1, 4]), at(tmp_path / "c"))
    decided = spark.createDataFrame(
        [("a", 1, 0, "x", 0.25), ("b", 1, 0, "y", 7.0)], "record_id string, q0 int, l0 int, z0 string, risk double"
    )
    links = spark.createDataFrame(
        [("a", "i", 0.5, 2, 7)], "record_id string, linked_id string, probability float, z0 int, links int"
    )
    found = with_linked_risk(decided, links, disclosure, counts, k=1, m=1, weights=WeightColumns())
    assert found.schema.fieldNames()[0] == schemas.RECORD_ID
    got = by("record_id", found.frame().toArrow().to_pylist())
    # Alone Φ = 1 and ρ = 4; with hiv (weight 3) Φ = 4 and ρ = 4.
    assert (got["a"]["unlinked_risk"], got["a"]["linked_risk"]) == (0.25, 0.625)
    # A record without a link keeps the risk it was decided with.
    assert [got["b"][name] for name in ("unlinked_risk", "linked_risk", "greatest_risk")] == [7.0] * 3


# ------------------------------------------------------------------------------------- the stages together

COLUMNS_OF_TABLE = {
    "id": {"role": "identifier"},
    "place": quasi({"tree": PLACE}),
    "illness": quasi({"tree": ILLNESS}),
    **COLUMNS,
}
LINKAGE = {
    "path": "in/links",
    "record_id": "person",
    "linked_id": "row",
    "probability": "chance",
}
ADDED = {
    # The leaves of job come from the links, and the dictionary has more; sport is declared, no dictionary knows it.
    "job": {"column": "work", "hierarchy": {"flat": True}, "weight": 2},
    "sport": {"column": "game", "hierarchy": {"tree": {"*": {"ball": ["chess", "golf"]}}}, "weight": 0.5},
}
WEIGHT_OF = {"place": 1.0, "illness": 3.0, "job": 2.0, "sport": 0.5}
TABLE = "id int, place string, illness string, w double, f double"
DICTIONARY = "town string, ill string, occupation string"
GIVEN = "row string, person int, chance string, work string, game string"


def linked_policy(kind: str, *, plan: str = "dense", model: str = "I", **linkage: Any) -> Any:
    dictionary: dict[str, Any] = {"kind": "self", "consistency": "subsumes"}
    columns, added = dict(COLUMNS_OF_TABLE), {name: dict(one) for name, one in ADDED.items()}
    risk = {**RISK, "model": model}
    if kind == "table":
        dictionary = {"kind": "table", "path": "in/o", "columns": {"place": "town", "illness": "ill"}}
        added["job"]["dictionary"] = "occupation"
    if model == "II":
        columns |= {name: {"role": "insensitive", "action": "drop"} for name in COLUMNS}
        risk = {"model": "II"}
        for one in added.values():
            del one["weight"]
    return policy_of(
        columns,
        table={"path": "in/t", "record_id": "id"},
        dictionary=dictionary,
        risk=risk,
        decision={"utility_at_least": 2},
        counting=({"dense_cells": 1} if plan == "sorted" else {}),
        linkage={**LINKAGE, "columns": added, **linkage},
    )


def drawn(seed: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Table, dictionary and links, with everything a value can be."""
    pick = random.Random(seed)
    places, ills = [*LEAVES[0], None], [*LEAVES[1], None]
    table = [
        (i, pick.choice(places), pick.choice(ills), pick.choice([0.0, 2.0]), pick.choice([0.5, 4.0])) for i in range(14)
    ]
    theta = [
        (pick.choice([*places, "moon"]), pick.choice(ills), pick.choice(["clerk", "nurse", None])) for _ in range(25)
    ]
    links = []
    for i in range(0, 14, 2):
        for j in range(pick.choice([1, 3, 6])):
            chance = pick.choice(["0", "0.125", "0.0625"])
            z = pick.choice(["clerk", "baker", None]), pick.choice(["chess", "golf", None])
            links.append((f"z{j}", i, chance, *z))
    return table, theta, links


def measured(
    spark: Any, place: Path, policy: Any, rows: tuple[list[Any], list[Any], list[Any]], seed: int
) -> tuple[list[dict[str, Any]], LinkageFacts]:
    """The stages as a run orders them; DECIDED and the facts."""
    table = spark.createDataFrame(shuffled(rows[0], seed), TABLE).repartition(1 + 2 * seed)
    theta = None
    if policy.dictionaries[0].table is not None:
        theta = spark.createDataFrame(shuffled(rows[1], seed), DICTIONARY)
    links = spark.createDataFrame(shuffled(rows[2], seed), GIVEN).repartition(3 - seed)
    opened = OpenLinks(policy.linkage, links, theta)
    opened.check()
    hierarchies = collect_hierarchies(policy, table, None)
    specs, scratch, (one,) = policy.quasi_identifiers, Scratch(spark, place), policy.dictionaries
    encoded = resolve(encode(table, policy, hierarchies, blocks=False), hierarchies, specs, dictionary=False)
    linked = collect_links(scratch, encoded, opened)
    assert linked is not None
    choice = plan_of(policy, hierarchies, one, rows=25)
    _, counted = collect_counts(
        scratch, dictionary_rows(encoded, theta, one, hierarchies), policy, hierarchies, one, choice
    )
    disclosure = disclosure_of(policy, hierarchies, axes(policy, hierarchies))
    weights = WeightColumns.of_policy(policy, list(hierarchies))
    attacker = StoredAttacker.of(policy, [counted])  # type: ignore[list-item]
    decisions = decided(
        encoded, deciding(disclosure, decision_of(policy).procedure(hierarchies), attacker, k=2, weights=weights), k=2
    )
    facts = linkage_facts(scratch, decisions, disclosure, policy, hierarchies, linked=linked, counted=counted)
    return decisions.frame().toArrow().to_pylist(), facts


@pytest.mark.parametrize(
    ("kind", "plan", "model", "seed"),
    [
        ("table", "dense", "I", 0),
        ("table", "sorted", "III", 1),
        ("table", "dense", "II", 1),
        ("self", "sorted", "I", 0),
    ],
)
def test_risk_after_linkage_is_a_double_loop(spark, tmp_path, kind, plan, model, seed):
    policy = linked_policy(kind, plan=plan, model=model)
    rows = drawn(seed)
    table, dictionary, links = rows
    records, facts = measured(spark, tmp_path, policy, rows, seed)
    leaves = [
        *LEAVES[:2],
        {name: (name,) for name in ("clerk", "nurse", "baker")},
        leaves_of({"ball": ["chess", "golf"]}),
    ]
    of_table = [[node_of(value, leaves[i], "suppress") for i, value in enumerate(row[1:3])] for row in table]
    if kind == "self":
        known, consistency = [[*row, None, None] for row in of_table], "subsumes"
    else:
        consistency = "compatible"
        known = [
            [ROOT if value is None else leaves[i].get(value, OUTSIDE) for i, value in enumerate(row)] + [None]
            for row in dictionary
        ]

    def loss(row: int, levels: list[int], z: tuple[Any, ...]) -> tuple[float, bool]:
        added = [node_of(value, leaves[2 + j], "suppress") for j, value in enumerate(z)]
        shown = [*[generalized(node, level) for node, level in zip(of_table[row], levels, strict=True)], *added]
        absent = count([*of_table[row], *added], known, consistency, ["suppress"] * 4) == 0
        rho = count(shown, known, consistency, ["suppress"] * 4) + absent
        phi = 0.0
        for i, (node, name) in enumerate(zip(shown, WEIGHT_OF, strict=True)):
            if node != ROOT:
                own = table[row][3] if name == "place" else 1.0
                scale = table[row][4] * own * (1.0 if name == "place" else WEIGHT_OF[name])
                phi += scale / sum(under(leaf, node) for leaf in leaves[i].values())
        return identification_risk(model, phi, rho, len(known) + absent), absent

    alone, expected, greatest, contradicted = [], [], [], 0
    for record in records:
        row, levels = int(record["record_id"]), [record["l0"], record["l1"]]
        without = loss(row, levels, (None, None))[0]
        assert record["risk"] == pytest.approx(without, rel=1e-12)
        total, left, worst = 0.0, 1.0, without
        for _, person, chance, *z in links:
            if person == row:
                value, absent = loss(row, levels, tuple(z))
                assert value >= without * (1 - 1e-12)
                total, left = total + float(chance) * value, left - float(chance)
                worst = max(worst, value if float(chance) else 0.0)
                contradicted += absent
        alone.append(without)
        expected.append(total + left * without)
        greatest.append(worst)
    assert (facts.attributes, facts.rows, facts.linked) == (("job", "sport"), 14, 7)
    assert (facts.links, facts.contradicted) == (len(links), contradicted)
    assert (contradicted > 0) == (kind == "table")
    for summary, values in zip(
        (facts.unlinked_risk, facts.linked_risk, facts.greatest_risk), (alone, expected, greatest), strict=True
    ):
        assert summary.mean == pytest.approx(math.fsum(values) / 14, rel=1e-12)
        assert (summary.max, summary.min) == pytest.approx((max(values), min(values)), rel=1e-12)
    if kind == "table":
        assert facts.unlinked_risk.mean < facts.linked_risk.mean < facts.greatest_risk.mean
    if (kind, model) == ("table", "I"):
        (tmp_path / "again").mkdir()
        again = measured(spark, tmp_path / "again", policy, rows, 1 - seed)[1]
        assert again == facts, "another layout, to the last bit"


def test_faults_of_links_are_refused_together_and_without_values(spark, tmp_path):
    policy = linked_policy("self")
    table = spark.createDataFrame([(1, "a", "flu", 1.0, 1.0), (2, "b", None, 1.0, 1.0)], TABLE)
    hierarchies = collect_hierarchies(policy, table, None)
    encoded = encode(table, policy, hierarchies, blocks=False)
    rows = [
        ("z", 1, "0.75", "secret job", "secret sport"), ("y", 1, "0.75", None, "chess"), ("z", 1, "0", None, None),
        ("z", 4711, "0.5", None, None), ("z", 2, "secret", None, "chess"), (None, 2, "0.5", None, None),
    ]  # fmt: skip
    scratch, opened = Scratch(spark, tmp_path), OpenLinks(policy.linkage, spark.createDataFrame(rows, GIVEN), None)
    with pytest.raises(SchemaError) as caught:
        collect_links(scratch, encoded, opened)
    assert str(caught.value) == (
        "linkage.record_id: 1 rows do not name their record, or their linked row. | "
        "linkage.record_id: 1 rows name a record that the table lacks. | "
        "linkage.linked_id: 1 rows repeat the record and the linked row of another row. | "
        "linkage.probability: 1 rows have none: it must be a number of at least 0. | "
        "linkage.probability: 1 records have probabilities that sum to more than 1. | "
        "linkage.columns.sport.hierarchy: 1 rows hold a value outside the hierarchy; add it, or leave out what is not "
        "known."
    )
    empty = OpenLinks(policy.linkage, spark.createDataFrame([], GIVEN), None)
    with pytest.raises(SchemaError, match="linkage: its table has no rows"):
        collect_links(scratch, encoded, empty)
    assert collect_links(scratch, encoded, None) is None


def test_columns_that_are_not_there_are_named(spark):
    links = spark.createDataFrame([], "person int, chances date, work string, row string, game string")
    theta = spark.createDataFrame([], "town string, ill string, occupations string")
    with pytest.raises(SchemaError) as caught:
        OpenLinks(linked_policy("table").linkage, links, theta).check()
    assert "linkage.probability: the linkage table has no column 'chance' (did you mean 'chances'?)" in str(
        caught.value
    )
    assert "linkage.columns.job.dictionary: the dictionary has no column 'occupation'" in str(caught.value)
    policy = linked_policy("self", probability="chances")
    with pytest.raises(SchemaError, match=r"linkage\.probability: must be a number, not date"):
        OpenLinks(policy.linkage, links, None).check()


def test_counts_that_no_driver_holds_are_refused(spark, tmp_path):
    policy = linked_policy("self")
    hierarchies = collect_hierarchies(policy, spark.createDataFrame([], TABLE), None)
    spread = SpreadVectors("shuffle", axes(policy, hierarchies), spark.range(1), 1)
    frame = spark.range(1)
    with pytest.raises(InputError, match=r"counting\.dense_cells nor counting\.sorted_vectors"):
        linkage_facts(
            Scratch(spark, tmp_path),
            None,  # type: ignore[arg-type] - it does not come so far
            disclosure_of(policy, hierarchies, axes(policy, hierarchies)),
            policy,
            hierarchies,
            linked=Linked(frame, hierarchies, None),
            counted=spread,
        )


def test_a_dictionary_column_of_an_added_attribute_must_fit_its_hierarchy(spark, tmp_path):
    declared = {"job": {"column": "work", "dictionary": "occupation", "hierarchy": {"flat": {"values": ["clerk"]}}}}
    policy = linked_policy("table", columns=declared)
    rows = ([(1, "a", "flu", 1.0, 1.0)], [("a", "flu", "pilot")], [("z", 1, "0.5", "clerk", None)])
    with pytest.raises(HierarchyError, match=r"linkage\.columns\.job: none of the dictionary's values"):
        measured(spark, tmp_path, policy, rows, 0)
