"""The worst case of record linkage in tasks: distances are learned from some people, and tried on others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, grouped, map_array, report, write_array
from privrisk_spark.engine.decided import integers
from privrisk_spark.engine.quiet import quiet
from privrisk_spark.kernels.arrays import IntArray
from privrisk_spark.kernels.linkage.evidence import Found, found
from privrisk_spark.kernels.linkage.learned.aggregates import Aggregate, WeightedMean
from privrisk_spark.kernels.linkage.learned.families import Kind
from privrisk_spark.kernels.linkage.learned.fitting import Learned, Limits, fit
from privrisk_spark.kernels.linkage.learned.training import KnownRecords, found_by
from privrisk_spark.kernels.recoding.listed import places_of
from privrisk_spark.stages.attacking.distance import LoadedFile, StoredFile

LABEL = "learned"
"""Of the draw of people to learn from: another one than that of people who are tried."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """People beside their own records in a file.

    Attributes
    ----------
    known : ndarray of int32, shape (m, k)
        Nodes of what is known of each.
    own : ndarray of int32, shape (m, k)
        Nodes of its own record in the file; -1 of somebody it lacks.
    """

    known: IntArray
    own: IntArray


@dataclass(frozen=True, eq=False)
class Sample:
    """People a distance is learned from, and others on whom it is tried: nobody is in both.

    Attributes
    ----------
    training, held_out : Drawn
    """

    training: Drawn
    held_out: Drawn


def collect_sample(
    records: Batches, *, known: Sequence[str], own: Sequence[str], training: int, held_out: int, seed: int
) -> Sample | None:
    """Draw people by their ids, the same ones however they are partitioned.

    Parameters
    ----------
    records : Batches
        People beside their protected forms.
    known : sequence of k str
        Columns of what is known of each.
    own : sequence of k str
        Columns of its own record in the file in which is searched.
    training, held_out : int
        People of each kind, at least 1, that come to the driver. If there are fewer, they are divided in proportion.
    seed : int

    Returns
    -------
    Sample or None
        None if there are fewer than two people.
    """
    hashed = F.xxhash64(schemas.RECORD_ID, F.lit(seed), F.lit(LABEL))
    some = records.frame().orderBy(hashed, schemas.RECORD_ID, *known, *own).limit(training + held_out)
    table = some.select(*known, *own).toArrow()
    n = table.num_rows
    if n < 2:
        return None
    cut = training if n == training + held_out else min(max(n * training // (training + held_out), 1), n - 1)
    of, theirs = integers(table, known), integers(table, own)
    return Sample(Drawn(of[:cut], theirs[:cut]), Drawn(of[cut:], theirs[cut:]))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A learned distance, and whom it finds beside the standard weights.

    Attributes
    ----------
    learned : Learned
    training_standard, training : Found
        Of the people it was learned from, by the standard weights and by the learned distance.
    held_out_standard, held_out : Found
        Of the others: what the attack is worth.
    """

    learned: Learned
    training_standard: Found
    training: Found
    held_out_standard: Found
    held_out: Found


def collect_learned(
    scratch: Scratch,
    stored: StoredFile,
    sample: Sample,
    kinds: Sequence[Kind],
    *,
    name: str,
    limits: Limits | None = None,
) -> tuple[Fitted, ...]:
    """Learn distances of several kinds, one a task.

    Parameters
    ----------
    scratch : Scratch
    stored : StoredFile
        In which is searched, with the standard weights.
    sample : Sample
    kinds : sequence of Kind
    name : str
        Of the directory.
    limits : Limits, optional

    Returns
    -------
    tuple of Fitted
        In the order of the kinds.

    Raises
    ------
    InputError
        If a measure has too many attributes.
    """
    at = scratch.directory(f"sample-{name}")
    for part in ("training", "held_out"):
        one: Drawn = getattr(sample, part)
        write_array(one.known, at, f"{part}-known.npy")
        write_array(one.own, at, f"{part}-own.npy")

    def learn(kind: Kind) -> Iterator[pa.Table]:
        loaded = stored.load()
        training, held_out = (
            _known(loaded, *(np.ascontiguousarray(map_array(at, f"{part}-{of}.npy")) for of in ("known", "own")))
            for part in ("training", "held_out")
        )
        with quiet():
            learned = fit(kind, loaded.file, training, limits)
        facts: dict[str, Any] = {"learned": learned.to_dict()}
        standard: Aggregate = WeightedMean(loaded.file.weights)
        for of, those in (("training", training), ("held_out", held_out)):
            for of_what, aggregate in ((f"{of}_standard", standard), (of, learned.aggregate)):
                facts[of_what] = asdict(found(found_by(aggregate, loaded.file, those), those.people))
        yield report(kind, facts)

    told = {one["name"]: one for one in scratch.collect_parts(Batches.of_parts(scratch.spark, kinds, learn, PARTS))}
    return tuple(_read(told[kind]) for kind in kinds)


def _known(loaded: LoadedFile, known: IntArray, own: IntArray) -> KnownRecords:
    """People who are alike, and whose own records are, together."""
    place = places_of(loaded.keys, own)
    first, member = grouped([*known.T, place])
    there = place[first] >= 0
    present = np.where(there, loaded.present[place[first]], 0.0)
    return KnownRecords(known[first], place[first], np.bincount(member).astype(np.int64), present)


def _read(facts: dict[str, Any]) -> Fitted:
    names = ("training_standard", "training", "held_out_standard", "held_out")
    return Fitted(Learned.from_dict(facts["learned"]), *(Found(**facts[name]) for name in names))
