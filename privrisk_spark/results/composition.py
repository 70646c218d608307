"""Risk of records after several releases of them, beside that after each alone: what ``assess --history`` finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privrisk_spark.json_values import as_json
from privrisk_spark.results.release import Summary

QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""Of the distributions of risk: the least risk that at least such a share of the records do not exceed."""


@dataclass(frozen=True)
class DisclosedRisk:
    """Risk of records that releases disclose.

    Attributes
    ----------
    release : Mapping of str to str, or None
        ``run_id``, ``date`` and ``manifest`` of the release alone; None for all together.
    records, changed : int
        Records of the table that it, or any, holds; those some value of which was another then.
    risk : Summary
        Over these records.
    quantiles : tuple of float
        Of these records, as :data:`QUANTILES`.
    """

    release: Mapping[str, str] | None
    records: int
    changed: int
    risk: Summary
    quantiles: tuple[float, ...]

    json_keys = ("release", "records", "changed", "quantiles:by_share", "risk")

    @property
    def by_share(self) -> dict[str, float]:
        """Quantiles of the risk by the share of the records."""
        return {f"{share:g}": value for share, value in zip(QUANTILES, self.quantiles, strict=True)}


@dataclass(frozen=True)
class Composition:
    """What several releases disclose together.

    Attributes
    ----------
    title, run_id, created, version : str
        ``created`` is the business date.
    model : str
        Risk model.
    rows : int
        Records of the table.
    releases : tuple of DisclosedRisk
        Each alone, by date.
    risen : int
        Records whose risk after all releases is greater than after any one alone.
    """

    title: str
    run_id: str
    created: str
    version: str
    model: str
    rows: int
    releases: tuple[DisclosedRisk, ...]
    together: DisclosedRisk
    risen: int

    json_keys = (
        "title", "run_id", "created", "version", "model", "rows", "releases", "together", "risen", "paragraph",
    )  # fmt: skip

    @property
    def paragraph(self) -> str:
        """What was found, in words."""
        worst = max((one.risk.mean for one in self.releases), default=0.0)
        return (
            f"{self.together.records:,} of {self.rows:,} records are in {len(self.releases)} "
            f"{'release' if len(self.releases) == 1 else 'releases'}. After all of them their mean risk (model "
            f"{self.model}) is {self.together.risk.mean:.4g}, after a single one at most {worst:.4g}. The risk of "
            f"{self.risen:,} records is greater than after any one release."
        )

    def measures(self) -> list[dict[str, Any]]:
        """Return every number with its unit, for a program."""
        found = [self._measure("records whose risk rose", self.risen, "records", {})]
        for one in (*self.releases, self.together):
            of = {"releases": "all" if one.release is None else one.release["run_id"]}
            found.append(self._measure("released records", one.records, "records", of))
            found.append(self._measure("changed records", one.changed, "records", of))
            for name in ("mean", "max", "min"):
                found.append(self._measure(f"{name} risk", getattr(one.risk, name), f"model {self.model}", of))
            for share, value in zip(QUANTILES, one.quantiles, strict=True):
                found.append(self._measure("quantile of risk", value, f"model {self.model}", of | {"share": share}))
        return found

    def _measure(self, name: str, value: float, unit: str, parameters: Mapping[str, object]) -> dict[str, Any]:
        made: dict[str, Any] = as_json(
            {"name": name, "value": value, "unit": unit, "parameters": dict(parameters), "status": "tested"}
        )
        return made
