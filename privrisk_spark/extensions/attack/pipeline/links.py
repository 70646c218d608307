"""Whom the intruder links to what, by each method, and how it came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, get_args

import numpy as np
from pyspark.sql import DataFrame

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.extensions.attack.kernels.assignment import MOST_CELLS, assigned, right_links
from privrisk_spark.extensions.attack.kernels.evidence import Outcomes, PersonOutcomes
from privrisk_spark.extensions.attack.kernels.fellegi_sunter import started_alone
from privrisk_spark.extensions.attack.kernels.recall import Recall
from privrisk_spark.extensions.attack.kernels.scores import Scores, scores
from privrisk_spark.extensions.attack.pipeline.estimates import (
    ComparedFiles,
    Estimate,
    compared_files,
    estimated,
    people_to_compare,
)
from privrisk_spark.extensions.attack.pipeline.opened import Opened
from privrisk_spark.extensions.attack.pipeline.protected import Protected
from privrisk_spark.extensions.attack.planning.attacks import (
    compared_as_numbers,
    refuse_cost,
    too_many,
    weights_of,
)
from privrisk_spark.extensions.attack.planning.findings import match_model
from privrisk_spark.extensions.attack.policy import attack_of
from privrisk_spark.extensions.attack.results.inferences import MatchModel, OneToOne, Search
from privrisk_spark.extensions.attack.stages.blocks import blocks_of, collect_recall
from privrisk_spark.extensions.attack.stages.distance import (
    Comparison,
    Searched,
    StoredFile,
    StoredLinks,
    collect_links,
    collect_outcomes,
    drawn,
    linked,
    store_file,
)
from privrisk_spark.extensions.attack.stages.number_ends import (
    NumberEnds,
    ends_by_each_file,
    number_ends,
    rows_of_nodes,
)
from privrisk_spark.extensions.attack.stages.persons import (
    Persons,
    collect_persons,
    collect_right_rows,
    linked_persons,
    person_pairs,
)
from privrisk_spark.extensions.attack.stages.probabilistic import (
    Class,
    StoredWeights,
    collect_owners,
    in_class,
    match_weights,
)
from privrisk_spark.extensions.attack.stages.protected import Tuples
from privrisk_spark.extensions.attack.stages.scored import collect_linked, scored_people, scored_rows
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.pipelines.run import ResultRun


@dataclass(frozen=True, eq=False)
class Tried:
    """The records that were tried, and how their links came out.

    Attributes
    ----------
    pairs : DataFrame
        One row a record, or one for the rows of a person that are alike.
    outcomes : Outcomes, Scores or None
        Of records, where it is known of which each row is; scores where it is not even known of which person.
    persons : PersonOutcomes or None
        Where persons may have several rows.
    model : MatchModel or None
        Of a search by match weights.
    recall : Recall or None
        Of a search in blocks; None where all pairs were compared.
    """

    pairs: DataFrame
    outcomes: Outcomes | Scores | None
    persons: PersonOutcomes | None = None
    model: MatchModel | None = None
    recall: Recall | None = None


Attacks = Mapping[Search, Tried]
"""By what the intruder begins with, and how he searches."""


def link(run: ResultRun, opened: Opened, protected: Protected) -> Attacks:
    """Stage: link every person to the best rows, and every row to the best people, by each method."""
    with run.progress.stage("link") as stage:
        asked, k = attack_of(run.policy), len(opened.known)
        tried: dict[Search, Tried] = {}
        if not {"distance", "probabilistic"}.intersection(asked.tried):
            stage.sentence = "No attack was asked for that searches record by record."
            return tried
        compared = None
        if "probabilistic" in asked.tried:
            if asked.blocking in ("never", "principal_axis"):
                why = (
                    "Match weights are searched in blocks of consistent cells alone (attack.blocking), or not at all. "
                )
                for known, searched in ((protected.known, protected.rows), (protected.shown, protected.people)):
                    refuse_cost(asked, len(known.rows), len(searched.rows), k, people=known.total, why=why)
            compared = compared_files(run, opened, protected, compared_by(run, opened, protected))
            refuse_estimate(run, compared, protected)
        if "distance" in asked.tried:
            tried |= by_distance(run, opened, protected)
        if compared is not None:
            tried |= by_match_weights(run, opened, protected, compared)
        blocked = any(one.recall is not None for one in tried.values())
        stage.sentence = "Linked every person to the best rows, and every row to the best people"
        stage.sentence += ", some of them in blocks." if blocked else "."
        stage.status = "tested"
    return tried


def compared_by(run: ResultRun, opened: Opened, protected: Protected) -> Comparison:
    """How the known columns are compared, and with which weights."""
    asked, known, numbers = attack_of(run.policy), opened.known, compared_as_numbers(run.policy)
    ends = tuple(
        number_ends(name, tree, rows_of_nodes(protected.people, j, tree)) if name in numbers else None
        for j, (name, tree) in enumerate(known.items())
    )
    texts = frozenset(j for j, name in enumerate(known) if name in asked.texts)
    return Comparison(tuple(known.values()), tuple(weights_of(run.policy).values()), ends, texts)


def by_each_file(protected: Protected, compared: Comparison, known: Sequence[str]) -> Comparison | None:
    """How the known columns are compared where each file's numbers are standardized by its own (T20).

    Returns
    -------
    Comparison or None
        None where it would be as by the people's: no numbers, or generalized ones, or of their mean and deviation.
    """
    ends: list[tuple[NumberEnds | None, NumberEnds | None]] = []
    for j, (name, tree) in enumerate(zip(known, compared.hierarchies, strict=True)):
        if compared.ends[j] is None:
            ends.append((None, None))
            continue
        of_node = (rows_of_nodes(file, j, tree) for file in (protected.people, protected.rows))
        ends.append(ends_by_each_file(name, tree, *of_node))
    if all(
        people is rows or (rows is not None and people is not None and rows.equals(people)) for people, rows in ends
    ):
        return None
    return replace(compared, ends=tuple(rows for _, rows in ends), known_ends=tuple(people for people, _ in ends))


def by_distance(run: ResultRun, opened: Opened, protected: Protected) -> Attacks:
    """Link people and rows to what is nearest."""
    asked, compared = attack_of(run.policy), compared_by(run, opened, protected)
    everybody = np.ones(len(protected.people.rows))
    ways: list[tuple[str | None, Comparison]] = []
    apart = by_each_file(protected, compared, list(opened.known)) if "each_file" in asked.standardization else None
    # Where both are the same one is enough.
    if "people" in asked.standardization or apart is None:
        ways.append((None, compared))
    if apart is not None:
        ways.append(("each_file", apart))
    tried: dict[Search, Tried] = {}
    for standardization, way in ways:
        for reading in asked.cells:
            of_person, of_row = (
                Search("distance", begins, reading, standardization=standardization) for begins in ("person", "row")
            )
            rows_at, people_at = (run.scratch.directory(f"searched-{one.key}") for one in (of_person, of_row))
            rows = store_file(rows_at, protected.rows, way, protected.present, reading=reading)
            people = store_file(people_at, protected.people, way.turned, everybody, reading=reading)
            rows = in_blocks(run, rows, protected.known, people=protected.known.total)
            people = in_blocks(run, people, protected.shown, people=protected.shown.total)
            tried |= both_ways(run, opened, protected, {of_person: rows, of_row: people})
    return tried


Stored = TypeVar("Stored", StoredFile, StoredWeights)


def in_blocks(run: ResultRun, file: Stored, known: Tuples, *, people: int | None) -> Stored:
    """Return a file that is searched in blocks where comparing all pairs would be too much.

    Parameters
    ----------
    file : StoredFile or StoredWeights
    known : Tuples
        To be linked.
    people : int or None
        Whose they are; None where a sample of the people makes them no fewer.

    Raises
    ------
    InputError
        If it would, and no blocks will do.
    """
    asked, k = attack_of(run.policy), known.nodes.shape[1]
    if not too_many(asked, len(known.rows), file.tuples, k):
        return file
    blocks = None
    if asked.blocking != "never":
        blocks = blocks_of(file, known, way=asked.blocking, most=asked.exact_pairs)
    if blocks is None:
        why = "" if asked.blocking == "never" else f"No blocks will do (attack.blocking: {asked.blocking}). "
        refuse_cost(asked, len(known.rows), file.tuples, k, people=people, why=why)
    return replace(file, blocks=blocks)


def both_ways(
    run: ResultRun,
    opened: Opened,
    protected: Protected,
    searched: Mapping[Search, Searched],
) -> Attacks:
    """Link the people who are tried to the rows of a file, and their rows to the people of one.

    Parameters
    ----------
    searched : mapping of Search to Searched
        In which is searched, and how: from persons, and from rows.
    """
    k, asked = protected.rows.nodes.shape[1], attack_of(run.policy)
    person, row = schemas.codes(k), schemas.nodes(k)
    of_person, of_row = searched
    begun = {of_person: protected.known, of_row: protected.shown}
    best = {search: collect_links(run.scratch, searched[search], begun[search], search.key) for search in searched}
    recalls = {
        search: collect_recall(run.scratch, links, most=asked.exact_pairs, seed=asked.intruder.seed)
        for search, links in best.items()
        if links.open is not None
    }
    if protected.records is None and protected.persons is None:
        scored = scored_both_ways(run, opened, protected, best[of_person], best[of_row], of_person, of_row)
        return {search: replace(one, recall=recalls.get(search)) for search, one in scored.items()}
    tried: dict[Search, Tried] = {}
    # What is surely not released has no row that somebody could begin with: it was not linked.
    for search, known, own, chance in ((of_person, person, row, None), (of_row, row, person, protected.released)):
        outcomes = None
        if protected.records is not None:
            links = linked(protected.records, best[search], known=known, own=own, begun=chance)
            pairs = run.scratch.write_frame(links.frame(), f"pairs-{search.key}")
            outcomes = collect_outcomes(Batches.of_frame(pairs))
        if protected.persons is None:
            tried[search] = Tried(pairs, outcomes, recall=recalls.get(search))
            continue
        found = of_persons(run, protected.persons, best[search], search, known=known, own=own)
        tried[search] = Tried(person_pairs(found), outcomes, collect_persons(found), recall=recalls.get(search))
    return tried


def of_persons(
    run: ResultRun, persons: Persons, links: StoredLinks, search: Search, *, known: Sequence[str], own: Sequence[str]
) -> DataFrame:
    """Link all rows of the persons who are tried to rows of the same person."""
    his = attack_of(run.policy).intruder
    files = (persons.people, persons.rows) if search.begins == "person" else (persons.rows, persons.people)
    begun = drawn(files[0], share=his.share, seed=his.seed)
    found = linked_persons(begun, files[1], links, known=known, own=own)
    return run.scratch.write_frame(found.frame(), f"persons-{search.key}")


def scored_both_ways(
    run: ResultRun,
    opened: Opened,
    protected: Protected,
    rows: StoredLinks,
    people: StoredLinks,
    of_person: Search,
    of_row: Search,
) -> Attacks:
    """Name the people and rows that are linked, where it is not known which links are right.

    Parameters
    ----------
    rows, people : StoredLinks
        Of people to rows, and of rows to people.
    """
    pairs = {
        of_person: scored_people(protected.tried, rows, opened.known).frame(),
        of_row: scored_rows(run.spark, protected.everybody, people, opened.known, len(protected.shown.rows)),
    }
    tried = {}
    for (search, frame), links, known in zip(
        pairs.items(), (rows, people), (protected.known, protected.shown), strict=True
    ):
        _, best = links.load()
        score = links.stored.weights_at(best.distance) if isinstance(links.stored, StoredWeights) else best.distance
        written = run.scratch.write_frame(frame, f"pairs-{search.key}")
        tried[search] = Tried(written, scores(score, best.rows, known.rows))
    return tried


def refuse_estimate(run: ResultRun, compared: ComparedFiles, protected: Protected) -> None:
    """Refuse what cannot be estimated or searched, before anything is.

    Whether blocks will do is told by the weights that EM begins with. By those it ends with a column may turn out to
    say nothing, and :func:`by_match_weights` looks again.

    Raises
    ------
    InputError
        If Splink would compare too many pairs, or all pairs are too many and no blocks will do.
    """
    people_to_compare(run, compared, protected)
    asked, k = attack_of(run.policy), len(compared.columns)
    both = ((compared.rows, protected.known), (compared.people, protected.shown))
    if any(too_many(asked, len(known.rows), file.tuples, k) for file, known in both):
        known = protected.known
        begin = started_alone(compared.rows.load(), known.nodes, known.rows, prior=compared.prior)
        for file, known in both:
            in_blocks(run, file.weighed(begin), known, people=known.total)


def by_match_weights(run: ResultRun, opened: Opened, protected: Protected, compared: ComparedFiles) -> Attacks:
    """Link people and rows to what is likeliest, by probabilities of agreement estimated from the two files."""
    estimate = estimated(run, compared, protected)
    model, engine = estimate.model, attack_of(run.policy).probabilistic.engine
    weighed = (
        in_blocks(run, compared.rows.weighed(model), protected.known, people=protected.known.total),
        in_blocks(run, compared.people.weighed(model), protected.shown, people=protected.shown.total),
    )
    of_person, of_row = (
        Search("probabilistic", begins, engine=None if engine == "own" else engine) for begins in ("person", "row")
    )
    searched: dict[Search, StoredWeights] = {of_person: weighed[0], of_row: weighed[1]}
    found = both_ways(run, opened, protected, searched)
    models = {search: weighed_model(run, search, one, searched[search], estimate) for search, one in found.items()}
    models[of_person] = replace(models[of_person], one_to_one=one_to_one(run, protected, weighed[0]))
    return {search: replace(one, model=models[search]) for search, one in found.items()}


def one_to_one(run: ResultRun, protected: Protected, rows: StoredWeights) -> OneToOne | None:
    """Link people and rows so that each has one link at most, where both are few enough to be compared at once."""
    known = protected.known
    if rows.blocks is not None or known.total * protected.rows.total > MOST_CELLS:
        return None
    weights = match_weights(rows, known)
    # Above no bits, where agreement speaks for a link.
    links = assigned(weights, known.rows, protected.rows.rows, threshold=0.0)
    if protected.records is None or protected.persons is not None:
        return OneToOne(links.total, None, None)
    owners = collect_owners(protected.records, known, protected.rows, most=run.policy.counting.sorted_vectors)
    right = right_links(weights, known.rows, protected.rows.rows, owners, threshold=0.0)
    return OneToOne(links.total, *right)


def weighed_model(run: ResultRun, search: Search, one: Tried, file: StoredWeights, estimate: Estimate) -> MatchModel:
    """Divide records by the match weight of their best candidate, and say which of these are right."""
    names: tuple[Class, ...] = get_args(Class)
    chosen = {name: in_class(one.pairs, file, estimate.rule, name) for name in names}
    told: dict[str, tuple[FloatArray, FloatArray]] = {}
    records: dict[str, float]
    if one.persons is not None:
        told = {name: collect_right_rows(frame) for name, frame in chosen.items()}
        records = {name: float(rows.sum()) for name, (_, rows) in told.items()}
    elif isinstance(one.outcomes, Outcomes):
        classes = {name: collect_outcomes(Batches.of_frame(frame)) for name, frame in chosen.items()}
        told = {name: (of.probability, of.people) for name, of in classes.items()}
        records = {name: float(of.people.sum()) for name, of in classes.items()}
    else:
        records = {name: collect_linked(frame, search.begins) for name, frame in chosen.items()}
    model = match_model(
        run.policy,
        search,
        estimate.model,
        estimate.rule,
        told,
        records,
        converged=estimate.converged,
        parted=estimate.parted,
    )
    return replace(model, sampled=estimate.sampled)
