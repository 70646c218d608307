"""What is raised in tasks, by Spark and by file systems, as the errors of this package."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from privrisk_spark import errors
from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.failures import named, unreadable

OURS = [
    errors.InputError("columns.a: no."),
    errors.SchemaError("table.path: 'x': line \"7\"\nand \\ more ü."),
    errors.HierarchyError("no such node."),
    errors.CheckError("Not published."),
    errors.InternalError("This cannot be."),
]


@pytest.mark.parametrize("error", OURS, ids=lambda error: type(error).__name__)
def test_an_error_of_a_task_arrives_as_itself(spark, error):
    def step(tables):
        for table in tables:
            if table.column(0)[0].as_py() >= 0:
                raise error
            yield table

    rows = Batches.of_frame(spark.range(5))
    with pytest.raises(errors.PrivriskError) as caught, named():
        rows.then(step, rows.schema).frame().toArrow()
    assert type(caught.value) is type(error)
    assert str(caught.value) == str(error)


def test_faults_of_a_policy_in_a_task_are_an_error_of_the_input(spark):
    def step(tables):
        for table in tables:
            raise errors.ConfigError([errors.Fault("a.b", "must be c")])
            yield table

    rows = Batches.of_frame(spark.range(1))
    with pytest.raises(errors.InputError, match=r"^a\.b: must be c\.$"), named():
        rows.then(step, rows.schema).frame().toArrow()


def test_a_package_that_workers_lack_is_named(spark):
    def step(tables):
        import no_such.package  # noqa: F401

        yield from tables

    rows = Batches.of_frame(spark.range(1))
    with pytest.raises(errors.InputError, match=r"workers has no module 'no_such': set PYSPARK_PYTHON"), named():
        rows.then(step, rows.schema).frame().toArrow()


def test_other_errors_of_a_task_are_failures_whose_text_is_not_repeated(spark):
    def step(tables):
        for table in tables:
            raise ValueError("canary")
            yield table

    rows = Batches.of_frame(spark.range(1))
    with pytest.raises(errors.EngineError) as caught, named():
        rows.then(step, rows.schema).frame().toArrow()
    assert "canary" not in str(caught.value)
    with pytest.raises(errors.EngineError) as caught, named():
        spark.range(1).select(F.raise_error(F.lit("canary"))).toArrow()
    assert "canary" not in str(caught.value)


def test_files_of_a_run_itself_and_files_that_went_are_failures_of_the_engine():
    said = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///v/%s/p-1.parquet.  SQLSTATE: KD001"
    assert unreadable(said % ".scratch-r1~ab/encoded") is None
    assert "'/v/my rows': file p-1.parquet cannot be read" in str(unreadable(said % "my%20rows"))
    assert unreadable((said % "t").replace("NO_HINT", "FILE_NOT_EXIST")) is None
    assert unreadable("[DIVIDE_BY_ZERO] Division by zero.") is None


def test_a_plan_too_deep_for_java_is_told_with_what_would_do():
    found = unreadable("An error occurred while calling o9.toArrow.\n: java.lang.StackOverflowError\n\tat scala.x")
    assert type(found) is errors.InputError
    assert "-Xss" in str(found)
