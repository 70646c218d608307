"""What is said where a table does not have what is asked of its classes, and what would do."""

from __future__ import annotations

from collections.abc import Sequence

from privrisk_spark.errors import CheckError, InputError
from privrisk_spark.kernels.recoding.full_domain import NodeClasses
from privrisk_spark.kernels.recoding.metrics import Facts
from privrisk_spark.kernels.recoding.problem import Condition, Problem
from privrisk_spark.planning.recoding import asked_in_words
from privrisk_spark.policy.anonymity import KAnonymityGuarantee
from privrisk_spark.policy.schemes import FittedPartition, FittedScheme


def refuse_nothing(facts: Facts, asked: KAnonymityGuarantee) -> None:
    """Refuse a release without a row.

    Raises
    ------
    CheckError
    """
    if asked.suppressed == "drop" and facts.suppressed == facts.rows:
        raise CheckError(
            "Not published. guarantee: nothing would be released: no class has what is asked, and suppressed rows are "
            "left out. Lower k, ask for less besides, or release them too (suppressed: keep)."
        )


def refuse_few(rows: int, asked: KAnonymityGuarantee) -> None:
    """Refuse a k that no class of a table can have, unless all its rows may be suppressed.

    Raises
    ------
    InputError
    """
    if rows < asked.k and asked.suppressed_at_most(rows) < rows:
        raise InputError(
            f"guarantee.k: the table has {rows:,} rows, fewer than {asked.k:,}, and suppression_limit does not allow "
            "for suppressing them all. Lower k, or publish a larger table."
        )


def impossible(problem: Problem, asked: KAnonymityGuarantee) -> str:
    """Say what cannot be met, and what would do."""
    table = problem.measured.table
    least = int(table.counts[problem.suppressed(table.lattice.heights)].sum())
    return (
        f"Not published. guarantee: no scheme gives every class {_every(problem, asked)} with at most "
        f"{problem.limit:,} of {table.rows:,} rows suppressed. Not even with all quasi-identifiers at their roots: "
        f"{least:,} rows are suppressed then. Raise suppression_limit, lower k, or ask for less besides."
    )


def broken(
    problem: Problem,
    asked: KAnonymityGuarantee,
    given: FittedScheme | FittedPartition,
    conditions: Sequence[Condition],
    classes: NodeClasses,
    facts: Facts,
    *,
    homeless: int = 0,
) -> str:
    """Say which conditions what was fitted breaks on this table, in how many rows each.

    Parameters
    ----------
    conditions : sequence of Condition
        Those of every class, k first.
    classes : NodeClasses
        All of the table's classes.
    facts : Facts
        Of the recoding without those that fail.
    homeless : int
        Rows that come to no class.
    """
    unit = _unit(problem)
    failing = [int(classes.rows[~condition.meets(classes)].sum()) for condition in conditions]
    named = [
        f"{rows:,} rows are in classes without {words}"
        for rows, words in zip(failing, asked_in_words(asked, unit), strict=True)
        if rows
    ]
    if homeless:
        named.append(f"{homeless:,} rows come to no class of it")
    return (
        f"Not published. guarantee.scheme: the scheme of {given.date} does not keep its guarantee on this table: "
        f"{'; '.join(named)}. Suppressing them takes {facts.suppressed:,} of {facts.rows:,} rows, and "
        f"suppression_limit allows for {problem.limit:,}. Fit a scheme to this table, and have it approved."
    )


def _every(problem: Problem, asked: KAnonymityGuarantee) -> str:
    return " and ".join(asked_in_words(asked, _unit(problem)))


def _unit(problem: Problem) -> str:
    return "rows" if problem.measured.table.persons is None else "persons"
