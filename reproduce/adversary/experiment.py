"""The case study of a planned attack (Xia et al. 2015, section 7), in the order it is run.

A policy's table is attacked besides a generated one: its records are counted by age, race and sex, the registry is
drawn by tasks and counted by cell, and the two counts are joined.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from privrisk_spark.errors import ConfigError, Fault, nearest
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.progress import Progress
from reproduce.adversary.case_study import Groups
from reproduce.adversary.results import AdversarySizes, TableResult, findings, run_on, run_without_table
from reproduce.adversary.tables import ATTRIBUTES, collect_groups, collect_persons
from reproduce.generated.registry import OLDEST, TOP_CODED, YOUNGEST, Persons, Registry
from reproduce.result import Findings
from reproduce.run import Experiment, Source


def check(policy: Policy) -> None:
    """Refuse a policy without the attributes that the registry knows.

    Raises
    ------
    ConfigError
    """
    there = list(policy.quasi_identifiers)
    faults = [
        Fault(
            f"columns.{name}", f"must be a quasi-identifier: the registry knows age, race and sex{nearest(name, there)}"
        )
        for name in ATTRIBUTES
        if name not in there
    ]
    if faults:
        raise ConfigError(faults)


def find(sizes: AdversarySizes, source: Source | None, progress: Progress) -> Findings:
    """Plan the attack on a generated table, and on the one of a policy.

    Raises
    ------
    InputError
        If the policy's table cannot be used.
    """
    registry = Registry(sizes.rows, sizes.seed)
    tables: list[tuple[str, Persons]] = []
    notes: list[str] = []
    with progress.stage("generate") as stage:
        tables.append(("generated", Persons.generated(sizes.seed, sizes.records)))
        stage.sentence = f"Generated a table of {sizes.records:,} records."
    if source is not None:
        policy = source.policy
        with progress.stage("read") as stage:
            frame = source.read()
            persons, left_out = collect_persons(frame)
            tables.append((policy.run.name, persons))
            notes += _notes(policy.run.name, persons, left_out)
            stage.sentence = f"Counted {persons.total:,} records by age, race and sex."
    with progress.stage("registry") as stage:
        placed = [persons.placed(registry.law, sizes.seed) for _, persons in tables]
        wanted = np.unique(np.concatenate([cells for cells, _ in placed]))
        if source is None:
            registered, people = registry.counted(wanted)
        else:
            registered, people = collect_groups(source.spark, registry, wanted)
        stage.sentence = f"Counted {registry.rows:,} of {registry.people:,} people by cell."
    with progress.stage("attack") as stage:
        found: list[TableResult] = []
        for (name, persons), (cells, records) in zip(tables, placed, strict=True):
            at = np.searchsorted(wanted, cells)
            groups: Groups = (registered[at], people[at], records)
            found.append(run_on(name, persons, groups, sizes))
        by_group, deterred = run_without_table()
        stage.sentence = "Planned the attack in three settings."
    return findings(found, by_group, deterred, sizes, notes)


def _notes(name: str, persons: Persons, left_out: int) -> Iterator[str]:
    """What a reader must know besides."""
    if left_out:
        yield f"{name}: {left_out:,} records without a whole age, a race, and a sex of Male or Female are left out."
    outside = int(persons.records[(persons.age < YOUNGEST) | (persons.age > OLDEST)].sum())
    if outside:
        yield f"{name}: {outside:,} records of an age outside {YOUNGEST} to {OLDEST}, which nobody in the registry has."
    top = int(persons.records[persons.age == TOP_CODED].sum())
    if top:
        yield f"{name}: {top:,} records top-coded at {TOP_CODED} have an age from {TOP_CODED} to {OLDEST} put to them."
    yield (
        f"{name}: the paper has 32,561 records of Adult; where incomplete ones are left out there are fewer. "
        "Nothing but age, race and sex is used; hierarchies are not, as the records are attacked as they are."
    )


EXPERIMENT = Experiment(
    name="adversary",
    title="Experiments on a planned attack",
    heading="A planned attack",
    find=find,
    stages=3,
    stages_of_policy=1,
    usual=AdversarySizes(),
    quick=AdversarySizes(rows=100_000, records=1_000),
    check=check,
)
