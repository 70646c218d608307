"""Arguments of ``python -m reproduce``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reproducing import reproduce

from reproduce import NAMES
from reproduce.collection import named
from reproduce.sizes import bounds


def test_help_lists_each_experiment_and_its_sizes() -> None:
    listed = reproduce("--help").stdout
    assert all(name in listed for name in (*NAMES, "all"))
    for name in NAMES:
        shown = reproduce(name, "--help").stdout
        assert all(f"--{size}" in shown for size in bounds(named(name).usual))


@pytest.mark.parametrize("arguments", [("nothing",), ("examples",), ("examples", "--output=x", "--rows=1")])
def test_unknown_arguments_are_refused(arguments: tuple[str, ...]) -> None:
    assert reproduce(*arguments).exit_code == 2


def test_given_sizes_change_the_quick_ones(tmp_path: Path) -> None:
    ran = reproduce("dictionaries", "--quick", "--rows=300", f"--output={tmp_path / 'out'}")
    assert ran.exit_code == 0, ran.output
    sizes = json.loads((tmp_path / "out" / "dictionaries.json").read_text())["sizes"]
    assert sizes == {"rows": 300, "attributes": 4, "seed": 2006}


def test_error_of_a_size_names_its_option(tmp_path: Path) -> None:
    ran = reproduce("recoding", "--rows=0", "--attributes=11", f"--output={tmp_path / 'out'}")
    assert ran.exit_code == 2
    assert "--rows: must be at least 1. Got 0" in ran.stderr
    assert "--attributes: must be at most 10. Got 11" in ran.stderr


def test_policy_of_an_experiment_with_tables_of_its_own_is_refused(small: Path, tmp_path: Path) -> None:
    ran = reproduce("examples", str(small), f"--output={tmp_path / 'found'}")
    assert ran.exit_code == 2
    assert "tables of its own" in ran.stderr
