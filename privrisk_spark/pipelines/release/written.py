"""Decisions written to the vault, the release written to staging, and what is checked of it there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, materialized
from privrisk_spark.engine.decided import Decide
from privrisk_spark.engine.tuples import TupleParts
from privrisk_spark.pipelines.release.opened import Opened
from privrisk_spark.pipelines.run import ReleaseRun
from privrisk_spark.planning.history import key_to_remember
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.guarantees import anonymity_of
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.facts import ClassFacts, DecisionFacts, ReleaseFacts
from privrisk_spark.results.release import Check
from privrisk_spark.runs.vaults import PARTS
from privrisk_spark.stages.deciding.decide import Conclusion, conclude
from privrisk_spark.stages.publishing import contracts
from privrisk_spark.stages.publishing.directories import measure_rows_decided, measure_rows_found, refuse_many
from privrisk_spark.stages.publishing.files import (
    files_for,
    labelled,
    name_files,
    parquet_files,
    with_labels,
    write_empty,
)
from privrisk_spark.stages.publishing.measure import (
    collect_classes,
    decision_facts,
    label_rows_of,
    measure_classes,
    measure_release,
    summed_label_rows,
)
from privrisk_spark.stages.publishing.row_order import ordered
from privrisk_spark.storage.directories import make
from privrisk_spark.storage.parts import LocalParts, PartDirectory
from privrisk_spark.tables.released import Partitions, no_rows, read_back, read_csv_parts
from privrisk_spark.tables.row_groups import Wanted
from privrisk_spark.tables.sources import scan, scan_parts

if TYPE_CHECKING:
    from privrisk_spark.stages.deciding.sampled import Sample, Sampling


@dataclass(frozen=True, eq=False)
class Decided:
    """Every row's disclosure; the decisions themselves lie in scratch, for the vault.

    Attributes
    ----------
    tuples : TupleParts
        What is to be released.
    members : Batches or None
        MEMBERS, where the policy names persons or sampling weights.
    label_rows : dict of attribute, and "" for tuples, to a fingerprint of how many rows each label must stand in
        Under `risk`; other guarantees release what is left of the tuples only.
    sample : Sample or None
        Some of the decisions, where a sample is wanted.
    """

    tuples: TupleParts
    facts: DecisionFacts
    members: Batches | None
    label_rows: dict[str, int]
    sample: Sample | None = None


def conclude_rows(
    run: ReleaseRun,
    opened: Opened,
    rows: Batches,
    decide_chunk: Decide,
    *,
    method: str,
    files: int = 1,
    sampled: Sampling | None = None,
) -> Decided:
    """Decide rows, and write the decisions and the released tuples as parts.

    Parameters
    ----------
    rows : Batches
        ENCODED, resolved.
    method : str
        How was decided, for the vault.
    files : int
        Files of the release the tuples are for.
    sampled : Sampling, optional
        The sample to report for the vault.
    """
    policy, hierarchies, scratch = run.policy, opened.hierarchies, run.scratch
    conclusion = Conclusion(
        decisions=scratch.directory("decision-parts"),
        tuples=scratch.directory("tuples"),
        members=scratch.directory("members"),
        record_id=policy.table.record_id or schemas.RECORD_ID,
        attributes=tuple(hierarchies),
        roots=tuple(hierarchy.root for hierarchy in hierarchies.values()),
        heights=tuple(hierarchy.height for hierarchy in hierarchies.values()),
        method=method,
        files=files,
        sampled=sampled,
    )
    if policy.decides:
        named, meant = (tuple(getattr(one, of) for one in hierarchies.values()) for of in ("named", "meant"))
        conclusion = replace(conclusion, named=named, meant=meant)
    valued = _held_by_persons(run)
    conclusion = replace(conclusion, valued=valued)
    if policy.history is not None:
        from privrisk_spark.engine.chains import path_fingerprints

        paths = tuple(path_fingerprints(hierarchy) for hierarchy in hierarchies.values())
        secret = key_to_remember(run.place.vault.location)
        remembered_parts = scratch.directory("remembered-parts")
        conclusion = replace(conclusion, remembered=remembered_parts, paths=paths, secret=secret)
    parts = scratch.collect_parts(conclude(rows, decide_chunk, conclusion))
    if conclusion.remembered is not None:
        remembered = run.place.scratch / "remembered"
        make(remembered)
        conclusion.remembered.take([part["remembered"] for part in parts], remembered / PARTS)
    decisions = [part["name"] for part in parts] or [conclusion.write_nothing()]
    conclusion.decisions.take(decisions, run.place.scratch / "decisions")
    members = None
    names = [part["members"] for part in parts if part["members"]]
    if names:
        schema = schemas.members(rows.schema, opened.k, valued)
        members = materialized(run.spark, conclusion.members, names, schema)
    kept = [part["tuples"] for part in parts if part["tuples"]]
    tuples = TupleParts(conclusion.tuples, tuple(kept), schemas.tuples(rows.schema, opened.k))
    label_rows = summed_label_rows(parts, tuple(hierarchies)) if conclusion.meant else {}
    sample = None
    if sampled is not None:
        from privrisk_spark.stages.deciding.sampled import Sample

        sample = Sample.of_parts(parts, sampled, k=opened.k)
    return Decided(tuples, decision_facts(parts, hierarchies), members, label_rows, sample)


def _held_by_persons(run: ReleaseRun) -> tuple[str, ...]:
    """Columns ``r<j>`` whose values persons hold, where shares of persons are promised of them."""
    asked, kept = anonymity_of(run.policy.guarantee), run.policy.kept_columns
    if asked is None or run.policy.table.entity_id is None:
        return ()
    names = dict(zip(kept, schemas.released(len(kept)), strict=True))
    from privrisk_spark.planning.recoding import shares_of

    return tuple(names[column] for column in shares_of(asked))


@dataclass(frozen=True, eq=False)
class Written:
    """The release in staging.

    Attributes
    ----------
    files : list of dict
        ``name``, ``bytes`` and ``sha256`` of each data file.
    frame : DataFrame
        Its rows, read back.
    texts : Batches
        The same as ``a<i>`` texts of the quasi-identifiers and ``r<j>`` kept columns.
    facts : ReleaseFacts
        Measured from its files.
    label_rows : dict of attribute, and "" for tuples, to a fingerprint of how many rows each label must stand in
    partitions : Partitions
        What the names of directories hold of it.
    misplaced : bool or None
        Whether rows, read with the values their directories are named after, are others than those that were decided;
        None where no directory is.
    """

    files: list[dict[str, Any]]
    frame: DataFrame
    texts: Batches
    facts: ReleaseFacts
    label_rows: dict[str, int]
    partitions: Partitions
    misplaced: bool | None


def _parts_of_files(run: ReleaseRun) -> PartDirectory:
    """Make the directory in which tasks write the release's files, whence they are taken to staging."""
    shared = run.scratch.shared
    return (LocalParts(str(run.place.parts)) if shared is None else shared).below("files")


def write_release(
    run: ReleaseRun,
    opened: Opened,
    tuples: TupleParts,
    label_rows: dict[str, int],
    *,
    files: int,
    members: Batches | None = None,
) -> Written:
    """Write the release to staging in an order of rows that tells nothing, and measure it from its files.

    Whose the rows are is not in the files, so what persons have alone is measured from MEMBERS.

    Parameters
    ----------
    tuples : TupleParts
        Written for as many files.
    label_rows : dict of attribute, and "" for tuples, to a fingerprint of how many rows each label must stand in
        By the decisions, of the nodes :attr:`Hierarchy.meant`.
    members : Batches or None
        MEMBERS, as :class:`Decided` has them.
    """
    output, data = run.policy.places, run.place.staging / "data"
    parts_at, kept = _parts_of_files(run), run.policy.kept_columns
    names_of = dict(
        zip((*opened.hierarchies, *kept), (*schemas.nodes(opened.k), *schemas.released(len(kept))), strict=True)
    )
    first = [names_of[name] for name in output.partition_by]
    release = labelled(ordered(run.spark, tuples, files=files, first=first), run.policy, opened.hierarchies)
    header = None
    if output.format == "csv":
        from privrisk_spark.engine.formulas import quoted_names
        from privrisk_spark.stages.publishing.csv_files import write_csv_files
        from privrisk_spark.tables.csv_tables import collect_csv_header

        columns = release.schema.fieldNames()[1:]
        header = collect_csv_header(run.spark, quoted_names(columns) if output.quote_formulas else columns)
        written = write_csv_files(run.scratch, release, parts_at, header, quote_formulas=output.quote_formulas)
    else:
        written = parquet_files(release, parts_at, output.partition_by)
    parts = run.scratch.collect_parts(written)
    parts.sort(key=lambda part: (part["directory"], int(part["file"])))
    names, places = [part["name"] for part in parts], [part["directory"] for part in parts]
    refuse_many(len(set(places)))
    if not names:  # what has no rows has no directories either, and all its columns in its file
        if header is None:
            names = [write_empty(release, parts_at)]
        else:
            from privrisk_spark.stages.publishing.csv_files import write_empty_csv

            names = [write_empty_csv(parts_at, header)]
    named = name_files(parts_at, names, data, output.format, places)
    partitions = Partitions.of(output.partition_by, release.schema)
    wanted = [Wanted(f"a{i}", name, "text") for i, name in enumerate(opened.hierarchies)]
    wanted += [Wanted(to, name, "value") for to, name in zip(schemas.released(len(kept)), kept, strict=True)]
    if isinstance(parts_at, LocalParts):
        frame = read_back(run.spark, output, data, partitions)
        texts = scan(Table(path=str(data), format=output.format), frame, wanted)
    elif output.format == "csv":
        frame = read_csv_parts(run.spark, output, parts_at, names, partitions.columns)
        texts = scan(None, frame, wanted)
    else:
        # Tasks do not see staging. The bytes are the same: a part is held against its SHA-256 wherever it is fetched.
        frame = no_rows(run.spark, data / named[0]["name"], partitions)
        of_files = None
        if places:
            values = partitions.values([one["name"] for one in named])
            of_files = [(one["sha256"], of_file) for one, of_file in zip(named, values, strict=True)]
        texts = scan_parts(run.spark, parts_at, names, frame.schema, wanted, named=of_files)
    misplaced = None
    if output.partition_by:
        decided = measure_rows_decided(run.scratch, tuples, opened.hierarchies)
        misplaced = measure_rows_found(run.scratch, texts) != decided
    labels = {name: hierarchy.labels for name, hierarchy in opened.hierarchies.items()}
    if members is None or not kept or schemas.ENTITY not in members.schema.fieldNames():
        facts = measure_release(run.scratch, texts, labels, kept)
    else:
        facts = measure_release(run.scratch, texts, labels)
        from privrisk_spark.stages.publishing.uniqueness import measure_unique_persons

        facts = measure_unique_persons(run.scratch, members, facts, kept, k=opened.k)
    return Written(named, frame, texts, facts, label_rows, partitions, misplaced)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Released tuples, and the release that was written from them alone.

    Attributes
    ----------
    nodes : ndarray of int32, shape (n_tuples, k)
    sizes : ndarray of int64, shape (n_tuples,)
        Rows of each.
    """

    nodes: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.int64]
    written: Written


def write_histogram(
    run: ReleaseRun, opened: Opened, nodes: npt.NDArray[np.int32], sizes: npt.NDArray[np.int64]
) -> Histogram:
    """Write the release from a histogram of tuples alone.

    Parameters
    ----------
    nodes : ndarray of int32, shape (n_tuples, k)
    sizes : ndarray of int64, shape (n_tuples,)
        Rows of each.
    """
    files = files_for(run.policy.places, int(sizes.sum()))
    hierarchies = opened.hierarchies
    shown = np.column_stack([one.named[nodes[:, i]] for i, one in enumerate(hierarchies.values())])
    tuples = TupleParts.of_vectors(run.scratch.directory("crowds"), shown, sizes, files=files)
    return Histogram(
        nodes, sizes, write_release(run, opened, tuples, label_rows_of(nodes, sizes, hierarchies), files=files)
    )


def write_classes(run: ReleaseRun, opened: Opened, members: Batches | None, rows: int) -> ClassFacts | None:
    """Write the released classes with their persons and weighted population for the vault, and measure them."""
    if members is None:
        return None
    classes = run.scratch.write_frame(collect_classes(run.scratch, members, k=opened.k, rows=rows), "class_nodes")
    run.scratch.write_parquet(with_labels(classes, opened.hierarchies), "classes")
    return measure_classes(classes, [int(one.named[one.root]) for one in opened.hierarchies.values()])


def validate_release(
    run: ReleaseRun, opened: Opened, written: Written, rules: Sequence[FactRule], values: Mapping[str, float | int]
) -> tuple[Check, ...]:
    """Hold the staged release against rules; ``values`` is what was measured, by name."""
    policy = run.policy
    if written.misplaced is not None:
        rules = [*rules, FactRule(*_IN_PLACE, at_most=0)]
        values = {**values, _IN_PLACE[0]: int(written.misplaced)}
    columns = [name for name in policy.columns if name in opened.hierarchies or name in policy.kept_columns]
    checks = contracts.validate(
        "release", facts=values, rules=list(rules), frame=written.frame, columns=columns, vault=run.place.private
    )
    return tuple(checks)


_IN_PLACE = (
    "rows in other directories",
    "every row, with the values its directory is named after, is released as often as was decided",
)
