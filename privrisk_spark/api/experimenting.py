"""Published experiments, run again: on generated data, and on a table of one's own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privrisk_spark.api.policies import PolicyLike, as_policy, settle_run, with_frame
from privrisk_spark.api.workspace import Closeable, check_reach, directory_for
from privrisk_spark.errors import ConfigError, Fault, listing, nearest
from privrisk_spark.policy import policy as written
from privrisk_spark.policy.reading import check_run_id
from privrisk_spark.results.page import Page
from privrisk_spark.storage.temporary import PrivateDirectory

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from reproduce.result import ExperimentResult
    from reproduce.summary import Collection


@dataclass(frozen=True, eq=False, repr=False)
class Experimented(Closeable):
    """What one experiment found. With a table of one's own its figures are exact: never publish them then.

    Attributes
    ----------
    result : reproduce.result.ExperimentResult
        Plots, figures and sentences.
    report : Page
        What a person reads.
    place : Path or str
        Directory with ``<name>.json``, ``<name>.csv`` and ``<name>.html``.
    private : PrivateDirectory or None
        Of a result without an output; see :meth:`close`.
    """

    result: ExperimentResult
    report: Page
    place: Path | str
    private: PrivateDirectory | None

    def to_pandas(self) -> pd.DataFrame:
        """Return every point that is drawn.

        Returns
        -------
        pandas.DataFrame of shape (n_points, 9)
            ``experiment``, ``data``, ``panel``, ``series``, ``x_is``, ``x``, ``y_is``, ``y``, ``measured``.
        """
        import pandas as pd

        from reproduce.result import POINT

        return pd.DataFrame(list(self.result.rows()), columns=list(POINT))

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-safe, as in ``<name>.json``."""
        return self.result.to_dict()

    def __repr__(self) -> str:
        """Return what it is called, and on how many tables it was made."""
        return f"Experimented('{self.result.name}', tables={len(self.result.findings.tables)})"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentedAll(Closeable):
    """What all experiments found: the claims of the sources, and which of them hold.

    Attributes
    ----------
    result : reproduce.summary.Collection
        Parts with their claims.
    report : Page
        What a person reads.
    place : Path or str
        Directory with ``experiments.html``, ``experiments.json``, and a directory for each experiment.
    private : PrivateDirectory or None
        Of a result without an output; see :meth:`close`.
    """

    result: Collection
    report: Page
    place: Path | str
    private: PrivateDirectory | None

    def to_pandas(self) -> pd.DataFrame:
        """Return the claims that were judged.

        Returns
        -------
        pandas.DataFrame of shape (n_claims, 7)
            ``experiment``, ``source``, ``claim``, ``data``, ``word``, ``verdict``, ``evidence``.
        """
        import pandas as pd

        columns = ["experiment", "source", "claim", "data", "word", "verdict", "evidence"]
        rows = [[part.name, *(getattr(one, key) for key in columns[1:])] for part, one in self._claims()]
        return pd.DataFrame(rows, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, JSON-safe, as in ``experiments.json``."""
        return self.result.to_dict()

    def _claims(self) -> Iterator[tuple[Any, Any]]:
        return ((part, one) for part in self.result.parts for one in part.claims)

    def __repr__(self) -> str:
        """Return how many claims there are, and how many of them fail."""
        claims = sum(1 for _ in self._claims())
        return f"ExperimentedAll(parts={len(self.result.parts)}, claims={claims}, failed={len(self.result.failed)})"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def experiment(
    table: DataFrame | None,
    policy: PolicyLike | None,
    name: str,
    *,
    quick: bool = False,
    sizes: Mapping[str, int] | None = None,
    output: str | Path | None = None,
    run_id: str | None = None,
    date: dt.date | None = None,
) -> Experimented:
    """Run one published experiment again: what its source claims, beside what is found.

    Without a policy it runs on data it generates, and Spark is not started. Nothing is released. Without `output` the
    files are in a private temporary directory (mode 0700) that lives as long as the result.

    Parameters
    ----------
    table : DataFrame or None
        None is the table the policy names; without a policy there is none.
    policy : Policy, str, Path, mapping or None
        For a table of one's own besides.
    name : str
        ``examples``, ``dictionaries``, ``deciding``, ``recoding``, ``adversary``, ``privacy``, ``compare`` or
        ``sharing``.
    quick : bool
        Start from small sizes, to see that it runs.
    sizes : mapping of str to int, optional
        Sizes to change, such as ``{"rows": 1000, "seed": 7}``: the options of ``privrisk experiments <name>``.
    output : str or Path, optional
        Directory for the files, which with a policy every worker must see; or a URI in an object store.
    run_id : str, optional
        Default from name, date and policy; a new one for a frame.
    date : date, optional
        Business date; default that of the policy, else today (UTC).

    Returns
    -------
    Experimented

    Raises
    ------
    privrisk_spark.errors.InputError
        The name, a size, the policy, the session or the data must be mended.
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> found = pr.experiment(None, None, "examples")
    >>> found
    Experimented('examples', tables=1)
    """
    from privrisk_spark.engine.failures import named

    with named():
        from reproduce import collection, run
        from reproduce.sizes import changed

        if name not in collection.NAMES:
            hint = nearest(name, collection.NAMES)
            raise ConfigError([Fault("name", f"no experiment is named '{name}'{hint}; {listing(collection.NAMES)}")])
        asked = collection.named(name)
        used = changed(asked.quick if quick else asked.usual, sizes or {})
        own, run_id, day = _settled(table, policy, name, run_id, date)
        with directory_for(output, name) as (where, private):
            place = run.check_output(asked, own, where)
            with _session(table, own, private) as (spark, given):
                result = run.run(asked, spark, own, used, place=place, run_id=run_id, date=day, table=given)
            page = Page((place.read(f"{name}.html") or b"").decode())
        return Experimented(result, page, place.address, private)


def all_experiments(
    table: DataFrame | None,
    policy: PolicyLike | None,
    *,
    names: Sequence[str] | None = None,
    quick: bool = False,
    output: str | Path | None = None,
    run_id: str | None = None,
    date: dt.date | None = None,
    announce: Callable[[str], object] | None = None,
) -> ExperimentedAll:
    """Run all published experiments again, or some: one page of what is claimed beside what is found.

    With an `output`, a run that was stopped goes on where it was when it is called again: an experiment that has
    finished with the same sizes, policy, date and version is not run again, unless it is about a given frame.

    Parameters
    ----------
    table : DataFrame or None
        None is the table the policy names; without a policy there is none.
    policy : Policy, str, Path, mapping or None
        Experiments that cannot use it run on generated data alone, and the page says why.
    names : sequence of str, optional
        See :func:`experiment`; all of them if not given.
    quick : bool
        Small sizes, to see that all of it runs; half an hour otherwise.
    output : str or Path, optional
        Directory for the files, which with a policy every worker must see; or a URI in an object store.
    run_id : str, optional
        Default from name, date and policy; a new one for a frame.
    date : date, optional
        Business date; default that of the policy, else today (UTC).
    announce : callable, optional
        Called with a sentence as each experiment begins.

    Returns
    -------
    ExperimentedAll

    Raises
    ------
    privrisk_spark.errors.InputError
        The policy, the session, the data or a directory must be mended.
    privrisk_spark.errors.EngineError
        Spark or a file system failed; running again may help.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> found = pr.all_experiments(None, None, names=["examples"])
    >>> found.to_pandas()["word"].value_counts().to_dict()
    {'holds': 33, 'does not hold': 1}
    """
    from privrisk_spark.engine.failures import named

    with named():
        from reproduce import collection

        wanted = collection.NAMES if names is None else tuple(names)
        if unknown := [name for name in wanted if name not in collection.NAMES]:
            rule = f"no experiment is named {listing(unknown)}; there are {listing(collection.NAMES)}"
            raise ConfigError([Fault("names", rule)])
        own, run_id, day = _settled(table, policy, "experiments", run_id, date)
        with directory_for(output, "experiments") as (where, private):
            place = collection.check_collection(where)
            with _session(table, own, private) as (spark, given):
                result = collection.run_all(
                    spark,
                    own,
                    place=place,
                    run_id=run_id,
                    date=day,
                    quick=quick,
                    names=wanted,
                    tell=announce or (lambda _: None),
                    table=given,
                )
            page = Page((place.read(collection.PAGE) or b"").decode())
        return ExperimentedAll(result, page, place.address, private)


def _settled(
    table: DataFrame | None, policy: PolicyLike | None, name: str, run_id: str | None, date: dt.date | None
) -> tuple[written.Policy | None, str, dt.date]:
    """Settle policy, run id and business date."""
    if policy is None:
        if table is not None:
            raise ConfigError([Fault("policy", "a table is given, and no policy says what its columns are")])
        return None, check_run_id(name if run_id is None else run_id), date or dt.datetime.now(dt.UTC).date()
    policy = as_policy(policy, date)
    run, day = settle_run(policy, run_id, date, given=table is not None)
    return with_frame(policy, table is not None), run, day


@contextmanager
def _session(
    table: DataFrame | None, policy: written.Policy | None, private: PrivateDirectory | None
) -> Iterator[tuple[SparkSession | None, DataFrame | None]]:
    """Hold a session where there is a policy; without one Spark is not started."""
    if policy is None:
        yield None, None
        return
    from privrisk_spark.engine.session import held

    with held(table, "privrisk experiments", encrypt=False) as (spark, given):
        if private is not None:
            check_reach(spark, "output")
        yield spark, given
