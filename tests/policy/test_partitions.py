"""What a policy says of directories that are named after values."""

from __future__ import annotations

from typing import Any

import pytest
from policies import RISK, changed, faults

from privrisk_spark.policy.reading import parse

KEY = "output.partition_by"
FILES = ("output.format", "parquet")


def found(*by: str, more: tuple[tuple[str, Any], ...] = ()) -> dict[str, str]:
    kept = [("columns.note", {"role": "insensitive"}), ("columns._hidden", {"role": "insensitive"})]
    dropped = ("columns.gone", {"role": "insensitive", "action": "drop"})
    return faults(changed(RISK, FILES, *kept, dropped, (KEY, list(by)), *more))


@pytest.mark.parametrize(
    ("by", "more", "key", "rule"),
    [
        (("zip", "zip"), (), f"{KEY}.1", "names 'zip' a second time"),
        (("zap",), (), f"{KEY}.0", "'zap' is not among columns (did you mean 'zip'?); released are age, zip"),
        (("gone",), (), f"{KEY}.0", "'gone' is not released, so no directory can be named after it"),
        (("_hidden",), (), f"{KEY}.0", "'_hidden' makes names of directories that readers take for hidden"),
        (("zip",), (("output.format", "csv"),), KEY, "needs output.format: parquet"),
        (
            ("zip",),
            (("output.lake", {"format": "delta", "path": "lake/t"}),),
            KEY,
            "must be left out with output.lake: the table holds the published files as they are",
        ),
        (("",), (), f"{KEY}.0", "must not be empty"),
    ],
)
def test_what_does_not_go_together_is_named(
    by: tuple[str, ...], more: tuple[tuple[str, Any], ...], key: str, rule: str
) -> None:
    faulty = found(*by, more=more)
    assert key in faulty, faulty
    assert rule in faulty[key]
    assert list(faulty) == [key]


def test_a_column_must_be_left_for_the_files() -> None:
    policy = parse(RISK)
    every = [*policy.quasi_identifiers, *policy.kept_columns]
    faulty = faults(changed(RISK, FILES, (KEY, every)))
    assert "names all released columns, and the files must hold one at least" in faulty[KEY]
    assert parse(changed(RISK, FILES, (KEY, every[:-1]))).places.partition_by == tuple(every[:-1])


def test_every_reason_is_given_at_once() -> None:
    faulty = found("zip", more=(("output.format", "csv"), ("run.scratch", "s3://bucket/scratch")))
    assert "output.format: parquet" in faulty[KEY]
    assert list(faulty) == [KEY]


def test_policies_without_the_key_keep_their_digest_and_with_it_have_another() -> None:
    plain, none, by = (parse(changed(RISK, FILES, *more)) for more in ((), ((KEY, []),), ((KEY, ["zip"]),)))
    assert "partition_by" not in plain.canonical()
    assert plain.digest() == none.digest() != by.digest()
    assert by.places.partition_by == ("zip",)
