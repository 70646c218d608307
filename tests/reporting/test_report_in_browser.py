"""The report in a real headless browser: it renders, and asks nothing of any network."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from accessibility import BROWSER
from product import Privrisk
from typer.testing import CliRunner

from privrisk_spark.cli.app import app


@pytest.mark.alone
@pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine; apt-get install chromium")
def test_the_reports_render(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    ran = privrisk(str(small))
    assert ran.code == 0, ran.err
    assessed = tmp_path / "assessed"
    published = ["--set=assess.release=published", "--set=assess.thresholds={k: 100}"]
    asked = CliRunner().invoke(app, ["assess", str(small), *published, "--output", str(assessed)])
    assert asked.exit_code == 1, asked.stderr
    pages = {
        ran.root / "vault" / "report.html": "Generalization by attribute",
        ran.data.parent / "report.html": "Generalization by attribute",
        assessed / "report.html": "The adversary by group size",
    }
    for report, section in pages.items():
        net_log = tmp_path / "net.json"
        picture = tmp_path / "report.png"
        command = [
            str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={tmp_path / 'profile'}", f"--log-net-log={net_log}", "--virtual-time-budget=2000",
        ]  # fmt: skip
        dom = subprocess.run(
            [*command, "--dump-dom", report.as_uri()], capture_output=True, text=True, timeout=120, check=True
        ).stdout
        assert "What was done" in dom
        assert dom.count("<svg") >= 1
        assert section in dom
        shot = [*command, f"--screenshot={picture}", "--window-size=1000,1400", report.as_uri()]
        subprocess.run(shot, capture_output=True, timeout=120, check=True)
        assert picture.stat().st_size > 20_000, "a blank page is smaller"
        # The browser's own start-up traffic goes to its maker; a report asks nothing of anybody.
        addresses = re.findall(r'"url":\s*"(https?://[^"]*)"', net_log.read_text(errors="replace"))
        assert not [
            url for url in addresses if not re.match(r"https?://[a-z0-9.-]*(google|googleapis|gvt1|gstatic)\.", url)
        ]
