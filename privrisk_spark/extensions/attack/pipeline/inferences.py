"""What the intruder learns of sensitive values, and of who is there at all, without a link."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.extensions.attack.kernels.background import certain_if_told
from privrisk_spark.extensions.attack.kernels.inference import (
    certain_for_others,
    guessed,
    marginal_guess,
    of_known_values,
)
from privrisk_spark.extensions.attack.kernels.intersection import intersected
from privrisk_spark.extensions.attack.kernels.membership import held_out, membership
from privrisk_spark.extensions.attack.kernels.skewness import gains, similar
from privrisk_spark.extensions.attack.pipeline.individuals import individuals_of, of_individuals
from privrisk_spark.extensions.attack.pipeline.links import compared_by, in_blocks
from privrisk_spark.extensions.attack.pipeline.opened import Opened
from privrisk_spark.extensions.attack.pipeline.protected import Protected, rows_in
from privrisk_spark.extensions.attack.pipeline.transparent import by_minimality
from privrisk_spark.extensions.attack.planning.attacks import (
    OTHERS,
    PROTECTED,
    alpha_of,
    is_masked,
    why_not_minimal,
)
from privrisk_spark.extensions.attack.planning.inference_findings import inferred, membership_bound, membership_found
from privrisk_spark.extensions.attack.policy import attack_of
from privrisk_spark.extensions.attack.results.inferences import Inference, MembershipFound
from privrisk_spark.extensions.attack.stages.blocks import collect_recall
from privrisk_spark.extensions.attack.stages.classes import (
    SensitiveClasses,
    beside_values,
    collect_sensitive_classes,
    matched,
    with_values,
)
from privrisk_spark.extensions.attack.stages.distance import drawn, store_file
from privrisk_spark.extensions.attack.stages.individuals import collect_individuals, collect_members
from privrisk_spark.extensions.attack.stages.presence import (
    collect_dealt,
    collect_histories,
    collect_presence,
    everybody_in,
    placed,
    store_classes,
)
from privrisk_spark.extensions.attack.stages.protected import of_both
from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.recoding.listed import keys_of, places_of
from privrisk_spark.pipelines.run import ResultRun
from privrisk_spark.stages.assessing.sources import Vocabulary, collect_vocabularies, held_in


@dataclass(frozen=True, eq=False)
class Values:
    """Sensitive values of the people and of the rows of the protected table.

    Attributes
    ----------
    people : Batches
        ``record_id``, and codes of the values.
    truth, shown : SensitiveClasses
        By classes of the protected table that somebody who is tried is in: what these people hold, and what it shows.
    whole : SensitiveClasses
        What the protected table shows of all of its classes.
    """

    vocabularies: tuple[Vocabulary, ...]
    people: Batches
    truth: SensitiveClasses
    shown: SensitiveClasses
    whole: SensitiveClasses


def infer(run: ResultRun, opened: Opened, encoded: Batches, protected: Protected) -> tuple[Inference, ...]:
    """Stage: what is learned of the sensitive values of people from the classes they are in."""
    names = [name for name in opened.sensitive if held_in(opened.release, name)]
    with run.progress.stage("infer") as stage:
        if not names or is_masked(opened.release.manifest):
            stage.sentence = "No sensitive column is released as it is in classes that people can be told to be in."
            return ()
        vocabularies, everybody, people = known_values(run, opened, encoded, protected, names)
        individuals = individuals_of(run, opened, protected, vocabularies, everybody, people)
        values = None
        if individuals is None:
            values = sensitive_values(run, opened, protected, vocabularies, people)
        if individuals.tried.frame().isEmpty() if individuals is not None else values is None:
            stage.sentence = "Nobody whom the intruder knows is in the protected table."
            return ()
        found: list[Inference] = []
        for i in range(len(vocabularies)):
            if individuals is not None:
                found += of_individuals(run, opened, protected, individuals, i)
            elif values is not None:
                found += of_records(run, opened, protected, values, i)
        counted = "people" if individuals is not None or run.policy.table.entity_id is None else "records"
        known = protected.known.total if individuals is None else collect_individuals(protected.tried)
        found = [replace(one, counted=counted, known=known) for one in found]
        inferred_of = len({one.column for one in found})
        stage.sentence = f"Inferred the values of {inferred_of} sensitive columns from the classes people are in."
        stage.status = "tested"
    return tuple(found)


def known_values(
    run: ResultRun, opened: Opened, encoded: Batches, protected: Protected, names: list[str]
) -> tuple[tuple[Vocabulary, ...], Batches, Batches]:
    """Encode the sensitive values of all records, and of those that are tried."""
    policy = run.policy
    vocabularies = collect_vocabularies(
        policy, opened.sources.table, opened.release, given=opened.sources.given, names=names
    )
    positions = [opened.sensitive.index(name) for name in names]
    held = {f"r{i}": (one.codes, one.count) for i, one in zip(positions, vocabularies, strict=True)}
    everybody = with_values(encoded, list(opened.known.values()), opened.positions, held)
    his = attack_of(policy).intruder
    # Of those who are not tried it is not known where they are.
    frame = drawn(everybody, share=his.share, seed=his.seed).frame()
    if opened.his is not None:
        # Nor of those whom he does not have.
        frame = frame.join(protected.tried.frame().select(schemas.RECORD_ID), schemas.RECORD_ID, "leftsemi")
    return tuple(vocabularies), everybody, Batches.of_frame(run.scratch.write_frame(frame, "values"))


def sensitive_values(
    run: ResultRun, opened: Opened, protected: Protected, vocabularies: tuple[Vocabulary, ...], people: Batches
) -> Values | None:
    """Collect the values of both tables, class by class; None where nobody who is known is in the protected one."""
    k, n, most = len(opened.known), len(vocabularies), run.policy.counting.sorted_vectors
    columns, nodes = schemas.sensitive(n), schemas.nodes(k)
    forms = beside_values(protected.told, people, k, n)
    if opened.his is not None and of_both(forms).frame().isEmpty():
        return None
    truth = collect_sensitive_classes(forms, nodes, columns, most=most, key="table")
    rows = rows_in(opened.release, opened, identity=False, key=PROTECTED, values=vocabularies)
    whole = collect_sensitive_classes(rows, nodes, columns, most=most, key=PROTECTED)
    _, truth, shown = matched(truth, whole)
    return Values(vocabularies, people, truth, shown, whole)


def of_records(run: ResultRun, opened: Opened, protected: Protected, values: Values, i: int) -> Iterator[Inference]:
    """Infer the values of one column from the classes that records are in."""
    asked, vocabulary = attack_of(run.policy), values.vocabularies[i]
    missing = values.whole.held[i].value >= vocabulary.count
    if missing.all():
        return  # That all values are missing tells nobody from others.
    yield from of_classes(run, values, i, vocabulary)
    bound = alpha_of(run.policy, vocabulary.name, missing=bool(missing.any()))
    refused = why_not_minimal(run.policy, opened.levels, manifest=opened.release.manifest, rows=protected.people.total)
    if "minimality" in asked.tried and bound is not None and refused is None:
        alpha, k = bound
        yield from by_minimality(opened, protected, values.whole, i, vocabulary.name, alpha=alpha, k=k)
    if "composition" in asked.tried and asked.also:
        yield from composed(run, opened, protected, values, i)


def of_classes(run: ResultRun, values: Values, i: int, vocabulary: Vocabulary) -> Iterator[Inference]:
    """Infer the values of one column from the classes people are in."""
    asked, name = attack_of(run.policy), vocabulary.name
    shown, truth, whole = (of.held[i] for of in (values.shown, values.truth, values.whole))
    marginal = np.bincount(whole.value, weights=whole.count, minlength=vocabulary.count + 1).astype(np.int64)
    if "skewness" in asked.tried:  # compares shares with the table's, of which those of missing values are some
        exposed = gains(shown, TableDistribution(marginal)).exposed(asked.gain_above, truth)
        yield inferred("skewness", name, "exposed", exposed, gain_above=asked.gain_above)
    known = of_known_values(shown, truth, vocabulary.count)
    if known is None:
        return
    (shown, truth), marginal[vocabulary.count] = known, 0
    if "homogeneity" in asked.tried:
        of_class = guessed(shown, truth)
        baseline = float(marginal_guess(truth, marginal) @ truth.members / truth.members.sum())
        yield inferred("homogeneity", name, "certain", of_class.disclosed)
        yield inferred("homogeneity", name, "guessed", of_class.guessed, baseline=baseline)
    if "external" in asked.tried:
        yield inferred("external", name, "certain", certain_for_others(shown, truth))
    if "background" in asked.tried:
        found = certain_if_told(shown, truth, 1, values=int(np.count_nonzero(marginal)))
        yield inferred("background", name, "certain", found, false_values=1)
    groups = vocabulary.groups
    if "similarity" in asked.tried and groups is not None:
        of_group = guessed(similar(shown, groups), similar(truth, groups))
        yield inferred("similarity", name, "certain", of_group.disclosed)


def composed(run: ResultRun, opened: Opened, protected: Protected, values: Values, i: int) -> Iterator[Inference]:
    """Intersect the values of the classes people are in, of the protected table and of others."""
    k, most = len(opened.known), run.policy.counting.sorted_vectors
    vocabulary, nodes = values.vocabularies[i], schemas.nodes(k)
    runs: list[SensitiveRuns] = [values.shown.held[i]]
    first = store_classes(run.scratch.directory(f"classes-{i}"), values.shown.tuples)
    places = [placed(protected.told, first, nodes)]
    for r, other in enumerate(opened.others):
        key = f"{OTHERS}.{r}"
        rows = rows_in(other, opened, identity=True, key=key, values=[vocabulary])
        classes = collect_sensitive_classes(rows, nodes, schemas.sensitive(1), most=most, key=key)
        runs.append(classes.held[0])
        stored = store_classes(run.scratch.directory(f"classes-{i}-{r}"), classes.tuples)
        places.append(placed(rows, stored, nodes))
    own = schemas.sensitive(len(values.vocabularies))[i]
    histories = collect_histories(values.people, places, own, most=most, key=OTHERS)
    known = histories.own != vocabulary.count
    if not known.any():
        return
    runs = [of.without(vocabulary.count) for of in runs]
    left = intersected(histories.places[known], runs, histories.own[known], histories.people[known])
    for n, one in enumerate(left, start=1):
        yield inferred("composition", vocabulary.name, "certain", one.disclosed, releases=n)


def tell_members(run: ResultRun, opened: Opened, encoded: Batches, protected: Protected) -> MembershipFound | None:
    """Stage: tell who is a member of those who are known; None where all are, or nobody is.

    A member has a row in the protected table. What is differentially private hides more, and is asked for that: whether
    somebody is in the original table at all.
    """
    with run.progress.stage("members") as stage:
        asked, k, most = attack_of(run.policy), len(opened.known), run.policy.counting.sorted_vectors
        bound = membership_bound(opened.release.manifest)
        if bound is None:
            stored = store_classes(run.scratch.directory("classes-members"), protected.rows)
            there, present = placed(protected.told, stored, schemas.nodes(k)), protected.present
        else:
            there, present = everybody_in(encoded), np.ones(1)
        seed, nobody = asked.intruder.seed, "Everybody who is known is a member, or nobody is: no member can be told."
        presence = collect_presence(protected.tried, there, present, k, seed=seed, most=most, key="table")
        if not presence.members.sum() > 0 or not presence.others.sum() > 0:
            stage.sentence = nobody
            return None
        everybody = protected.people
        people = store_file(
            run.scratch.directory("members"),
            everybody,
            compared_by(run, opened, protected),
            np.ones(len(everybody.rows)),
            # What a row may be of is at no distance from it, however coarse it is.
            reading="nearest",
        )
        people = in_blocks(run, people, protected.rows, people=None)
        got, links = collect_dealt(run.scratch, people, protected.rows, "members")
        recall = None
        if links is not None:
            recall = collect_recall(run.scratch, links, most=asked.exact_pairs, seed=seed)
        if run.policy.table.entity_id is None:
            score = got[places_of(keys_of(everybody.nodes), presence.known.nodes)]
            halves = presence.halves
        else:
            directory = run.scratch.directory("members-known")
            told = collect_members(
                protected.tried, there, present, everybody, got, directory, seed=seed, most=most, key="table"
            )
            score, halves = told.score, told.halves
        members, others = (halves[0][j] + halves[1][j] for j in range(2))
        if not members.sum() > 0 or not others.sum() > 0:
            stage.sentence = nobody
            return None
        on_others = held_out(*halves[0], *halves[1], score), held_out(*halves[0], *halves[1], -score)
        found = membership_found(membership(members, others, score), on_others, bound, recall)
        stage.sentence = found.sentence
        stage.status = "tested"
    return found
