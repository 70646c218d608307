"""The audit: the mechanism passes, every planted fault is flagged by the part that must see it."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from policies_of_audit import CHOOSING, GLOBAL, audited
from product import ROOT
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from typer.testing import CliRunner

from privrisk_spark.audit import trials as adversary
from privrisk_spark.cli.app import app
from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.kernels.dp.scheme_choice import peel
from privrisk_spark.kernels.random import discrete_laplace, keyed
from privrisk_spark.pipelines.audit import Subject, collect_findings, collect_repetitions
from privrisk_spark.results.audit import AuditResult
from privrisk_spark.stages.private import admission, crowds, release_keys, sampling

TRIALS = 1000
"""Of each table where a fault is planted, 500 of which certify. An event that has probability 1 under one table and 0
under the other gives a bound of ln(0.96 / 0.021) = 3.8; the least likely one needed here (all of 10 rows kept at 0.86,
0.23) gives 1.9. Claims are 1 and 1.5."""

Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def _usual_batches(spark: SparkSession) -> Iterator[None]:
    batch = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(batch)
    spark.conf.set(batch, "10000")
    yield
    spark.conf.set(batch, before)


# ------------------------------------------------------------------------------------------ the whole, once


@pytest.mark.thorough("every experiment of it runs below, with fewer trials")
def test_the_whole_audit_of_the_mechanism(tmp_path: Path) -> None:
    """The command as a person runs it: 20,000 trials of each table, tasks that really fail; the table is not there."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    place = tmp_path / "audit"
    command = [sys.executable, "-m", "privrisk_spark.cli.app", "audit", str(policy), "--output", str(place)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environment |= {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    found = json.loads((place / "audit.json").read_text())
    assert found["passed"]
    assert found["flags"] == []
    crowd, identity, draw, admission, persons, choice = found["experiments"]
    assert [one["trials"] for one in found["experiments"]] == [20_000] * 4 + [2_000, 4_000]
    # What can be seen at 10,000 certifying trials of 12 rows against 11: the true ln((.137 - .02) / .0645) is 0.60.
    assert 0.3 < max(bound["epsilon_at_least"] for bound in crowd["bounds"]) < 0.6
    assert 0.2 < max(bound["epsilon_at_least"] for bound in identity["bounds"]) < 0.6
    assert all(bound["epsilon_at_least"] < 0.5 for one in (draw, admission, persons) for bound in one["bounds"])
    # Two picks at 0.5 each of neighbouring tables: something is seen of it, and not more than is claimed.
    assert all(bound["epsilon_at_least"] < 1 for bound in choice["bounds"])
    assert [cell["conforms"] for cell in choice["conformance"]] == [True, True]
    assert {one["invariant"]["least_rows"] for one in found["experiments"] if one is not choice} == {10}
    ways = [one["execution"] for one in found["idempotence"]]
    assert len(ways) == 6
    assert sum("fails once" in way for way in ways) == 3, "a local session of this command tries again"
    assert all(one["identical"] for one in found["idempotence"])
    page = (place / "audit.html").read_text()
    assert "Nothing was flagged" in page
    assert "law of the certificate" in page
    assert sorted(path.name for path in place.iterdir()) == [
        ".privrisk.json",
        "audit.html",
        "audit.json",
        "status.json",
    ]
    assert not list(tmp_path.glob("out*"))
    assert not (tmp_path / "ledger.db").exists()


POLICY = """
version: 1
run: {name: audited}
table: {path: not/there.csv, format: csv, options: {header: true}, entity_id: who}
columns:
  place: {role: quasi-identifier, hierarchy: {tree: {"*": [z, {north: [a, b, {far: [c]}]}, {south: [d, e]}]}}}
  sex: {role: quasi-identifier, hierarchy: {flat: {values: [u, v]}}}
  who: {role: identifier}
guarantee:
  kind: dp
  epsilon: {choose: 0.05, admit: 0.3, keep: 0.7}
  delta: 1e-9
  public_rows: 30000
  candidates: [[0, 0], [1, 0], [2, 1]]
  peel: 2
  objective: {phi_min: 1}
output: {path: out, vault: vault}
ledger: {url: "sqlite:///ledger.db", lineage: audited, cap: {epsilon: 4, delta: 1e-7}}
"""


# ------------------------------------------------------------------------------------------ planted faults


def no_sampling(patch: pytest.MonkeyPatch) -> None:
    drawing = sampling.drawing

    def faulty(recoding: Any, admissible: Any, keys: Any) -> Any:
        decide = drawing(recoding, admissible, keys)
        return lambda table: replace(decide(table), kept=np.ones(table.num_rows, dtype=np.bool_))

    patch.setattr(sampling, "drawing", faulty)


def no_crowd_threshold(patch: pytest.MonkeyPatch) -> None:
    def faulty(tuples: Any, *, k: int, crowd: int) -> Any:
        return tuples.groupBy(*schemas.nodes(k)).agg(F.sum(schemas.N_ROWS).alias(schemas.N_ROWS))

    patch.setattr(crowds, "crowd_histogram", faulty)


OTHER = adversary.audit_keys(77, "another draw")


def two_draws_either_publishes(patch: pytest.MonkeyPatch) -> None:
    drawing = sampling.drawing

    def faulty(recoding: Any, admissible: Any, keys: Any) -> Any:
        one, two = drawing(recoding, admissible, keys), drawing(recoding, admissible, OTHER)

        def run(table: pa.Table) -> Any:
            first = one(table)
            return replace(first, kept=first.kept | two(table).kept)

        return run

    patch.setattr(sampling, "drawing", faulty)


def two_draws_both_published(patch: pytest.MonkeyPatch) -> None:
    histogram = adversary.collect_histogram

    def faulty(scratch: Any, rows: Any, recoding: Any, admissible: Any, keys: Any, **_: Any) -> Any:
        one = histogram(scratch, rows, recoding, admissible, keys, name="one")
        two = histogram(scratch, rows, recoding, admissible, OTHER, name="two")
        names = schemas.nodes(len(recoding.ancestor))
        return one.union(two).groupBy(*names).agg(F.sum(schemas.N_ROWS).alias(schemas.N_ROWS))

    patch.setattr(adversary, "collect_histogram", faulty)


def counted_on_one_draw_written_from_another(patch: pytest.MonkeyPatch) -> None:
    histogram = adversary.collect_histogram

    def faulty(scratch: Any, rows: Any, recoding: Any, admissible: Any, keys: Any, **_: Any) -> Any:
        counted = histogram(scratch, rows, recoding, admissible, keys, name="counted")
        k = len(recoding.ancestor)
        decide = sampling.drawing(recoding, admissible, OTHER)
        written = adversary.collect_tuples(scratch, rows, decide, k, "written", attempts="once")
        names = schemas.nodes(k)
        whole = written.frame(scratch.spark).groupBy(*names).agg(F.sum(schemas.N_ROWS).alias(schemas.N_ROWS))
        return whole.join(counted.select(*names), names, "left_semi")

    patch.setattr(adversary, "collect_histogram", faulty)


def identical_rows_share_a_draw(patch: pytest.MonkeyPatch) -> None:
    encode = adversary.encode

    def faulty(frame: Any, policy: Any, hierarchies: Any, *, blocks: bool) -> Any:
        rows = encode(frame, policy, hierarchies, blocks=blocks)
        content = F.split(F.col(schemas.RECORD_ID), "-")[0]
        block = F.unhex(F.substring(F.sha2(content, 256), 1, 32))
        return Batches.of_frame(rows.frame().withColumn(schemas.BLOCK, block))

    patch.setattr(adversary, "encode", faulty)


def suppressed_count_in_the_manifest(patch: pytest.MonkeyPatch) -> None:
    published = adversary.collect_published

    def faulty(scratch: Any, trials: Any, rows: Any, recoding: Any, keys: Any, **_: Any) -> Any:
        found = published(scratch, trials, rows, recoding, keys)
        decide = sampling.drawing(recoding, trials.admitted(recoding), keys)
        tuples = adversary.collect_tuples(scratch, rows, decide, trials.k, "all", attempts="once")
        whole = tuples.frame(scratch.spark).groupBy("n0").agg(F.sum(schemas.N_ROWS).alias(schemas.N_ROWS)).toArrow()
        sampled = np.zeros(trials.total, dtype=np.int64)
        sampled[whole["n0"].to_numpy()] = whole[schemas.N_ROWS].to_numpy()
        return replace(found, manifest={**found.manifest, "suppressed": sampled - found.manifest["rows"]})

    patch.setattr(adversary, "collect_published", faulty)


def keep_probability_too_high(patch: pytest.MonkeyPatch) -> None:
    drawing = sampling.drawing

    def faulty(recoding: Any, admissible: Any, keys: Any) -> Any:
        plan = recoding.mechanism
        kept = {"keep_numerator": plan.keep_numerator * 11 // 10}
        higher = replace(recoding, mechanism=plan.model_copy(update=kept))
        return drawing(higher, admissible, keys)

    patch.setattr(sampling, "drawing", faulty)


def exact_fixed_threshold(patch: pytest.MonkeyPatch) -> None:
    def faulty(cells: Any, recoding: Any, keys: Any) -> Any:
        def step(tables: Any) -> Any:
            for table in tables:
                exact = table.rename_columns([*table.column_names[:-1], schemas.NOISY])
                yield exact.filter(pc.field(schemas.NOISY) >= recoding.mechanism.frequent)

        return cells.then(step, schemas.cells(len(recoding.ancestor), noisy=True))

    patch.setattr(sampling, "admitted_cells", faulty)


def algorithm_6(patch: pytest.MonkeyPatch) -> None:
    """F12 Algorithm 6 with a fixed t: exact counts, sampling, no crowd threshold."""
    exact_fixed_threshold(patch)
    no_crowd_threshold(patch)


def noise_of_half_the_scale(patch: pytest.MonkeyPatch) -> None:
    admitted = sampling.admitted_cells

    def faulty(cells: Any, recoding: Any, keys: Any) -> Any:
        plan = recoding.mechanism
        if isinstance(plan.admission, discrete_laplace.LaplaceAdmission):
            less = {"scale": plan.scale / 2}
        else:
            less = {"sigma_squared": plan.sigma_squared // 4}
        return admitted(cells, replace(recoding, mechanism=plan.model_copy(update=less)), keys)

    patch.setattr(sampling, "admitted_cells", faulty)


def one_noise_for_all_schemes(patch: pytest.MonkeyPatch) -> None:
    """The noise of a trial's count is keyed without the scheme."""
    collected = adversary.collect_published

    def faulty(scratch: Any, trials: Any, *arguments: Any, **_: Any) -> Any:
        found = collected(scratch, trials, *arguments)
        return replace(found, cells=np.repeat(found.cells[:, :1], found.cells.shape[1], axis=1))

    patch.setattr(adversary, "collect_published", faulty)


def every_row_a_person(patch: pytest.MonkeyPatch) -> None:
    """Rows are not reduced."""
    patch.setattr(release_keys, "one_row_each", lambda encoded, _: encoded.frame().drop(schemas.ENTITY))


def the_row_of_the_finest_values(patch: pytest.MonkeyPatch) -> None:
    """One row of each person, but which it is depends on the rows' values, and on no key."""
    reduced = release_keys.one_row_each

    def faulty(encoded: Any, keys: Any) -> Any:
        names = [name for name in encoded.schema.fieldNames() if name != schemas.ENTITY]
        of_nobody = Batches.of_frame(encoded.frame().where(F.col(schemas.ENTITY).isNull()))
        named = encoded.frame().where(F.col(schemas.ENTITY).isNotNull())
        row = F.min(F.struct(*[name for name in names if name != schemas.BLOCK], schemas.BLOCK)).alias("row")
        first = named.groupBy(schemas.ENTITY).agg(row).select("row.*").select(*names)
        return first.unionByName(reduced(of_nobody, keys))

    patch.setattr(release_keys, "one_row_each", faulty)


def rows_of_nobody_are_one_person(patch: pytest.MonkeyPatch) -> None:
    reduced = release_keys.one_row_each

    def faulty(encoded: Any, keys: Any) -> Any:
        named = encoded.frame().fillna("nobody", [schemas.ENTITY])
        return reduced(Batches.of_frame(named), keys)

    patch.setattr(release_keys, "one_row_each", faulty)


def the_best_scheme_always(patch: pytest.MonkeyPatch) -> None:
    def faulty(scores: Any, epsilon: Any, streams: Any) -> Any:
        order = sorted(range(len(scores)), key=lambda candidate: (-scores[candidate], candidate))
        return np.array(order[: streams.size])

    patch.setattr(admission, "peel", faulty)


def most_rows_without_noise(patch: pytest.MonkeyPatch) -> None:
    """The exact counts decide."""
    chosen = admission.chosen

    def faulty(mechanism: Any, excess: Any, keys: Any) -> Any:
        drawn = chosen(mechanism, excess, keys)
        order = np.argsort(-excess, kind="stable")[: mechanism.picks]
        return drawn.with_schemes(tuple(mechanism.candidates[i] for i in order))

    patch.setattr(admission, "chosen", faulty)


def chosen_at(factor: Fraction) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(admission, "peel", lambda scores, epsilon, streams: peel(scores, epsilon * factor, streams))

    return plant


twice_the_temperature, half_the_temperature = chosen_at(Fraction(1, 2)), chosen_at(Fraction(2))
twice_the_temperature.__name__, half_the_temperature.__name__ = "twice_the_temperature", "half_the_temperature"


def precision_forgotten(patch: pytest.MonkeyPatch) -> None:
    scores = admission.scores
    patch.setattr(admission, "scores", lambda excess, precisions: scores(excess, [Fraction(1)] * len(precisions)))


def one_key_for_all_picks(patch: pytest.MonkeyPatch) -> None:
    """Every pick of a release draws with the same words."""

    def faulty(scores: Any, epsilon: Any, streams: Any) -> Any:
        left, picked = list(range(len(scores))), []
        for _ in range(streams.size):
            again = deepcopy_of(streams)
            (at,) = peel([scores[i] for i in left], epsilon, again)
            picked.append(left.pop(at))
        return np.array(picked)

    def deepcopy_of(streams: Any) -> Any:
        other = copy.copy(streams)
        other.size, other._drawn, other._buffer = 1, streams._drawn.copy(), streams._buffer.copy()
        return other

    patch.setattr(admission, "peel", faulty)


def nothing(patch: pytest.MonkeyPatch) -> None:
    """The mechanism as it is."""


def flags(spark: SparkSession, directory: Path, name: str, policy: Any = None, seed: int = 1) -> AuditResult:
    """Findings of one experiment as an audit."""
    subject = Subject.of(policy or audited(), seed=seed)
    (experiment,) = [one for one in subject.profile.experiments if one.name == name]
    found = collect_findings(Scratch(spark, directory), subject, experiment, TRIALS)
    return AuditResult("t", "d", "v", 1, {}, (found,), ())


@pytest.mark.parametrize(
    ("plant", "experiment", "must", "must_not"),
    [
        # Where nothing is planted nothing is flagged; of the other experiments the whole audit above shows it.
        (nothing, "crowd", set(), {"bound", "invariant", "conformance"}),
        (no_sampling, "crowd", {"bound", "conformance"}, {"invariant"}),
        (no_sampling, "admission", {"conformance"}, {"invariant"}),
        (no_crowd_threshold, "crowd", {"bound", "invariant"}, set()),
        (two_draws_either_publishes, "crowd", {"bound", "conformance"}, {"invariant"}),
        (two_draws_both_published, "crowd", {"conformance"}, {"bound", "invariant"}),
        (counted_on_one_draw_written_from_another, "crowd", {"invariant"}, {"bound"}),
        (identical_rows_share_a_draw, "identity", {"bound", "conformance"}, {"invariant"}),
        (suppressed_count_in_the_manifest, "crowd", {"bound"}, {"invariant", "conformance"}),
        (keep_probability_too_high, "crowd", {"conformance"}, {"bound", "invariant"}),
        (exact_fixed_threshold, "admission", {"bound"}, {"invariant"}),
        (algorithm_6, "admission", {"bound", "invariant"}, set()),
        (noise_of_half_the_scale, "admission", {"conformance"}, {"bound", "invariant"}),
        (one_noise_for_all_schemes, "admission", {"conformance"}, {"bound", "invariant"}),
    ],
    ids=lambda value: value.__name__ if callable(value) else value if isinstance(value, str) else "",
)
def test_every_planted_fault_is_flagged_by_the_part_that_must_see_it(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plant: Plant,
    experiment: str,
    must: set[str],
    must_not: set[str],
) -> None:
    plant(monkeypatch)
    result = flags(spark, tmp_path, experiment)
    assert must <= set(result.parts), result.flags
    assert not must_not & set(result.parts), result.flags


@pytest.mark.parametrize(
    ("plant", "must", "must_not", "guarantee"),
    [
        (nothing, set(), {"bound", "invariant", "conformance"}, GLOBAL),
        (every_row_a_person, {"bound", "conformance"}, {"invariant"}, {}),
        (every_row_a_person, {"bound", "conformance"}, {"invariant"}, GLOBAL),
        (the_row_of_the_finest_values, {"conformance"}, {"invariant"}, {}),
        (rows_of_nobody_are_one_person, {"conformance"}, {"invariant"}, {}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_person_with_many_rows_is_one_row(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plant: Plant,
    must: set[str],
    must_not: set[str],
    guarantee: Any,
) -> None:
    plant(monkeypatch)
    result = flags(spark, tmp_path, "persons", audited(entity_id="who", **guarantee))
    assert must <= set(result.parts), result.flags
    assert not must_not & set(result.parts), result.flags


@pytest.mark.parametrize(
    ("plant", "must", "guarantee"),
    [
        (nothing, set(), GLOBAL),
        (the_best_scheme_always, {"conformance"}, CHOOSING),
        (most_rows_without_noise, {"conformance"}, CHOOSING),
        (twice_the_temperature, {"conformance"}, CHOOSING),
        (half_the_temperature, {"conformance"}, CHOOSING),
        (precision_forgotten, {"conformance"}, CHOOSING),
        (one_key_for_all_picks, {"conformance"}, CHOOSING),
        # Of one pick for all rows the law is another, so that it must be seen there, too.
        (most_rows_without_noise, {"conformance"}, GLOBAL),
        (twice_the_temperature, {"conformance"}, GLOBAL),
        (half_the_temperature, {"conformance"}, GLOBAL),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_the_choice_of_schemes_is_held_against_its_law(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plant: Plant,
    must: set[str],
    guarantee: Any,
) -> None:
    plant(monkeypatch)
    result = flags(spark, tmp_path, "choice", audited(**guarantee))
    assert must == set(result.parts), result.flags


@pytest.mark.parametrize(
    ("plant", "parts"),
    [(nothing, []), (no_crowd_threshold, ["bound", "invariant", "conformance"])],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_one_scheme_for_all_rows_is_sampled_and_cut_like_any_other(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant, parts: list[str]
) -> None:
    asked: list[int] = []
    recoded = sampling.full_domain

    def counted(*arguments: Any) -> Any:
        asked.append(1)
        return recoded(*arguments)

    monkeypatch.setattr(sampling, "full_domain", counted)
    plant(monkeypatch)
    assert flags(spark, tmp_path, "crowd", audited(**GLOBAL)).parts == parts
    assert asked, "the function that recodes in mode global"


@pytest.mark.parametrize(("plant", "parts"), [(nothing, []), (noise_of_half_the_scale, ["conformance"])])
def test_laplace_noise_is_held_against_its_law(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Plant, parts: list[str]
) -> None:
    subject = Subject.of(audited(noise="laplace"), seed=1)
    experiment = subject.profile.experiments[-1]
    assert isinstance(experiment.mechanism.admission, discrete_laplace.LaplaceAdmission)
    plant(monkeypatch)
    found = collect_findings(Scratch(spark, tmp_path), subject, experiment, TRIALS)
    assert AuditResult("t", "d", "v", 1, {}, (found,), ()).parts == parts


# ------------------------------------------------------------------------------------------ one key, one release


def unkeyed_draw(patch: pytest.MonkeyPatch) -> None:
    drawing = sampling.drawing

    def faulty(recoding: Any, admissible: Any, keys: Any) -> Any:
        decide, keep = drawing(recoding, admissible, keys), recoding.mechanism.keep_numerator / 2**32

        def run(table: pa.Table) -> Any:
            # As Spark's rand(seed): a function of the place of a row, not of the row.
            drawn = np.random.default_rng(7).random(table.num_rows) < keep
            return replace(decide(table), kept=drawn)

        return run

    patch.setattr(sampling, "drawing", faulty)


def any_row_of_a_person(patch: pytest.MonkeyPatch) -> None:
    """Whichever row Spark meets first."""

    def faulty(encoded: Any, _: Any) -> Any:
        names = [name for name in encoded.schema.fieldNames() if name != schemas.ENTITY]
        person = F.coalesce(F.col(schemas.ENTITY), F.hex(schemas.BLOCK)).alias("person")
        return encoded.frame().groupBy(person).agg(F.first(F.struct(*names)).alias("row")).select("row.*")

    patch.setattr(release_keys, "one_row_each", faulty)


def both_attempts_count(patch: pytest.MonkeyPatch) -> None:
    """Parts are listed from their directory, so that what a lost attempt left behind counts too."""
    tuples = adversary.collect_tuples

    def faulty(*arguments: Any, **options: Any) -> Any:
        parts = tuples(*arguments, **options)
        names = sorted(path.name for path in Path(str(parts.directory)).iterdir() if path.suffix == ".arrow")
        return replace(parts, names=tuple(names))

    patch.setattr(adversary, "collect_tuples", faulty)


@pytest.mark.parametrize(
    ("name", "plant", "identical"),
    [
        # That all is the same where nothing is planted the whole audit shows of every experiment.
        ("draw", nothing, True),
        ("draw", unkeyed_draw, False),
        ("draw", both_attempts_count, False),
        ("admission", unkeyed_draw, False),
        ("admission", both_attempts_count, False),
        ("persons", any_row_of_a_person, False),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_second_draw_is_seen(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, plant: Plant, identical: bool
) -> None:
    plant(monkeypatch)
    subject = Subject.of(audited(entity_id="who"), seed=1)
    (experiment,) = [one for one in subject.profile.experiments if one.name == name]
    found = collect_repetitions(Scratch(spark, tmp_path), subject, experiment, 50)
    assert [one.identical for one in found] == [identical], "a session that does not try again repeats work only"
    result = AuditResult("t", "d", "v", 1, {}, (), tuple(found))
    assert result.parts == ([] if identical else ["idempotence"])


def test_noise_that_is_drawn_anew_is_seen(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    admitted = sampling.admitted_cells
    keys = iter(range(100))
    monkeypatch.setattr(
        sampling,
        "admitted_cells",
        lambda cells, recoding, _: admitted(cells, recoding, adversary.audit_keys(next(keys), "")),
    )
    subject = Subject.of(audited(), seed=1)
    found = collect_repetitions(Scratch(spark, tmp_path), subject, subject.profile.experiments[-1], 50)
    assert [one.identical for one in found] == [False]


# ------------------------------------------------------------------------------------------ rows, keys, command


def test_rows_are_the_tables_asked_for_with_identities_of_their_own(spark: SparkSession) -> None:
    subject = Subject.of(audited(), seed=1)
    experiment = subject.profile.experiments[0]
    few = adversary.Trials(experiment, subject.profile.kinds, 3)
    tables = [few.rows(spark, parts=parts, backwards=parts == 5).frame().toArrow() for parts in (1, 5)]
    for table in tables:
        assert pc.count_distinct(table["block"]).as_py() == table.num_rows
        for number, (targets, others) in enumerate(experiment.tables):
            for trial in range(3):
                rows = table.filter(pc.equal(table["q0"], number * 3 + trial))
                kinds = np.column_stack([rows["q1"].to_numpy(), rows["q2"].to_numpy()])
                assert (kinds == subject.profile.kinds[0]).all(axis=1).sum() == targets
                assert (kinds == subject.profile.kinds[1]).all(axis=1).sum() == others
    one, two = ({tuple(row.values()) for row in table.to_pylist()} for table in tables)
    assert one == two, "however they are spread"
    of_persons = Subject.of(audited(entity_id="who"), seed=1)
    persons = adversary.Trials(of_persons.profile.experiments[-1], of_persons.profile.kinds, 2)
    for table in (persons.rows(spark, parts=p, backwards=p == 3).frame().toArrow() for p in (1, 3)):
        assert pc.count_distinct(table["block"]).as_py() == table.num_rows == 2 * (90 + 60 + 160)
        whose = Counter(zip(table["q0"].to_pylist(), table["entity"].to_pylist(), strict=True))
        assert [whose[trial, None] for trial in range(6)] == [60] * 4 + [0] * 2
        assert sorted(n for (trial, who), n in whose.items() if who and trial < 2) == [30, 30]
        both = [who for (trial, who), n in whose.items() if who and trial > 3 and n == 2]
        assert len(both) == len(set(both)) == 2 * 80, "nobody is in two trials"
        kinds = Counter(zip(table["entity"].to_pylist(), table["q1"].to_pylist(), table["q2"].to_pylist(), strict=True))
        assert all(kinds[who, *kind] == 1 for who in both for kind in of_persons.profile.kinds.tolist())
    read = subject.profile.experiments[1]
    many = adversary.Trials(read, subject.profile.kinds, 4)
    rows = many.rows_as_read(spark, subject.policy, subject.hierarchies).frame().toArrow()
    assert pc.count_distinct(rows["block"]).as_py() == rows.num_rows == 4 * 21
    assert np.bincount(rows["q0"].to_numpy()).tolist() == [11] * 4 + [10] * 4
    assert {(row["q1"], row["q2"]) for row in rows.to_pylist()} == {tuple(subject.profile.kinds[0].tolist())}


def test_keys_of_an_audit_are_public_and_of_no_release() -> None:
    one, again, other = (adversary.audit_keys(seed, name) for seed, name in ((1, "crowd"), (1, "crowd"), (2, "crowd")))
    assert one == again
    assert len({one.keep, other.keep, adversary.audit_keys(1, "draw").keep}) == 3
    # Under whatever secret, a release's keys are bound to a run id, and none is the audit's.
    assert one.keep != keyed.derive_key(bytes(32), "r", "", "crowd", "keep")


def test_the_command_says_what_it_flags(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(POLICY)
    keep_probability_too_high(monkeypatch)
    asked = ["audit", "policy.yaml", "--output", "found", "--trials", "1000", "--seed", "3"]
    ran = CliRunner().invoke(app, asked)
    assert ran.exit_code == 1, ran.output
    assert "Audit FLAGGED" in ran.stdout
    assert "conformance: Sampling and crowd threshold, cell of 300 rows: mean 208" in ran.stdout
    found = json.loads(Path("found/audit.json").read_text())
    assert not found["passed"]
    assert {flag["part"] for flag in found["flags"]} == {"conformance"}
    assert found["seed"] == 3
    assert json.loads(Path("found/status.json").read_text())["code"] == 1
    page = Path("found/audit.html").read_text()
    assert "The audit flags a fault" in page
    assert "mean 208" in page
    # The same place may be used again, another directory's content is not touched.
    Path("other").mkdir()
    Path("other/mine").write_text("x")
    refused = CliRunner().invoke(app, [*asked[:2], "--output", "other"])
    assert refused.exit_code == 2
    assert "--output: has other content" in refused.stderr
    Path("risk.yaml").write_text(
        POLICY.split("guarantee:")[0] + "decision: {utility_at_least: 1}\noutput: {path: out, vault: vault}\n"
    )
    by_risk = CliRunner().invoke(app, ["audit", "risk.yaml", "--output", "found"])
    assert by_risk.exit_code == 2
    assert "guarantee.kind: an audit refutes claims" in by_risk.stderr
