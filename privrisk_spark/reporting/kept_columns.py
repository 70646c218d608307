"""What is said of columns that are released as they are: how many rows a value of theirs points out."""

from __future__ import annotations

from privrisk_spark.results.facts import ReleaseFacts
from privrisk_spark.results.release import Section

WARNED_FROM = 0.05
"""Least share of rows with a value of their own of which is warned."""


def way_out(name: str) -> str:
    """Say what makes the values of a kept column less telling.

    Parameters
    ----------
    name : str
        Of the column.
    """
    return (
        f"make it coarser (columns.{name}.release: {{round: …}}, intervals or top_code; columns.{name}.read: "
        f"{{cast: date}} of times), make it a quasi-identifier, or drop it (columns.{name}.action: drop; of a "
        f"weight columns.{name}.release: false)"
    )


TOGETHER_WAY_OUT = "make kept columns coarser (columns.X.release), make them quasi-identifiers, or drop some"
"""What makes kept columns less telling together."""


def uniqueness_warnings(released: ReleaseFacts) -> list[str]:
    """Return a sentence for each kept column whose values point out many rows, and one for all together if they do."""
    shares = {name: released.share(uniques) for name, uniques in released.unique_by_kept.items()}
    one, found = ("row", "record") if released.persons is None else ("person", "person")
    sentences = [
        f"The column '{name}' is kept, and {100 * share:.3g} % of the {one}s have a value of it that no other {one} "
        f"has. An attacker who knows it can single out the {found}. Fix: {way_out(name)}."
        for name, share in shares.items()
        if share >= WARNED_FROM
    ]
    added = released.share(released.unique_by_adding_kept)
    if added >= WARNED_FROM:
        sentences.append(
            f"{100 * added:.3g} % of the {one}s differ from every other {one} by the kept columns together with the "
            f"released quasi-identifiers, but not by the quasi-identifiers alone. An attacker who knows both can "
            f"single out the {found}. Fix: {TOGETHER_WAY_OUT}."
        )
    return sentences


def uniqueness_section(released: ReleaseFacts) -> Section | None:
    """Return what is found of kept columns, by rows or by persons as they were counted; None without such.

    By rows it is public, as whoever has the release finds it; by persons, whose ids are not released, it is not.
    """
    if released.unique_by_all is None:
        return None
    cells, both = released.unique_by_cells, released.unique_by_all
    many = "rows" if released.persons is None else "persons"
    of_kept = {f"{many} with a value of '{name}' of their own": n for name, n in released.unique_by_kept.items()}
    paragraph = (
        "The risk of this report is that of an attacker who knows quasi-identifiers. One who knows values of kept "
        f"columns, too, may find records that are hidden among others: of {released.counted:,} {many}, {both:,} "
        f"differ from all others in quasi-identifiers and kept columns together ({100 * released.share(both):.3g} %), "
        f"{cells:,} in quasi-identifiers alone ({100 * released.share(cells):.3g} %)."
    )
    if released.persons is not None:
        paragraph += " A person differs by values that no other person has, in one row or in several."
    return Section(
        "kept_columns",
        "Columns that are kept",
        paragraph,
        "tested",
        {
            **of_kept,
            f"{many} of their own by quasi-identifiers": cells,
            f"{many} of their own by quasi-identifiers and kept columns": both,
        },
        tuple(uniqueness_warnings(released)),
        {
            "rows": released.rows,
            **({} if released.persons is None else {"persons": released.persons}),
            "unique_by_kept": dict(released.unique_by_kept),
            "unique_by_quasi_identifiers": cells,
            "unique_by_quasi_identifiers_and_kept": both,
        },
        public=released.persons is None,
    )
