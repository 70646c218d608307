"""A release whose rows are decided by risk.

read → encode → count → decide → write → validate → vault, and it is published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.counts import SpreadVectors, StoredCounts, cell_space
from privrisk_spark.engine.value_codes import ids_are_numbers
from privrisk_spark.errors import InfeasibleError
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.pipelines.release.diagnosed import evidence_of, measure_decisions, sampling_of
from privrisk_spark.pipelines.release.encoded import Counted, Encoded, count_dictionaries, encode_table
from privrisk_spark.pipelines.release.opened import Opened, announce_plan, choose_plans, open_run
from privrisk_spark.pipelines.release.published import fill_vault, publish, record_of, write_vault_report
from privrisk_spark.pipelines.release.written import (
    Decided,
    Written,
    conclude_rows,
    validate_release,
    write_classes,
    write_release,
)
from privrisk_spark.pipelines.run import ReleaseRun
from privrisk_spark.planning.decisions.decision import Decision
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.dictionaries import true_dictionary
from privrisk_spark.planning.disclosure import disclosure_of
from privrisk_spark.planning.history import EarlierRelease, earlier_releases, refuse_differences
from privrisk_spark.planning.rules import Recoding, Rule
from privrisk_spark.planning.search import lattice_size, takes_infinite
from privrisk_spark.policy.guarantees import anonymity_of
from privrisk_spark.reporting.history import beyond_sentence, history_section, history_sentence
from privrisk_spark.reporting.models.texts import texts_of
from privrisk_spark.reporting.release_reports import risk_reports
from privrisk_spark.reporting.sentences import counting_sentence, decision_sentence, plan_reasons
from privrisk_spark.results.facts import ClassFacts
from privrisk_spark.results.release import Check, ChosenRule, Guarantee, LinkageFacts, Section
from privrisk_spark.results.trade_off import Evidence
from privrisk_spark.runs.progress import LOGGER
from privrisk_spark.stages.deciding.decide import collect_unreachable
from privrisk_spark.stages.deciding.gather import collect_decisions
from privrisk_spark.stages.publishing import contracts
from privrisk_spark.stages.publishing.files import files_for

if TYPE_CHECKING:
    from privrisk_spark.engine.links import Linked
    from privrisk_spark.stages.counting.look_up import SpreadLookup


@dataclass(frozen=True, eq=False)
class DecisionTask:
    """What is decided for every row.

    Attributes
    ----------
    disclosure : Disclosure
        What a row discloses at each node of its lattice.
    decision : Decision
        How it is decided, and what is said of it.
    procedure : Search, Rule or Recoding
        What decides.
    """

    disclosure: Disclosure
    decision: Decision
    procedure: Search | Rule | Recoding


def release_by_risk(run: ReleaseRun) -> dict[str, Any]:
    """Decide every row by risk, and publish; returns the manifest."""
    opened, task = read(run)
    earlier = earlier_of(run, opened)
    encoded, linked = encode(run, opened, task)
    counted = count(run, opened, encoded)
    files = files_for(run.policy.places, encoded.facts.rows)
    decided, diagnosed = decide(run, opened, task, encoded, counted, linked, earlier, files=files)
    written = write(run, opened, decided, files=files)
    checked = validate(run, opened, encoded, counted, decided, written)
    fill_vault(run, "Moved decisions and exact measures to the vault.")
    record = record_of(run, opened, diagnosed.guarantee, checked.checks)
    vault, public = risk_reports(
        record,
        decided.facts,
        written.facts,
        dictionary_rows=counted.dictionary_rows,
        classes=checked.classes,
        linkage=diagnosed.linkage,
        sections=diagnosed.sections,
        evidence=diagnosed.evidence,
    )
    write_vault_report(run, vault, plan=counted.plan, snapshot=encoded.facts.snapshot, read=encoded.read)
    contracts.refuse_failures(checked.checks, fail_on=run.policy.checks.fail_on)
    stated = {} if run.policy.history is None else {"history": [one.public for one in earlier]}
    return publish(run, opened, record, public, written, {"rows_read": encoded.facts.rows, **encoded.stated, **stated})


def earlier_of(run: ReleaseRun, opened: Opened) -> tuple[EarlierRelease, ...]:
    """Return the releases that this one composes with; reads what vaults remember of them, but for their records.

    Raises
    ------
    ConfigError
        If one cannot be composed with.
    """
    earlier = earlier_releases(run.policy, own=run.place.remembered)
    refuse_differences(run.policy, opened.hierarchies, earlier)
    return earlier


def read(run: ReleaseRun) -> tuple[Opened, DecisionTask]:
    """Stage: open the sources; what every row discloses, and the search or rule that decides it."""
    with run.progress.stage("read") as stage:
        opened = open_run(run.spark, run.policy, run.table)
        decision = decision_of(run.policy)
        procedure = decision.procedure(opened.hierarchies)
        task = DecisionTask(disclosure_of(run.policy, opened.hierarchies, opened.axes), decision, procedure)
        opened = choose_plans(run, opened)
        announce_plan(run, opened)
        stage.sentence = (
            f"Opened the table with {opened.k} quasi-identifiers; a record's lattice has up to "
            f"{lattice_size(opened.hierarchies):,} nodes."
        )
    return opened, task


def encode(run: ReleaseRun, opened: Opened, task: DecisionTask) -> tuple[Encoded, Linked | None]:
    """Stage: the table, and the linkage table if there is one, as codes.

    Raises
    ------
    InfeasibleError
        If there are records that no counts would let disclose as asked, and the policy does not say to suppress them.
    """
    procedure, decision = task.procedure, run.policy.decision
    with run.progress.stage("encode") as stage:
        encoded = encode_table(run, opened, blocks=False)
        facts = encoded.facts
        if isinstance(procedure, Search) and not takes_infinite(procedure.method, run.policy):
            contracts.refuse_infinite(facts, procedure.method)
        if decision is not None and decision.infeasible == "error":
            fault = collect_unreachable(encoded.rows, task.disclosure, task.decision, k=opened.k)
            if fault is not None:
                raise fault
        linked = None
        if opened.sources.links is not None:
            from privrisk_spark.tables.links import collect_links

            numbers = ids_are_numbers((opened.sources.table, run.policy.table.record_id))
            linked = collect_links(run.scratch, encoded.rows, opened.sources.links, numbers=numbers)
        stage.sentence = "Encoded every value as an integer code and checked the input contract."
        stage.rows = facts.rows
        stage.parameters = {"rows": facts.rows, "nulls": facts.nulls, "suppressed_unknown_values": facts.unknown}
    return encoded, linked


def count(run: ReleaseRun, opened: Opened, encoded: Encoded) -> Counted:
    """Stage: count the rows of every dictionary."""
    with run.progress.stage("count") as stage:
        counted = count_dictionaries(run, opened, encoded.rows)
        stage.sentence = counting_sentence(run.policy, counted.choices)
        stage.parameters = {
            "plan": counted.plan,
            "why": plan_reasons(counted.choices),
            "dictionary_rows": counted.dictionary_rows,
        }
        stage.status = "tested"
    return counted


@dataclass(frozen=True, eq=False)
class Diagnosed:
    """What is said of the decisions.

    Attributes
    ----------
    linkage : LinkageFacts or None
        The risk after record linkage.
    sections : tuple of Section
        Further sections of the vault's report.
    evidence : Evidence
        Sampled records, and what other recodings would do to them.
    """

    guarantee: Guarantee
    linkage: LinkageFacts | None
    sections: tuple[Section, ...]
    evidence: Evidence


def decide(
    run: ReleaseRun,
    opened: Opened,
    task: DecisionTask,
    encoded: Encoded,
    counted: Counted,
    linked: Linked | None,
    earlier: Sequence[EarlierRelease] = (),
    *,
    files: int,
) -> tuple[Decided, Diagnosed]:
    """Stage: decide every row, after the releases that are out already, and measure the decisions.

    Raises
    ------
    InfeasibleError
        If there are records that cannot be disclosed as asked, and the policy does not say to suppress them.
    """
    policy, hierarchies = run.policy, opened.hierarchies
    with run.progress.stage("decide") as stage:
        method = task.decision.choice(hierarchies).method
        past = encoded.rows
        if earlier:
            from privrisk_spark.stages.deciding.history import write_history

            past = write_history(run.scratch, past, earlier, hierarchies)
        rows, decide_chunk, rule = collect_decisions(
            run.scratch,
            past,
            task.disclosure,
            task.procedure,
            policy,
            hierarchies,
            _looked_up(run, opened, task, counted),
            rows=encoded.facts.rows,
        )
        size, sampling = sampling_of(opened, counted, rows=encoded.facts.rows, policy=policy)
        decided = conclude_rows(run, opened, rows, decide_chunk, method=method, files=files, sampled=sampling)
        _refuse_infeasible(run, task, decided)
        stage.sentence = decision_sentence(policy, hierarchies) + history_sentence(earlier)
        stage.parameters = {"infeasible_records_suppressed": decided.facts.infeasible}
        if decided.facts.beyond:
            LOGGER.warning("%s", beyond_sentence(decided.facts))
        guarantee = texts_of(policy.guarantee.kind).guarantee(policy, decided.facts, hierarchies, rule, earlier)
        stage.status = guarantee.status
        true = true_dictionary(policy)
        linkage, sections = measure_decisions(
            run.scratch,
            encoded.rows,
            task.disclosure,
            task.procedure,
            policy,
            hierarchies,
            counted=counted.counts,
            linked=linked,
            true=None if true is None else opened.sources.dictionaries.get(true.name),
            table=opened.sources.table,
            dictionaries=opened.sources.dictionaries,
        )
        evidence = evidence_of(decided, counted, task.disclosure, size, policy, hierarchies)
    composed = history_section(decided.facts, earlier, status=guarantee.status)
    found = (*([] if composed is None else [composed]), *_with_rule(sections, rule))
    return decided, Diagnosed(guarantee, linkage, found, evidence)


def _looked_up(
    run: ReleaseRun, opened: Opened, task: DecisionTask, counted: Counted
) -> tuple[StoredCounts | SpreadLookup, ...]:
    """Counts as records look them up."""
    own = run.policy.dictionaries[0].table is None

    def spread(counts: SpreadVectors) -> SpreadLookup:
        from privrisk_spark.stages.counting.look_up import SpreadLookup

        return SpreadLookup(
            counts,
            cell_space(counts, run.policy, opened.hierarchies),
            task.disclosure,
            run.scratch.write_frame,
            # The table asks for most of its own cells.
            prune=() if own else None,
        )

    return tuple(counts if isinstance(counts, StoredCounts) else spread(counts) for counts in counted.counts)


def _refuse_infeasible(run: ReleaseRun, task: DecisionTask, decided: Decided) -> None:
    decision, facts = run.policy.decision, decided.facts
    impossible = facts.infeasible - facts.beyond
    if impossible and decision is not None and decision.infeasible == "error":
        raise InfeasibleError(task.decision.shortfall(impossible, facts.rows, None))


def _with_rule(sections: Sequence[Section], rule: ChosenRule | None) -> tuple[Section, ...]:
    return (*sections, *([rule.section] if rule is not None else []))


def write(run: ReleaseRun, opened: Opened, decided: Decided, *, files: int) -> Written:
    """Stage: write the release to staging."""
    with run.progress.stage("write") as stage:
        written = write_release(run, opened, decided.tuples, decided.label_rows, files=files, members=decided.members)
        stage.sentence = "Wrote the release to staging in a canonical order and read it back."
    return written


@dataclass(frozen=True, eq=False)
class Checked:
    """The staged release, held against its contract.

    Attributes
    ----------
    checks : tuple of Check
        Of the input and of the release.
    classes : ClassFacts or None
        Where the policy names persons or sampling weights.
    """

    checks: tuple[Check, ...]
    classes: ClassFacts | None


def validate(
    run: ReleaseRun, opened: Opened, encoded: Encoded, counted: Counted, decided: Decided, written: Written
) -> Checked:
    """Stage: hold the staged files, and the decisions, against the release contract."""
    with run.progress.stage("validate") as stage:
        classes = write_classes(run, opened, decided.members, written.facts.rows)
        written = _with_conditions(run, opened, encoded, counted, decided.members, written)
        rules, values = contracts.release_rules(run.policy, written.facts, written.label_rows)
        exact_rules, exact_values = contracts.decision_rules(
            run.policy, encoded.facts, decided.facts, written.facts, classes
        )
        checks = validate_release(run, opened, written, rules + exact_rules, values | exact_values)
        from privrisk_spark.reporting.kept_columns import uniqueness_warnings

        for sentence in uniqueness_warnings(written.facts):
            LOGGER.warning("%s", sentence)
        stage.sentence = "Checked the release contract on the staged files."
    return Checked((*encoded.checks, *checks), classes)


def _with_conditions(
    run: ReleaseRun, opened: Opened, encoded: Encoded, counted: Counted, members: Batches | None, written: Written
) -> Written:
    """Count the released classes that miss what is asked besides k, where anything is."""
    asked, kept = anonymity_of(run.policy.guarantee), run.policy.kept_columns
    if asked is None or not asked.also:
        return written
    columns = dict(zip(kept, schemas.released(len(kept)), strict=True))
    hierarchies, most = tuple(opened.hierarchies.values()), run.policy.counting.sorted_vectors
    people = None
    if asked.asks_population:
        (counts,) = counted.counts
        assert isinstance(counts, StoredCounts), "classes were held against them"
        from privrisk_spark.engine.population import PeopleOf

        people = PeopleOf(counts, hierarchies, tuple(range(opened.k)))
    whose = members if run.policy.table.entity_id is not None else None
    from privrisk_spark.stages.publishing.conditions import measure_conditions

    failing = measure_conditions(asked, written.texts, encoded.rows, columns, hierarchies, people, whose, most=most)
    return replace(written, facts=replace(written.facts, failing=failing))
