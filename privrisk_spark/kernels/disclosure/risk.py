"""Identification risk of a disclosed record (F12 §4.4.2), against one dictionary or several.

With ``ρ`` the number of dictionary rows consistent with the disclosed record, ``Φ`` its sensitivity and ``N`` the
number of dictionary rows:

=======  ===============  ==========================================================================
model    risk             meaning
=======  ===============  ==========================================================================
``I``    Φ / ρ            expected loss against a uniform attacker (LSFB06 eq 1, with Ψ = 0)
``II``   1 / ρ            identification probability alone
``III``  Φ · ln(N / ρ)    sensitivity times the surprisal (nats) of "a random row is consistent"
=======  ===============  ==========================================================================

F12 prints model III as ``Φ log(1/ρ)``, which is zero both for a unique original record and for a fully suppressed one
and negative in between; adding ``Φ log N`` makes it monotone. All three are non-increasing in every level.

Of an attacker who may hold any of several dictionaries θ the risk is (F12 §2.3; LSFB06 §2)

=============  ===================  ===========================================================
rule           risk                 meaning
=============  ===================  ===========================================================
``bayes``      Σ_θ q(θ) · r_θ       expected over the owner's prior q
``minimax``    max_θ r_θ            worst case, no prior
=============  ===================  ===========================================================

with ``r_θ`` from ``ρ_θ`` and ``N_θ``; Φ does not depend on θ, so this is Φ times the expected, or the largest,
identification factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.counting.consistent import Counts

RiskModel = Literal["I", "II", "III"]
DictionaryRule = Literal["bayes", "minimax"]


def identification_risk(
    model: RiskModel, sensitivity: FloatArray, consistent: LongArray, *, dictionary_rows: int | LongArray
) -> FloatArray:
    """Risk of disclosed records.

    Parameters
    ----------
    model : {"I", "II", "III"}
    sensitivity : ndarray of float64, shape (n,)
        ``Φ >= 0``; infinity means "only if identification is impossible".
    consistent : ndarray of int64, shape (n,)
        ``ρ``, dictionary rows consistent with each record. Where it is 0 the identification probability is 0.
    dictionary_rows : int or ndarray of int64, shape (n,)
        ``N >= ρ``, in all or per record.

    Returns
    -------
    ndarray of float64, shape (n,)
        Non-negative. ``0 · inf`` is 0: nothing to identify costs nothing, however sensitive.
    """
    known = consistent > 0
    if not known.all():
        result = np.zeros(len(sensitivity))
        rows = np.broadcast_to(dictionary_rows, known.shape)[known]
        result[known] = identification_risk(model, sensitivity[known], consistent[known], dictionary_rows=rows)
        return result
    if model == "II":
        return 1.0 / consistent
    if model == "I":
        return sensitivity / consistent
    surprisal = np.log(dictionary_rows / consistent)
    with np.errstate(invalid="ignore"):
        product = sensitivity * surprisal
    # 0 · inf is undefined; a Φ of 0 times a finite surprisal is 0 already.
    return np.where(surprisal > 0, product, 0.0)


def found_in_part(consistent: LongArray, share: float) -> FloatArray:
    """Probability that a record is found by an attacker whose dictionary holds each person with one probability.

    Of the ``ρ - 1`` others who fit the record a binomial number X is in it, and the person himself. The mean of
    ``1/(1 + X)`` is ``(1 - (1 - s)^ρ)/(s ρ)``: the term of x is ``C(ρ - 1, x)/(x + 1) = C(ρ, x + 1)/ρ`` times
    ``s^x (1 - s)^(ρ - 1 - x)``, and these are the binomial theorem of ρ without its first term, over ``s ρ``. Status:
    proved. It is what F12 Fig. 3.1 shows of nested samples of a dictionary, on average over all samples, with what is
    disclosed left as it is.

    Parameters
    ----------
    consistent : ndarray of int64, shape (n,)
        ``ρ``, rows of the whole dictionary consistent with each record, the person's own among them; at least 1.
    share : float
        ``s``, in (0, 1]; 1 is the whole dictionary, with ``1/ρ``.

    Returns
    -------
    ndarray of float64, shape (n,)
        In (0, 1]; it falls as the share grows.

    Raises
    ------
    InputError
        If the share is out of range, or nobody is consistent with a record.
    """
    if not 0 < share <= 1:
        raise InputError(f"The share of the dictionary must be above 0 and at most 1. Got {share}.")
    if (consistent < 1).any():
        raise InputError("A record must be consistent with at least one row of the dictionary: the person's own.")
    kept = consistent.astype(np.float64)
    with np.errstate(divide="ignore"):
        found: FloatArray = -np.expm1(kept * np.log1p(-share)) / (share * kept)
    return found


@dataclass(frozen=True, eq=False)
class Attacker:
    """What the attacker may know: one dictionary, or several of which he holds one.

    Attributes
    ----------
    counts : tuple of Counts
        ``ρ_θ`` of every dictionary θ, at least one.
    rule : {"bayes", "minimax"}
        Expected risk over the prior, or the largest over the dictionaries.
    prior : tuple of float
        ``q(θ)``, non-negative, summing to 1 within 1e-9. ``minimax`` has no use for it and may leave it empty.

    Raises
    ------
    InputError
        If there is no dictionary, or the prior does not fit.
    """

    counts: tuple[Counts, ...]
    rule: DictionaryRule
    prior: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.counts:
            raise InputError("attacker: there must be at least one dictionary. Got none.")
        if self.rule == "minimax" and not self.prior:
            return
        if len(self.prior) != len(self.counts):
            raise InputError(
                f"attacker.prior: there must be one probability per dictionary, {len(self.counts)} in all. "
                f"Got {len(self.prior)}."
            )
        total = math.fsum(self.prior)
        if not (all(q >= 0 for q in self.prior) and abs(total - 1) <= 1e-9):
            raise InputError(
                "attacker.prior: probabilities must not be negative and sum to 1. "
                f"Got {list(self.prior)!r}, which sum to {total:g}."
            )

    @classmethod
    def knowing(cls, counts: Counts) -> Attacker:
        """Return the attacker who holds one dictionary for certain."""
        return cls((counts,), "bayes", (1.0,))

    @property
    def possible(self) -> tuple[Counts, ...]:
        """Dictionaries that matter: under ``bayes`` those of positive prior."""
        if self.rule == "minimax":
            return self.counts
        return tuple(counts for counts, q in zip(self.counts, self.prior, strict=True) if q > 0)

    @property
    def monotone(self) -> bool:
        """Whether risk never rises when a value is generalized, whichever dictionary is held."""
        return all(counts.monotone for counts in self.possible)

    def risk(self, risks: Sequence[FloatArray]) -> FloatArray:
        """Risk over the possible dictionaries, from the risk against each.

        Parameters
        ----------
        risks : sequence of ndarrays of float64, shape (n,)
            ``r_θ``, in the order of :attr:`possible`.

        Returns
        -------
        ndarray of float64, shape (n,)
            Summed from the first dictionary to the last.
        """
        return over_dictionaries(self.rule, [q for q in self.prior if q > 0], risks)


def over_dictionaries(rule: DictionaryRule, prior: Sequence[float], risks: Sequence[FloatArray]) -> FloatArray:
    """Risk of an attacker who holds one of several dictionaries, from the risk against each.

    Parameters
    ----------
    rule : {"bayes", "minimax"}
    prior : sequence of float
        One per dictionary; ``minimax`` does not look at it.
    risks : sequence of ndarrays of float64, shape (n,)

    Returns
    -------
    ndarray of float64, shape (n,)
        Summed from the first dictionary to the last. Of one dictionary, its risk.
    """
    if len(risks) == 1:
        return risks[0]
    if rule == "minimax":
        worst: FloatArray = np.max(np.stack(risks), axis=0)
        return worst
    total = np.zeros(len(risks[0]))
    for q, risk in zip(prior, risks, strict=True):
        total += q * risk
    return total
