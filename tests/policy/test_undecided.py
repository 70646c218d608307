"""Undecided columns of a policy: a release refuses them, other jobs read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import privrisk_spark as pr
from privrisk_spark.cli.app import app
from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.policy.reading import load, parse

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "run": {"name": "small"},
    "table": {"path": "people.csv", "format": "csv"},
    "undecided": ["age", "town"],
    "columns": {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": {"widths": [5]}}},
        "town": {"role": "quasi-identifier", "hierarchy": {"flat": {}}},
    },
    "decision": {"utility_at_least": 0},
    "output": {"path": "out", "vault": "vault"},
}


def faults(document: dict[str, Any], *, releasing: bool = True) -> list[Fault]:
    with pytest.raises(ConfigError) as refused:
        parse(document, releasing=releasing)
    return list(refused.value.faults)


def test_undecided_columns_are_refused_by_a_release() -> None:
    (fault,) = faults(DOCUMENT)
    assert fault.path == "undecided"
    assert "age, town" in fault.rule
    assert "--accept-undecided" in fault.rule
    assert parse(DOCUMENT, releasing=False).undecided == ("age", "town")


def test_undecided_unknown_column_is_an_error_for_every_job() -> None:
    document = DOCUMENT | {"undecided": ["age", "twon"]}
    (fault,) = faults(document, releasing=False)
    assert fault.path == "undecided.1"
    assert "did you mean 'town'" in fault.rule


def test_undecided_empty_list_has_the_digest_of_a_policy_without_it() -> None:
    decided = {key: value for key, value in DOCUMENT.items() if key != "undecided"}
    assert parse(DOCUMENT | {"undecided": []}).digest() == parse(decided).digest()
    assert "undecided" not in parse(decided).canonical()


@pytest.mark.parametrize("command", ["release", "mask"])
def test_command_that_publishes_with_undecided_columns_exits_2(tmp_path: Path, command: str) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(DOCUMENT, sort_keys=False))
    ran = CliRunner().invoke(app, [command, str(policy)])
    assert ran.exit_code == 2
    assert "undecided: nobody has confirmed what is proposed for age, town" in ran.stderr
    assert not (tmp_path / "out").exists()
    accepted = CliRunner().invoke(app, [command, str(policy), "--accept-undecided", "--dry-run"])
    assert "undecided" not in accepted.stderr, "what it is refused for now is that there is no table"
    assert load([policy], overrides=["undecided=[]"], environment={}).undecided == ()


@pytest.mark.parametrize("job", [pr.release, pr.plan])
def test_python_job_of_a_release_with_undecided_columns_is_refused(job: Any) -> None:
    policy = pr.Policy(**{key: value for key, value in DOCUMENT.items() if key != "run"})
    with pytest.raises(ConfigError, match="undecided: nobody has confirmed"):
        job(None, policy)
