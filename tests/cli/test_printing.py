"""Control characters in names of columns never reach a terminal."""

from __future__ import annotations

import json
import logging
import sys
from io import StringIO
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.errors import ConfigError, Fault, SchemaError, printable
from privrisk_spark.runs.progress import LOGGER, configure_logging

PACKAGE = Path(__file__).resolve().parents[2] / "privrisk_spark"
NAME = "a\x1b[31m\x07\x9b2J\r\u202eb"
"""Colours the terminal, rings its bell, clears it, and turns the direction of writing."""


def steers(text: str) -> bool:
    return any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or c in "\u202a\u202e\u2066" for c in text)


@pytest.mark.parametrize("text", ["", "ü €\n\tx", "{'a': 1}"])
def test_printable_text_without_controls_is_unchanged(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize("mark", ["\u061c", "\u200e", "\u202e", "\u2069", "\ufeff"])
def test_printable_text_with_an_invisible_mark_shows_its_escape(mark: str) -> None:
    assert printable(f"a{mark}b") == f"a\\u{ord(mark):04x}b"


def test_printable_json_stays_the_same_document() -> None:
    text = json.dumps({NAME: [NAME]}, ensure_ascii=False)
    assert not steers(printable(text))
    assert json.loads(printable(text)) == {NAME: [NAME]}


def test_error_with_a_control_character_shows_its_escape() -> None:
    for error in (SchemaError(f"table: column '{NAME}'"), ConfigError([Fault(f"columns.{NAME}", "is wrong")])):
        assert not steers(str(error))
        assert r"a\u001b[31m\u0007\u009b2J\u000d\u202eb" in str(error)


@pytest.mark.parametrize("form", ["text", "json"])
def test_log_line_with_a_control_character_shows_its_escape(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    configure_logging(form)  # type: ignore[arg-type]
    try:
        LOGGER.warning("column %s", NAME, extra={"fields": {"column": NAME}})
    finally:
        LOGGER.handlers.clear()
        LOGGER.propagate = True
        LOGGER.setLevel(logging.NOTSET)
    assert "column a" in written.getvalue()
    assert not steers(written.getvalue())


def test_commands_print_at_one_place_only() -> None:
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text()
        if file.name != "printing.py":
            assert not any(call in text for call in ("typer.echo", "click.echo", "secho(")), file


@pytest.mark.spark
@pytest.mark.parametrize("command", ["validate", "init", "hierarchy"])
def test_command_on_a_column_whose_name_steers_a_terminal_prints_its_escape(
    command: str, small: Path, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    table.write_text(table.read_text().replace(";city;", f";{NAME.replace(chr(13), '')};", 1))
    if command == "init":  # which prints the names of undecided columns
        names = [f"{chr(97 + i % 7)}{'e' * (i % 5 + 1)}{chr(97 + i % 3)}" for i in range(210)]
        rows = [f"{name};{20 + i % 50}" for i, name in enumerate(names)]
        table.write_text("\n".join([f"{NAME.replace(chr(13), '')};age", *rows]) + "\n")
    document = small.read_text().replace("city:", json.dumps(NAME.replace("\r", "")) + ":")
    small.write_text(document)
    arguments = {
        "validate": ["validate", str(small)],
        "init": ["init", str(table), "--out", str(tmp_path / "first"), "--option", "sep=;"],
        "hierarchy": ["hierarchy", "show", str(small)],
    }
    try:
        ran = CliRunner().invoke(app, arguments[command])
    finally:
        LOGGER.handlers.clear()
    assert r"\u001b[31m" in ran.output, ran.output
    assert not steers(ran.output)


@pytest.mark.parametrize(
    ("words", "expected"), [("privrisk rel", "release"), ("privrisk release --dry", "--dry-run"), ("privrisk x", "")]
)
def test_completion_of_a_word_prints_what_it_may_become(words: str, expected: str) -> None:
    asked = {"_PRIVRISK_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    ran = CliRunner().invoke(app, [], prog_name="privrisk", env=asked)
    assert ran.output.split() == expected.split()
