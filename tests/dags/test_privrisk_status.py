"""What another attempt may change is tried again: only a whole answer of this run and this attempt forbids it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dags import privrisk_status
from dags.privrisk_status import answer_of, version_of
from privrisk_spark.runs.progress import write_status
from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.ownership import claim

RUN = "visits-2026-11-21"


@pytest.fixture
def status(tmp_path: Path) -> Path:
    claim(locate(str(tmp_path), key="output.vault"), "output.vault", "vault")
    return tmp_path / "status.json"


def ended(status: Path, code: int | None, run_id: str = RUN) -> None:
    """As a run of the product leaves it."""
    write_status(status.parent, run_id, phase="failed", code=code, message="It is so.", remedy="Do this.")


@pytest.mark.parametrize(("code", "final"), [(0, False), (1, True), (2, True), (3, False), (4, False)])
def test_only_what_no_attempt_changes_is_final(status: Path, code: int, final: bool) -> None:
    before = version_of(status)
    assert before is None
    ended(status, code)
    answer = answer_of(status, RUN, before=before)
    assert answer is not None
    assert (answer.code, answer.text, answer.fresh, answer.final) == (code, "It is so. Do this.", True, final)


def test_an_answer_of_an_earlier_attempt_is_not_final(status: Path) -> None:
    """Its cause may be mended, and this attempt have ended before it said a word."""
    ended(status, 2)
    answer = answer_of(status, RUN, before=version_of(status))
    assert answer is not None
    assert (answer.code, answer.fresh, answer.final) == (2, False, False)


def test_the_same_answer_given_again_is_final(status: Path) -> None:
    """Byte for byte the same file, and written within the same tick of a coarse clock."""
    ended(status, 2)
    before, content = version_of(status), status.read_bytes()
    times = status.stat().st_mtime_ns
    ended(status, 2)
    os.utime(status, ns=(times, times))
    assert status.read_bytes() == content
    answer = answer_of(status, RUN, before=before)
    assert answer is not None
    assert answer.final


def test_the_answer_of_another_run_is_none(status: Path) -> None:
    ended(status, 2, run_id="visits-2026-11-20")
    assert answer_of(status, RUN, before=None) is None


def test_a_run_that_is_at_work_has_not_answered(status: Path) -> None:
    ended(status, None)
    assert answer_of(status, RUN, before=None) is None


def test_a_file_cut_anywhere_is_no_answer(status: Path) -> None:
    ended(status, 2)
    whole = status.read_bytes().rstrip()
    for size in range(len(whole)):
        status.write_bytes(whole[:size])
        assert answer_of(status, RUN, before=None) is None, size


@pytest.mark.parametrize(
    "document",
    [
        [], "text", None, 2, {}, {"run_id": RUN}, {"code": 2}, {"run_id": RUN, "code": "2"},
        {"run_id": RUN, "code": True}, {"run_id": RUN, "code": 2.0}, {"run_id": [RUN], "code": 2},
    ],
)  # fmt: skip
def test_what_is_no_status_is_no_answer(status: Path, document: Any) -> None:
    status.write_text(json.dumps(document))
    assert answer_of(status, RUN, before=None) is None


@pytest.mark.parametrize("content", [b"", b"\xff\xfe{}", b"[" * 100_000])
def test_what_is_no_text_is_no_answer(status: Path, content: bytes) -> None:
    status.write_bytes(content)
    assert answer_of(status, RUN, before=None) is None


def test_a_vault_that_is_not_there_is_no_answer(tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere" / "status.json", tmp_path):
        assert answer_of(place, RUN, before=version_of(place)) is None


def test_texts_that_are_none_are_left_out(status: Path) -> None:
    status.write_text(json.dumps({"run_id": RUN, "code": 1, "message": 7, "what_to_do": "Mend it."}))
    answer = answer_of(status, RUN, before=None)
    assert answer is not None
    assert answer.text == "Mend it."


def test_it_needs_nothing_but_the_standard_library() -> None:
    """It is imported where neither the project nor Spark is."""
    program = (
        f"import sys; sys.path.insert(0, {str(Path(privrisk_status.__file__).parent)!r})\n"
        "import privrisk_status\n"
        "found = {name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "assert found == {'privrisk_status', '__main__'} - set(sys.stdlib_module_names), found\n"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)
