"""Measures of the utility of a release."""

from __future__ import annotations

from privrisk_spark.kernels.measures.measure import Measure

_IYENGAR = "Iyengar 2002"
_TORRA = "Domingo-Ferrer and Torra 2001"

UTILITY: dict[str, Measure] = {
    "c_avg": Measure(
        "utility",
        "Average class size",
        "times k",
        "Mean size of the classes that are counted, in what k counts (records, or individuals), over k; 1 is ideal, "
        "more is less useful.",
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
        "utility", "Generalized information loss", "share", "Mean share of the domain a cell covers.", _IYENGAR
    ),
    "penalty_mean": Measure(
        "utility",
        "Mean penalty of a record",
        "share",
        "1 - 1/number of original tuples that generalize to the released one, mean over records.",
        "after the ambiguity of Nergiz and Clifton 2006",
    ),
    "non_uniform_entropy": Measure(
        "utility",
        "Non-uniform entropy loss",
        "bits per cell",
        "Bits of information about the original value a released cell lacks, mean.",
        "Gionis and Tassa 2007",
    ),
    "gcp": Measure(
        "utility",
        "Global certainty penalty",
        "share",
        "Mean normalized certainty penalty of a cell: 0 for an original value, 1 for a suppressed one.",
        "Xu et al. 2006; Ghinita et al. 2007",
    ),
    "iyengar_loss": Measure(
        "utility",
        "General loss",
        "share",
        "Mean of (values a cell covers - 1) over (values of the domain - 1): 0 for an original value, 1 for a "
        "suppressed one, and no jump between.",
        _IYENGAR,
    ),
    "loss": Measure(
        "utility",
        "Loss, geometric over columns",
        "share",
        "Geometric mean over the columns of 1 + general loss, less 1: the metric k-anonymization minimizes.",
        f"{_IYENGAR}, as in ARX: Prasser, Kohlmayer, Lautenschläger and Kuhn 2014",
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
        _IYENGAR,
    ),
    "classification_penalty": Measure(
        "utility",
        "Classification penalty by class size",
        "records",
        "The form of the classification metric that charges the size of the class.",
        "after Iyengar 2002",
    ),
    "classifier_accuracy": Measure(
        "utility",
        "Accuracy of a classifier",
        "share",
        "Share of the held-out records of a sample whose label a classifier predicts from the quasi-identifiers.",
        f"{_IYENGAR}; LeFevre, DeWitt and Ramakrishnan 2006",
        None,
        "heuristic",
    ),
    "majority_accuracy": Measure(
        "utility",
        "Accuracy of the most frequent label",
        "share",
        "Share of the most frequent label in the sample; what is above it, a classifier owes to the values.",
        _IYENGAR,
        None,
        "heuristic",
    ),
    "mean": Measure(
        "numeric",
        "Mean",
        "in the column's unit",
        "Mean of a column of numbers that is masked; of days, since 1970.",
        "",
    ),
    "variance": Measure(
        "numeric",
        "Variance",
        "in the column's unit, squared",
        "Sum of squares about the mean over the values less 1.",
        "",
    ),
    "quantile": Measure(
        "numeric",
        "Quantile",
        "in the column's unit",
        "The value at a share of the ranks, one that occurs; shares are of the known values.",
        "",
    ),
    "covariance": Measure(
        "numeric",
        "Covariance",
        "in the units of both columns",
        "Of two columns, over the records that have all numbers, less 1.",
        "",
    ),
    "correlation": Measure(
        "numeric",
        "Correlation",
        "correlation",
        "Pearson's, of two columns, over the records that have all numbers.",
        "",
    ),
    "masked_distance": Measure(
        "numeric",
        "IL1s",
        "deviations",
        "Mean of |original - masked| over √2 standard deviations of the original column.",
        "Yancey, Winkler and Creecy 2002",
    ),
    "mean_shift": Measure(
        "numeric",
        "Shift of the mean",
        "deviations",
        "Masked mean less original mean, in standard deviations of the original column.",
        _TORRA,
    ),
    "variance_ratio": Measure(
        "numeric",
        "Ratio of variances",
        "times",
        "Masked variance over original variance; 1 is ideal.",
        _TORRA,
    ),
    "correlation_change": Measure(
        "numeric",
        "Change of correlations",
        "correlation",
        "Mean over the pairs of columns of how far Pearson's correlation moved.",
        _TORRA,
    ),
    "eigenvalue_change": Measure(
        "numeric",
        "Change of eigenvalues",
        "eigenvalue",
        "Mean of how far the eigenvalues of the matrix of correlations moved, from the greatest to the least.",
        f"after {_TORRA}",
    ),
}
"""In the order of the report."""
