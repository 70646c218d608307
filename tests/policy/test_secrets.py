"""What a digest that is published must not tell, and what it must."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
import yaml

from privrisk_spark.planning.request import asked_of
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import load, parse
from privrisk_spark.policy.secrets import FromEnvironment, without_credentials, without_secrets

DAY = dt.date(2026, 11, 21)
POLICY: dict[str, Any] = {
    "version": 1,
    "run": {"name": "census"},
    "table": {"path": "in/census", "format": "csv", "options": {"header": True}},
    "columns": {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": {"widths": [5, 10], "domain": [0, 99]}}},
        "sex": {"role": "quasi-identifier", "hierarchy": {"flat": {"values": ["f", "m"]}}},
    },
    "decision": {"utility_at_least": 1},
    "output": {"path": "out", "vault": "vault"},
}


def with_table(**keys: Any) -> dict[str, Any]:
    return {**POLICY, "table": {**POLICY["table"], **keys}}


def public(policy: Policy) -> tuple[str, str]:
    """All that is published of a policy's content: whoever has a few guesses can try them against it."""
    return policy.digest(), policy.run_id(DAY)


PLACES = ("s3a://{}@bucket/census", "s3a://key:{}@bucket/census", "abfss://box@account/census?sig={}")


@pytest.mark.parametrize("place", PLACES)
def test_credentials_in_a_place_cannot_be_guessed_from_what_is_published(place: str) -> None:
    one, other = (parse(with_table(path=place.format(secret))) for secret in ("1234", "4321"))
    assert public(one) == public(other)
    elsewhere = parse(with_table(path=place.format("1234").replace("census", "births")))
    assert public(one)[0] != public(elsewhere)[0], "another table is another policy"
    # What stays in the vault and in the ledger knows them.
    assert asked_of(one, DAY)["table"] != asked_of(other, DAY)["table"]


@pytest.mark.parametrize("name", ["password", "fs.s3a.secret.key", "dbToken", "SAS", "user"])
def test_secret_options_of_a_reader_cannot_be_guessed_from_what_is_published(name: str) -> None:
    one, other = (parse(with_table(format="jdbc", options={name: secret})) for secret in ("1234", "4321"))
    assert public(one) == public(other)
    without = parse(with_table(format="jdbc", options={}))
    assert public(one)[0] != public(without)[0]
    plain = [parse(with_table(options={"header": True, "sep": sep})) for sep in ",;"]
    assert public(plain[0]) != public(plain[1]), "how a table is read is no secret"


REFERENCES: list[tuple[tuple[str, ...], Any]] = [
    (("table", "path"), "in/${SECRET}"),
    (("output", "vault"), "${SECRET}"),
    (("checks", "min_class_size"), "${SECRET}"),
    (("columns", "sex", "hierarchy", "flat", "values"), ["f", "${SECRET}"]),
    (("columns", "a.b"), {"role": "quasi-identifier", "hierarchy": {"tree": {"*": ["${SECRET}", "z"]}}}),
]


@pytest.mark.parametrize(("keys", "value"), REFERENCES, ids=lambda value: str(value)[:20])
def test_what_the_environment_gave_cannot_be_guessed_from_what_is_published(
    tmp_path: Path, keys: tuple[str, ...], value: Any
) -> None:
    document = yaml.safe_load(yaml.safe_dump(POLICY))
    at = document
    for key in keys[:-1]:
        at = at.setdefault(key, {})
    at[keys[-1]] = value
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(document))
    one, other = (load([file], environment={"SECRET": secret}) for secret in ("1234", "4321"))
    assert public(one) == public(other)
    assert asked_of(one, DAY) != asked_of(other, DAY), "the vault tells them apart"


def test_a_default_of_a_reference_is_text_of_the_policy(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"

    def digest(path: str, **environment: str) -> str:
        file.write_text(yaml.safe_dump(with_table(path=path)))
        return load([file], environment=environment).digest()

    assert digest("${IN:-in}/census") == digest("in/census") == parse(POLICY).digest()
    assert digest("${IN:-in}/census", IN="elsewhere") == digest("in/census")
    assert digest("${IN:-in}/census") != digest("${IN:-there}/census")
    assert digest("${IN}/census", IN="in") != digest("${OUT}/census", OUT="in")


def test_what_was_written_in_short_is_found_where_it_stands() -> None:
    given = (FromEnvironment(("a", "b"), "1234", "${SECRET}"),)
    assert without_secrets({"a": {"full": [{"b": "1234"}, "x"]}, "n": 1}, given) == {
        "a": {"full": [{"b": "${SECRET}"}, "x"]},
        "n": 1,
    }
    assert without_secrets({"a": {"b": 1234}, "n": 1234}, given) == {"a": {"b": "${SECRET}"}, "n": 1234}
    assert without_secrets({"a": [1]}, (FromEnvironment(("a", "0"), "1", "${N}"),)) == {"a": ["${N}"]}


def test_what_took_the_place_of_a_text_from_the_environment_stays() -> None:
    """A frame that is given takes the place of the table's path, whatever the variable in that held."""
    given = (FromEnvironment(("table", "path"), "elsewhere/census", "in/census"),)
    assert without_secrets({"table": {"path": None}}, given) == {"table": {"path": None}}
    one = parse(POLICY).given_by_environment(given)
    framed = {"path": None, "catalog": "given"}
    digests = {
        of.model_copy(update={"table": of.table.model_copy(update=framed)}).digest() for of in (one, parse(POLICY))
    }
    assert len(digests) == 1


def test_a_path_without_credentials() -> None:
    assert without_credentials("s3a://key:secret@bucket/x?token") == "s3a://bucket/x"
    assert without_credentials("a@b/c?d") == "a@b/c?d"
