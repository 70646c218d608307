"""The two editions of a release's report.

They are kept apart here. The vault's holds exact figures; the public one holds under differential privacy only public
parameters and what can be computed from the release: no row count of the table, no exact risk, no run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from privrisk_spark.hierarchies.hierarchy import Hierarchy, numbered_levels
from privrisk_spark.kernels.disclosure.utility import UNITS
from privrisk_spark.planning.dictionaries import counted_unit
from privrisk_spark.planning.disclosure import greatest_utility
from privrisk_spark.planning.trade_off import least_utility
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.example_rows import fictitious_rows
from privrisk_spark.reporting.headline import compared, headline
from privrisk_spark.reporting.kept_columns import uniqueness_section
from privrisk_spark.results.facts import (
    ClassFacts,
    DecisionFacts,
    ReleaseFacts,
    ValuesRead,
    values_changed,
)
from privrisk_spark.results.release import AttributeLevels, Check, Guarantee, LinkageFacts, Report, Section, StageRecord
from privrisk_spark.results.trade_off import Evidence
from privrisk_spark.version import __version__

NO_EVIDENCE = Evidence()
"""Of an edition or a kind of release that shows no records and no other recodings."""


@dataclass(frozen=True)
class RunRecord:
    """What both editions of a report share.

    Attributes
    ----------
    hierarchies : mapping of attribute to Hierarchy
    run_id, date : str
        ``date`` is the business date.
    values : sequence of ValuesRead
        What reading changed; for the vault only.
    """

    policy: Policy
    hierarchies: Mapping[str, Hierarchy]
    run_id: str
    date: str
    guarantee: Guarantee
    stages: Sequence[StageRecord]
    checks: Sequence[Check]
    values: Sequence[ValuesRead] = ()


def risk_reports(
    run: RunRecord,
    measured: DecisionFacts,
    released: ReleaseFacts,
    *,
    dictionary_rows: int | Mapping[str, int],
    classes: ClassFacts | None = None,
    linkage: LinkageFacts | None = None,
    sections: Sequence[Section] = (),
    evidence: Evidence = NO_EVIDENCE,
) -> tuple[Report, Report]:
    """Vault and public report of a release decided by risk; linkage and further findings are for the vault.

    What is found of kept columns is in both if the release alone tells it, and for the vault if persons were counted.
    """
    kept = uniqueness_section(released)
    of_release = () if kept is None else (kept,)
    vault = fill_report(
        run,
        "vault",
        {
            "records": measured.rows,
            "released classes": released.classes,
            "smallest released class": released.min_class_size,
            **_dictionary_rows(run.policy, dictionary_rows),
            **_class_facts(classes),
            "records suppressed as infeasible": measured.infeasible - measured.beyond,
            **_history(measured),
            **_unproved(measured),
        },
        measured,
        released,
        evidence,
    )
    public = fill_report(
        run,
        "public",
        {"released rows": released.rows, "released classes": released.classes},
        measured,
        released,
        Evidence(pairs=fictitious_rows(run.hierarchies, measured.levels)),
    )
    vault = replace(vault, linkage=linkage, sections=(*of_release, *sections))
    public = replace(public, sections=tuple(section for section in of_release if section.public))
    return vault, replace(
        public, risk_before=None, risk_histogram_before=None, risk_histogram_after=None, identified_before=None
    )


def _history(measured: DecisionFacts) -> dict[str, int]:
    if measured.history is None:
        return {}
    return {
        "records with a history": measured.history.records,
        "records whose values have changed": measured.history.changed,
        "records suppressed as already disclosed beyond the bound": measured.beyond,
    }


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
    units = {one.name: counted_unit(policy, one) for one in policy.dictionaries}
    if isinstance(rows, int):
        return {f"dictionary {next(iter(units.values()))}": rows}
    return {f"dictionary {units[name]} of {name}": number for name, number in rows.items()}


def drawn_reports(
    run: RunRecord,
    exact: DecisionFacts,
    released: ReleaseFacts,
    *,
    sampled: int,
    levels: tuple[AttributeLevels, ...],
    sections: tuple[Section, ...] = (),
    needed: Mapping[str, str | int | float] = MappingProxyType({}),
    weight: Mapping[str, str | int | float] = MappingProxyType({}),
) -> tuple[Report, Report]:
    """Vault and public report of a release that is drawn.

    Parameters
    ----------
    exact : DecisionFacts
        For the vault only.
    sampled : int
        Records drawn into the sample; for the vault only.
    levels : tuple of AttributeLevels
        Of the released rows.
    sections : tuple of Section
        For the vault only.
    needed, weight : mapping
        Further facts for both reports, and for the public one.
    """
    shared: dict[str, str | int | float] = {"released rows": released.rows, "released tuples": released.classes}
    facts = {"records": exact.rows, "sampled records": sampled, **shared, **needed}
    vault = replace(fill_report(run, "vault", facts, exact, released), sections=sections)
    made_up = Evidence(pairs=fictitious_rows(run.hierarchies, levels))
    public = fill_report(run, "public", {**shared, **weight, **needed}, None, released, made_up, levels)
    return vault, public


def fill_report(
    run: RunRecord,
    edition: str,
    facts: Mapping[str, str | int | float],
    measured: DecisionFacts | None,
    released: ReleaseFacts,
    evidence: Evidence = NO_EVIDENCE,
    levels: tuple[AttributeLevels, ...] = (),
) -> Report:
    """Return a report of a release.

    Parameters
    ----------
    edition : {"vault", "public"}
    measured : DecisionFacts or None
        None if nothing is decided by risk, and in the public report.
    levels : tuple of AttributeLevels, optional
        Of the public report.
    """
    public = edition == "public"
    levels = measured.levels if measured else levels
    utility_max = greatest_utility(run.policy, run.hierarchies) if measured else None
    rows = None if public else int(facts["records"])
    if not public:
        changed = values_changed(run.values).items()
        facts = {**facts, **{f"values changed by {key}": number for key, number in changed}}
        facts |= {f"values missing after {one.key}.cast": one.uncast for one in run.values if one.uncast}
    stages = [stage for stage in run.stages if not (public and stage.name == "vault")]
    if public and not run.policy.decides:
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
        identified_before=measured.identified_before if measured else None,
        identified_after=measured.identified_after if measured else None,
        risk_model=run.policy.risk.model,
        risk_histogram_before=measured.before if measured else None,
        risk_histogram_after=measured.after if measured else None,
        utility=measured.utility if measured else None,
        utility_max=utility_max,
        levels=levels,
        headline=headline(
            run.policy,
            run.guarantee,
            released,
            measured=measured,
            levels=levels,
            utility_max=utility_max,
        ),
        compared=compared(
            released,
            rows=rows,
            measured=measured,
            risk_before=not public,
            utility_max=utility_max,
            sample=evidence.trade_off,
            model=run.policy.risk.model,
            utility_unit=UNITS[run.policy.utility.measure],
        ),
        floor=least_utility(run.policy),
        evidence=evidence,
    )


def tuple_levels(
    hierarchies: Mapping[str, Hierarchy], nodes: Sequence[npt.NDArray[np.int32]], rows: npt.NDArray[np.int64]
) -> tuple[AttributeLevels, ...]:
    """Generalization of released tuples, from the tuples alone: steps above the deepest leaf.

    Levels have names where all leaves are as deep; of others, a node's own level is not told by its depth.

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
        names = hierarchy.level_names if hierarchy.even else numbered_levels(hierarchy.height)
        result.append(AttributeLevels(attribute, hierarchy.height, names, tuple(counts.tolist())))
    return tuple(result)
