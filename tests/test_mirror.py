"""Tests lie where what they test lies: ``tests/X`` mirrors ``privrisk_spark/X``, directory for directory."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
PACKAGE = ROOT / "privrisk_spark"
BESIDE = {"jobs", "benchmarks", "dags", "docs", "reproduce"}
"""Directories that lie beside the package, as their tests do."""


def test_every_directory_of_tests_has_one_in_the_package() -> None:
    directories = {file.parent.relative_to(TESTS) for file in TESTS.rglob("test_*.py")}
    found = {d for d in directories if not (PACKAGE / d).is_dir()}
    assert {d.parts[0] for d in found} == BESIDE
    assert all((ROOT / d).is_dir() for d in found)


def test_tests_of_the_whole_house_of_tests_and_of_modules_at_the_top_alone_lie_at_the_top() -> None:
    of_modules = {f"test_{module.name}" for module in PACKAGE.glob("*.py")}
    whole = {
        "test_callers.py", "test_layers.py", "test_mirror.py", "test_shared.py", "test_size.py", "test_thorough.py",
    }  # fmt: skip
    assert {file.name for file in TESTS.glob("test_*.py")} - of_modules == whole
