"""Blocks of the documents: policies in them are accepted, files they name are there, commands in sentences are ours.

Commands and programs are run by :mod:`test_walks`.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer.main
import yaml
from documents import BLOCKS, DOCUMENTS, ROOT, Block, here_documents
from pydantic import TypeAdapter

from privrisk_spark.cli.app import app
from privrisk_spark.policy.policy import Policy

SECTIONS = {field.alias or name: field for name, field in Policy.model_fields.items()}


def policies(block: Block) -> list[str]:
    """Policies and parts of them; lines that give one key in several ways are several."""
    if block.language == "sh":
        return [text for name, text in here_documents(block.text) if name.endswith(".yaml")]
    if block.language != "yaml" or block.document == "policy-keys":
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


def test_commands_that_are_named_in_texts_are_there() -> None:
    """``privrisk ledger create`` in a sentence: its words are commands."""
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
