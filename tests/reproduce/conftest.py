"""Tests of the papers' experiments: ``make test-all`` runs them, ``make test`` only those in ``QUICK``."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
QUICK = {"test_examples.py", "test_main.py"}
"""Files that every run has."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import what is not asked for."""
    quick = collection_path.name in QUICK or not collection_path.name.startswith("test_")
    return None if quick or "not reproduce" not in config.option.markexpr else True


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.is_relative_to(HERE) and item.path.name not in QUICK:
        item.add_marker("reproduce")
