"""Files of a policy: whole, wherever they are, and never waited for."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import pytest

from benchmarks.s3_server import BUCKET, SECRET
from privrisk_spark.errors import ConfigError, InputError
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore
from privrisk_spark.storage.whole_files import contents


def test_a_file_of_a_disk_and_one_of_a_store_are_read_alike(endpoint: str, tmp_path: Path) -> None:
    assert endpoint
    store = ObjectStore(Location("s3", BUCKET, uuid4().hex))
    store.write("deep/age.csv", b"30;3*\n")
    (tmp_path / "age.csv").write_bytes(b"30;3*\n")
    for path in (tmp_path / "age.csv", str(tmp_path / "age.csv")):
        assert contents(path) == b"30;3*\n"
    for scheme in ("s3", "s3a"):
        assert contents(f"{scheme}://{BUCKET}/{store.location.path}/deep/age.csv") == b"30;3*\n"


def test_what_is_not_there_is_told_by_its_name(endpoint: str, tmp_path: Path) -> None:
    assert endpoint
    for path in (str(tmp_path / "none"), f"s3://{BUCKET}/{uuid4().hex}/none"):
        with pytest.raises(FileNotFoundError, match="none") as caught:
            contents(path)
        assert caught.value.strerror == "No such file or directory"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe or a device"):
        contents(tmp_path / "pipe")


def test_a_uri_with_credentials_is_refused_without_them(endpoint: str) -> None:
    assert endpoint
    with pytest.raises(ConfigError, match="must hold no credentials") as caught:
        contents(f"s3://key:{SECRET}@{BUCKET}/age.csv")
    assert SECRET not in str(caught.value)


def test_a_store_that_refuses_says_so(endpoint: str) -> None:
    assert endpoint
    with pytest.raises((InputError, FileNotFoundError)):
        contents("s3://no-such-bucket-here/age.csv")
