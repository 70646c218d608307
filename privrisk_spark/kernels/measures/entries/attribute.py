"""Measures of attribute disclosure, of concealment among releases, and of how close masked numbers are."""

from __future__ import annotations

from privrisk_spark.kernels.classes.criteria import (
    ALPHA,
    BETA_LIKENESS,
    CLOSENESS,
    DELTA_DISCLOSURE,
    DISTINCT_DIVERSITY,
    ENHANCED_BETA_LIKENESS,
    ENTROPY_DIVERSITY,
    K_CONCEALMENT,
    K_CONFUSION,
    K_ONE,
    ONE_K,
    P_SENSITIVITY,
    RECURSIVE_L,
)
from privrisk_spark.kernels.measures.measure import Measure

_JOINT = "Machanavajjhala et al. 2007"

ATTRIBUTE: dict[str, Measure] = {
    "p_sensitive": Measure.of_criteria(
        "attribute",
        "p-sensitivity and distinct l-diversity",
        "values",
        "The fewest different sensitive values in a class; with 1, membership alone gives the value away.",
        (
            P_SENSITIVITY,
            DISTINCT_DIVERSITY,
        ),
    ),
    "l_entropy": Measure.of_criteria(
        "attribute",
        "Entropy l-diversity",
        "values",
        "exp of the least entropy of a class: as many equally frequent values would be as hard to guess.",
        (ENTROPY_DIVERSITY,),
    ),
    "l_recursive": Measure.of_criteria(
        "attribute",
        "Recursive (c, l)-diversity",
        "values",
        "The greatest l for which, in every class, the most frequent value is less than c times as frequent as the "
        "l-th and rarer ones together.",
        (RECURSIVE_L,),
    ),
    "t_closeness": Measure.of_criteria(
        "attribute",
        "t-closeness",
        "distance",
        "The farthest a class's distribution of sensitive values is from the whole table's (earth mover's distance).",
        (*CLOSENESS.values(),),
    ),
    "alpha": Measure.of_criteria(
        "attribute",
        "(alpha, k)-anonymity",
        "share",
        "The greatest share of a class's records, or persons, that have one sensitive value.",
        (ALPHA,),
    ),
    "beta_likeness": Measure.of_criteria(
        "attribute",
        "Basic beta-likeness",
        "ratio",
        "The greatest relative gain of a value's frequency in a class over the whole table.",
        (BETA_LIKENESS,),
    ),
    "enhanced_beta_likeness": Measure.of_criteria(
        "attribute",
        "Enhanced beta-likeness",
        "ratio",
        "The least beta whose bound min(beta, -ln p) every gain meets; infinite if none does.",
        (ENHANCED_BETA_LIKENESS,),
    ),
    "delta_disclosure": Measure.of_criteria(
        "attribute",
        "delta-disclosure privacy",
        "nats",
        "The greatest |ln(q/p)| of a value's frequency in a class to the table's; infinite if a class lacks a value.",
        (DELTA_DISCLOSURE,),
    ),
    "delta_disclosure_present": Measure(
        "attribute",
        "delta-disclosure over values present",
        "nats",
        "The greatest |ln(q/p)| over the values a class does hold; finite where a class lacks some value.",
        "after Brickell and Shmatikov 2008",
        "low",
    ),
    "l_distinct_joint": Measure(
        "attribute",
        "Distinct l-diversity, knowing the others",
        "values",
        "The fewest different values in a class of records that agree in the other sensitive columns too.",
        _JOINT,
        "high",
    ),
    "l_entropy_joint": Measure(
        "attribute",
        "Entropy l-diversity, knowing the others",
        "values",
        "The same for entropy l-diversity.",
        _JOINT,
        "high",
    ),
    "l_recursive_joint": Measure(
        "attribute",
        "Recursive (c, l)-diversity, knowing the others",
        "values",
        "The same for recursive (c, l)-diversity.",
        _JOINT,
        "high",
    ),
    "homogeneity_share": Measure(
        "attribute",
        "Homogeneity attack",
        "share",
        "Share of records in whose class all have one sensitive value: whoever knows the class knows the value.",
        "Machanavajjhala et al. 2006",
        "low",
    ),
    "majority_share_above": Measure(
        "attribute",
        "Records with a likely value",
        "share",
        "Share of records in whose class a greater share than the threshold have one value.",
        "Machanavajjhala et al. 2006",
        "low",
    ),
    "one_k": Measure.of_criteria(
        "concealment",
        "(1,k)-anonymity",
        "records",
        "Every original record fits at least so many released ones.",
        (ONE_K,),
    ),
    "k_one": Measure.of_criteria(
        "concealment",
        "(k,1)-anonymity",
        "records",
        "Every released record fits at least so many original ones.",
        (K_ONE,),
    ),
    "k_k": Measure.of_criteria(
        "concealment",
        "(k,k)-anonymity",
        "records",
        "The lesser of the two.",
        (
            ONE_K,
            K_ONE,
        ),
    ),
    "k_concealment": Measure.of_criteria(
        "concealment",
        "k-concealment",
        "records",
        "Every original record fits so many released ones that some assignment of all records allows.",
        (K_CONCEALMENT,),
    ),
    "k_confusion": Measure.of_criteria(
        "concealment",
        "k-confusion",
        "records",
        "Every original record may be linked to so many released ones, none of them likelier, by the method named.",
        (K_CONFUSION,),
    ),
    "rid": Measure(
        "interval",
        "Rank interval disclosure",
        "share",
        "Share of records whose original value lies within p/2 percent of the ranks around their masked one.",
        "Domingo-Ferrer and Torra 2001",
        "low",
    ),
    "sdid": Measure(
        "interval",
        "Standard deviation interval disclosure",
        "share",
        "Share of records whose masked value is within p percent of a standard deviation of the original.",
        "Mateo-Sanz, Sebé and Domingo-Ferrer 2004",
        "low",
    ),
    "interval_missing": Measure(
        "interval", "Pairs left out", "records", "Records without a number on one of the sides.", ""
    ),
}
"""In the order of the report."""
