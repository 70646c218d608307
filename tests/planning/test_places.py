"""What never leaves the trusted zone lies nowhere that is published."""

from __future__ import annotations

from pathlib import Path

import pytest
from policies import DP, RISK, changed

from privrisk_spark.errors import ConfigError
from privrisk_spark.planning.places import check_private_place, refuse_public_ledger
from privrisk_spark.policy.reading import parse
from privrisk_spark.storage.locations import locate


@pytest.mark.parametrize("inside", [".", "lake.db", "_delta_log/x.db"])
def test_a_ledger_does_not_lie_in_a_table_for_releases(tmp_path: Path, inside: str) -> None:
    place = locate(str(tmp_path), key="output.lake.path")
    policy = parse(changed(DP, ("ledger.url", f"sqlite:///{tmp_path}/{inside}")))
    with pytest.raises(ConfigError, match=r"ledger.url: must not lie inside output.lake.path, which is published"):
        refuse_public_ledger(policy, {"output.lake.path": place})


@pytest.mark.parametrize("inside", ["", "figures", ".."])
def test_exact_figures_do_not_lie_in_a_table_for_releases(tmp_path: Path, inside: str) -> None:
    lake = tmp_path / "lake" / "table"
    named = ("output.lake", {"format": "delta", "path": str(lake)})
    policy = parse(changed(RISK, ("output.format", "parquet"), named))
    with pytest.raises(ConfigError, match=r"--output: must be neither output.lake.path nor inside nor around it"):
        check_private_place(policy, str(lake / inside), what="curves")
