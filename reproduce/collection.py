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

from privrisk_spark.errors import InputError
from privrisk_spark.planning.places import check_exact
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.places import ResultPlace, result_place
from privrisk_spark.runs.progress import write_status
from privrisk_spark.version import __version__
from reproduce import NAMES
from reproduce.pages import render_collection
from reproduce.result import plain
from reproduce.run import Experiment, check_output, run
from reproduce.summary import Collection, LeftOut, Part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEFT_OUT = (
    LeftOut(
        "Lebanon et al. 2006; Fouad 2012, chapters 3 to 6",
        "The tables: items of a store (400,000 rows, 70 attributes) and its members (5,667,004 rows).",
        "They are not public. Figures are made on generated tables and on yours, so absolute numbers cannot agree.",
    ),
    LeftOut(
        "Lebanon et al. 2006; Fouad 2012, §3.1, §4.6",
        "Dictionary records are consistent if their labels are alike by Jaro at 80 %.",
        "The risk is not monotone then, and no search applies. Here a record is consistent if it generalizes.",
    ),
    LeftOut(
        "Lebanon et al. 2006; Fouad 2012, §3.1",
        "The multiplicative sensitivity gives a greater risk than the additive one.",
        "No run can refute it: exp(s) is greater than s for every sum s of weights.",
    ),
    LeftOut(
        "Fouad 2012, Figs 3.2 and 4.12",
        "The mean of ten arbitrary k-anonymous tables for each k.",
        "How they are drawn is not stated. Here it is the k-anonymous table of the greatest utility.",
    ),
    LeftOut(
        "Fouad 2012, Fig. 4.12",
        "ARUBA has less risk than the discrete optimization, a heuristic branch and bound.",
        "The heuristic is not described. Branch and bound here is exact, so both find the same risk.",
    ),
    LeftOut(
        "Fouad 2012, Figs 4.1 to 4.3 and 4.6 to 4.10",
        "Hierarchies, lattices, and steps of the genetic search.",
        "They illustrate definitions, and claim nothing.",
    ),
    LeftOut(
        "Fouad 2012, Fig. 6.1(a)",
        "The draw with β = 1.",
        "ε′ divides by 1 − β. Here β is 0.5.",
    ),
    LeftOut(
        "Fouad 2012, §6.4",
        "Privacy holds with any probability close to 1 if the table is large enough.",
        "A run cannot show privacy. The true δ of counterexamples is computed instead (Theorem 6.4.1).",
    ),
    LeftOut(
        "Fouad 2012, §7.1",
        "Determining the optimal levels of sharing is NP-hard.",
        "This is about all inputs. That some are solved, or not solved in time, decides nothing.",
    ),
    LeftOut(
        "Fouad 2012, §7.1, Theorem 7.5.1",
        "Modified-Aggregate is scalable, and ends in expected polynomial time.",
        "No number is stated, and a few sizes do not decide it. The chart of times shows how they grow.",
    ),
    LeftOut(
        "Fouad 2012, Fig. 7.3",
        "500,000 users, and ten times 50,000 pairs.",
        "It would take hours. The default is 50,000 users and 1,000 pairs; --users and --pairs take more.",
    ),
    LeftOut(
        "Fouad 2012, Tables 7.1 to 7.4",
        "The user study.",
        "The answers are not published.",
    ),
    LeftOut(
        "Xia et al. 2015, Fig. 5",
        "Two linear programs take 616 s and 13,444 s for 5,000 records.",
        "Times of another machine and of CPLEX. The project's benchmark solves the same programs by HiGHS.",
    ),
    LeftOut(
        "Xia et al. 2015, §7.2.2",
        "64 % of the records have more than 55 candidates.",
        "The voter registry is not included. The generated one is shaped to this share, so it proves nothing.",
    ),
    LeftOut(
        "Raschia 2023",
        "The lattices of Incognito's example (postal code, sex, birth date).",
        "The slides do not print its table. Incognito is run on other tables.",
    ),
    LeftOut(
        "Torra 2020",
        "87.1 % of the people of the United States are unique by postal code, sex and birth date.",
        "It needs the census of 1990 by person, which is not public.",
    ),
)
"""What none of them runs again, or not as it was; ``docs/experiments.md`` has the same list."""

PAGE, FIGURES, FINISHED = "experiments.html", "experiments.json", "finished.json"


def named(name: str) -> Experiment[Any]:
    """Return an experiment by its name."""
    found: Experiment[Any] = importlib.import_module(f"reproduce.{name}.experiment").EXPERIMENT
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
    date : date
        Business date.
    quick : bool
        Small sizes, to see that all of it runs.
    tell : callable
        Takes a sentence as each experiment begins.

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
            document = _read(there, f"{name}.json") if known.get("asked") == key else {}
            if document:
                tell(f"Experiment {number} of {len(names)}: {name} was finished before.")
            else:
                tell(f"Experiment {number} of {len(names)}: {name}.")
                began = time.monotonic()
                run(asked.experiment, spark, asked.policy, asked.sizes, place=there, run_id=run_id, date=date)
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
        result = Collection(date.isoformat(), __version__, quick, tuple(parts), LEFT_OUT)
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
