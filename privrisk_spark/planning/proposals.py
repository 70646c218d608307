"""Schemes where a policy names none: proposed from public information, never from the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import ConfigError, Fault, InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.dp.proposals import agreement, diverse, expected_rows, minimal_schemes
from privrisk_spark.kernels.lattice.lattice import Lattice
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.private import DpGuarantee

WHOLE_LATTICE = 256
"""Up to so many nodes all are candidates."""

_FINER = (1, 4, 16, 64)
_OF_EACH = 16
_SHOWN = 40

Schemes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Proposal:
    """Proposed level vectors.

    Attributes
    ----------
    because : str
        Why these, in words.
    """

    schemes: Schemes
    because: str


def most_schemes(public_rows: int) -> int:
    """Return how many schemes to admit cells of: the noise grows with them, and matters less to large tables."""
    return 4 if public_rows < 100_000 else 16 if public_rows < 1_000_000 else 64


def proposed_schemes(policy: Policy, hierarchies: Mapping[str, Hierarchy], *, need: int, why: str) -> Proposal:
    """Propose schemes whose cells are expected to be admitted and to survive.

    Parameters
    ----------
    policy : Policy
        With ``guarantee.kind: dp``.
    hierarchies : mapping of attribute to Hierarchy
        Public.
    need : int
        Rows a cell must be expected to hold.
    why : str
        What these rows are needed for.

    Raises
    ------
    ConfigError
        If the public number of rows is not enough for any, the lattice is too large, or a stated share is wrong.
    """
    rows = _dp(policy).public_rows
    found = _minimal(policy, hierarchies, need, key="guarantee.schemes")
    taken = diverse(found, _heights(hierarchies), _weights(policy), most_schemes(rows))
    because = (
        f"{len(taken)} of the {len(found)} finest level vectors whose cells are expected to hold at least {need} rows "
        f"({why}) of {rows:,} under {_shares_named(policy)}"
    )
    return Proposal(_tuples(taken), because)


def proposed_candidates(policy: Policy, hierarchies: Mapping[str, Hierarchy], *, need: int, why: str) -> Proposal:
    """Propose candidates for the choice of a scheme: all, or expected to survive and ones finer than that.

    A finer candidate costs little: the choice is by the table's own cells, which are larger than independent columns
    would have them where records are. Parameters and errors as for :func:`proposed_schemes`.
    """
    rows, heights = _dp(policy).public_rows, _heights(hierarchies)
    lattice = Lattice(tuple(heights))
    if lattice.n_nodes <= WHOLE_LATTICE:
        return Proposal(
            _tuples(lattice.levels(np.arange(lattice.n_nodes))), f"all {lattice.n_nodes} level vectors there are"
        )
    found = [
        diverse(
            _minimal(policy, hierarchies, need / finer, key="guarantee.candidates"), heights, _weights(policy), _OF_EACH
        )
        for finer in _FINER
    ]
    because = (
        f"up to {_OF_EACH} each of the finest level vectors whose cells are expected to hold at least {need} rows "
        f"({why}), and a 4th, 16th and 64th of that, of {rows:,} under {_shares_named(policy)}"
    )
    return Proposal(tuple(sorted(set(_tuples(np.vstack(found))))), because)


def scheme_table(
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    schemes: Sequence[Sequence[int]],
    *,
    frequent: int | None,
    crowd: int,
    survival: tuple[int, int],
) -> list[str]:
    """Return the lines of a table: scheme, precision, expected rows of a cell, t, k, rows to survive.

    Parameters
    ----------
    hierarchies : mapping of attribute to Hierarchy
    frequent : int or None
        t; None where nothing is admitted.
    crowd : int
        k.
    survival : tuple of int
        Rows a cell needs to be released with probability 50 % and 99 %.
    """
    vectors = np.array(schemes, dtype=np.int64).reshape(len(schemes), len(hierarchies))
    weights = np.array(_weights(policy))
    kept = (1.0 - vectors / np.array(_heights(hierarchies), dtype=np.float64)) @ weights / weights.sum()
    expected = expected_rows(_dp(policy).public_rows, _agreements(policy, hierarchies), vectors)
    width = max(len("scheme"), *(len(str(list(scheme))) for scheme in schemes))
    lines = [f"{'scheme':<{width}}  precision  expected rows      t     k  N50/N99"]
    for scheme, precision, rows in list(zip(schemes, kept, expected, strict=True))[:_SHOWN]:
        t = "-" if frequent is None else str(frequent)
        numbers = f"{precision:9.3f}  {rows:13,.1f}  {t:>5}  {crowd:>4}  {survival[0]}/{survival[1]}"
        lines.append(f"{list(scheme)!s:<{width}}  {numbers}")
    if len(schemes) > _SHOWN:
        lines.append(f"… {len(schemes) - _SHOWN} more")
    of = f"of {_dp(policy).public_rows:,} rows under {_shares_named(policy)}"
    lines.append(f"(expected rows: of a random row's own cell, {of})")
    return lines


def _minimal(policy: Policy, hierarchies: Mapping[str, Hierarchy], need: float, *, key: str) -> npt.NDArray[np.int64]:
    rows = _dp(policy).public_rows
    try:
        found = minimal_schemes(rows, _agreements(policy, hierarchies), need)
    except InputError as error:
        raise ConfigError([Fault(key, f"is required: {str(error).rstrip('.')}")]) from None
    if not len(found):
        raise ConfigError(
            [
                Fault(
                    key,
                    f"cannot be proposed: a cell needs {need:g} rows, and public_rows is {rows:,}; raise epsilon or "
                    "delta, or name level vectors",
                )
            ]
        )
    return found


def _agreements(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> list[npt.NDArray[np.float64]]:
    return [
        agreement(hierarchy.ancestor[: hierarchy.n_leaves], _shares(policy, name, hierarchy))
        for name, hierarchy in hierarchies.items()
    ]


def _shares(policy: Policy, name: str, hierarchy: Hierarchy) -> npt.NDArray[np.float64]:
    """Shares of leaves: those of a stated node spread evenly under it, the rest evenly over all other leaves."""
    given = _dp(policy).public_shares.get(name, {})
    shares, stated = np.zeros(hierarchy.n_leaves), np.zeros(hierarchy.n_leaves, dtype=np.bool_)
    key = f"guarantee.public_shares.{name}"
    for label, share in given.items():
        node = hierarchy.find(label)
        under = slice(int(hierarchy.first_leaf[node]), int(hierarchy.last_leaf[node]))
        if stated[under].any():
            raise ConfigError([Fault(f"{key}.{label}", "has leaves in common with another label that is stated")])
        stated[under] = True
        shares[under] = share / (under.stop - under.start)
    rest = 1.0 - shares.sum()
    if rest < -1e-9 or (rest > 1e-9 and stated.all()):
        rule = "must sum to 1" if stated.all() else "must sum to at most 1"
        raise ConfigError([Fault(key, f"{rule}. They sum to {shares.sum():g}")])
    if not stated.all():
        shares[~stated] = max(rest, 0.0) / np.count_nonzero(~stated)
    result: npt.NDArray[np.float64] = shares / shares.sum()
    return result


def _shares_named(policy: Policy) -> str:
    given = _dp(policy).public_shares
    if not given:
        return "independent columns with uniform values"
    return f"independent columns with the stated shares of {', '.join(given)} and else uniform values"


def _heights(hierarchies: Mapping[str, Hierarchy]) -> list[int]:
    return [hierarchy.height for hierarchy in hierarchies.values()]


def _weights(policy: Policy) -> list[float]:
    weights = [float(policy.utility.weights.get(name, 1.0)) for name in policy.quasi_identifiers]
    return weights if any(weights) else [1.0] * len(weights)


def _tuples(schemes: npt.NDArray[np.int64]) -> Schemes:
    return tuple(tuple(scheme) for scheme in schemes.tolist())


def _dp(policy: Policy) -> DpGuarantee:
    assert isinstance(policy.guarantee, DpGuarantee)
    return policy.guarantee
