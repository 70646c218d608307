"""Blocks of the documents: policies in them are accepted, commands are understood, programs compile.

Those a reader is meant to run as they are, are run by the tests beside this one: the README's first screen, the
notebook, the examples of history, lakes, masking, sharing, and of the Python reference.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main
import yaml
from pydantic import TypeAdapter
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.policy.policy import Policy

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
SECTIONS = {field.alias or name: field for name, field in Policy.model_fields.items()}


class Block(NamedTuple):
    """A block of a document, and where it is from."""

    place: str
    language: str
    text: str


def blocks() -> Iterator[Block]:
    for document in DOCUMENTS:
        for at, found in enumerate(
            re.finditer(r"(?m)^( *)```(\w*)\n(.*?)^\1```$", document.read_text(), re.DOTALL), start=1
        ):
            yield Block(f"{document.stem}-{at}", found[2], textwrap.dedent(found[3]))


BLOCKS = list(blocks())


def here_documents(text: str) -> Iterator[str]:
    """What a shell block writes to YAML files."""
    yield from re.findall(r"cat > \S+\.yaml <<'END'\n(.*?)^END$", text, re.DOTALL | re.MULTILINE)


def policies(block: Block) -> list[str]:
    """Policies and parts of them; lines that give one key in several ways are several."""
    if block.language == "sh":
        return list(here_documents(block.text))
    if block.language != "yaml" or block.place.startswith("policy-keys"):
        return []
    keys = re.findall(r"(?m)^(\w+):", block.text)
    return block.text.splitlines() if len(set(keys)) < len(keys) else [block.text]


POLICIES = [(block.place, text) for block in BLOCKS for text in policies(block)]


@pytest.mark.parametrize(("place", "text"), POLICIES, ids=[place for place, _ in POLICIES])
def test_a_policy_is_accepted(place: str, text: str) -> None:
    part: dict[str, Any] = yaml.safe_load(text.replace("{ds}", "2026-11-24").replace("${LEDGER_URL}", "sqlite:///b.db"))
    assert part
    for section, value in part.items():
        if section != "version":
            field = SECTIONS[section]
            TypeAdapter(field.rebuild_annotation()).validate_python(value)


def commands(block: Block) -> Iterator[str]:
    """Commands of ours in a block, without comments."""
    if block.language in ("", "sh", "bash"):
        text = re.sub(r"cat > .*?^END$", "", block.text, flags=re.DOTALL | re.MULTILINE).replace("\\\n", " ")
        for line in text.splitlines():
            if re.match(r"\s*(DEMO=\S+ )?privrisk ", line):
                yield line


COMMANDS = [(block.place, line) for block in BLOCKS for line in commands(block)]


def understood(line: str) -> str:
    """Return the words of a command that name it, or fail at a word that is none or an option it does not take."""
    words = [word for word in shlex.split(line, comments=True) if not word.startswith("DEMO=")][1:]
    command, name = typer.main.get_command(app), "privrisk"
    while hasattr(command, "commands"):
        word = words.pop(0)
        assert word in command.commands, f"{name} has no command {word}"
        command, name = command.commands[word], f"{name} {word}"
    command.make_context(name, words)
    return name


@pytest.mark.parametrize(("place", "line"), COMMANDS, ids=[place for place, _ in COMMANDS])
def test_a_command_is_understood(place: str, line: str) -> None:
    assert understood(line).startswith("privrisk ")


@pytest.mark.parametrize("line", ["privrisk relase policy.yaml", "privrisk release policy.yaml --outptu out"])
def test_a_command_with_a_slip_is_not(line: str) -> None:
    with pytest.raises(Exception, match=r"no command relase|[Nn]o such option"):
        understood(line)


PROGRAMS = [block for block in BLOCKS if block.language == "python" and not block.place.startswith("api")]


@pytest.mark.parametrize("block", PROGRAMS, ids=[block.place for block in PROGRAMS])
def test_a_program_compiles(block: Block) -> None:
    compile(block.text, block.place, "exec")


def test_commands_that_are_named_in_texts_are_there() -> None:
    """``privrisk experiments compare`` in a sentence: its words are commands."""
    group = typer.main.get_command(app)
    wrong = []
    for document in DOCUMENTS:
        for words in re.findall(r"`privrisk ([a-z-]+(?: [a-z-]+)*)[ `]", document.read_text()):
            first, *rest = words.split()
            inner = getattr(group.commands.get(first), "commands", None)
            if first not in group.commands or (inner and rest and rest[0] not in inner and not rest[0].startswith("-")):
                wrong.append((document.name, words))
    assert not wrong


def test_files_that_examples_name_are_there() -> None:
    for block in BLOCKS:
        for file in re.findall(r"(?:^|[\s=])((?:conf|jobs|dags|benchmarks)/[\w./-]+)", block.text):
            assert (ROOT / file).exists(), (block.place, file)


def test_the_command_line_answers() -> None:
    """The parser that reads the examples is that of the program."""
    ran = CliRunner().invoke(app, ["release", "--help"])
    assert ran.exit_code == 0
    assert "--scheme" in ran.output
