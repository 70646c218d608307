"""Experiments on privacy: that of Fouad (2012), section 6.6, beside a release with a proof, in the order they are run.

A policy adds its own table, collected as distinct records, and, if it is differentially private, its public parameters.
Everything else happens in memory; it is no release, charges no ledger, and is for the trusted zone alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from privrisk_spark.errors import ConfigError, Fault, InputError
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.private import AggregateObjective, DpGuarantee, GlobalDp, PeeledDp
from privrisk_spark.runs.progress import Progress
from reproduce.deciding.subject import Subject
from reproduce.deciding.tables import MOST_NODES, collect_subject, narrowed
from reproduce.privacy.releases import Public, public_schemes
from reproduce.privacy.results import PrivacySizes, TableResult, findings, run_on, run_worst_case
from reproduce.result import Findings
from reproduce.run import Experiment, Source


def check(policy: Policy) -> None:
    """Refuse a policy whose rows are not persons.

    Raises
    ------
    InputError
    """
    if policy.table.entity_id is not None:
        raise InputError("table.entity_id: the experiments on privacy take one row for one person.")


def find(sizes: PrivacySizes, source: Source | None, progress: Progress) -> Findings:
    """Run the experiments on two generated tables, and on the one of a policy.

    Raises
    ------
    ConfigError, InputError
        If the policy's objective is not that of Algorithm 6, or its table cannot be used.
    """
    tables: list[tuple[Subject, Public]] = []
    notes: list[str] = []
    delta = Public(()).delta
    if source is not None:
        with progress.stage("read") as stage:
            whole = collect_subject(source)
            used, left_out = narrowed(whole, MOST_NODES)
            public = _public(source.policy, whole).first(used.k)
            delta = public.delta
            tables.append((used, public))
            notes += [*_notes(source.policy, whole.name), *left_out]
            stage.sentence = f"Collected {len(whole.counts):,} distinct records."
    with progress.stage("generate") as stage:
        for rows in dict.fromkeys((sizes.rows, sizes.large)):
            whole = replace(Subject.generated(sizes.seed, rows, sizes.attributes), name=f"generated, {rows:,} rows")
            used, left_out = narrowed(whole, MOST_NODES)
            tables.insert(0 if rows == sizes.rows else 1, (used, Public(public_schemes(used, rows), delta=delta)))
            notes += left_out
        stage.sentence = f"Generated tables of {sizes.rows:,} and {sizes.large:,} rows."
    found: list[TableResult] = []
    for subject, public in tables:
        with progress.stage(f"experiments on {subject.name}") as stage:
            found.append(run_on(subject, public, sizes))
            stage.sentence = f"Simulated releases of {subject.rows:,} rows."
    return findings(found, run_worst_case(), sizes, delta=float(delta), notes=notes)


def _public(policy: Policy, subject: Subject) -> Public:
    """The public parameters of a policy's release, or some made from the hierarchies."""
    dp = policy.guarantee
    if not isinstance(dp, DpGuarantee):
        # The number of rows is taken for public.
        return Public(public_schemes(subject, subject.rows))
    objective = None if isinstance(dp, GlobalDp) else dp.objective
    if not isinstance(objective, AggregateObjective):
        rule = "must be of the kind 'aggregate', that of Fouad's (2012) Algorithm 6, which is compared with"
        raise ConfigError([Fault("guarantee.objective", rule)])
    given = (None if isinstance(dp, GlobalDp | PeeledDp) else dp.schemes) or public_schemes(subject, dp.public_rows)
    public = Public(
        schemes=tuple(dict.fromkeys(tuple(scheme) for scheme in given)),
        delta=Fraction(dp.delta),
        lam=objective.lambda_ / objective.phi_min,
        kappa=float(objective.kappa),
        tau=float(objective.tau),
        count_cap=objective.count_cap or dp.public_rows,
    )
    if not dp.epsilon.admit:
        return public
    return replace(public, admitting=Fraction(dp.epsilon.admit) / Fraction(dp.epsilon.admit + dp.epsilon.keep))


def _notes(policy: Policy, name: str) -> Iterator[str]:
    """What a reader must know besides."""
    dp = policy.guarantee
    if not isinstance(dp, DpGuarantee):
        chosen = "its table's level vectors are chosen from the hierarchies."
        yield f"{name}: the policy is of the kind '{dp.kind}'; {chosen}"
        return
    yield (
        f"{name}: these are exact figures about a table that is released under differential privacy. They cost no "
        "budget because they stay here; whoever chooses the policy's parameters by them makes the parameters depend "
        "on the table, which the guarantee does not cover."
    )
    yield (
        f"{name}: level vectors, objective, δ and the split of ε are the policy's; ε and the sampling rate vary, noise "
        "is Gaussian, and sensitivity is 1 and utility depth for every record."
    )
    if dp.mode != "local":
        yield f"{name}: the policy's mode is '{dp.mode}'; here cells are admitted by noisy counts of the table itself."


EXPERIMENT = Experiment(
    name="privacy",
    title="Experiments on privacy",
    heading="Differential privacy",
    find=find,
    stages=3,
    stages_of_policy=2,
    usual=PrivacySizes(),
    quick=PrivacySizes(rows=2_000, large=20_000, attributes=3, records=20, runs=1),
    exact=False,
    check=check,
)
