"""What the vault still tells of a release: the decisions of its records, and its summary."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.errors import InputError
from privrisk_spark.policy.assessment import MaskedTable
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.vaults import vault_at
from privrisk_spark.runs.workplace import Workplace, output_at
from privrisk_spark.stages.assessing.sources import Release
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.opening import open_store
from privrisk_spark.tables.released import parts_at


def with_ids(release: Release, decisions: DataFrame, place: Location) -> Release:
    """Return a masked release as the vault holds it: the same values, with the id of each record before them.

    Parameters
    ----------
    decisions : DataFrame
        Of the vault.
    place : Location
        Where they lie.
    """
    own = MaskedTable(path=str(place), record_id=decisions.columns[0])
    return Release(decisions, own, own, release.title, release.manifest)


def left_in_vault(policy: Policy, run_id: str) -> Location | None:
    """Where the vault still holds what it held of a release; None if a later run has replaced it, or it is gone."""
    left = Workplace(output_at(policy.places.path), vault_at(policy.places.vault), run_id).left_at
    return left if left is not None and any(True for _ in open_store(left).entries("decisions")) else None


def open_decisions(
    spark: SparkSession, policy: Policy, run_id: str, *, key: str
) -> tuple[DataFrame, dict[str, Any], Location]:
    """Open the decisions of a release that the vault holds; its summary, and where they lie.

    Parameters
    ----------
    key : str
        Where the policy names the release, for messages.

    Raises
    ------
    InputError
        If a later run has replaced them, or they are gone.
    """
    left = left_in_vault(policy, run_id)
    if left is None:
        raise InputError(
            f"{key}: the vault no longer holds the decisions of release '{run_id}', which tell whose its rows "
            "are; release again, or name a table with an id: {path: …, record_id: …}."
        )
    summary = json.loads(open_store(left).read("summary.json").content)
    place = left.below("decisions")
    return parts_at(spark, place), summary, place
