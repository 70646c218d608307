"""All experiments: what is finished is not run again, what was stopped goes on, and all of it runs."""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from reproducing import reproduce
from shared import drawing

from benchmarks.s3_server import BUCKET
from privrisk_spark.errors import ConfigError, EngineError
from privrisk_spark.policy.reading import load
from privrisk_spark.runs.places import result_place
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore
from reproduce import collection
from reproduce.collection import FINISHED, LEFT_OUT, NAMES, PAGE, check_collection, named, run_all
from reproduce.dictionaries import experiment as dictionaries

pytestmark = pytest.mark.usefixtures("no_charts")

FEW = ("examples", "dictionaries")
DAY = dt.date(2026, 1, 2)


def run_few(place: Path | str, told: list[str], *, quick: bool = True, date: dt.date = DAY) -> None:
    run_all(
        None,
        None,
        place=result_place(str(place), "experiments"),
        run_id="t",
        date=date,
        quick=quick,
        names=FEW,
        tell=told.append,
    )


def test_every_experiment_is_among_them() -> None:
    packages = {path.parent.name for path in Path(collection.__file__).parent.glob("*/experiment.py")}
    assert set(NAMES) == packages
    for name in NAMES:
        assert named(name).name == name
        assert type(named(name).usual) is type(named(name).quick)


def test_in_a_store_what_is_finished_is_not_run_again_either(endpoint: str, tmp_path: Path) -> None:
    """The same documents as in a directory, whose names are said beside the store's."""
    store, told = ObjectStore(Location("s3", BUCKET, uuid4().hex)), []
    run_few(str(store.location), told)
    run_few(tmp_path, told)
    assert not any("before" in sentence for sentence in told)
    names = {entry.name for entry in store.entries()}
    there = {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()}
    assert {name for name in names if "status/" not in name} == {name for name in there if "status.json" not in name}
    assert {name for name in names if "status/" in name} == {"status/t.json", *(f"{n}/status/t.json" for n in FEW)}
    for name in ("examples/examples.json", "dictionaries/dictionaries.csv"):
        assert store.read(name).content == (tmp_path / name).read_bytes()
    assert json.loads(store.read("status/t.json").content)["message"] == f"experiments in {store.location}"
    told.clear()
    run_few(str(store.location), told)
    assert all(sentence.endswith("was finished before.") for sentence in told)
    ObjectStore(store.location.below("other")).write("notes.txt", b"mine")
    with pytest.raises(ConfigError, match="has other content than the experiments of an earlier run"):
        check_collection(str(store.location.below("other")))


def test_what_is_finished_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    run_few(tmp_path, told)
    assert told == ["Experiment 1 of 2: examples.", "Experiment 2 of 2: dictionaries."]
    page = (tmp_path / PAGE).read_bytes()
    assert b"Not run again, and why" in page
    assert b"The user study." in page
    told.clear()
    run_few(tmp_path, told)
    assert all(sentence.endswith("was finished before.") for sentence in told)
    assert (tmp_path / PAGE).read_bytes() == page
    told.clear()
    run_few(tmp_path, told, date=dt.date(2026, 1, 3))
    assert not any("before" in sentence for sentence in told)
    told.clear()
    (tmp_path / FINISHED).write_text("[1")
    run_few(tmp_path, told, date=dt.date(2026, 1, 3))
    assert not any("before" in sentence for sentence in told)
    (tmp_path / "examples" / "examples.json").write_text('{"claims": [')
    told.clear()
    run_few(tmp_path, told, date=dt.date(2026, 1, 3))
    assert [sentence.endswith("before.") for sentence in told] == [False, True], "what is not whole is made again"
    monkeypatch.setattr(collection, "__version__", "another")
    told.clear()
    run_few(tmp_path, told, date=dt.date(2026, 1, 3))
    assert not any("before" in sentence for sentence in told)


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def stop(*_: object) -> None:
        raise EngineError("stopped")

    with monkeypatch.context() as stopped:
        stopped.setattr(dictionaries, "EXPERIMENT", replace(dictionaries.EXPERIMENT, find=stop))
        with pytest.raises(EngineError):
            run_few(tmp_path, told)
    assert not (tmp_path / PAGE).exists()
    told.clear()
    run_few(tmp_path, told)
    assert told == ["Experiment 1 of 2: examples was finished before.", "Experiment 2 of 2: dictionaries."]


def test_a_directory_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(ConfigError, match="has other content than the experiments"):
        check_collection(str(tmp_path))


def test_what_is_not_run_again_is_listed_in_the_documents_as_on_the_page() -> None:
    guide = (Path(__file__).resolve().parents[2] / "docs" / "experiments.md").read_text()
    rows = [f"| {one.source} | {one.what} | {one.why} |" for one in LEFT_OUT]
    assert "\n".join(rows) in guide
    assert len(set(rows)) == len(rows)


@pytest.mark.thorough("the test of each experiment runs it")
def test_all_of_them_run(tmp_path: Path) -> None:
    """With every chart drawn, which other tests of experiments leave out."""
    place = tmp_path / "out"
    with drawing():
        ran = reproduce("all", "--quick", "--output", str(place))
    assert ran.exit_code == 0, ran.output
    page = (place / PAGE).read_text()
    links = set(re.findall(r'href="([^"#]+)"', page))
    assert links == {f"{name}/{name}.html" for name in NAMES}
    assert all((place / link).is_file() for link in links)
    told = json.loads((place / "experiments.json").read_text())
    assert [one["name"] for one in told["experiments"]] == list(NAMES)
    assert all(one["claims"] for one in told["experiments"])
    decided = [claim for one in told["experiments"] for claim in one["claims"] if claim["word"] != "not decided"]
    failed = [claim for claim in decided if claim["word"] != "holds"]
    assert failed, "the papers are not right in all"
    assert f"{len(decided)} claims were decided; {len(failed)} of them do not hold" in ran.output
    assert [one["what"] for one in told["not_run_again"]] == [one.what for one in LEFT_OUT]
    assert "A quick run" in page


def test_experiments_on_generated_data_alone_say_why_a_policy_is_not_used(tmp_path: Path) -> None:
    policy = load([str(Path(__file__).resolve().parents[2] / "conf" / "demo.yaml")], environment={"DEMO": "demo"})
    for name in ("examples", "dictionaries", "sharing"):
        asked = collection.Asked.of(name, policy, result_place(str(tmp_path), "experiments"), quick=True)
        assert asked.policy is None
        assert "takes no policy" in asked.why_not
    assert (
        collection.Asked.of("deciding", policy, result_place(str(tmp_path), "experiments"), quick=True).policy is policy
    )
    assert policy.output is not None
    with pytest.raises(ConfigError, match=r"must be neither output\.path"):
        collection.Asked.of("deciding", policy, result_place(policy.output.path, "experiments"), quick=True)
