"""Which people an intruder finds by a protected table: the order of stages.

read → encode → protect → link → learn → infer → members → judge

The protected table is read as it was published. The vault, or an id it holds, tells whose each row is; so each link is
known to be right or wrong. All of it is exact and for the trusted zone alone.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.errors import InputError, RefusedError
from privrisk_spark.extensions.attack.kernels.evidence import Outcomes
from privrisk_spark.extensions.attack.kernels.scores import Scores
from privrisk_spark.extensions.attack.page import explain_attack, render_attack
from privrisk_spark.extensions.attack.pipeline.inferences import infer, tell_members
from privrisk_spark.extensions.attack.pipeline.links import Attacks, link
from privrisk_spark.extensions.attack.pipeline.opened import Opened, open_attack, read
from privrisk_spark.extensions.attack.pipeline.protected import Protected, encode, protect
from privrisk_spark.extensions.attack.pipeline.transparent import by_levels, by_masks, by_repetition
from privrisk_spark.extensions.attack.pipeline.worst_case import learn
from privrisk_spark.extensions.attack.planning.attacks import (
    ENGINE,
    HIS_TABLE,
    PROTECTED,
    attack_notes,
    by_splink,
    in_words,
    is_local,
    not_tried,
    weights_of,
    why_not_minimal,
    why_not_transparent,
)
from privrisk_spark.extensions.attack.planning.findings import attacked, attacked_persons, scored
from privrisk_spark.extensions.attack.planning.learned_findings import by_learned
from privrisk_spark.extensions.attack.planning.masks import told_masks
from privrisk_spark.extensions.attack.policy import OF_VALUES, attack_of
from privrisk_spark.extensions.attack.results.attacks import Attack, AttackResult
from privrisk_spark.extensions.attack.results.inferences import Inference, LearnedDistance, MembershipFound
from privrisk_spark.extras import require
from privrisk_spark.json_values import as_json
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.pipelines.opening import Inspection
from privrisk_spark.pipelines.run import Announce, ResultRun, start_run
from privrisk_spark.planning.places import check_private_place
from privrisk_spark.policy.assessment import MaskedTable
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.places import ResultPlace
from privrisk_spark.runs.progress import write_status
from privrisk_spark.stages.assessing.attack import Groups, planned
from privrisk_spark.storage.directories import make, move
from privrisk_spark.version import __version__

READ = ("table", "attack")
"""Parts of a policy that name the tables that are read."""


def check_output(policy: Policy, output: str) -> ResultPlace:
    """Return the directory the findings go to, resolved.

    Raises
    ------
    ConfigError
        If it is no place for what stays private.
    """
    asked = attack_of(policy)
    more: list[tuple[str, Table]] = []
    if isinstance(asked.protected, MaskedTable):
        more.append((PROTECTED, asked.protected))
    if asked.intruder.table is not None:
        more.append((HIS_TABLE, asked.intruder.table))
    return check_private_place(policy, output, what="attacks", more=more)


def attack(
    spark: SparkSession,
    policy: Policy,
    *,
    place: ResultPlace,
    run_id: str,
    date: dt.date,
    table: DataFrame | None = None,
    announce: Announce | None = None,
) -> AttackResult:
    """Attack a protected table, and write ``measures.json``, ``attack.json``, ``report.html`` and ``pairs/``.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
        Its table, quasi-identifiers and ``attack``.
    place : ResultPlace
        As :func:`check_output` returns it; every worker must see it.
    run_id : str
    date : date
        Business date.
    table : DataFrame, optional
        Of the same session; read instead of the policy's table. What the policy says of its columns holds.
    announce : callable, optional
        Called with what will be tried (``--explain``).

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    EngineError
        Exit code 3: running again may help.
    """
    if by_splink(attack_of(policy)):
        require("splink", ENGINE)
    tried = attack_of(policy).tried
    stages = 5 + bool(OF_VALUES.intersection(tried)) + ("membership" in tried) + ("learned" in tried)
    with start_run(
        spark, policy, place, run_id=run_id, date=date, reads=READ, stages=stages, table=table, announce=announce
    ) as run:
        opened = read(run)
        encoded, n_rows = encode(run, opened)
        protected = protect(run, opened, encoded)
        found = Findings(
            link(run, opened, protected),
            learn(run, opened, protected) if "learned" in tried else (),
            infer(run, opened, encoded, protected) if OF_VALUES.intersection(tried) else (),
            tell_members(run, opened, encoded, protected) if "membership" in tried else None,
        )
        result = judge(run, opened, protected, found, records=n_rows)
        write(run, result, found.links)
        code = RefusedError.exit_code if result.passed is False else 0
        write_status(place.status, run_id, phase="attacked", code=code, message=result.paragraph)
    return result


def inspect(spark: SparkSession, policy: Policy, table: DataFrame | None, inspection: Inspection) -> str | None:
    """Open everything an attack needs, and return what it would try; None if there is an error.

    Parameters
    ----------
    policy : Policy
        With the versions of the lake tables that are read.
    table : DataFrame or None
        Read instead of the policy's table.
    inspection : Inspection
        Collects errors.
    """
    with inspection.at(ENGINE):
        if by_splink(attack_of(policy)):
            require("splink", ENGINE)
    opened = open_attack(spark, policy, table, inspection)
    return None if opened is None else explain_attack(policy, opened.known, release=opened.release.title)


@dataclass(frozen=True, eq=False)
class Findings:
    """What each attack has found.

    Attributes
    ----------
    links : mapping of Search to Tried
    """

    links: Attacks
    learned: tuple[LearnedDistance, ...]
    inferences: tuple[Inference, ...]
    members: MembershipFound | None


def transparent(run: ResultRun, opened: Opened, protected: Protected) -> list[Attack]:
    """Link by the levels that the table was recoded by, its masks, or its classes, if that is asked for and can be."""
    asked, masks = attack_of(run.policy), masks_of(run.policy)
    local = is_local(opened.release.manifest, opened.levels)
    refused = why_not_transparent(run.policy, opened.levels, masks=masks, local=local)
    if "transparency" not in asked.tried or refused is not None:
        return []
    if masks is not None:
        return by_masks(run, opened, protected)
    return by_repetition(run, protected) if local else by_levels(opened, protected)


def masks_of(policy: Policy) -> int | None:
    """How many masks leave an intruder some rows and not others; None where the table is not masked."""
    return len(told_masks(policy)) if not policy.guarantee.generalizes else None


def judge(
    run: ResultRun,
    opened: Opened,
    protected: Protected,
    findings: Findings,
    *,
    records: int,
) -> AttackResult:
    """Stage: hold what was found against what was predicted, and against what may be found."""
    with run.progress.stage("judge") as stage:
        policy = run.policy
        searched = {"person": protected.rows, "row": protected.people}
        found, untold = transparent(run, opened, protected), []
        for search, one in findings.links.items():
            of = searched[search.begins].total, len(searched[search.begins].rows)
            if isinstance(one.outcomes, Scores):
                untold.append(replace(scored(search, one.outcomes, *of), recall=one.recall))
                continue
            of_rows = None
            if one.outcomes is not None:
                planned = planned_risk(policy, one.outcomes, protected.people.total) if search.begins == "row" else None
                of_rows = attacked(search, one.outcomes, *of, planned)
            if one.persons is not None:
                calibrations = () if of_rows is None else of_rows.calibrations
                found.append(replace(attacked_persons(search, one.persons, *of, calibrations), recall=one.recall))
            elif of_rows is not None:
                found.append(replace(of_rows, recall=one.recall))
        rows = protected.rows
        found += [by_learned(one, rows.total, len(rows.rows)) for one in findings.learned]
        begun = {"person": protected.people.total, "row": protected.rows.total}
        found = [replace(one, begun=begun[one.search.begins]) for one in found]
        left_out = not_tried(
            policy,
            opened.levels,
            findings.inferences,
            findings.members,
            learned=bool(findings.learned),
            minimality=why_not_minimal(policy, opened.levels, manifest=opened.release.manifest, rows=records),
            masks=masks_of(policy),
            local=is_local(opened.release.manifest, opened.levels),
        )
        if not (found or untold or findings.inferences or findings.members):
            raise InputError(f"attack.methods: nothing of it can be tried: {' '.join(left_out)}")
        result = AttackResult(
            title=policy.run.name,
            run_id=run.run_id,
            created=run.date.isoformat(),
            version=__version__,
            protected=opened.release.title,
            rows=protected.rows.total,
            records=records,
            known=in_words(policy),
            weights=weights_of(policy),
            attacks=tuple(sorted(found, key=lambda one: -one.found.share)),
            at_most=attack_of(policy).correct_links_at_most,
            scored=tuple(sorted(untold, key=lambda one: -one.right_share_at_most)),
            models=tuple(one.model for one in findings.links.values() if one.model is not None),
            learned=findings.learned,
            inferences=findings.inferences,
            membership=findings.members,
            certain_at_most=attack_of(policy).values_certain_at_most,
            notes=attack_notes(
                policy,
                sampled=bool((protected.present < 1).any()),
                by_risk=any(of.prediction == "identification" for one in found for of in one.calibrations),
                strangers=(protected.strangers, protected.rows.total),
                blocked=any(one.recall is not None for one in findings.links.values()),
                dealt_in_blocks=findings.members is not None and findings.members.recall is not None,
                left_out=left_out,
            ),
        )
        stage.sentence = result.paragraph
        stage.status = "tested"
        stage.parameters = {"attacks": list(result.told)}
    return result


def planned_risk(policy: Policy, outcomes: Outcomes, people: int) -> FloatArray | None:
    """What a planned attack on a row would find, by the people it was decided to be consistent with.

    Parameters
    ----------
    people : int
        In which is searched.

    Returns
    -------
    ndarray of float64, shape (n,), or None
        0 where it is not known with how many it is consistent. None if the policy assumes no adversary.
    """
    told = outcomes.consistent > 0
    if policy.assess.adversary is None or not told.any():
        return None
    sizes, at = np.unique(outcomes.consistent[told], return_inverse=True)
    records = np.ceil(np.bincount(at.reshape(-1), weights=outcomes.people[told])).astype(np.int64)
    _, table = planned(policy.assess.adversary, Groups(sizes, records, max(people, int(sizes.max())), "people"))
    return np.where(told, table.columns(outcomes.consistent)["p_reid"], 0.0)


def write(run: ResultRun, result: AttackResult, tried: Attacks) -> None:
    """Put the pairs and the documents in their place."""
    pairs = run.scratch.path / "pairs-found"
    make(pairs)
    for search, one in tried.items():
        move(run.scratch.write_parquet(one.pairs, f"written-{search.key}"), pairs / search.key)
    run.place.put_directory(pairs, "pairs")
    run.place.put_json("measures.json", result.measures())
    run.place.put_json("attack.json", as_json(result))
    run.place.put_text("report.html", render_attack(result))
