"""What a run says about itself: guarantee, plan, reports, summary and manifest.

Two editions are kept apart here. The vault's holds exact figures; the public one, the manifest included, holds under
differential privacy only public parameters and what can be computed from the release: no row count of the table, no
exact risk, no run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark import __version__
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.disclosure.utility import UNITS
from privrisk_spark.planning.as_published import AsPublished
from privrisk_spark.planning.counting import PlanChoice, explained
from privrisk_spark.planning.disclosure import greatest_utility
from privrisk_spark.planning.mechanism import KEEP_DENOMINATOR, Mechanism
from privrisk_spark.planning.proposals import scheme_table
from privrisk_spark.planning.search import lattice_size, method_of
from privrisk_spark.policy.decisions import (
    AggregateDecision,
    CellsDecision,
    DiscloseInAll,
    DisclosePerRecord,
    GreatestUtilityDecision,
    LeastPenalizedDecision,
    LeastRiskDecision,
    ListedRulesDecision,
    RuleDecision,
)
from privrisk_spark.policy.dictionaries import OneDictionary
from privrisk_spark.policy.policy import DpGuarantee, Policy
from privrisk_spark.policy.policy import Guarantee as AskedGuarantee
from privrisk_spark.results.release import (
    AttributeLevels,
    Check,
    ChosenRule,
    Guarantee,
    LinkageFacts,
    Report,
    Section,
    StageRecord,
    json_safe,
)
from privrisk_spark.stages.publishing.measure import ClassFacts, DecisionFacts, ReleaseFacts, level_names


@dataclass(frozen=True)
class Run:
    """What both editions of a report share.

    Attributes
    ----------
    policy : Policy
    hierarchies : mapping of attribute to Hierarchy
    run_id, date : str
        ``date`` is the business date.
    guarantee : Guarantee
    stages : sequence of StageRecord
    checks : sequence of Check
    """

    policy: Policy
    hierarchies: Mapping[str, Hierarchy]
    run_id: str
    date: str
    guarantee: Guarantee
    stages: Sequence[StageRecord]
    checks: Sequence[Check]


def risk_guarantee(
    policy: Policy,
    measured: DecisionFacts,
    hierarchies: Mapping[str, Hierarchy],
    rule: ChosenRule | None = None,
) -> Guarantee:
    """Guarantee of a release decided by risk.

    Parameters
    ----------
    policy : Policy
        With a decision.
    measured : DecisionFacts
        Of the decisions.
    hierarchies : mapping of attribute to Hierarchy
    rule : ChosenRule, optional
        The rule of a list that was chosen.
    """
    decision = policy.decision
    assert decision is not None
    method, why = method_of(policy, hierarchies)
    against = {
        "self": "the table itself",
        "table": "the given dictionary",
        "bayes": "the given dictionaries, expected over their prior,",
        "minimax": "the worst of the given dictionaries",
        "estimated": "the estimated dictionary",
    }[policy.dictionary.kind]
    form = "not used" if policy.risk.model == "II" else policy.risk.sensitivity.form
    sensitivity = "" if policy.risk.model == "II" else f" ({form} sensitivity)"
    asked, limits = _asked(policy, risk=f"model-{policy.risk.model} risk{sensitivity} against {against}")
    heuristic = measured.unproved > 0
    if rule is not None:
        limits |= {"rule": rule.name, "levels": dict(rule.levels)}
        statement = f"Every record is disclosed by the rule '{rule.name}', {asked}."
    elif isinstance(decision, CellsDecision):
        # Of the whole table or an attribute, the order of cells is optimal for another objective than the mean risk.
        heuristic |= not isinstance(decision, DisclosePerRecord)
        statement = f"What is disclosed is {asked}."
    else:
        statement = f"Each record is disclosed at the level vector of {asked}."
        if measured.unproved:
            statement = (
                f"Each record is disclosed at the best level vector that '{method}' found in search of the {asked}."
            )
    statement += (
        " The risk is that of a uniform attacker who knows no more than that; it is no promise against one who knows "
        "more."
    )
    if measured.infeasible:
        statement += " Records for which that is impossible are fully suppressed."
    if isinstance(decision, DisclosePerRecord):
        statement += _against_the_dictionary(decision, measured)
    elif measured.unproved:
        statement += (
            f" For {measured.unproved:,} of {measured.rows:,} records it is not proved that there is no better one; "
            f"none is better by more than {measured.gap:.3g}."
        )
    parameters: dict[str, object] = {
        "risk_model": policy.risk.model,
        "sensitivity": form,
        "dictionary": policy.dictionary.kind,
        "consistency": policy.dictionary.consistency,
        "utility": policy.utility.measure,
        "utility_unit": UNITS[policy.utility.measure],
        "method": f"{method} ({why})",
        **limits,
        **_known(policy),
    }
    return Guarantee("risk", statement, "heuristic" if heuristic else "proved", parameters)


def _known(policy: Policy) -> dict[str, object]:
    """What is to be known of dictionaries beside their kind: thresholds, priors, and what is counted if not rows."""
    known: dict[str, object] = {}
    if policy.dictionary.similar:
        known["similar"] = dict(policy.dictionary.similar)
    if policy.dictionary.kind == "bayes":
        known["priors"] = {one.name: one.prior for one in policy.dictionaries}
    units = {one.name: _unit(policy, one) for one in policy.dictionaries}
    if set(units.values()) != {"rows"}:
        known["counted"] = units if len(units) > 1 else next(iter(units.values()))
    return known


def _unit(policy: Policy, one: OneDictionary) -> str:
    """What is counted in a dictionary."""
    if (policy.table if one.table is None else one.table).entity_id is not None:
        return "persons"
    return "rows" if one.table is None or one.table.weight is None else "people"


def _against_the_dictionary(decision: DisclosePerRecord, measured: DecisionFacts) -> str:
    """How good the choice of cells is where attributes are not independent."""
    if not measured.unproved:
        return f" Against the dictionary as it is, no other {decision.cells} values of a record have a lower risk."
    return (
        f" Attributes are hardly ever independent: for {measured.unproved:,} records other values may have a lower "
        f"risk against the dictionary as it is, by {measured.gap:.3g} at most."
    )


def dp_guarantee(plan: Mechanism) -> Guarantee:
    """Guarantee of a differentially private release, its cost in both accountings, and what it says of several rows.

    Parameters
    ----------
    plan : Mechanism
    """
    # Not before it is needed: its packages take a second to import.
    from privrisk_spark.ledger import accounting

    parameters = plan.parameters()
    if plan.noise_reason is not None:
        parameters["noise_reason"] = plan.noise_reason
    if plan.proposed is not None:
        parameters["proposed_because"] = plan.proposed
    parameters["accounting"] = accounting.account(parameters)
    parameters |= accounting.further_guarantees(plan.epsilon, plan.policy.delta)
    return Guarantee("dp", plan.statement, "proved", parameters)


def _asked(policy: Policy, *, risk: str) -> tuple[str, dict[str, object]]:
    """The policy's optimization problem in words, and its parameters."""
    decision, utility = policy.decision, f"{policy.utility.measure} utility"
    if isinstance(decision, LeastRiskDecision):
        floor = decision.utility_at_least
        return f"least {risk} among those with {utility} at least {floor:g}", {"utility_at_least": floor}
    if isinstance(decision, GreatestUtilityDecision):
        ceiling = decision.risk_at_most
        return f"greatest {utility} among those with {risk} at most {ceiling:g}", {"risk_at_most": ceiling}
    if isinstance(decision, LeastPenalizedDecision):
        rate = decision.lambda_
        return f"least {risk} less {rate:g} times its {utility}", {"lambda": rate}
    if isinstance(decision, CellsDecision):
        return _asked_of_cells(decision, risk=risk), {"cells": decision.cells}
    if isinstance(decision, ListedRulesDecision):
        floor, number = decision.utility_at_least, len(decision.rules)
        asked = f"of {number:,} listed ones that of least mean {risk} among those with a mean {utility} of at least"
        asked += f" {floor:g}"
        if policy.dictionary.kind == "minimax":
            asked += "; the mean against each dictionary is taken, and the largest of these is the least there is"
        return asked, {"utility_at_least": floor, "rules": number}
    assert isinstance(decision, AggregateDecision)
    parameters: dict[str, object] = {
        "lambda": decision.lambda_,
        "kappa": decision.kappa,
        "zero_phi": decision.zero_phi,
    }
    power = f"its {utility}" + ("" if decision.kappa == 1 else f" to the power {decision.kappa:g}")
    return f"greatest sum of {decision.lambda_:g} divided by its {risk}, and {power}", parameters


def _asked_of_cells(decision: CellsDecision, *, risk: str) -> str:
    cells = f"{decision.cells:,} {'value' if decision.cells == 1 else 'values'}"
    independent = "if the attributes of the dictionary were independent"
    if isinstance(decision, DisclosePerRecord):
        return (
            f"of each record the {cells} of least exposure exp(w) N/ρ alone, and nothing else (LSFB06, MinRisk): the "
            f"least {risk} of all ways to disclose so many, {independent}"
        )
    of = "of the table" if isinstance(decision, DiscloseInAll) else "of each attribute"
    return (
        f"the {cells} {of} with the least exposure exp(w) N/ρ alone, and nothing else: {independent}, the mean "
        f"logarithm of the {risk} would be the least of all ways to disclose so many; for its mean this is a heuristic"
    )


def counting_sentence(policy: Policy, choices: Mapping[str, PlanChoice]) -> str:
    """What the counting stage did, in words for everybody; :func:`plan_reasons` has exact counts."""
    plans = "; ".join(
        (f"{name}: " if len(choices) > 1 else "") + f"by the plan '{choice.plan}'" for name, choice in choices.items()
    )
    return f"Counted consistent dictionary rows {plans}; consistency '{policy.dictionary.consistency}'."


def plan_reasons(choices: Mapping[str, PlanChoice]) -> str:
    """Why each dictionary is counted by its plan, for the vault alone."""
    return "; ".join((f"{name}: " if len(choices) > 1 else "") + choice.reason for name, choice in choices.items())


def decision_sentence(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> str:
    """What the deciding stage did, in words."""
    over = {"bayes": ", expected over the dictionaries", "minimax": " against the worst of the dictionaries"}
    asked, _ = _asked(policy, risk=f"model-{policy.risk.model} risk{over.get(policy.dictionary.kind, '')}")
    method, why = method_of(policy, hierarchies)
    sentence = f"Chose each record's disclosure by '{method}' ({why}): {asked}."
    if isinstance(policy.decision, RuleDecision):
        return sentence
    if policy.dictionary.consistency == "similar":
        sentence += (
            " Every feasible node was looked at: counts by likeness of labels are not monotone, and no theorem that "
            "leaves nodes out holds for them."
        )
    if isinstance(policy.decision, AggregateDecision):
        sentence += (
            " This model is nearly all or nothing: as lambda grows, a record's optimum jumps from the release as it is "
            "to the suppression of nearly all of it."
        )
    if policy.dictionary.kind == "minimax":
        sentence += " The mean of the records' worst risks is an upper bound of the worst dictionary's mean risk."
    return sentence


def stages(guarantee: AskedGuarantee) -> int:
    """Return the number of stages of a run."""
    if not isinstance(guarantee, DpGuarantee):
        return 7
    # Choosing takes the place of admitting in mode global, and comes before it with peel.
    return 9 + (guarantee.peel is not None)


def choice_sentence(plan: Mechanism) -> str:
    """What choosing the schemes of a differentially private release did, in words."""
    assert plan.choice is not None
    picks = "one scheme" if plan.choice.picks == 1 else f"{plan.choice.picks} schemes, one after the other,"
    return (
        f"Drew {picks} of {len(plan.choice.candidates)} public candidates by the exponential mechanism with epsilon "
        f"{plan.choice.epsilon} a pick; the score is a scheme's precision times the rows of its cells beyond "
        f"t0 = {plan.choice.beyond}."
    )


def admission_sentence(plan: Mechanism) -> str:
    """What the admission of a differentially private release did, in words."""
    if plan.reused is not None:
        return f"Took the cells that the run '{plan.reused.run_id}' admitted and released; no row was counted for it."
    if plan.admission is None:
        return f"Counted the public dictionary; cells with at least t = {plan.frequent} rows are admissible."
    kind = "public" if plan.choice is None else "chosen"
    return (
        f"Admitted the cells of {plan.w} {kind} schemes whose count plus {plan.admission.noise} reaches "
        f"t = {plan.frequent}."
    )


def recoding_sentence(plan: Mechanism) -> str:
    """What recoding and sampling of a differentially private release did, in words."""
    if plan.policy.mode == "global":
        return (
            "Recoded every record by the chosen scheme, and kept each with probability "
            f"{plan.keep_numerator}/2^32, by a keyed function of the record."
        )
    return (
        "Drew each record's generalization among the admitted ones by the exponential objective, and kept each "
        f"record with probability {plan.keep_numerator}/2^32, both by keyed functions of the record."
    )


def explanation(
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    choices: Mapping[str, PlanChoice],
    plan: Mechanism | AsPublished | None,
) -> str:
    """What a run will do and what it holds in memory, as text."""
    lines = [f"{name}: {h.n_leaves:,} leaves, {h.height + 1} levels" for name, h in hierarchies.items()]
    lines.append(f"lattice: up to {lattice_size(hierarchies):,} nodes a record")
    for name, choice in choices.items():
        lines += explained(choice, name="the table itself" if policy.dictionary.kind == "self" else name)
    if policy.decision is not None:
        best = greatest_utility(policy, hierarchies)
        if isinstance(policy.decision, LeastRiskDecision):
            lines.append(f"floor: utility at least {policy.decision.utility_at_least:g} of at most {best:g}")
        else:
            lines.append(f"asked: {_asked(policy, risk='risk')[0]}; utility at most {best:g}")
        method, why = method_of(policy, hierarchies)
        lines.append(f"search: {method} ({why})")
    if isinstance(plan, AsPublished):
        lines += [plan.statement, *_named(plan.parameters())]
    elif plan is not None:
        lines.append(plan.statement)
        lines += _named(dp_guarantee(plan).parameters)
        half, almost = plan.survival
        schemes = plan.schemes if plan.choice is None else plan.choice.candidates
        frequent = None if policy.guarantee.kind == "dp" and policy.guarantee.mode == "global" else plan.frequent
        lines += scheme_table(policy, hierarchies, schemes, frequent=frequent, crowd=plan.crowd, survival=plan.survival)
        lines.append(f"a cell needs {half} rows to be released with probability 50 %, {almost} for 99 %")
    return "\n".join(lines)


def _named(parameters: Mapping[str, object], *, within: str = "") -> list[str]:
    """Parameters as lines; those of several parts a line for each part."""
    lines: list[str] = []
    for name, value in parameters.items():
        if isinstance(value, Mapping) and all(isinstance(part, Mapping) for part in value.values()):
            lines += _named(value, within=f"{within}{name}.")
        else:
            lines.append(f"{within}{name}: {value}")
    return lines


def risk_reports(
    run: Run,
    measured: DecisionFacts,
    released: ReleaseFacts,
    *,
    dictionary_rows: int | Mapping[str, int],
    classes: ClassFacts | None = None,
    linkage: LinkageFacts | None = None,
    sections: Sequence[Section] = (),
) -> tuple[Report, Report]:
    """Vault and public report of a release decided by risk; linkage and further findings are for the vault."""
    vault = _report(
        run,
        "vault",
        {
            "records": measured.rows,
            "released classes": released.classes,
            "smallest released class": released.min_class_size,
            **_dictionary_rows(run.policy, dictionary_rows),
            **_class_facts(classes),
            "records suppressed as infeasible": measured.infeasible,
            **_unproved(measured),
        },
        measured,
    )
    public = _report(
        run,
        "public",
        {"released rows": released.rows, "released classes": released.classes},
        measured,
    )
    vault = replace(vault, linkage=linkage, sections=tuple(sections))
    return vault, replace(public, risk_before=None, risk_histogram_before=None, risk_histogram_after=None)


def _unproved(measured: DecisionFacts) -> dict[str, int | float]:
    if not measured.unproved:
        return {}
    return {"records whose decision is not proved": measured.unproved, "largest gap of these": measured.gap}


def _class_facts(classes: ClassFacts | None) -> dict[str, int | float]:
    if classes is None:
        return {}
    named = {
        "persons of the released class with the fewest": classes.fewest_persons,
        "released classes of one person": classes.single_persons,
        "weighted population of the released class with the least (min F_k)": classes.least_population,
        "weighted population of all classes": classes.population,
    }
    return {name: value for name, value in named.items() if value is not None}


def _dictionary_rows(policy: Policy, rows: int | Mapping[str, int]) -> dict[str, int]:
    units = {one.name: _unit(policy, one) for one in policy.dictionaries}
    if isinstance(rows, int):
        return {f"dictionary {next(iter(units.values()))}": rows}
    return {f"dictionary {units[name]} of {name}": number for name, number in rows.items()}


def drawn_reports(
    run: Run,
    plan: Mechanism | None,
    exact: DecisionFacts,
    released: ReleaseFacts,
    *,
    sampled: int,
    levels: tuple[AttributeLevels, ...],
) -> tuple[Report, Report]:
    """Vault and public report of a release that is drawn.

    Parameters
    ----------
    run : Run
    plan : Mechanism or None
        None if nothing is guaranteed.
    exact : DecisionFacts
        For the vault only.
    released : ReleaseFacts
    sampled : int
        Records drawn into the sample; for the vault only.
    levels : tuple of AttributeLevels
        Of the released rows.
    """
    needed: dict[str, str | int | float] = {}
    weight: dict[str, str | int | float] = {}
    if plan is not None:
        half, almost = plan.survival
        needed["rows a cell needs to be released with probability 50 %"] = half
        needed["rows a cell needs to be released with probability 99 %"] = almost
        weight["weight of a released row"] = f"{KEEP_DENOMINATOR / plan.keep_numerator:.6g}"
    shared: dict[str, str | int | float] = {"released rows": released.rows, "released tuples": released.classes}
    vault = _report(run, "vault", {"records": exact.rows, "sampled records": sampled, **shared, **needed}, exact)
    public = _report(run, "public", {**shared, **weight, **needed}, None)
    return vault, replace(public, levels=levels)


def _report(run: Run, edition: str, facts: Mapping[str, str | int | float], measured: DecisionFacts | None) -> Report:
    public = edition == "public"
    stages = [stage for stage in run.stages if not (public and stage.name == "vault")]
    if public and run.guarantee.kind != "risk":
        # How long a stage took depends on the table.
        stages = [replace(stage, seconds=None) for stage in stages]
    elif public:
        # Exact counts of the table stay in the vault.
        stages = [replace(stage, parameters={}) for stage in stages]
    return Report(
        edition="public" if public else "vault",
        title=run.policy.run.name,
        run_id=run.run_id,
        created=run.date,
        version=__version__,
        guarantee=run.guarantee,
        stages=tuple(stages),
        checks=tuple(check for check in run.checks if check.contract == "release" or not public),
        facts=facts,
        risk_before=measured.risk_before if measured else None,
        risk_after=measured.risk_after if measured else None,
        risk_histogram_before=measured.before if measured else None,
        risk_histogram_after=measured.after if measured else None,
        utility=measured.utility if measured else None,
        utility_max=greatest_utility(run.policy, run.hierarchies) if measured else None,
        levels=measured.levels if measured else (),
    )


def tuple_levels(
    hierarchies: Mapping[str, Hierarchy], nodes: Sequence[npt.NDArray[np.int32]], rows: npt.NDArray[np.int64]
) -> tuple[AttributeLevels, ...]:
    """Generalization of released tuples, from the tuples alone: steps above the deepest leaf.

    Parameters
    ----------
    hierarchies : mapping of attribute to Hierarchy
    nodes : sequence of k ndarrays of int32, shape (n_tuples,)
    rows : ndarray of int64, shape (n_tuples,)
    """
    result = []
    for (attribute, hierarchy), node in zip(hierarchies.items(), nodes, strict=True):
        counts = np.zeros(hierarchy.height + 1, dtype=np.int64)
        np.add.at(counts, hierarchy.height - hierarchy.depth[node], rows)
        names = level_names(hierarchy.height)
        result.append(AttributeLevels(attribute, hierarchy.height, names, tuple(counts.tolist())))
    return tuple(result)


def summary(
    policy: Policy, report: Report, *, plan: str, snapshot: str, seconds: Mapping[str, float | None]
) -> dict[str, Any]:
    """The vault's ``summary.json``: every number of the report, for a program."""
    return {
        "run_id": report.run_id,
        "rows": report.facts["records"],
        "risk_before": report.risk_before.to_dict() if report.risk_before else None,
        "risk_after": report.risk_after.to_dict() if report.risk_after else None,
        "risk_model": policy.risk.model,
        "risk_basis": {
            "risk": "dictionary counts",
            "dp": "admitted (noisy or public) counts; before: an upper bound, as if one row were consistent",
            "as-published": "counts of the table; before: an upper bound, as if one row were consistent",
        }[report.guarantee.kind],
        "utility": report.utility.to_dict() if report.utility else None,
        "utility_unit": UNITS[policy.utility.measure],
        "plan": plan,
        "seconds": dict(seconds),
        "guarantee": report.guarantee.to_dict(),
        "facts": dict(report.facts),
        "levels": [level.to_dict() for level in report.levels],
        "linkage": report.linkage.to_dict() if report.linkage else None,
        **{section.name: json_safe(section.figures) for section in report.sections},
        "snapshot": snapshot,
        "policy_digest": policy.digest(),
        "version": __version__,
    }


def manifest(
    run: Run, report: Report, released: ReleaseFacts, *, files: Sequence[Mapping[str, Any]], more: Mapping[str, Any]
) -> dict[str, Any]:
    """The release's ``manifest.json``; under differential privacy a whitelist.

    Parameters
    ----------
    run : Run
    report : Report
        The public edition.
    released : ReleaseFacts
    files : sequence of mapping
        ``name``, ``bytes`` and ``sha256`` of each data file.
    more : mapping
        What the guarantee allows to state besides.
    """
    return {
        "run_id": run.run_id,
        "name": run.policy.run.name,
        "date": run.date,
        "version": __version__,
        "policy_digest": run.policy.digest(),
        "guarantee": run.guarantee.to_dict(),
        "columns": data_dictionary(run.policy, run.hierarchies),
        "rows": released.rows,
        "tuples": released.classes,
        "data": {
            "path": f"releases/{run.run_id}/data",
            "format": run.policy.places.format,
            "files": [dict(entry) for entry in files],
        },
        "checks": [check.to_dict() for check in report.checks],
        **more,
    }


def data_dictionary(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> list[dict[str, Any]]:
    """Describe the released columns for a consumer."""
    columns: list[dict[str, Any]] = []
    for name in policy.columns:
        if name in hierarchies:
            hierarchy = hierarchies[name]
            columns.append(
                {
                    "name": name,
                    "role": "quasi-identifier",
                    "levels": hierarchy.height,
                    "suppressed": hierarchy.labels[hierarchy.root],
                    "nulls": policy.quasi_identifiers[name].nulls,
                }
            )
        elif name in policy.kept_columns:
            columns.append({"name": name, "role": policy.columns[name].role, "released": "as it is"})
    return columns
