"""The catalogue: what its entries must agree with."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from privrisk_spark.claims import Status
from privrisk_spark.kernels.classes.criteria import CRITERIA
from privrisk_spark.results.measures import read_families, read_measures

CRITERIA_OF = {
    "k": ["k-anonymity"], "k_map": ["k-map"], "p_sensitive": ["p-sensitivity", "distinct l-diversity"],
    "l_entropy": ["entropy l-diversity"], "l_recursive": ["recursive (c,l)-diversity: l"],
    "t_closeness": [f"t-closeness, {distance} distance" for distance in ("equal", "ordered", "hierarchical")],
    "alpha": ["alpha"], "beta_likeness": ["beta-likeness"], "enhanced_beta_likeness": ["enhanced beta-likeness"],
    "delta_disclosure": ["delta-disclosure"], "one_k": ["(1,k)-anonymity"], "k_one": ["(k,1)-anonymity"],
    "k_k": ["(1,k)-anonymity", "(k,1)-anonymity"], "k_concealment": ["k-concealment"], "k_confusion": ["k-confusion"],
}  # fmt: skip
"""Each measure that is the worst number of privacy criteria, with these criteria."""


def test_read_measures_keeps_every_entry_in_the_order_of_the_families() -> None:
    measures = read_measures()
    assert len(measures) == 97
    assert list(dict.fromkeys(measure.family for measure in measures.values())) == list(read_families())


@pytest.mark.parametrize("name", read_measures())
def test_measure_fields_have_allowed_values(name: str) -> None:
    measure = read_measures()[name]
    assert all(isinstance(text, str) for text in (measure.title, measure.unit, measure.means, measure.source))
    assert measure.safe in (None, "low", "high")
    assert measure.status in get_args(Status)


def test_measures_of_criteria_have_their_side_and_source() -> None:
    for name, criteria in CRITERIA_OF.items():
        measure, of = read_measures()[name], [CRITERIA[criterion] for criterion in criteria]
        assert {measure.safe} == {"high" if criterion.direction == "at least" else "low" for criterion in of}
        assert measure.source == "; ".join(dict.fromkeys(criterion.source for criterion in of))
    # The homogeneity attack is reported as a share, and recursive diversity as its l.
    named = {criterion for criteria in CRITERIA_OF.values() for criterion in criteria}
    assert set(CRITERIA) - named == {"homogeneity", "recursive (c,l)-diversity: c"}


@pytest.mark.parametrize("name", read_measures())
def test_sources_are_papers_not_lectures(name: str) -> None:
    source = read_measures()[name].source
    assert not source or re.search(r"\b(19|20)\d\d\b", source)
    assert not re.search("Raschia|Torra 2020|Torra 2017", source)
