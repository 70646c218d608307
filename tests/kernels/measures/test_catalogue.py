"""The catalogue: what its entries must agree with."""

from __future__ import annotations

import re

import pytest

from privrisk_spark.kernels.classes.criteria import CRITERIA, HOMOGENEITY, RECURSIVE_C
from privrisk_spark.kernels.measures.catalogue import CATALOGUE
from privrisk_spark.kernels.measures.entries.attack import ATTACK
from privrisk_spark.kernels.measures.entries.attribute import ATTRIBUTE
from privrisk_spark.kernels.measures.entries.identity import IDENTITY
from privrisk_spark.kernels.measures.entries.utility import UTILITY
from privrisk_spark.kernels.measures.measure import FAMILIES


def test_no_entry_is_lost_or_out_of_order() -> None:
    parts = (IDENTITY, ATTRIBUTE, UTILITY, ATTACK)
    assert len(CATALOGUE) == sum(len(part) for part in parts) == 97
    families = list(dict.fromkeys(measure.family for measure in CATALOGUE.values()))
    assert families == list(FAMILIES)


def test_a_criterion_says_which_side_is_safe_and_where_it_is_from() -> None:
    named = set()
    for measure in CATALOGUE.values():
        for criterion in measure.criteria:
            assert measure.safe == ("high" if criterion.direction == "at least" else "low")
            assert criterion.source in measure.source
        named.update(measure.criteria)
    # The homogeneity attack is told as a share, and recursive diversity as its l.
    assert set(CRITERIA.values()) - named == {HOMOGENEITY, RECURSIVE_C}


@pytest.mark.parametrize("name", CATALOGUE)
def test_sources_are_papers_not_lectures(name: str) -> None:
    source = CATALOGUE[name].source
    assert not source or re.search(r"\b(19|20)\d\d\b", source)
    assert not re.search("Raschia|Torra 2020|Torra 2017", source)
