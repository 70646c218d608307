"""Every path of a policy stays the same place if the process changes its directory, and is dumped as it is written."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
import yaml
from policies import RISK, changed
from pydantic import BaseModel, TypeAdapter
from typer.testing import CliRunner

from privrisk_spark.api.policies import placed
from privrisk_spark.cli.app import app
from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.text import AS_WRITTEN
from privrisk_spark.ledger.urls import storage_of
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import LedgerPolicy, Policy
from privrisk_spark.policy.reading import parse
from privrisk_spark.runs.progress import LOGGER
from privrisk_spark.storage.locations import AbsolutePath

PREFIXES = {"LedgerPolicy.url": "sqlite:///", "key": "file:"}
"""What stands before a path, by key."""

NO_PATHS = {
    "Run.scratch": "a place in an object store",
    "Table.catalog": "a name",
    "Table.format": "a name",
    "Mask.character": "one character",
    "Complete.marker": "a name of a file in the table's directory",
    "Table.options": "options of a reader",
}
"""Texts whose description mentions files or directories."""

MENTIONS = re.compile(r"\b(file|files|directory|path|vault|manifest|sqlite)\b", re.IGNORECASE)


def parts_of(kind: Any) -> Iterator[Any]:
    yield kind
    for argument in get_args(kind):
        yield from parts_of(argument)


def models(kind: type[BaseModel], found: dict[str, type[BaseModel]]) -> dict[str, type[BaseModel]]:
    if kind.__name__ not in found:
        found[kind.__name__] = kind
        for field in kind.model_fields.values():
            for part in parts_of(field.annotation):
                if isinstance(part, type) and issubclass(part, BaseModel):
                    models(part, found)
    return found


def texts() -> Iterator[tuple[str, Any]]:
    """Keys that may hold a text or a list of texts, by model, each once."""
    seen = set()
    for model in models(Policy, {}).values():
        for name, field in model.model_fields.items():
            owner = next(one for one in reversed(model.__mro__) if name in getattr(one, "model_fields", {}))
            key = f"{owner.__name__}.{name}"
            if key not in seen and str in parts_of(field.annotation):
                seen.add(key)
                yield key, field


def adapter_of(field: Any) -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation)


def is_absolute(field: Any) -> bool:
    """Whether a key's type makes paths absolute, and dumps them as they are written."""
    annotation = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    return any(part is AS_WRITTEN for part in parts_of(annotation))


TEXTS = dict(texts())
PATHS = {key: field for key, field in TEXTS.items() if is_absolute(field)}


def test_path_keys_are_found() -> None:
    assert {"Table.path", "Output.path", "Output.vault", "LakeOutput.path", "DictionaryColumn.mapping",
            "FileHierarchy.file", "TreeHierarchy.tree_file", "KAnonymityGuarantee.scheme", "Policy.history",
            "LedgerPolicy.url"} <= set(PATHS)  # fmt: skip
    assert any(key.endswith(".reuse") for key in PATHS)
    assert any(key.endswith(".key") for key in PATHS)


@pytest.mark.parametrize("key", [key for key in TEXTS if key not in PATHS])
def test_text_key_whose_description_mentions_files_is_a_path_or_listed(key: str) -> None:
    mentions = MENTIONS.search(TEXTS[key].description or "")
    kinds = set(parts_of(TEXTS[key].annotation)) & {dict, tuple, list}
    assert not mentions or key in NO_PATHS or kinds or "olumn" in TEXTS[key].description, "use PathText, or list it"


@pytest.mark.parametrize("key", PATHS)
def test_path_key_after_a_change_of_directory_is_the_same_place(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = adapter_of(PATHS[key])
    prefix = next((prefix for name, prefix in PREFIXES.items() if key.endswith(name)), "")
    (tmp_path / "first").mkdir()
    monkeypatch.chdir(tmp_path / "first")
    given: Any = f"{prefix}in/../x*"
    given = [given] if key == "Policy.history" else given
    found = adapter.validate_python(given)
    monkeypatch.chdir(tmp_path)
    once = found[0] if isinstance(found, list) else found
    assert once == f"{prefix}{tmp_path}/first/in/../x*"
    assert adapter.dump_python(found) == adapter.dump_python(found, mode="json") == given
    assert adapter.dump_python(pickle.loads(pickle.dumps(found))) == given


@pytest.mark.parametrize("text", ["/a/b", "file:/a/b", "s3://bucket/a", "abfss://c@d/e", "hdfs:/a"])
def test_absolute_path_of_a_rooted_text_is_that_text(text: str) -> None:
    assert AbsolutePath.of(text) == AbsolutePath.of(text).written == text


def test_absolute_path_of_a_name_with_a_colon_is_below_the_directory() -> None:
    assert AbsolutePath.of("a:b.csv") == f"{os.getcwd()}/a:b.csv"


def test_policy_dumps_no_path_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = parse(RISK)
    monkeypatch.chdir(tmp_path)
    second = parse(changed(RISK))
    assert first.table.path != second.table.path
    assert first.canonical() == second.canonical()
    assert str(tmp_path) not in second.model_dump_json()


def test_placed_policy_with_relative_paths_has_one_digest_in_every_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = {"path": "out", "vault": "vault"}
    digests = set()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        policy = parse({**changed(RISK), "output": output})
        own, given = placed(policy, policy.places.path, policy.places.vault), placed(policy, "out", Path("vault"))
        digests |= {policy.canonical(), own.canonical(), given.canonical()}
        assert own.places.path == given.places.path == f"{tmp_path}/{name}/out"
    assert len(digests) == 1


def test_path_of_a_validated_part_stays_as_written_when_it_is_validated_again() -> None:
    kinds: list[tuple[type[BaseModel], str, str]] = [
        (Table, "path", "data/t.csv"),
        (LedgerPolicy, "url", "sqlite:///ledger.db"),
    ]
    for kind, key, text in kinds:
        adapter = adapter_of(kind.model_fields[key])
        once = adapter.validate_python(text)
        again = adapter.validate_python(once)
        assert again == once
        assert adapter.dump_python(again) == text


def test_ledger_in_memory_stays_as_written_so_that_the_ledger_refuses_it() -> None:
    found = adapter_of(LedgerPolicy.model_fields["url"]).validate_python("sqlite:///:memory:")
    with pytest.raises(InputError, match="a ledger in memory would forget"):
        storage_of(found)


@pytest.mark.parametrize(
    "command",
    [
        "approve none.json --by me",
        "release none.yaml",
        "assess none.yaml --output found",
        "hierarchy check none.yaml",
        "hierarchy show none.csv",
        "init none.csv --out draft",
        "validate policy.yaml --set table.path=none.csv",
        "validate policy.yaml --set dictionary.path=none.csv",
        "validate policy.yaml --set columns.City.hierarchy.file=none.csv",
    ],
)
def test_command_with_a_file_that_does_not_exist_names_the_absolute_path(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(yaml.safe_dump(RISK))
    ran = CliRunner().invoke(app, command.split())
    LOGGER.handlers.clear()
    assert ran.exit_code == 2, ran.output
    assert re.search(rf"'{tmp_path}/none\.(csv|json|yaml)'", " ".join(ran.output.split())), ran.output
