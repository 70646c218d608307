"""The table as integer codes, held against the input contract, and the rows of each dictionary, counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.counts import SpreadVectors, StoredCounts
from privrisk_spark.errors import EngineError, SchemaError
from privrisk_spark.pipelines.release.opened import Opened
from privrisk_spark.pipelines.run import ReleaseRun
from privrisk_spark.planning.counting import PlanChoice, plans_in_words
from privrisk_spark.results.facts import FilesRead, InputFacts
from privrisk_spark.results.release import Check
from privrisk_spark.runs.progress import warn_of_one_row
from privrisk_spark.stages.counting.dense_sorted import collect_counts
from privrisk_spark.stages.publishing import contracts
from privrisk_spark.tables.coverage import refuse_values, write_unknown_values
from privrisk_spark.tables.encode import dictionary_rows
from privrisk_spark.tables.materialize import collect_materialized


@dataclass(frozen=True, eq=False)
class Encoded:
    """The table as codes, materialized in scratch.

    Attributes
    ----------
    rows : Batches
        ENCODED, resolved.
    checks : tuple of Check
        Of the input contract.
    files : FilesRead or None
        Of the table, where they are known.
    """

    rows: Batches
    facts: InputFacts
    checks: tuple[Check, ...]
    files: FilesRead | None

    @property
    def read(self) -> dict[str, Any]:
        """Files, rows and ids of the table; exact, for the vault."""
        return {**self._whole, "missing_ids": self.facts.null_ids, "repeated_ids": self.facts.duplicate_ids}

    @property
    def stated(self) -> dict[str, Any]:
        """What a manifest states of them, where the guarantee allows it."""
        return {"input": self._whole} if self._whole else {}

    @property
    def _whole(self) -> dict[str, Any]:
        """Files and rows, expected and processed; nothing where no files are known."""
        files = self.files
        if files is None:
            return {}
        return {
            **({} if files.version is None else {"table": files.version}),
            "files": {"expected": files.expected, "processed": files.processed},
            "rows": {"expected": files.rows, "processed": self.facts.rows},
            "malformed_lines": files.malformed,
            "rows_with_bytes_that_are_no_text": files.garbled,
            **({"times_rounded_down_to_microseconds": list(files.rounded)} if files.rounded else {}),
        }


def encode_table(run: ReleaseRun, opened: Opened, *, blocks: bool) -> Encoded:
    """Materialize the table as codes, measure it, and hold it against the input contract.

    Parameters
    ----------
    blocks : bool
        Add what the keyed draws of a record are made from.

    Raises
    ------
    SchemaError, HierarchyError
        If values cannot be decided on.
    RefusedError
        If a check fails.
    """
    policy, table = run.policy, opened.sources.table
    run.frame_digest  # noqa: B018 - before its rows are read: rows that change later are then refused, never returned
    read = collect_materialized(
        run.scratch, table, policy, opened.hierarchies, blocks=blocks, given=opened.sources.given
    )
    facts = read.facts
    files = opened.sources.files
    if files is not None and files.rows is not None and files.rows != facts.rows:
        raise EngineError(
            f"table.path: its files hold {files.rows:,} rows, and {facts.rows:,} were processed. Run again."
        )
    if not policy.guarantee.private and not facts.rows:
        raise SchemaError("table: it has no rows.")
    if not policy.guarantee.private:
        warn_of_one_row(facts.rows)

    def set_aside(name: str) -> int:
        """List the values outside a hierarchy in the vault; return how many there are."""
        directory, values = write_unknown_values(run.scratch, table, name, opened.hierarchies[name])
        run.place.swap_into_vault(directory, "unknown_values")
        return values

    if policy.decides:
        refuse_values(policy, facts, set_aside, listed_in=run.place.private_at("unknown_values"))
    rules, values = contracts.input_rules(policy, facts)
    checks = contracts.validate(
        "input", facts=values, rules=rules, frame=table, columns=list(policy.columns), vault=run.place.private
    )
    contracts.refuse_failures(checks, fail_on=policy.checks.fail_on)
    if not policy.guarantee.private:  # there an error that depends on exact values would reveal a row
        from privrisk_spark.tables.naming_columns import collect_naming_columns, refuse_naming_columns

        found = collect_naming_columns(read.encoded, policy, opened.hierarchies, rows=facts.rows)
        refuse_naming_columns(found)
    return Encoded(read.encoded, facts, tuple(checks), opened.sources.files)


@dataclass(frozen=True, eq=False)
class Counted:
    """Every dictionary of the policy, counted.

    Attributes
    ----------
    choices : dict of name to PlanChoice
        By which each was counted.
    counts : tuple of StoredCounts or SpreadVectors
        In the order of the policy.
    """

    choices: dict[str, PlanChoice]
    counts: tuple[StoredCounts | SpreadVectors, ...]

    @property
    def plan(self) -> str:
        """Plan of the dictionary, or of each by name."""
        return plans_in_words(self.choices)

    @property
    def dictionary_rows(self) -> int | dict[str, int]:
        """Rows of the dictionary, or of each by name."""
        rows = {name: counts.dictionary_rows for name, counts in zip(self.choices, self.counts, strict=True)}
        return rows if len(rows) > 1 else next(iter(rows.values()))


def count_dictionaries(run: ReleaseRun, opened: Opened, rows: Batches) -> Counted:
    """Count every dictionary by its plan.

    Parameters
    ----------
    opened : Opened
        Its plans are chosen.
    rows : Batches
        The table, resolved.
    """
    choices, counts = {}, []
    for dictionary in run.policy.dictionaries:
        name = dictionary.name
        frame = opened.sources.dictionaries.get(name)
        choices[name], counted = collect_counts(
            run.scratch,
            dictionary_rows(rows, frame, dictionary, opened.hierarchies),
            run.policy,
            opened.hierarchies,
            dictionary,
            opened.choices[name],
        )
        counts.append(counted)
    return Counted(choices, tuple(counts))
