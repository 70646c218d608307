"""What a true dictionary says about the risk against its estimate: the bound, whether it is proved, how tight it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from privrisk_spark.claims import Status
from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.counts import StoredCounts
from privrisk_spark.engine.decided import WeightColumns
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.json_values import as_json
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.release import Section
from privrisk_spark.stages.diagnostics.estimated import (
    Containment,
    DictionaryOrder,
    Tightness,
    gaps,
    measure_containment,
    measure_dictionary_order,
    measure_tightness,
)


@dataclass(frozen=True)
class BoundFacts:
    """What the true dictionary says about the risk against its estimate.

    Attributes
    ----------
    order : DictionaryOrder
        Whether ``θ̂ ≪ θ``.
    containment : Containment
        Of the records in ``θ̂``.
    tightness : Tightness
        Of this run's decisions.
    gaps : tuple of str
        What keeps the bound from being proved for every rule; see :func:`gaps`.
    plan : str
        By which the true dictionary was counted.
    """

    order: DictionaryOrder
    containment: Containment
    tightness: Tightness
    gaps: tuple[str, ...]
    plan: str

    json_keys = (
        "status", "holds", "gaps", "risk_against_estimate:tightness.estimated",
        "risk_against_true:tightness.true", "ratio:tightness.ratio", "greatest_ratio:tightness.greatest_ratio",
        "records:tightness.rows", "records_above_the_bound:tightness.broken",
        "records_the_estimate_lacks:containment.missing", "records_the_true_dictionary_lacks:tightness.absent",
        "estimate_rows_without_counterpart:order.unmatched", "order", "plan",
    )  # fmt: skip

    @property
    def status(self) -> Status:
        """``proved`` for every rule if nothing is missing, else ``heuristic``."""
        return "heuristic" if self.gaps else "proved"

    @property
    def holds(self) -> bool:
        """Whether ``R(δ, θ) <= R(δ, θ̂)`` for the decisions of this run, proved or not."""
        return self.tightness.ratio >= 1 - TOLERANCE

    def section(self) -> Section:
        """Return the facts for the vault's report."""
        order, tight = self.order, self.tightness
        if self.gaps:
            found = "That the risk against the true dictionary is no higher is not proved here, for the reasons below."
        else:
            found = (
                f"Each of its {order.estimate_rows:,} rows has a row of its own in the true dictionary that is equal "
                f"or more general, and it has a row for each of the {self.containment.rows:,} records. So no "
                "disclosure rule has a higher risk against the true dictionary than against the estimate (Lebanon et "
                "al. 2006, Theorem 1)."
            )
        above = f", and {tight.broken:,} of {tight.rows:,} records lie above the bound" if tight.broken else ""
        measured = (
            f"For the decisions of this release the mean risk is {tight.estimated.mean:.4g} against the estimate and "
            f"{tight.true.mean:.4g} against the true dictionary: the bound {'holds' if self.holds else 'does not hold'}"
            f"{above}."
        )
        facts: dict[str, str | int | float] = {
            "mean risk against the estimate": tight.estimated.mean,
            "mean risk against the true dictionary": tight.true.mean,
            "ratio of the two": tight.ratio,
            "greatest ratio of a record": tight.greatest_ratio,
            "rows of the estimate": order.estimate_rows,
            "rows of the true dictionary": order.true_rows,
            "rows of the estimate without counterpart": order.unmatched,
            "counterparts that are not more general": order.not_more_general,
            "counterparts that stand for fewer people": order.fewer_people,
            "rows of the estimate with a missing or repeated id": order.estimate_null_ids + order.ambiguous,
            "records the estimate lacks": self.containment.missing,
            "records the true dictionary lacks": tight.absent,
        }
        text = f"{_ESTIMATED} {found} {measured}"
        return Section("bound", _HEADING, text, self.status, facts, self.gaps, figures=as_json(self))


_HEADING = "Estimated dictionary"
_ESTIMATED = "The risk is measured against an estimate of what the attacker knows."


def assumed_bound() -> Section:
    """Return what is to be said of an estimate that is held against no true dictionary."""
    return Section(
        "bound",
        _HEADING,
        f"{_ESTIMATED} No true dictionary was given to hold it against, so it is an assumption that the risk against "
        "the dictionary the attacker has is no higher. Under the risk models I and II it is proved (Lebanon et al. "
        "2006, Theorem 1) if that dictionary has, for every row of the estimate, a row of the same person with values "
        "that are equal or more general, and the estimate has a row for every record.",
        "heuristic",
        figures={"status": "heuristic", "gaps": ["no true dictionary was given"]},
    )


def measure_bound(
    decided: Batches,
    disclosure: Disclosure,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    *,
    estimate: DataFrame,
    true: DataFrame,
    estimate_counts: StoredCounts,
    true_counts: StoredCounts,
) -> BoundFacts:
    """Hold the estimate of a policy, and the decisions made against it, against its true dictionary.

    Parameters
    ----------
    decided : Batches
        Columns of DECIDED; with ``n_rows`` if a row stands for several records.
    disclosure : Disclosure
        That was decided.
    policy : Policy
        Of the kind ``estimated``, with a true dictionary.
    hierarchies : mapping of attribute to Hierarchy
    estimate, true : DataFrame
        The two dictionaries with their ids, as :func:`privrisk_spark.tables.encode.identities` encodes them.
    """
    k = len(hierarchies)
    order = measure_dictionary_order(estimate, true, hierarchies)
    containment = measure_containment(decided, estimate_counts, k=k)
    weights = WeightColumns.of_policy(policy, list(hierarchies))
    missing = gaps(
        order,
        containment,
        model=policy.risk.model,
        estimate_axes=estimate_counts.axes,
        true_axes=true_counts.axes,
    )
    tightness = measure_tightness(decided, disclosure, true_counts, k=k, weights=weights)
    return BoundFacts(order, containment, tightness, missing, true_counts.plan)
