"""From a policy's guarantee to what every class of a scheme must meet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from privrisk_spark.kernels.arrays import IntArray
from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.classes.criteria import (
    ALPHA,
    BETA_LIKENESS,
    CLOSENESS,
    DELTA_DISCLOSURE,
    DISTINCT_DIVERSITY,
    ENHANCED_BETA_LIKENESS,
    ENTROPY_DIVERSITY,
    P_SENSITIVITY,
    RECURSIVE_C,
)
from privrisk_spark.kernels.recoding.population import Population, delta_presence, k_map
from privrisk_spark.kernels.recoding.problem import Condition, at_least, held_to
from privrisk_spark.policy.anonymity import (
    AlphaBound,
    BetaLikeness,
    DeltaDisclosure,
    DeltaPresence,
    KAnonymityGuarantee,
    KMap,
    LDiversity,
    OfColumn,
    OfKnownValues,
    PSensitivity,
    TCloseness,
)


def sensitive_of(asked: KAnonymityGuarantee) -> list[str]:
    """Sensitive columns that something is asked of, in the order they are first named."""
    every = (one for part in asked.also for one in part.given.values())
    return list(dict.fromkeys(one.column for one in every if isinstance(one, OfColumn)))


def shares_of(asked: KAnonymityGuarantee) -> list[str]:
    """Sensitive columns that shares are asked of, in the order of :func:`sensitive_of`.

    Where somebody has several rows these are shares of persons, and it must be known who holds which value; of other
    columns it is enough to know which values there are.
    """
    every = [one for part in asked.also for one in part.given.values() if isinstance(one, OfColumn)]
    return [name for name in sensitive_of(asked) if any(one.column == name and _is_of_shares(one) for one in every)]


def _is_of_shares(asked: OfColumn) -> bool:
    """Whether more is asked than how many values there are."""
    return not (isinstance(asked, PSensitivity) or (isinstance(asked, LDiversity) and asked.kind == "distinct"))


def conditions(
    asked: KAnonymityGuarantee,
    distributions: Mapping[str, TableDistribution],
    grounds: Mapping[int, IntArray] | None = None,
    population: Population | None = None,
    *,
    persons: Collection[str] = (),
    missing: Mapping[str, int],
) -> tuple[Condition, ...]:
    """Return what every released class must meet: k first, then what is asked besides, in the order of the policy.

    Parameters
    ----------
    distributions : mapping of sensitive column to TableDistribution
        Of the whole table, in the order of :func:`sensitive_of`, which is that of the classes' values.
    grounds : mapping of int to ndarray of int32, shape (v, H + 1), optional
        By the place in ``also`` of a hierarchical distance: the node of each value at each level.
    population : Population, optional
        Where people of the dictionary are asked about.
    persons : collection of str
        Sensitive columns of which it is known who holds which value; their distributions are of persons, too.
    missing : mapping of sensitive column to int
        Code of the missing value of the columns that have one.
    """
    at, found = {name: i for i, name in enumerate(distributions)}, [at_least(asked.k)]
    for place, part in enumerate(asked.also):
        for one in part.given.values():
            if isinstance(one, OfColumn):
                ground = () if grounds is None or place not in grounds else (grounds[place],)
                column = one.column
                left_out = isinstance(one, OfKnownValues) and not one.count_missing
                of = partial(
                    held_to,
                    attribute=at[column],
                    persons=column in persons,
                    missing=missing.get(column) if left_out else None,
                )
                found.append(_held(one, distributions[column], ground, of))
            else:
                assert population is not None, "the people of the dictionary were counted"
                found.append(_held_to(one, population))
    return tuple(found)


def _held_to(asked: KMap | DeltaPresence, population: Population) -> Condition:
    if isinstance(asked, KMap):
        return k_map(asked.k, population)
    return delta_presence(asked.at_least, asked.at_most, population)


def _held(
    asked: OfColumn, table: TableDistribution, ground: tuple[IntArray, ...], of: Callable[..., Condition]
) -> Condition:
    match asked:
        case LDiversity(kind="distinct", l=least):
            return of(DISTINCT_DIVERSITY, least)
        case LDiversity(kind="entropy", l=least):
            return of(ENTROPY_DIVERSITY, least)
        case LDiversity(l=least, c=float(c)):
            return of(RECURSIVE_C, c, int(least))
        case PSensitivity(p=least):
            return of(P_SENSITIVITY, least)
        case TCloseness(t=most, distance=distance):
            return of(CLOSENESS[distance], most, table, *ground)
        case AlphaBound(alpha=most):
            return of(ALPHA, most)
        case BetaLikeness(beta=most, enhanced=enhanced):
            criterion = ENHANCED_BETA_LIKENESS if enhanced else BETA_LIKENESS
            return of(criterion, most, table)
        case DeltaDisclosure(delta=below):
            return of(DELTA_DISCLOSURE, below, table)
    raise AssertionError(f"a condition of the kind {type(asked).__name__} is not known")


def asked_in_words(asked: KAnonymityGuarantee, unit: str) -> list[str]:
    """Return what every released class must meet, a clause each.

    Parameters
    ----------
    unit : str
        What is counted: ``rows`` or ``persons``.
    """
    found = [f"at least {asked.k:,} {unit}"]
    return found + [_in_words(one, unit) for part in asked.also for one in part.given.values()]


def _in_words(asked: OfColumn | KMap | DeltaPresence, unit: str) -> str:
    """Return what is asked in words, and whether missing values count."""
    words = _bound_in_words(asked, unit)
    if isinstance(asked, OfKnownValues):
        words += " (a missing one counts)" if asked.count_missing else " (missing ones do not count)"
    return words


def _bound_in_words(asked: OfColumn | KMap | DeltaPresence, unit: str) -> str:
    match asked:
        case KMap(k=least):
            return f"at least {least:,} people of the dictionary"
        case DeltaPresence(at_least=least, at_most=most):
            floor = f"at least {least:g} and " if least else ""
            return f"{unit} for {floor}at most {most:g} of its people of the dictionary"
    of = f"of '{asked.column}'"
    # Of somebody who holds several values each counts: what adds up to 1 are shares of the pairs.
    pairs = f"pairs of a person and a value {of}" if unit == "persons" else None
    match asked:
        case LDiversity(kind="distinct", l=least):
            return f"at least {least:g} distinct values {of}"
        case LDiversity(kind="entropy", l=least):
            return f"{pairs or f'values {of}'} with an entropy of at least ln {least:g}"
        case LDiversity(l=least, c=float(c)):
            return f"recursive ({c:g}, {least:g})-diversity {of}{' by persons' if pairs else ''}"
        case PSensitivity(p=least):
            return f"at least {least:,} distinct values {of}"
        case TCloseness(t=most, distance=distance):
            what = f"a distribution of {pairs}" if pairs else f"a distribution {of}"
            return f"{what} within {most:g} of the table's ({distance} distance)"
        case AlphaBound(alpha=most):
            return f"no value {of} in more than a share of {most:g}{' of its persons' if pairs else ''}"
        case BetaLikeness(beta=most, enhanced=enhanced):
            share = f"share of {pairs}" if pairs else f"share {of}"
            return f"no {share} more than {most:g} times above the table's{' (enhanced)' if enhanced else ''}"
        case DeltaDisclosure(delta=below):
            shares = f"shares of {pairs}" if pairs else f"shares {of}"
            return f"{shares} whose ratio to the table's has a logarithm below {below:g}"
    raise AssertionError(f"a condition of the kind {type(asked).__name__} is not known")
