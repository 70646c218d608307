"""Experiments on privacy (F12 chapter 6): every Spark action of them, and the files.

Without a policy they run on generated tables alone, and need no Spark. A policy adds its own table, collected as
distinct records, and, if it is differentially private, its public parameters. Everything else happens in memory; it is
no release, charges no ledger, and is for the trusted zone alone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from privrisk_spark import __version__
from privrisk_spark.engine.batches import Scratch
from privrisk_spark.errors import ConfigError, Fault, InputError
from privrisk_spark.experiments.deciding.run import MOST_NODES, collect_subject, narrowed
from privrisk_spark.experiments.deciding.subject import Subject
from privrisk_spark.experiments.page import render_privacy
from privrisk_spark.experiments.privacy.releases import Public, public_schemes
from privrisk_spark.experiments.privacy.results import (
    PrivacyExperiment,
    PrivacyResult,
    PrivacySizes,
    run_privacy,
    run_worst_case,
)
from privrisk_spark.planning.places import check_private_place
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.private import AggregateObjective, DpGuarantee, GlobalDp, PeeledDp
from privrisk_spark.runs.places import check_place, held, local_path, write_json, write_text
from privrisk_spark.runs.progress import Progress, write_status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = ("privacy.json", "privacy.csv", "privacy.html", "status.json", "unknown_values", ".lock")


def check_output(policy: Policy | None, output: str) -> Path:
    """Return the directory the experiments go to, resolved.

    Raises
    ------
    ConfigError, InputError
        If the directory is no place for them, or rows are not persons.
    """
    if policy is None:
        place = local_path(output)
        check_place(place, files=FILES, what="experiments")
        return place
    if policy.table.entity_id is not None:
        raise InputError("table.entity_id: the experiments on privacy take one row for one person.")
    return check_private_place(policy, output, files=FILES, what="experiments")


def privacy(
    spark: SparkSession | None,
    policy: Policy | None,
    sizes: PrivacySizes,
    *,
    place: Path,
    run_id: str,
    date: dt.date,
) -> PrivacyResult:
    """Run the experiments and write ``privacy.json``, ``privacy.csv`` and ``privacy.html``.

    Parameters
    ----------
    spark : SparkSession or None
        Needed for a policy alone.
    policy : Policy or None
    sizes : PrivacySizes
    place : Path
        As :func:`check_output` returns it.
    run_id : str
    date : date
        Business date.

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    EngineError
        Exit code 3: running again may help.
    """
    with held(place, run_id) as scratch:
        progress = Progress(place, run_id, 4 + 2 * (policy is not None))
        tables: list[tuple[Subject, Public]] = []
        notes: list[str] = []
        delta = Public(()).delta
        if policy is not None and spark is not None:
            with progress.stage("read") as stage:
                whole = collect_subject(spark, policy, Scratch(spark, scratch), place)
                used = whole.within(MOST_NODES)
                public = _public(policy, whole).first(used.k)
                delta = public.delta
                tables.append((used, public))
                notes += [*_notes(policy, whole.name), *narrowed(whole, used)]
                stage.sentence = f"Collected {len(whole.counts):,} distinct records."
        with progress.stage("generate") as stage:
            for rows in dict.fromkeys((sizes.rows, sizes.large)):
                whole = Subject.generated(sizes.seed, rows, sizes.attributes)
                used = replace(whole.within(MOST_NODES), name=f"generated, {rows:,} rows")
                tables.insert(0 if rows == sizes.rows else 1, (used, Public(public_schemes(used, rows), delta=delta)))
                notes += narrowed(whole, used)
            stage.sentence = f"Generated tables of {sizes.rows:,} and {sizes.large:,} rows."
        experiments: list[PrivacyExperiment] = []
        for subject, public in tables:
            with progress.stage(f"experiments on {subject.name}") as stage:
                experiments.append(run_privacy(subject, public, sizes))
                stage.sentence = f"Simulated releases of {subject.rows:,} rows."
        result = PrivacyResult(
            created=date.isoformat(),
            version=__version__,
            sizes=sizes,
            delta=float(delta),
            worst=run_worst_case(),
            experiments=tuple(experiments),
            notes=tuple(notes),
            private=policy is not None,
        )
        with progress.stage("write") as stage:
            write_text(place / "privacy.html", render_privacy(result))
            write_text(place / "privacy.csv", result.to_csv())
            write_json(place / "privacy.json", result.to_dict())
            stage.sentence = "Wrote data and plots."
        write_status(place, run_id, phase="written", code=0, message=f"experiments in {place}")
    return result


def _public(policy: Policy, subject: Subject) -> Public:
    """The public parameters of a policy's release, or some made from the hierarchies."""
    dp = policy.guarantee
    if not isinstance(dp, DpGuarantee):
        # The number of rows is taken for public.
        return Public(public_schemes(subject, subject.rows))
    objective = None if isinstance(dp, GlobalDp) else dp.objective
    if not isinstance(objective, AggregateObjective):
        rule = "must be of the kind 'aggregate', that of F12 Algorithm 6, which the experiments compare with"
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
