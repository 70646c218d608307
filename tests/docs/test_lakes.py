"""The example of docs/lakes.md does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from product import ROOT, Privrisk

PAGE = (ROOT / "docs" / "lakes.md").read_text()


def block(language: str) -> str:
    """Return the first block of a language."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_releases_the_version_it_names(
    privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        exec(block("python"), {})
    policy = yaml.safe_load(block("yaml"))
    policy["table"]["path"] = str(tmp_path / "patients")
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(policy, sort_keys=False))
    ran = privrisk(str(file), "--run-id", "first")
    assert ran.code == 0, ran.err
    said = yaml.safe_load(block("json"))
    stated = ran.manifest["input"]["table"]
    assert set(stated) == set(said)
    assert (stated["format"], stated["version"]) == (said["format"], said["version"])
    assert pq.read_table(ran.data).num_rows == 4
    assert (tmp_path / "vault" / "pins" / "first.json").exists()
    asked = re.search(r"With `table: (\{.*?\})`", PAGE)
    assert asked is not None
    policy["table"] |= yaml.safe_load(asked[1]) | {"path": str(tmp_path / "patients")}
    file.write_text(yaml.safe_dump(policy, sort_keys=False))
    before = privrisk(str(file), "--run-id", "second")
    assert before.code == 0, before.err
    assert pq.read_table(before.data).num_rows == 2
    assert before.manifest["input"]["table"]["version"] == 0


def test_every_format_with_versions_is_told_how_to_install() -> None:
    extras = re.findall(r"(?m)^(\w+) = \[", (ROOT / "pyproject.toml").read_text())
    for name in re.findall(r"privrisk-spark\[(\w+)\]", PAGE):
        assert name in extras
