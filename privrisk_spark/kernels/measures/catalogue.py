"""Every measure of an assessment by name: what it is, in plain words, where it comes from, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from privrisk_spark.claims import Status

Family = Literal["identity", "population", "special", "attribute", "concealment", "interval", "utility", "attack"]
Safe = Literal["low", "high"]

FAMILIES: dict[Family, str] = {
    "identity": "Identity disclosure: how many records look alike",
    "population": "Identity disclosure in the population",
    "special": "Special uniques: few values that single a record out",
    "attribute": "Attribute disclosure: what a class gives away",
    "concealment": "Concealment: how many releases a record could be",
    "interval": "Interval disclosure: how close masked numbers are",
    "utility": "Utility of the release",
    "attack": "An adversary who attacks if it pays",
}


@dataclass(frozen=True)
class Measure:
    """What a number means.

    Attributes
    ----------
    family : Family
    title : str
    unit : str
    means : str
        In plain words, a sentence.
    source : str
        Who defined it.
    safe : {"low", "high"} or None
        Which side is safe, for a threshold; None for a number that is no risk.
    status : {"proved", "tested", "heuristic"}
        ``tested``: computed exactly, and the computation tested. ``heuristic``: an estimate under a model.
    """

    family: Family
    title: str
    unit: str
    means: str
    source: str
    safe: Safe | None = None
    status: Status = "tested"


_R23 = "Raschia 2023"
_SWEENEY = "Sweeney 2002"
_XIA = "Xia et al. 2015"

CATALOGUE: dict[str, Measure] = {
    # ------------------------------------------------------------------------------------------ identity
    "records": Measure("identity", "Records", "records", "Rows of the table.", ""),
    "persons": Measure(
        "identity", "Persons in classes", "persons", "Distinct persons of each class, added up over the classes.", ""
    ),
    "weighted_population": Measure(
        "identity", "Weighted population", "persons", "Sum of the sampling weights: the people the rows stand for.", ""
    ),
    "classes": Measure(
        "identity", "Equivalence classes", "classes", "Different combinations of quasi-identifiers.", _SWEENEY
    ),
    "k": Measure(
        "identity",
        "k-anonymity",
        "records",
        "The fewest records that share one combination of quasi-identifiers; persons, where a person has several rows.",
        _SWEENEY,
        "high",
    ),
    "uniques": Measure(
        "identity",
        "Unique records",
        "records",
        "Records nobody else's quasi-identifiers equal: whoever knows them finds the record.",
        "Skinner and Elliot 2002",
        "low",
    ),
    "records_below_k": Measure(
        "identity", "Records in small classes", "records", "Records in classes of fewer than k.", _SWEENEY, "low"
    ),
    "unique_share": Measure(
        "identity",
        "Share of unique records",
        "share",
        "Unique records over all records.",
        "Skinner and Elliot 2002",
        "low",
    ),
    "prosecutor_max": Measure(
        "identity",
        "Prosecutor risk, highest",
        "probability",
        "Chance of picking the right record of a person known to be in the table, for the person worst off.",
        _R23,
        "low",
    ),
    "prosecutor_mean": Measure(
        "identity",
        "Prosecutor risk, mean",
        "probability",
        "The same chance for a record taken at random; classes over records.",
        _R23,
        "low",
    ),
    "prosecutor_share_above": Measure(
        "identity",
        "Records above a prosecutor risk",
        "share",
        "Share of records whose prosecutor risk is above the threshold.",
        "El Emam and Dankar 2008",
        "low",
    ),
    # ---------------------------------------------------------------------------------------- population
    "k_map": Measure(
        "population",
        "k-map",
        "persons",
        "The fewest people of the population who share a combination that occurs in the table.",
        "Sweeney 2001",
        "high",
    ),
    "uncovered_records": Measure(
        "population",
        "Records the population lacks",
        "records",
        "Records whose combination nobody in the population has; journalist and marketer risk are about the others.",
        "",
    ),
    "contradicted_classes": Measure(
        "population",
        "Classes larger than in the population",
        "classes",
        "Classes with more records than the population has people: the table is no sample of it there.",
        "",
    ),
    "journalist_max": Measure(
        "population",
        "Journalist risk, highest",
        "probability",
        "Chance of naming the right person of the population for a record, for the record worst off.",
        _R23,
        "low",
    ),
    "journalist_share_above": Measure(
        "population",
        "Records above a journalist risk",
        "share",
        "Share of records whose journalist risk is above the threshold.",
        "El Emam and Dankar 2008",
        "low",
    ),
    "marketer": Measure(
        "population",
        "Marketer risk",
        "probability",
        "Share of all records that would be matched rightly by linking each to somebody of the population who fits.",
        _R23,
        "low",
    ),
    "population_uniques": Measure(
        "population",
        "Unique in the population too",
        "records",
        "Unique records whose combination one single person of the population has.",
        "Skinner and Elliot 2002",
        "low",
    ),
    "population_unique_share": Measure(
        "population",
        "P(population unique | sample unique)",
        "probability",
        "Chance that a unique record is the only such person in the population.",
        "Skinner and Elliot 2002",
        "low",
    ),
    "estimated_journalist_max": Measure(
        "population",
        "Journalist risk, highest, by scaling",
        "probability",
        "As journalist risk, each class scaled up by the sampling fraction.",
        "El Emam and Dankar 2008",
        "low",
        "heuristic",
    ),
    "individual_risk_max": Measure(
        "population",
        "Individual risk, highest",
        "probability",
        "Expected 1/F of a record given its class and sampling weights, for the record worst off.",
        "Benedetti and Franconi 1998",
        "low",
        "heuristic",
    ),
    "individual_risk_mean": Measure(
        "population",
        "Individual risk, mean",
        "probability",
        "The same for a record taken at random.",
        "Benedetti and Franconi 1998",
        "low",
        "heuristic",
    ),
    "expected_reidentifications": Measure(
        "population",
        "Expected re-identifications",
        "records",
        "Sum of the individual risks: records expected to be re-identified if all were tried.",
        "Benedetti and Franconi 1998",
        "low",
        "heuristic",
    ),
    "estimated_population_uniques": Measure(
        "population",
        "Population uniques, estimated",
        "persons",
        "People estimated to be the only such person in the population, by the model named.",
        "Hoshino 2001; Zayatz 1991; Chen and Keller-McNulty 1998",
        None,
        "heuristic",
    ),
    "estimated_population_unique_share": Measure(
        "population",
        "P(population unique | sample unique), estimated",
        "probability",
        "Chance that a unique record is the only such person in the population, by the model a decision rule takes.",
        "Dankar, El Emam, Neisa and Roffey 2012",
        "low",
        "heuristic",
    ),
    # ------------------------------------------------------------------------------------------- special
    "special_uniques": Measure(
        "special",
        "Records with a minimal sample unique",
        "records",
        "Records that a few values, no more than the size, single out, and no fewer of these values do.",
        "Elliot, Manning and Ford 2002",
        "low",
    ),
    "minimal_uniques": Measure(
        "special",
        "Minimal sample uniques",
        "sets",
        "Such sets of values, by number of attributes.",
        "Elliot et al. 2002",
    ),
    "suda_max": Measure(
        "special",
        "SUDA score, highest",
        "score",
        "More and smaller sets of values that single a record out make a higher score.",
        "Elliot, Manning and Ford 2002; Manning, Haglin and Keane 2008",
        "low",
        "heuristic",
    ),
    "dis_max": Measure(
        "special",
        "DIS score, highest",
        "probability",
        "Chance of a correct match given a match of a unique record, shared out by SUDA scores.",
        "Elliot 2000",
        "low",
        "heuristic",
    ),
    "dis_mean": Measure(
        "special", "DIS score, mean", "probability", "The same over all records.", "Elliot 2000", "low", "heuristic"
    ),
    # ----------------------------------------------------------------------------------------- attribute
    "p_sensitive": Measure(
        "attribute",
        "p-sensitivity and distinct l-diversity",
        "values",
        "The fewest different sensitive values in a class; with 1, membership alone gives the value away.",
        "Truta and Vinay 2006; Machanavajjhala et al. 2007",
        "high",
    ),
    "l_entropy": Measure(
        "attribute",
        "Entropy l-diversity",
        "values",
        "exp of the least entropy of a class: as many equally frequent values would be as hard to guess.",
        "Machanavajjhala et al. 2007",
        "high",
    ),
    "l_recursive": Measure(
        "attribute",
        "Recursive (c, l)-diversity",
        "values",
        "The greatest l for which, in every class, the most frequent value is less than c times as frequent as the "
        "l-th and rarer ones together.",
        "Machanavajjhala et al. 2007",
        "high",
    ),
    "t_closeness": Measure(
        "attribute",
        "t-closeness",
        "distance",
        "The farthest a class's distribution of sensitive values is from the whole table's (earth mover's distance).",
        "Li, Li and Venkatasubramanian 2007",
        "low",
    ),
    "alpha": Measure(
        "attribute",
        "(alpha, k)-anonymity",
        "share",
        "The greatest share one sensitive value has in a class.",
        "Wong et al. 2006",
        "low",
    ),
    "beta_likeness": Measure(
        "attribute",
        "Basic beta-likeness",
        "ratio",
        "The greatest relative gain of a value's frequency in a class over the whole table.",
        "Cao and Karras 2012",
        "low",
    ),
    "enhanced_beta_likeness": Measure(
        "attribute",
        "Enhanced beta-likeness",
        "ratio",
        "The least beta whose bound min(beta, -ln p) every gain meets; infinite if none does.",
        "Cao and Karras 2012",
        "low",
    ),
    "delta_disclosure": Measure(
        "attribute",
        "delta-disclosure privacy",
        "nats",
        "The greatest |ln(q/p)| of a value's frequency in a class to the table's; infinite if a class lacks a value.",
        "Brickell and Shmatikov 2008",
        "low",
    ),
    "homogeneity_share": Measure(
        "attribute",
        "Homogeneity attack",
        "share",
        "Share of records whose class holds one sensitive value: whoever knows the class knows the value.",
        "Machanavajjhala et al. 2007",
        "low",
    ),
    "majority_share_above": Measure(
        "attribute",
        "Records with a likely value",
        "share",
        "Share of records whose class has one value more often than the threshold.",
        "Machanavajjhala et al. 2007",
        "low",
    ),
    # --------------------------------------------------------------------------------------- concealment
    "one_k": Measure(
        "concealment",
        "(1,k)-anonymity",
        "records",
        "Every original record fits at least so many released ones.",
        "Gionis, Mazza and Tassa 2008",
        "high",
    ),
    "k_one": Measure(
        "concealment",
        "(k,1)-anonymity",
        "records",
        "Every released record fits at least so many original ones.",
        "Gionis, Mazza and Tassa 2008",
        "high",
    ),
    "k_k": Measure(
        "concealment", "(k,k)-anonymity", "records", "The lesser of the two.", "Gionis, Mazza and Tassa 2008", "high"
    ),
    "k_concealment": Measure(
        "concealment",
        "k-concealment",
        "records",
        "Every original record fits so many released ones that some assignment of all records allows.",
        "Tassa, Mazza and Gionis 2012",
        "high",
    ),
    "k_confusion": Measure(
        "concealment",
        "k-confusion",
        "records",
        "Every original record may be linked to so many released ones, none of them likelier, by the method named.",
        "Stokes and Torra 2012",
        "high",
    ),
    # ------------------------------------------------------------------------------------------ interval
    "rid": Measure(
        "interval",
        "Rank interval disclosure",
        "share",
        "Share of records whose original value lies within p/2 percent of the ranks around their masked one.",
        "Torra 2020; Domingo-Ferrer and Torra 2001",
        "low",
    ),
    "sdid": Measure(
        "interval",
        "Standard deviation interval disclosure",
        "share",
        "Share of records whose masked value is within p percent of a standard deviation of the original.",
        "Torra 2020; Mateo-Sanz, Sebé and Domingo-Ferrer 2004",
        "low",
    ),
    "interval_missing": Measure(
        "interval", "Pairs left out", "records", "Records without a number on one of the sides.", ""
    ),
    # ------------------------------------------------------------------------------------------- utility
    "c_avg": Measure(
        "utility",
        "Average class size",
        "times k",
        "Mean class size over k; 1 is ideal, more is less useful.",
        "LeFevre, DeWitt and Ramakrishnan 2006",
    ),
    "discernibility": Measure(
        "utility",
        "Discernibility",
        "records squared",
        "Each record costs the size of its class, or the whole table where the class is smaller than k.",
        "Bayardo and Agrawal 2005",
    ),
    "precision": Measure(
        "utility", "Precision", "share", "1 less the mean of level over height of all cells.", "Sweeney 2002"
    ),
    "generalized_information_loss": Measure(
        "utility", "Generalized information loss", "share", "Mean share of the domain a cell covers.", "Iyengar 2002"
    ),
    "penalty_mean": Measure(
        "utility",
        "Mean penalty of a record",
        "share",
        "1 - 1/number of original tuples that generalize to the released one, mean over records.",
        _R23,
    ),
    "non_uniform_entropy": Measure(
        "utility",
        "Non-uniform entropy loss",
        "bits per cell",
        "Bits of information about the original value a released cell lacks, mean.",
        "Gionis and Tassa 2009",
    ),
    "gcp": Measure(
        "utility",
        "Global certainty penalty",
        "share",
        "Mean normalized certainty penalty of a cell: 0 for an original value, 1 for a suppressed one.",
        "Xu et al. 2006; Ghinita et al. 2007",
    ),
    "kl_divergence": Measure(
        "utility",
        "Kullback-Leibler divergence",
        "nats",
        "From the original distribution to the released one, spread evenly inside each cell.",
        "Kifer and Gehrke 2006",
    ),
    "classification_metric": Measure(
        "utility",
        "Classification metric",
        "share",
        "Share of records whose label is not the most frequent of their class.",
        "Iyengar 2002",
    ),
    "classification_penalty": Measure(
        "utility",
        "Classification penalty by class size",
        "records",
        "The form of the classification metric that charges the size of the class.",
        _R23,
    ),
    # -------------------------------------------------------------------------------------------- attack
    "attacked_records": Measure(
        "attack",
        "Records worth attacking",
        "records",
        "Records at least one candidate of which is approached.",
        _XIA,
        "low",
    ),
    "p_reid_max": Measure(
        "attack",
        "Re-identification by the planning adversary, highest",
        "probability",
        "Chance that an adversary who attacks only while it pays re-identifies the record worst off.",
        _XIA,
        "low",
    ),
    "p_reid_mean": Measure(
        "attack",
        "Re-identification by the planning adversary, mean",
        "probability",
        "The same over all records.",
        _XIA,
        "low",
    ),
    "expected_loss": Measure(
        "attack",
        "Expected loss",
        "loss",
        "Sum over the records of re-identification probability times loss.",
        _XIA,
        "low",
    ),
    "p_reid_baseline_mean": Measure(
        "attack",
        "Re-identification by a single try, mean",
        "probability",
        "The same for an adversary who approaches one candidate at random, if that pays.",
        _XIA,
        "low",
    ),
    "expected_payoff_max": Measure(
        "attack", "Best expected payoff", "money", "What the adversary expects to earn by the best record.", _XIA, "low"
    ),
    "access_threshold": Measure(
        "attack",
        "Group size without access",
        "candidates",
        "From so many candidates on the adversary does not even buy access.",
        _XIA,
    ),
    "sunk_threshold": Measure(
        "attack",
        "Group size without attack after access",
        "candidates",
        "From so many candidates on nobody is approached, even if access is paid already.",
        _XIA,
    ),
    "least_group_size": Measure(
        "attack",
        "Group size that protects",
        "candidates",
        "The least size of all classes that brings every record's risk under the bound.",
        _XIA,
    ),
    "least_penalty": Measure(
        "attack",
        "Penalty that protects",
        "money",
        "The least fine that brings every record's risk under the bound.",
        _XIA,
    ),
}
"""In the order of the report."""
