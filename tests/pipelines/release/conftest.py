"""Releases that several files compare others with, made once a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import pytest
import small_release
from product import Ran, production_batches, release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Ran]:
    """``undisturbed(kind, files=…)``: release r1 of the small table, made once; under dp its key is `KEY`.

    No test changes what it left.
    """

    @cache
    def made(kind: str, files: int = 1) -> Ran:
        root = tmp_path_factory.mktemp("undisturbed")
        key = [("guarantee.key", "env:UNDISTURBED_KEY")] if kind == "dp" else []
        file = small_release.policy(kind, small_release.write_table(root), root, *key, ("output.files", files))
        with pytest.MonkeyPatch.context() as patch, production_batches(spark):
            patch.setenv("UNDISTURBED_KEY", small_release.KEY)
            ran = release(file, "--run-id", "r1", root=root)
        assert ran.code == 0, ran.err
        assert ran.manifest["rows"] > 500
        return ran

    return made
