from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st
from recodings import Labels, Rows, small_tables, table_of

from privrisk_spark.kernels.recoding.floors import Floors, exceeds, look
from privrisk_spark.kernels.recoding.metrics import METRICS, Measured
from privrisk_spark.kernels.recoding.problem import Condition, Problem, at_least

ODD = Condition("odd", lambda classes: classes.rows % 2 == 1, False, False)


@given(small_tables(most_rows=10), st.integers(1, 4), st.integers(0, 5), st.booleans(), st.data())
def test_no_node_of_a_box_costs_less(
    given_table: tuple[Labels, Rows], k: int, limit: int, odd: bool, data: st.DataObject
) -> None:
    measured = Measured.of(table_of(*given_table))
    table = measured.table
    high = tuple(data.draw(st.integers(0, height)) for height in table.lattice.heights)
    low = tuple(data.draw(st.integers(0, level)) for level in high)
    base = table.classes(low)
    for name, metric in METRICS.items():
        problem = Problem(measured, (at_least(k), ODD) if odd else (at_least(k),), metric, limit)
        floors = Floors(problem)
        seen = look(problem, high, base)
        floor = floors.least(base, low, seen.lost if problem.monotone else None)
        assert floor >= floors.least(base, low) - 1e-9 or floors.of_classes
        for levels in itertools.product(*(range(a, b + 1) for a, b in zip(low, high, strict=True))):
            facts = problem.facts(levels, table.classes(levels))
            if problem.keeps_limit(facts):
                assert not exceeds(floor, float(metric.key(facts))), name
                assert not exceeds(floors.of_lattice(), float(metric.key(facts))), name


@given(small_tables(most_rows=10), st.integers(1, 4), st.integers(0, 5))
def test_a_look_is_the_measure_of_a_node_that_keeps_the_limit(
    given_table: tuple[Labels, Rows], k: int, limit: int
) -> None:
    table = table_of(*given_table)
    problem = Problem(Measured.of(table), (at_least(k),), METRICS["loss"], limit)
    base = table.classes([0] * len(table.ancestors))
    for levels, classes in table.every_node():
        facts, seen = problem.facts(levels, classes), look(problem, levels, base)
        assert seen.facts == (facts if problem.keeps_limit(facts) else None)
        assert int(base.rows[seen.lost].sum()) == facts.suppressed


def test_a_floor_of_what_is_suppressed_is_what_it_costs() -> None:
    """Two rows alone and two of one value: with k = 2 two are lost at the bottom, and the floor of (0) is its cost."""
    table = table_of([[[0, 0], [1, 0], [2, 0]]], [(0,), (1,), (2,), (2,)])
    for name, cost in (("loss", 0.5), ("dm", 12.0), ("aecs", 2.0), ("classes", -1.0), ("precision", 0.5), ("ncp", 0.5)):
        problem = Problem(Measured.of(table), (at_least(2),), METRICS[name], 2)
        base = table.classes((0,))
        seen = look(problem, (0,), base)
        assert Floors(problem).least(base, (0,), seen.lost) == cost == float(METRICS[name].key(seen.facts))
