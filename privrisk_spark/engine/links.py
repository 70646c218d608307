"""A linkage table as stages hand it on."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from privrisk_spark.hierarchies.hierarchy import Hierarchy

PROBABILITY = "probability"


KEY = "linkage"
"""Key of the policy."""


def added_codes(m: int) -> list[str]:
    """Columns of the leaf codes that links add."""
    return [f"z{j}" for j in range(m)]


@dataclass(frozen=True, eq=False)
class Linked:
    """The linkage table, ready to be measured against.

    Attributes
    ----------
    links : DataFrame
        LINKS without faults, from files.
    hierarchies : dict of added attribute to Hierarchy
    dictionary : DataFrame or None
        The dictionary as Spark opened it; None where it is the table itself.
    """

    links: DataFrame
    hierarchies: dict[str, Hierarchy]
    dictionary: DataFrame | None
