"""What an attack needs, looked at."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.extensions.attack.page import explain_attack
from privrisk_spark.extensions.attack.pipeline import run as attacking
from privrisk_spark.extensions.attack.planning.attacks import (
    ENGINE,
    HIS_TABLE,
    OTHERS,
    PROTECTED,
    by_splink,
    known_columns,
    read_policy,
    refuse_levels,
)
from privrisk_spark.extensions.attack.policy import attack_of
from privrisk_spark.extras import require
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.pipelines.assess.vault import open_decisions
from privrisk_spark.pipelines.validation.assess import look_at_release
from privrisk_spark.pipelines.validation.looks import Looks, look_at_hierarchies, look_at_output, look_at_table
from privrisk_spark.planning.lakes import pin_tables
from privrisk_spark.policy.assessment import Masked
from privrisk_spark.policy.policy import Policy


def look(
    looks: Looks, spark: SparkSession, policy: Policy, *, table: DataFrame | None, output: str | None
) -> str | None:
    """Look at everything an attack needs, and return what it would try, if nothing is wrong.

    Parameters
    ----------
    looks, spark, policy, table, output
        As :func:`~privrisk_spark.pipelines.validation.assess.look_at_assessment` takes them.
    """
    given, pinned = table is not None, None
    look_at_output(looks, policy, output, attacking.check_output)
    with looks.at("table"):
        pinned = pin_tables(policy, attacking.READ, given=given)
    if pinned is None:
        return None
    policy, asked = pinned.policy, attack_of(pinned.policy)
    with looks.at(ENGINE):
        if by_splink(asked):
            require("splink", ENGINE)
    opened = look_at_table(looks, spark, read_policy(policy), table)
    named: dict[str, Masked] = {PROTECTED: asked.protected}
    if asked.intruder.table is not None:
        named[HIS_TABLE] = asked.intruder.table
    if "composition" in asked.tried:
        named |= {f"{OTHERS}.{i}": one for i, one in enumerate(asked.also)}
    hierarchies: dict[str, Hierarchy] = {}
    if policy.guarantee.generalizes:  # masked values are in no hierarchy that is made of the original ones
        found = look_at_hierarchies(looks, read_policy(policy), opened, given=given)
        hierarchies = {name: found[name] for name in known_columns(policy) if name in found}
        with looks.at("attack.levels"):
            refuse_levels(asked, {name: tree.height for name, tree in hierarchies.items()})
    title = ""
    for key, of in named.items():
        needed, used = known_columns(policy), read_policy(policy).used_columns
        release = look_at_release(looks, spark, policy, of, hierarchies, key=key, needed=needed, used=used)
        if key == PROTECTED and release is not None:
            title = release.title
            with looks.at(key):
                if release.manifest is not None:
                    open_decisions(spark, policy, release.manifest["run_id"], key=key)
    return None if looks.errors else explain_attack(policy, hierarchies, release=title)
