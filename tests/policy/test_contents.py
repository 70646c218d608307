"""What the files of a policy hold is part of what is asked, and of the default run id."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
from pathlib import Path

import pytest
from policies import DP, changed

from privrisk_spark.errors import HierarchyError
from privrisk_spark.hierarchies.files import read_tree
from privrisk_spark.policy.contents import contents_of
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import parse

DAY = dt.date(2026, 11, 21)


def policy(tmp_path: Path) -> Policy:
    (tmp_path / "zip.csv").write_text("1;n;*\n2;n;*\n")
    (tmp_path / "age.yaml").write_text('"*": ["1", "2"]\n')
    (tmp_path / "map.csv").write_text("one;1\n")
    document = changed(
        DP,
        ("columns.zip.hierarchy", {"file": str(tmp_path / "zip.csv")}),
        ("columns.age.hierarchy", {"tree_file": str(tmp_path / "age.yaml")}),
        ("guarantee.mode", "public-dictionary"),
        ("guarantee.epsilon.admit", 0),
        ("guarantee.frequent", 9),
        ("guarantee.schemes", [[0, 0]]),
        ("dictionary", {"kind": "table", "path": "p.csv", "public": True, "columns": {
            "age": "a", "zip": {"column": "z", "mapping": str(tmp_path / "map.csv")}}}),
    )  # fmt: skip
    return parse(document)


def test_every_file_counts_by_what_it_holds(tmp_path: Path):
    found = contents_of(policy(tmp_path))
    assert set(found) == {
        "columns.age.hierarchy.tree_file", "columns.zip.hierarchy.file", "dictionary.columns.zip.mapping"
    }  # fmt: skip
    assert found["dictionary.columns.zip.mapping"] == hashlib.sha256(b"one;1\n").hexdigest()


def test_the_default_run_id_sees_the_contents_of_hierarchy_and_mapping_files(tmp_path: Path):
    asked = policy(tmp_path)
    seen = {asked.run_id(DAY)}
    assert {asked.run_id(DAY)} == seen
    for file in ("zip.csv", "age.yaml", "map.csv"):
        with (tmp_path / file).open("a") as stream:
            stream.write("\n")
        seen.add(asked.run_id(DAY))
    assert len(seen) == 4
    (tmp_path / "map.csv").unlink()
    assert asked.run_id(DAY) not in seen, "a file that is lost is another policy, and is named where it is read"


def test_a_policy_without_files_has_the_run_id_it_had(tmp_path: Path):
    plain = parse(changed(DP, ("columns.zip.hierarchy", {"flat": {"values": ["1", "2"]}})))
    assert contents_of(plain) == {}
    assert plain.run_id(DAY) == f"{plain.run.name}-2026-11-21-{plain.digest()[:8]}"


def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    document = changed(DP, ("columns.zip.hierarchy", {"file": str(tmp_path / "pipe")}))
    assert "unreadable" in contents_of(parse(document)).values()
    with pytest.raises(HierarchyError, match="it is a pipe or a device"):
        read_tree(tmp_path / "pipe", attribute="City")
