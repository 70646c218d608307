"""What floors would give, against a literal search of every record's lattice."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.hierarchies.builders import build
from privrisk_spark.hierarchies.text import Flat, Mask
from privrisk_spark.kernels.search.floors import Floored, FloorSearch, highest_floor
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.planning.disclosure import disclosure_of
from privrisk_spark.policy.reading import parse

WEIGHTS = {"code": 1.5, "sex": 1.0}
POLICY = parse(
    {
        "version": 1,
        "run": {"name": "x"},
        "table": {"path": "x"},
        "columns": {
            "code": {"role": "quasi-identifier", "hierarchy": {"mask": {"steps": 1}}},
            "sex": {"role": "quasi-identifier", "hierarchy": {"flat": {}}},
        },
        "risk": {"sensitivity": {"form": "constant", "constant": 1}},
        "utility": {"weights": WEIGHTS},
        "decision": {"utility_at_least": 0},
    },
    releasing=False,
)
Row = tuple[str, str | None]
ROWS = st.lists(
    st.tuples(st.sampled_from(["11", "12", "21"]), st.sampled_from(["f", "m", None])), min_size=1, max_size=12
)


def searched(rows: list[Row], *, alike: int, decided: int) -> FloorSearch:
    spec = {
        "code": build(Mask(steps=1), "code", values=["11", "12", "21"]),
        "sex": build(Flat(), "sex", values=["f", "m"]),
    }
    codes = np.array(
        [
            [h.n_leaves if value is None else h.code_of[value] for h, value in zip(spec.values(), row, strict=True)]
            for row in rows
        ],
        dtype=np.int32,
    )
    of_axes = axes(POLICY, spec)
    return FloorSearch(disclosure_of(POLICY, spec, of_axes), of_axes, codes, alike=alike, decided=decided)


def literal(rows: list[Row], row: Row, floor: float) -> tuple[float, float, int]:
    """Least risk of a row, then most utility; its utility; and the rows that fit it."""
    chains = [[row[0], row[0][0], ""], [""] if row[1] is None else [row[1], ""]]
    best = None
    for i, j in product(range(3), range(len(chains[1]))):
        utility = WEIGHTS["code"] * (2 - i) + WEIGHTS["sex"] * (len(chains[1]) - 1 - j)
        fit = sum(
            other[0].startswith(chains[0][i]) and chains[1][j] in ("", other[1]) for other in rows
        )  # a missing value fits only what is suppressed
        if utility >= floor and (best is None or (1 / fit, -utility) < (best[0], -best[1])):
            best = (1 / fit, utility, fit)
    return best or (1 / len(rows), 0.0, len(rows))


@settings(max_examples=40)
@given(ROWS, st.sampled_from([0.0, 1.0, 2.5, 3.0, 4.0]), st.integers(1, 12))
def test_figures_are_those_of_a_literal_search(rows: list[Row], floor: float, decided: int) -> None:
    found = searched(rows, alike=3, decided=decided).at(floor)
    each = [literal(rows, row, floor) for row in rows[:decided]]
    assert found.mean_risk == pytest.approx(np.mean([risk for risk, _, _ in each]))
    assert found.greatest_risk == pytest.approx(max(risk for risk, _, _ in each))
    assert found.utility == pytest.approx(np.mean([utility for _, utility, _ in each]))
    assert found.few_alike == pytest.approx(np.mean([fit < 3 for _, _, fit in each]))


@given(st.integers(0, 9))
def test_the_highest_floor_is_found(last: int) -> None:
    def at(floor: float) -> Floored:
        return Floored(floor, 0, 0, 0, 0.05 if floor < last else 0.06, 0, 0, np.zeros(1))

    found = highest_floor(at, [float(i) for i in range(9)], few=0.05)
    assert found == (None if last == 0 else min(last, 9) - 1)
