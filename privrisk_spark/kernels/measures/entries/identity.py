"""Measures of identity disclosure: in the table, in the population, and by few values."""

from __future__ import annotations

from privrisk_spark.kernels.classes.criteria import K_ANONYMITY, K_MAP
from privrisk_spark.kernels.measures.measure import Measure

_BETHLEHEM = "Bethlehem, Keller and Pannekoek 1990"
_EL_EMAM = "El Emam and Dankar 2008"
_BENEDETTI = "Benedetti and Franconi 1998"
_HUNDEPOOL = "Hundepool et al. 2012"
_SKINNER = "Skinner and Holmes 1998; Skinner and Shlomo 2008"
_MOTWANI = "Motwani and Xu 2008"
_NERGIZ = "Nergiz, Atzori and Clifton 2007"
_ELLIOT = "Elliot, Manning and Ford 2002"

IDENTITY: dict[str, Measure] = {
    "records": Measure("identity", "Records", "records", "Rows of the table.", ""),
    "suppressed_records": Measure(
        "identity",
        "Records suppressed whole",
        "records",
        "Records of the release of which no quasi-identifier is told; apart, they are in no class and in no measure of "
        "disclosure.",
        "",
        "low",
    ),
    "persons": Measure(
        "identity", "Persons in classes", "persons", "Distinct persons of each class, added up over the classes.", ""
    ),
    "weighted_population": Measure(
        "identity", "Weighted population", "persons", "Sum of the sampling weights: the people the rows stand for.", ""
    ),
    "classes": Measure(
        "identity",
        "Equivalence classes",
        "classes",
        "Different combinations of quasi-identifiers.",
        "Samarati and Sweeney 1998",
    ),
    "k": Measure.of_criteria(
        "identity",
        "k-anonymity",
        "records",
        "The fewest records that share one combination of quasi-identifiers; persons, where a person has several rows.",
        (K_ANONYMITY,),
    ),
    "uniques": Measure(
        "identity",
        "Unique records",
        "records",
        "Records nobody else's quasi-identifiers equal: whoever knows them finds the record.",
        _BETHLEHEM,
        "low",
    ),
    "records_below_k": Measure(
        "identity",
        "Records in small classes",
        "records",
        "Records in classes of fewer than k.",
        "Samarati and Sweeney 1998",
        "low",
    ),
    "unique_share": Measure(
        "identity", "Share of unique records", "share", "Unique records over all records.", _BETHLEHEM, "low"
    ),
    "records_by_class_size": Measure(
        "identity",
        "Records by the size of their class",
        "records",
        "Records in classes of so many records.",
        "Samarati and Sweeney 1998",
    ),
    "prosecutor_max": Measure(
        "identity",
        "Prosecutor risk, highest",
        "probability",
        "Chance of picking the right record of a person known to be in the table, for the person worst off.",
        _EL_EMAM,
        "low",
    ),
    "prosecutor_mean": Measure(
        "identity",
        "Prosecutor risk, mean",
        "probability",
        "The same chance for a record taken at random; classes over records.",
        _EL_EMAM,
        "low",
    ),
    "prosecutor_share_above": Measure(
        "identity",
        "Records above a prosecutor risk",
        "share",
        "Share of records whose prosecutor risk is above the threshold.",
        _EL_EMAM,
        "low",
    ),
    "household_risk_max": Measure(
        "identity",
        "Household risk, highest",
        "probability",
        "Chance that at least one record of a household is found, and with it the household, for the one worst off.",
        _HUNDEPOOL,
        "low",
    ),
    "household_risk_mean": Measure(
        "identity",
        "Household risk, mean",
        "probability",
        "The same for the household of a record taken at random.",
        _HUNDEPOOL,
        "low",
    ),
    "k_map": Measure.of_criteria(
        "population",
        "k-map",
        "persons",
        "The fewest people of the population who share a combination that occurs in the table.",
        (K_MAP,),
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
        _EL_EMAM,
        "low",
    ),
    "journalist_share_above": Measure(
        "population",
        "Records above a journalist risk",
        "share",
        "Share of records whose journalist risk is above the threshold.",
        _EL_EMAM,
        "low",
    ),
    "marketer": Measure(
        "population",
        "Marketer risk",
        "probability",
        "Share of all records that would be matched rightly by linking each to somebody of the population who fits.",
        "Dankar and El Emam 2010",
        "low",
    ),
    "population_uniques": Measure(
        "population",
        "Unique in the population too",
        "records",
        "Unique records whose combination one single person of the population has.",
        _BETHLEHEM,
        "low",
    ),
    "population_unique_share": Measure(
        "population",
        "P(population unique | sample unique)",
        "probability",
        "Chance that a unique record is the only such person in the population.",
        "Skinner, Marsh, Openshaw and Wymer 1994",
        "low",
    ),
    "estimated_journalist_max": Measure(
        "population",
        "Journalist risk, highest, by scaling",
        "probability",
        "As journalist risk, each class scaled up by the sampling fraction.",
        _EL_EMAM,
        "low",
        "heuristic",
    ),
    "individual_risk_max": Measure(
        "population",
        "Individual risk, highest",
        "probability",
        "Expected 1/F of a record given its class and sampling weights, for the record worst off.",
        _BENEDETTI,
        "low",
        "heuristic",
    ),
    "individual_risk_mean": Measure(
        "population",
        "Individual risk, mean",
        "probability",
        "The same for a record taken at random.",
        _BENEDETTI,
        "low",
        "heuristic",
    ),
    "expected_reidentifications": Measure(
        "population",
        "Expected re-identifications",
        "records",
        "Sum of the individual risks: records expected to be re-identified if all were tried.",
        _BENEDETTI,
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
    "tau_one": Measure(
        "population",
        "Population uniques among the uniques, τ₁",
        "records",
        "Unique records expected to be alone in the population too, by a log-linear model of the cells; with the range "
        "of 95 % of what the model, as it is fitted, would give.",
        _SKINNER,
        "low",
        "heuristic",
    ),
    "tau_two": Measure(
        "population",
        "Right matches of uniques, τ₂",
        "records",
        "Unique records expected to be named rightly if each is matched to somebody of the population who fits.",
        _SKINNER,
        "low",
        "heuristic",
    ),
    "presence_max": Measure(
        "population",
        "delta-presence, highest",
        "probability",
        "Of the people who share a combination that occurs in the table, the greatest share who are in the table: "
        "how sure it is of somebody that he is there.",
        _NERGIZ,
        "low",
    ),
    "presence_min": Measure(
        "population",
        "delta-presence, lowest",
        "probability",
        "The same share where it is least; of combinations that do not occur it is 0.",
        _NERGIZ,
    ),
    "special_uniques": Measure(
        "special",
        "Records with a minimal sample unique",
        "records",
        "Records that a few values, no more than the size, single out, and no fewer of these values do.",
        _ELLIOT,
        "low",
    ),
    "minimal_uniques": Measure(
        "special", "Minimal sample uniques", "sets", "Such sets of values, by number of attributes.", _ELLIOT
    ),
    "suda_max": Measure(
        "special",
        "SUDA score, highest",
        "score",
        "More and smaller sets of values that single a record out make a higher score.",
        _ELLIOT,
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
    "distinction": Measure(
        "columns",
        "Distinction",
        "share",
        "Different values over records, of a column or of all of the set: 1 if every record has a value of its own.",
        _MOTWANI,
        "low",
    ),
    "separation": Measure(
        "columns",
        "Separation",
        "share",
        "Share of the pairs of records that the values of the column, or of all of the set, tell apart.",
        _MOTWANI,
        "low",
    ),
    "suda_contribution": Measure(
        "columns",
        "Contribution to SUDA scores",
        "share",
        "Share of the scores that is due to minimal sample uniques with the column; shares add up to more than 1, as a "
        "minimal sample unique counts for each of its columns.",
        _ELLIOT,
        None,
        "heuristic",
    ),
}
"""In the order of the report."""
