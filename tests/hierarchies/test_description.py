"""What is shown of a hierarchy: levels by name, short branches, labels that come again, and no value of a record."""

from __future__ import annotations

import pytest

from privrisk_spark.hierarchies.builders import build
from privrisk_spark.hierarchies.description import describe
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.policy import QuasiIdentifier


def made(rule: dict[str, object], values: list[str] | None = None) -> Hierarchy:
    spec = QuasiIdentifier.model_validate({"role": "quasi-identifier", "hierarchy": rule}).hierarchy
    return build(spec, "x", values=values)


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        ({"intervals": {"widths": [5, 10.5], "domain": [0, 20]}}, None),
        ({"intervals": {"widths": [5, 10], "domain": [0, 20]}}, ["as it is", "width 5", "width 10"]),
        ({"intervals": {"cuts": [[5, 10], [5]], "domain": [0, 20]}}, ["as it is", "3 intervals", "2 intervals"]),
        ({"dates": {"steps": ["month", "year"], "domain": ["2001-01", "2002-05"]}}, ["month", "year"]),
        ({"mask": {"steps": 2, "domain": ["123", "124"]}}, ["as it is", "1 character masked", "2 characters masked"]),
        # No value is long enough for a third step.
        ({"mask": {"steps": 4, "domain": ["12", "13"]}}, ["as it is", "1 character masked"]),
        ({"order": {"values": list("abcdefgh"), "fanouts": [2, 2]}}, ["as it is", "groups of 2", "groups of 4"]),
        ({"flat": {"values": ["a", "b"]}}, ["as it is"]),
        ({"tree": {"*": {"North": {"Upper": ["a"]}, "South": {"Lower": ["b"]}}}}, ["as it is", "level 1", "level 2"]),
    ],
)
def test_levels_have_the_names_their_rule_knows(rule: dict[str, object], names: list[str] | None) -> None:
    if names is None:
        with pytest.raises(ValueError, match="multiple"):
            made(rule)
        return
    hierarchy = made(rule)
    assert list(hierarchy.level_names) == [*names, "suppressed"]
    assert len(hierarchy.level_names) == hierarchy.height + 1


def test_names_of_levels_change_no_number() -> None:
    named = made({"dates": {"steps": ["month", "year"], "domain": ["2001-01", "2002-05"]}})
    plain = Hierarchy(named.attribute, named.labels, named.parent, named.n_leaves)
    assert plain.level_names == ("as it is", "level 1", "suppressed")
    assert (plain.ancestor == named.ancestor).all()


def test_sizes_examples_short_branches_and_labels_on_several_levels() -> None:
    tree = {"*": {"North": {"Upper": ["a", "b", "c"], "d": ["d1"]}, "South": ["South1"], "Other": ["o", "p"]}}
    found = describe(made({"tree": tree}))
    assert [(one.name, one.nodes, one.fewest, one.most) for one in found.levels] == [
        ("as it is", 7, 1, 1),
        ("level 1", 4, 1, 3),
        ("level 2", 2, 4, 7),
        ("suppressed", 1, 7, 7),
    ]
    assert found.levels[1].examples == ("Upper", "d", "Other")
    assert found.depths == {2: 3, 3: 4}
    assert found.repeated == {}
    again = describe(made({"tree": {"*": {"x": {"X": ["a"]}, "N": {"n": ["n1", "n2"]}}}}))
    assert again.repeated == {}
    chain = describe(made({"mask": {"steps": 1, "domain": ["ab", "ac", "d"]}}))
    assert chain.depths == {1: 1, 2: 2}, "'d' has no character to mask"


def test_a_label_of_an_only_child_is_named_with_its_levels() -> None:
    found = describe(made({"order": {"values": ["a", "b", "c"], "fanouts": [2, 2]}}))
    assert found.repeated == {"c": (0, 1)}


def test_labels_from_records_are_shown_on_request_alone() -> None:
    hierarchy = made({"mask": {"steps": 2}}, values=["123", "124"])
    hidden, shown = describe(hierarchy), describe(hierarchy, values=True)
    assert not hidden.public
    assert all(not one.examples for one in hidden.levels)
    assert "123" not in str(hidden.to_dict())
    assert shown.levels[0].examples == ("123", "124")
    assert [one.nodes for one in hidden.levels] == [one.nodes for one in shown.levels]
