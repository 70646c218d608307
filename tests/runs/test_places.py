"""Places of runs: what an earlier run may have left there, and what is known of a release that is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from privrisk_spark.errors import ConfigError
from privrisk_spark.runs.local_output import LocalOutput
from privrisk_spark.runs.places import SPARK_LOG, check_place, held
from privrisk_spark.runs.vaults import DirectoryVault
from privrisk_spark.runs.workplace import Workplace

FILES = ("report.html", "status.json", ".lock")


def test_what_a_failed_run_left_keeps_no_later_one_out_and_goes_with_it(tmp_path: Path) -> None:
    for name in (*FILES, SPARK_LOG):
        (tmp_path / name).touch()
    check_place(tmp_path, files=FILES, what="assessments")
    with held(tmp_path, "r2"):
        assert not (tmp_path / SPARK_LOG).exists()
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ConfigError, match="has other content than the assessments of an earlier run"):
        check_place(tmp_path, files=FILES, what="assessments")


def test_the_log_of_a_failed_release_goes_with_the_next(tmp_path: Path) -> None:
    place = Workplace(LocalOutput(tmp_path / "out"), DirectoryVault(tmp_path / "vault"), "r1")
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / SPARK_LOG).touch()
    with place.held():
        assert not (tmp_path / "vault" / SPARK_LOG).exists()


def test_what_was_asked_for_is_known_by_run_id_and_output(tmp_path: Path) -> None:
    """One vault may serve two outputs, which may have releases of one run id."""
    here, there = (
        Workplace(LocalOutput(tmp_path / name), DirectoryVault(tmp_path / "vault"), "r1") for name in ("here", "there")
    )
    assert here.recorded_request() is None
    here.record_request({"decision": "1"})
    assert here.recorded_request() == {"decision": "1"}
    assert there.recorded_request() is None
    assert (
        Workplace(LocalOutput(tmp_path / "here"), DirectoryVault(tmp_path / "vault"), "r2").recorded_request() is None
    )
