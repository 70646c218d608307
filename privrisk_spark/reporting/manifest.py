"""What a program reads of a release: the manifest and its columns for everybody, the summary for the vault.

Under differential privacy the manifest is a whitelist: public parameters and what can be computed from the release, but
no row count of the table, no exact risk, no run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.json_values import as_json
from privrisk_spark.kernels.disclosure.utility import UNITS
from privrisk_spark.planning.readings import declared_readings
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.models.texts import texts_of
from privrisk_spark.reporting.release_reports import RunRecord
from privrisk_spark.results.facts import ReleaseFacts
from privrisk_spark.results.release import Report
from privrisk_spark.version import __version__


def summary(
    policy: Policy,
    report: Report,
    *,
    plan: str,
    snapshot: str,
    seconds: Mapping[str, float | None],
    read: Mapping[str, Any],
) -> dict[str, Any]:
    """The vault's ``summary.json``: every number of the report, for a program.

    ``input`` states how many files and rows of the table were expected and processed, where that is known, and how many
    rows have no id of their own.
    """
    return {
        "run_id": report.run_id,
        "rows": report.facts["records"],
        "risk_before": as_json(report.risk_before),
        "risk_after": as_json(report.risk_after),
        "risk_model": policy.risk.model,
        "identified_before": as_json(report.identified_before),
        "identified_after": as_json(report.identified_after),
        "risk_basis": texts_of(report.guarantee.kind).risk_basis,
        "utility": as_json(report.utility),
        "utility_unit": UNITS[policy.utility.measure],
        "plan": plan,
        "seconds": dict(seconds),
        "guarantee": as_json(report.guarantee),
        "facts": dict(report.facts),
        "levels": as_json(report.levels),
        "linkage": as_json(report.linkage),
        "compared": as_json(report.compared),
        "trade_off": as_json(report.evidence.trade_off),
        **{section.name: as_json(section.figures) for section in report.sections},
        "input": dict(read),
        "snapshot": snapshot,
        "policy_digest": policy.digest(),
        "version": __version__,
    }


def manifest(
    run: RunRecord,
    report: Report,
    released: ReleaseFacts,
    *,
    files: Sequence[Mapping[str, Any]],
    more: Mapping[str, Any],
    partition_types: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The release's ``manifest.json``; under differential privacy a whitelist.

    ``read`` states how values were tidied when they were read, by key of the policy, where it says so.

    Parameters
    ----------
    report : Report
        The public edition.
    files : sequence of mapping
        ``name``, ``bytes`` and ``sha256`` of each data file.
    more : mapping
        What the guarantee allows to state besides.
    partition_types : mapping of column to type, optional
        Of the columns whose values are names of directories.
    """
    read = declared_readings(run.policy)
    return {
        "run_id": run.run_id,
        "name": run.policy.run.name,
        "date": run.date,
        "version": __version__,
        "policy_digest": run.policy.digest(),
        "guarantee": as_json(run.guarantee),
        "columns": data_dictionary(run.policy, run.hierarchies),
        "rows": released.rows,
        "tuples": released.classes,
        "data": {
            "path": f"releases/{run.run_id}/data",
            "format": run.policy.places.format,
            **({"quote_formulas": True} if run.policy.places.quote_formulas else {}),
            **(
                {"partition_by": [*partition_types], "partition_types": dict(partition_types)}
                if partition_types
                else {}
            ),
            "files": [dict(entry) for entry in files],
        },
        "checks": as_json(report.checks),
        **({"read": read} if read else {}),
        **more,
    }


def data_dictionary(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> list[dict[str, Any]]:
    """Describe the released columns for a consumer."""
    columns: list[dict[str, Any]] = []
    for name in policy.columns:
        if name in hierarchies:
            hierarchy = hierarchies[name]
            columns.append(
                {
                    "name": name,
                    "role": "quasi-identifier",
                    "levels": hierarchy.height,
                    "suppressed": hierarchy.labels[hierarchy.root],
                    "nulls": policy.quasi_identifiers[name].nulls,
                }
            )
        elif name in policy.kept_columns:
            how = policy.masks.get(name) or policy.recodings.get(name)
            released = "as it is" if how is None else how.declared()
            columns.append({"name": name, "role": policy.columns[name].role, "released": released})
    return columns
