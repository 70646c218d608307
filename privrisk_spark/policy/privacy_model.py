"""The base of all privacy models a policy may ask for: what other modules ask of one instead of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from privrisk_spark.policy.types import Part


class PrivacyModel(Part):
    """A variant of ``guarantee``.

    Attributes
    ----------
    private : bool
        Whether no message, check or file may depend on one record beyond what the guarantee allows.
    decides : bool
        Whether exact figures of the table may decide what is released, and whether it is.
    generalizes : bool
        Whether quasi-identifiers are released as labels of their hierarchies; otherwise as values.
    recodes : bool
        Whether a scheme, or classes, of the whole table decide instead of each record's risk.
    keyed : bool
        Whether a secret key draws the release; it is destroyed after publication.
    counts_frequent : bool
        Whether only cells with at least t rows are counted, as the plan 'iceberg' does.
    stages : int
        Stages of a release.
    unused : mapping of str to str
        Keys of a policy that this model does not use, and why.
    guide_elsewhere : str or None
        Section of the guide for errors of keys outside ``guarantee`` and ``ledger``.
    """

    private: ClassVar[bool] = False
    decides: ClassVar[bool] = True
    generalizes: ClassVar[bool] = True
    recodes: ClassVar[bool] = False
    keyed: ClassVar[bool] = False
    counts_frequent: ClassVar[bool] = False
    stages: ClassVar[int] = 7
    unused: ClassVar[Mapping[str, str]] = {}
    guide_elsewhere: ClassVar[str | None] = None

    @property
    def asks_population(self) -> bool:
        """Whether classes are checked against the people of the dictionary."""
        return False


class DrawnModel(PrivacyModel):
    """A model by which each record's generalization is drawn, so that no exact figure decides."""

    decides: ClassVar[bool] = False
    keyed: ClassVar[bool] = True
    unused: ClassVar[Mapping[str, str]] = {
        "decision": "each record's generalization is drawn",
        "linkage": "its measure would read exact data",
        "table.weight": "rows are counted without sampling weights",
        **dict.fromkeys(
            ("risk.sensitivity.personal", "risk.sensitivity.record"), "personal and record weights are not available"
        ),
        **dict.fromkeys(
            (
                "checks.row_count",
                "checks.max_mean_risk",
                "checks.max_risk",
                "checks.forbid_verbatim",
                "checks.kept_uniqueness_at_most",
            ),
            "the check would read exact data, which must not decide about a release that is drawn",
        ),
    }
