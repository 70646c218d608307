"""Every measure of an assessment by name: what it is, in plain words, where it comes from, and how sure it is."""

from __future__ import annotations

from privrisk_spark.kernels.measures.entries.attack import ATTACK
from privrisk_spark.kernels.measures.entries.attribute import ATTRIBUTE
from privrisk_spark.kernels.measures.entries.identity import IDENTITY
from privrisk_spark.kernels.measures.entries.utility import UTILITY
from privrisk_spark.kernels.measures.measure import Measure

CATALOGUE: dict[str, Measure] = {**IDENTITY, **ATTRIBUTE, **UTILITY, **ATTACK}
"""In the order of the report."""
