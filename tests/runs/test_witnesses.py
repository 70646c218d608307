"""What vaults and outputs know is never taken for nothing because it cannot be read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from privrisk_spark.errors import CheckError
from privrisk_spark.runs.vaults import DirectoryVault
from privrisk_spark.runs.witnesses import Looked, Witness, look, record_witness

ONE = Witness("census", "r1", "/out", 2, "ab", "1", "1e-9")


def publish(out: Path, run_id: str, **more: Any) -> Path:
    release = out / "releases" / run_id
    release.mkdir(parents=True)
    cost = {"accounting": {"basic": {"epsilon": "1.5", "delta": "2E-9"}}}
    manifest = {"run_id": run_id, "guarantee": {"kind": "dp", "parameters": cost}, **more}
    (release / "manifest.json").write_text(json.dumps(manifest))
    return release


def test_what_is_kept_is_what_is_found(tmp_path: Path):
    vault, out = tmp_path / "vault", tmp_path / "out"
    record_witness(DirectoryVault(vault), ONE)
    publish(out, "r1", lineage="census")
    publish(out, "r2", admitted={"lineage": "births"})
    publish(out, "r3")
    (out / "releases" / "r4").mkdir()
    publish(out, "r5", guarantee={"kind": "risk"})
    seen = look(out, vault, tmp_path / "nowhere")
    assert seen.witnesses == (ONE,)
    assert [(one.run_id, one.lineage, one.epsilon, one.delta) for one in seen.releases] == [
        ("r1", "census", "1.5", "2E-9"), ("r2", "births", "1.5", "2E-9"), ("r3", None, "1.5", "2E-9")
    ]  # fmt: skip
    assert seen.looked == (
        Looked(str(out), True, 0, 3), Looked(str(vault), True, 1, 0), Looked(str(tmp_path / "nowhere"), False, 0, 0)
    )  # fmt: skip


def test_what_an_earlier_version_kept_is_read(tmp_path: Path):
    (tmp_path / "charges").mkdir()
    kept = {"lineage": "census", "run_id": "r1", "place": "/out", "events": 2, "head": "ab"}
    (tmp_path / "charges" / "r1~0.json").write_text(json.dumps(kept))
    assert look(tmp_path).witnesses == (Witness("census", "r1", "/out", 2, "ab"),)


@pytest.mark.parametrize(
    "name", ["charges", "releases", "releases/r1", "releases/r1/manifest.json", "charges/kept.json"]
)
def test_what_may_not_be_read_is_not_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    record_witness(DirectoryVault(tmp_path), ONE)
    publish(tmp_path, "r1")
    (kept,) = (tmp_path / "charges").iterdir()
    kept.rename(tmp_path / "charges" / "kept.json")
    forbidden = tmp_path / name
    if os.geteuid():
        forbidden.chmod(0)
    else:  # root may read everything
        refuse(monkeypatch, forbidden)
    try:
        with pytest.raises(CheckError, match=rf"'{forbidden}.*' cannot be read \(Permission denied\), so that nobody"):
            look(tmp_path)
    finally:
        forbidden.chmod(0o700)


def refuse(monkeypatch: pytest.MonkeyPatch, forbidden: Path) -> None:
    opening, listing = Path.open, os.listdir

    def inside(path: object) -> bool:
        return forbidden in (Path(str(path)), *Path(str(path)).parents)

    def no_open(path: Path, *arguments: Any, **options: Any) -> Any:
        if inside(path):
            raise PermissionError(13, "Permission denied")
        return opening(path, *arguments, **options)

    def no_list(path: Any = ".") -> list[str]:
        if Path(str(path)) == forbidden:
            raise PermissionError(13, "Permission denied")
        return list(listing(path))

    monkeypatch.setattr(Path, "open", no_open)
    monkeypatch.setattr(os, "listdir", no_list)
