"""All experiments one after the other, and one page of what was claimed beside what was found.

Each has a directory of its own below the one that is named. What an earlier run finished with the same sizes, policy,
date and version is not run again, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import datetime as dt
import importlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privrisk_spark import __version__
from privrisk_spark.errors import InputError
from privrisk_spark.experiments.run import Experiment, check_output, run
from privrisk_spark.planning.places import check_exact
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.pages import render_collection
from privrisk_spark.results.collection import Collection, Part
from privrisk_spark.results.experiment import plain
from privrisk_spark.runs.places import ResultPlace, result_place
from privrisk_spark.runs.progress import write_status

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMES = ("examples", "dictionaries", "deciding", "recoding", "adversary", "privacy", "compare", "sharing")
"""Every experiment, in the order they are run and told: chapter by chapter, the quick ones first."""

PAGE, FIGURES, FINISHED = "experiments.html", "experiments.json", "finished.json"


def named(name: str) -> Experiment[Any]:
    """Return an experiment by its name."""
    found: Experiment[Any] = importlib.import_module(f"privrisk_spark.experiments.{name}.experiment").EXPERIMENT
    return found


def check_collection(output: str) -> ResultPlace:
    """Return the place the results go to.

    Raises
    ------
    ConfigError
        If it holds anything else than such results.
    """
    place = result_place(output, "experiments")
    place.check()
    return place


@dataclass(frozen=True)
class Asked:
    """What one experiment is run with.

    Attributes
    ----------
    experiment : Experiment
    sizes : object
    policy : Policy or None
        None where there is none, or where the experiment cannot use it.
    why_not : str
        Why it cannot; empty otherwise.
    """

    experiment: Experiment[Any]
    sizes: Any
    policy: Policy | None
    why_not: str

    @classmethod
    def of(cls, name: str, policy: Policy | None, place: ResultPlace, *, quick: bool) -> Asked:
        """Settle what an experiment is run with.

        Raises
        ------
        ConfigError
            If its directory holds something else, or is where the policy reads or publishes.
        """
        experiment = named(name)
        sizes = experiment.quick if quick else experiment.usual
        why_not = "" if policy is None else _why_not(experiment, policy)
        used = None if why_not else policy
        check_output(experiment, used, str(place.below(name)))
        return cls(experiment, sizes, used, why_not)

    def key(self, date: dt.date) -> dict[str, Any]:
        """What must be the same for results to be taken from an earlier run."""
        return {
            "version": __version__,
            "date": date.isoformat(),
            "sizes": plain(self.sizes),
            "policy": None if self.policy is None else self.policy.digest(),
        }


def _why_not(experiment: Experiment[Any], policy: Policy) -> str:
    """Say why an experiment cannot use a policy's table; empty if it can."""
    try:
        experiment.check(policy)
        if experiment.exact:
            check_exact(policy, what="experiments")
    except InputError as error:
        return str(error)
    return ""


def run_all(
    spark: SparkSession | None,
    policy: Policy | None,
    *,
    place: ResultPlace,
    run_id: str,
    date: dt.date,
    quick: bool,
    names: Sequence[str] = NAMES,
    tell: Callable[[str], object],
    table: DataFrame | None = None,
) -> Collection:
    """Run every experiment that is not finished, and write the page of all.

    Parameters
    ----------
    spark : SparkSession or None
        Needed for a policy alone.
    policy : Policy or None
        Experiments that cannot use it run on generated data alone, and the page says why.
    place : ResultPlace
        As :func:`check_collection` returns it.
    run_id : str
    date : date
        Business date.
    quick : bool
        Small sizes, to see that all of it runs.
    names : sequence of str
    tell : callable
        Takes a sentence as each experiment begins.
    table : DataFrame, optional
        In place of the table the policy names; experiments on it are never taken from an earlier run.

    Raises
    ------
    InputError
        Exit code 2: the data must be mended, or a directory holds something else.
    EngineError
        Exit code 3: running again goes on with the experiment that failed.
    """
    parts = []
    with place.held(run_id):
        finished = _finished(place)
        for number, name in enumerate(names, start=1):
            asked, there = Asked.of(name, policy, place, quick=quick), place.below(name)
            key, known = asked.key(date), finished.get(name, {})
            same = known.get("asked") == key and (table is None or asked.policy is None)
            document = _read(there, f"{name}.json") if same else {}
            if document:
                tell(f"Experiment {number} of {len(names)}: {name} was finished before.")
            else:
                tell(f"Experiment {number} of {len(names)}: {name}.")
                began = time.monotonic()
                run(
                    asked.experiment,
                    spark,
                    asked.policy,
                    asked.sizes,
                    place=there,
                    run_id=run_id,
                    date=date,
                    table=table,
                )
                known = {"asked": key, "seconds": round(time.monotonic() - began, 1)}
                finished[name] = known
                place.put_json(FINISHED, finished)
                document = _read(there, f"{name}.json")
            parts.append(
                Part.of(
                    name,
                    asked.experiment.heading,
                    document,
                    seconds=known["seconds"],
                    private=asked.policy is not None,
                    why_not=asked.why_not,
                )
            )
        result = Collection(date.isoformat(), __version__, quick, tuple(parts))
        place.put_text(PAGE, render_collection(result))
        place.put_json(FIGURES, result.to_dict())
        write_status(place.status, run_id, phase="written", code=0, message=f"experiments in {place}")
    return result


def _finished(place: ResultPlace) -> dict[str, Any]:
    """What earlier runs say they finished."""
    found = _read(place, FINISHED)
    return found if all(isinstance(one, Mapping) for one in found.values()) else {}


def _read(place: ResultPlace, name: str) -> dict[str, Any]:
    """What a file of an earlier run holds; nothing if it is not there, or not whole."""
    try:
        found = json.loads(place.read(name) or b"{}")
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
