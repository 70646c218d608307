"""A model of match weights that Splink estimates, by its own comparisons in SQL and its own EM algorithm on DuckDB.

Splink is told which cells agree: each record is given to it with the ancestors of its cells, or the ends of its
numbers, and the levels of agreement are conditions on these. It compares records, not distinct ones with their number,
one pair after the other in the memory of the driver, so that it can take
:data:`~privrisk_spark.extensions.attack.planning.attacks
.SPLINK_PAIRS` pairs. It estimates without term frequencies, which are of scores alone: the same adjustment is made by
:mod:`~privrisk_spark.extensions.attack.kernels.term_frequencies`.

Nothing leaves the process: the database is in memory, writes no file, loads nothing, has no network and one thread, so
that sums have one order. Records have numbers instead of ids and nodes instead of values.

References
----------
R. Linacre, S. Lindsay, T. Manassis, Z. Slade, T. Hepworth, R. Kennedy, A. Bond, "Splink: free software for
probabilistic record linkage at scale", Int. J. Population Data Science 7 (2022).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from privrisk_spark.errors import EngineError
from privrisk_spark.extensions.attack.kernels.fellegi_sunter import LEAST, LinkageModel
from privrisk_spark.extensions.attack.stages.probabilistic import LevelColumn, NumberColumn
from privrisk_spark.extensions.attack.stages.protected import Tuples

TOLERANCE, MOST_STEPS = 1e-6, 500
"""Greatest change of a probability at which steps of EM end, and how many there are at most."""

DATABASE = (
    "temp_directory = ''",
    "allow_persistent_secrets = false",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "enable_external_access = false",
    "enable_progress_bar = false",
    "threads = 1",
    "lock_configuration = true",
)
"""Settings of DuckDB, in this order: no files, no network, no output, and no way back."""

ALL_PAIRS = "1=1"
"""Which pairs Splink takes."""


def estimated_by_splink(
    known: Tuples,
    rows: Tuples,
    columns: Sequence[LevelColumn | NumberColumn],
    start: LinkageModel,
    *,
    fixed_u: bool,
    fixed_prior: bool,
) -> LinkageModel:
    """Estimate a model from all pairs of what is known and the rows of a file.

    Parameters
    ----------
    known, rows : Tuples
        Each counts as often as it has rows.
    columns : sequence of k LevelColumn or NumberColumn
        How each is compared.
    start : LinkageModel
        As :func:`~privrisk_spark.extensions.attack.kernels.fellegi_sunter.started` makes it of these pairs: a level
        that none of
        them has is 0 in ``u``.
    fixed_u, fixed_prior : bool
        As :func:`~privrisk_spark.extensions.attack.kernels.fellegi_sunter.fitted` takes them; fixed ``u`` are counted
        by Splink.

    Returns
    -------
    LinkageModel
        If neither is fixed and linked pairs turn out to agree less than the others, their names are exchanged.

    Raises
    ------
    EngineError
        If Splink fails, as where memory is short. What it says is not told, as it may hold values.
    """
    import duckdb
    import splink

    with _silent():
        try:
            with duckdb.connect(":memory:") as connection:
                for setting in DATABASE:
                    connection.execute(f"SET {setting}")
                database = splink.DuckDBAPI(connection)
                both = [
                    database.register(_records(of, columns), dataset_display_name=name)
                    for name, of in (("known", known), ("rows", rows))
                ]
                comparisons = [
                    _comparison(j, column, m, u)
                    for j, (column, m, u) in enumerate(zip(columns, start.m, start.u, strict=True))
                ]
                settings = splink.SettingsCreator(
                    link_type="link_only",
                    comparisons=comparisons,
                    probability_two_random_records_match=start.prior,
                    em_convergence=TOLERANCE,
                    max_iterations=MOST_STEPS,
                    blocking_rules_to_generate_predictions=[ALL_PAIRS],
                )
                linker = splink.Linker(both, settings, log_level=None)
                if fixed_u:
                    # All pairs: by default it draws some, and takes no more than suffice for a hundred of each level.
                    linker.training.estimate_u_using_random_sampling(
                        max_pairs=2.0 * known.total * rows.total, min_count_per_level=None, num_chunks=1
                    )
                linker.training.estimate_parameters_using_expectation_maximisation(
                    ALL_PAIRS,
                    estimate_without_term_frequencies=True,
                    fix_u_probabilities=fixed_u,
                    fix_probability_two_random_records_match=fixed_prior,
                    populate_probability_two_random_records_match_from_trained_values=not fixed_prior,
                )
                told = linker.misc.save_model_to_json()
        except Exception as error:
            raise EngineError(
                f"attack.probabilistic.engine: Splink could not estimate the model ({type(error).__name__}); "
                "give the driver more memory, or take the engine 'own'."
            ) from None
    m, u = (
        tuple(
            _shares([level.get(name) for level in one["comparison_levels"] if not level.get("is_null_level")], there)
            for one, there in zip(told["comparisons"], start.u, strict=True)
        )
        for name in ("m_probability", "u_probability")
    )
    found = LinkageModel(m, u, float(told["probability_two_random_records_match"]))
    return found if found.parted or fixed_u or fixed_prior else found.exchanged


@contextmanager
def _silent() -> Iterator[None]:
    """Let Splink write no log meanwhile."""
    log = logging.getLogger("splink")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(level)


def _records(tuples: Tuples, columns: Sequence[LevelColumn | NumberColumn]) -> pa.Table:
    """A file as Splink takes it: a record a row, with the ancestors of its cells below the root, or their ends."""
    each = np.repeat(np.arange(len(tuples.rows)), tuples.rows)
    told = {"unique_id": pa.array(np.arange(len(each), dtype=np.int64))}
    for j, column in enumerate(columns):
        nodes = tuples.nodes[:, j]
        if isinstance(column, NumberColumn):
            low, high = column.low[nodes][each], column.high[nodes][each]
            lacking = ~(np.isfinite(low) | np.isfinite(high))
            told[f"low{j}"], told[f"high{j}"] = pa.array(low, mask=lacking), pa.array(high, mask=lacking)
            continue
        for depth, ancestors in enumerate(column.hierarchy.at_depth[nodes].T[1:], start=1):
            told[f"at{j}_{depth}"] = pa.array(ancestors[each], mask=ancestors[each] < 0)
    return pa.table(told)


def _comparison(j: int, column: LevelColumn | NumberColumn, m: Sequence[float], u: Sequence[float]) -> dict[str, Any]:
    """Levels of agreement of a column in SQL: those of the kernels' agreement, in their order."""
    if isinstance(column, NumberColumn):
        missing, gap = _either_null(f"low{j}"), f"greatest(low{j}_l - high{j}_r, low{j}_r - high{j}_l)"
        conditions = [f"{gap} <= {within!r}" for within in column.within]
    else:
        depths = range(1, column.hierarchy.at_depth.shape[1])
        missing = _either_null(f"at{j}_1")
        # One covers the other: the two are alike for as long as both go on.
        conditions = [" AND ".join(f"coalesce(at{j}_{depth}_l = at{j}_{depth}_r, TRUE)" for depth in depths)]
        if column.equal:
            conditions.insert(0, " AND ".join(f"at{j}_{d}_l IS NOT DISTINCT FROM at{j}_{d}_r" for d in depths))
        conditions += [f"at{j}_{depth}_l = at{j}_{depth}_r" for depth in column.near]
    levels = [
        # It takes the logarithm of both.
        {
            "sql_condition": sql,
            "label_for_charts": f"level {i}",
            "m_probability": max(a, LEAST),
            "u_probability": max(b, LEAST),
        }
        for i, (sql, a, b) in enumerate(zip([*conditions, "ELSE"], m, u, strict=True))
    ]
    null = {"sql_condition": missing, "label_for_charts": "missing", "is_null_level": True}
    return {"output_column_name": f"column{j}", "comparison_levels": [null, *levels]}


def _either_null(name: str) -> str:
    return f"{name}_l IS NULL OR {name}_r IS NULL"


def _shares(told: Sequence[float | None], there: Sequence[float]) -> tuple[float, ...]:
    """Probabilities of sum 1; 0 of a level that no pair has, of which Splink tells what it was given, or nothing."""
    found = [0.0 if p is None or not share else float(p) for p, share in zip(told, there, strict=True)]
    return tuple(p / math.fsum(found) for p in found)
