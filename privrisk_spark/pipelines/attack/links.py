"""Whom the intruder links to what, by each method, and how it came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.pipelines.attack.opened import Opened, Run
from privrisk_spark.pipelines.attack.protected import Protected
from privrisk_spark.planning.attacks import attack_of, compared_as_numbers, refuse_cost, weights_of
from privrisk_spark.results.inferences import Search
from privrisk_spark.stages.attacking.distance import (
    Comparison,
    Outcomes,
    StoredFile,
    collect_links,
    collect_outcomes,
    linked,
    number_ends,
    rows_of_nodes,
    store_file,
)


@dataclass(frozen=True, eq=False)
class Tried:
    """The records that were tried, and how their links came out.

    Attributes
    ----------
    outcomes : Outcomes
    pairs : DataFrame
        One row a record.
    """

    outcomes: Outcomes
    pairs: DataFrame


Attacks = Mapping[Search, Tried]
"""By what the intruder begins with, and how he searches."""


def link(run: Run, opened: Opened, protected: Protected) -> Attacks:
    """Stage: link every person to the best rows, and every row to the best people, by each method."""
    with run.progress.stage("link") as stage:
        asked, k = attack_of(run.policy), len(opened.known)
        tried: dict[Search, Tried] = {}
        if not set(BY_SEARCH).intersection(asked.tried):
            stage.sentence = "No attack was asked for that searches record by record."
            return tried
        for known, searched in ((protected.known, protected.rows), (protected.shown, protected.people)):
            refuse_cost(asked, len(known.rows), len(searched.rows), k)
        for method, search in BY_SEARCH.items():
            if method in asked.tried:
                tried |= search(run, opened, protected)
        stage.sentence = "Linked every person to the best rows, and every row to the best people."
        stage.status = "tested"
    return tried


def compared_by(run: Run, opened: Opened, protected: Protected) -> Comparison:
    """How the known columns are compared, and with which weights."""
    asked, known, numbers = attack_of(run.policy), opened.known, compared_as_numbers(run.policy)
    ends = tuple(
        number_ends(name, tree, rows_of_nodes(protected.people, j, tree)) if name in numbers else None
        for j, (name, tree) in enumerate(known.items())
    )
    texts = frozenset(j for j, name in enumerate(known) if name in asked.texts)
    return Comparison(tuple(known.values()), tuple(weights_of(run.policy).values()), ends, texts)


def by_distance(run: Run, opened: Opened, protected: Protected) -> Attacks:
    """Link people and rows to what is nearest."""
    asked, compared = attack_of(run.policy), compared_by(run, opened, protected)
    everybody = np.ones(len(protected.people.rows))
    tried: dict[Search, Tried] = {}
    for reading in asked.cells:
        rows_at, people_at = (run.scratch.directory(f"{of}-{reading}") for of in ("rows", "people"))
        files = (
            store_file(rows_at, protected.rows, compared, protected.present, reading=reading),
            store_file(people_at, protected.people, compared, everybody, reading=reading),
        )
        tried |= both_ways(run, protected, *files, method="distance", cells=reading)
    return tried


def both_ways(
    run: Run, protected: Protected, rows: StoredFile, people: StoredFile, *, method: str, cells: str | None = None
) -> Attacks:
    """Link the people who are tried to the rows of a file, and their rows to the people of one.

    Parameters
    ----------
    run : Run
    protected : Protected
    rows, people : StoredFile
        In which is searched, and how.
    method : str
    cells : str or None
        What generalized cells are taken for.
    """
    k = protected.rows.nodes.shape[1]
    person, row = schemas.codes(k), schemas.nodes(k)
    of_person, of_row = Search(method, "person", cells), Search(method, "row", cells)
    best = {
        of_person: collect_links(run.scratch, rows, protected.known, of_person.key),
        of_row: collect_links(run.scratch, people, protected.shown, of_row.key),
    }
    links = {
        of_person: linked(protected.records, best[of_person], known=person, own=row),
        # What is surely not released has no row that somebody could begin with: it was not linked.
        of_row: linked(protected.records, best[of_row], known=row, own=person),
    }
    tried = {}
    for search, outcomes in links.items():
        pairs = run.scratch.write_frame(outcomes.frame(), f"pairs-{search.key}")
        tried[search] = Tried(collect_outcomes(Batches.of_frame(pairs)), pairs)
    return tried


BY_SEARCH: dict[str, Callable[[Run, Opened, Protected], Attacks]] = {"distance": by_distance}
"""Methods that search record by record."""
