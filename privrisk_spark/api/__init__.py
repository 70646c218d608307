"""The public interface: DataFrames and policies in, frozen results out.

Every function takes a DataFrame first, or None for the table the policy names, and the policy second. No function
prints, ends the process, or raises anything but the errors of :mod:`privrisk_spark.errors`; none stops or replaces a
Spark session. Spark is imported when a session is needed, so policies can be written where there is none.
"""

from __future__ import annotations

from privrisk_spark.api.assessing import Assessed, assess
from privrisk_spark.api.attacking import Attacked, attack
from privrisk_spark.api.auditing import Audited, audit
from privrisk_spark.api.builders import (
    dates,
    file,
    flat,
    identifier,
    insensitive,
    intervals,
    mask,
    order,
    quasi_identifier,
    sensitive,
    tree,
    weight,
)
from privrisk_spark.api.composing import Composed, compose
from privrisk_spark.api.dictionary_curves import Curves, curves
from privrisk_spark.api.dry_run import plan, validate
from privrisk_spark.api.experimenting import Experimented, ExperimentedAll, all_experiments, experiment
from privrisk_spark.api.fitting import Fitted, approve, fit
from privrisk_spark.api.masking import mask_table
from privrisk_spark.api.policies import Policy, load
from privrisk_spark.api.releasing import Released, release, withdraw
from privrisk_spark.api.sharing import Shared, share
from privrisk_spark.api.suggesting import Suggested, profile, suggest_policy
from privrisk_spark.results.page import Page
from privrisk_spark.results.plan import Plan
from privrisk_spark.results.validation import Validation
from privrisk_spark.results.withdrawal import Withdrawal

__all__ = [
    "Assessed",
    "Attacked",
    "Audited",
    "Composed",
    "Curves",
    "Experimented",
    "ExperimentedAll",
    "Fitted",
    "Page",
    "Plan",
    "Policy",
    "Released",
    "Shared",
    "Suggested",
    "Validation",
    "Withdrawal",
    "all_experiments",
    "approve",
    "assess",
    "attack",
    "audit",
    "compose",
    "curves",
    "dates",
    "experiment",
    "file",
    "fit",
    "flat",
    "identifier",
    "insensitive",
    "intervals",
    "load",
    "mask",
    "mask_table",
    "order",
    "plan",
    "profile",
    "quasi_identifier",
    "release",
    "sensitive",
    "share",
    "suggest_policy",
    "tree",
    "validate",
    "weight",
    "withdraw",
]
