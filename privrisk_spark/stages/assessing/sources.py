"""What an assessment reads: the table, a release of it and what its labels mean, the values of sensitive columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.number_texts import SPELLED, as_texts, dictionary_of, equal_texts
from privrisk_spark.engine.value_codes import ValueCodes, as_text_column, ids_are_numbers, labels_of
from privrisk_spark.errors import Fault, HierarchyError, SchemaError
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.hierarchies.hierarchy import MAX_LEAVES, Hierarchy
from privrisk_spark.kernels.arrays import IntArray
from privrisk_spark.planning.assessment import carried
from privrisk_spark.policy.assessment import Interval, MaskedTable, SensitiveModel
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import Policy, ReleaseTable
from privrisk_spark.stages.assessing.classes import Layout, released_rows
from privrisk_spark.stages.assessing.tallies import Distance, Sensitive
from privrisk_spark.tables.row_groups import Wanted
from privrisk_spark.tables.sources import scan

_COMPARABLE = (
    T.StringType,
    T.BooleanType,
    T.IntegralType,
    T.DecimalType,
    T.FractionalType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)
_ORDERED = (T.NumericType, T.DateType, T.TimestampType, T.TimestampNTZType)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Values of a column the classes hold.

    Attributes
    ----------
    codes : ValueCodes
        A missing value has none.
    ordered : bool
        Whether the column holds numbers or dates.
    """

    name: str
    codes: ValueCodes
    count: int
    ordered: bool
    ancestor: Any = None

    @property
    def groups(self) -> IntArray | None:
        """Group of each value, by the first level above it; None if no hierarchy groups them."""
        if self.ancestor is None:
            return None
        return np.asarray(self.ancestor[: self.count + 1, 1], dtype=np.int32)

    def sensitive(self, model: SensitiveModel | None) -> Sensitive:
        """How the values are compared."""
        model = model or SensitiveModel()
        distance: Distance = model.distance or ("ordered" if self.ordered else "equal")
        return Sensitive(self.name, distance, self.ancestor, model.c, self.count)


def collect_vocabularies(
    policy: Policy,
    table: DataFrame,
    release: Release | None,
    *,
    given: bool = False,
    names: Sequence[str] | None = None,
) -> list[Vocabulary]:
    """Collect the distinct values of the columns the classes hold, in the table and, if there is one, the release.

    Numbers are in their order, also those a text column holds if the model is ordered; other values in that of their
    texts.

    Parameters
    ----------
    given : bool
        Whether the caller gave the table instead of the policy's.
    names : sequence of str, optional
        Of the columns; by default all that an assessment carries.

    Raises
    ------
    SchemaError
        If a column cannot be compared, or holds more than :data:`privrisk_spark.hierarchies.hierarchy.MAX_LEAVES`
        values.
    """
    names = carried(policy) if names is None else list(names)
    of_table = None if given else policy.table
    frames: list[tuple[Table | None, DataFrame, dict[str, str]]] = [(of_table, table, {name: name for name in names})]
    if release is not None:
        there = {name: release.column(name) for name in names if held_in(release, name)}
        frames.append((release.source, release.frame, there))
    ordered, numbers = dict.fromkeys(names, True), set()
    for _, frame, columns in frames:
        for name, held in columns.items():
            kind = frame.schema[held].dataType
            if not isinstance(kind, _COMPARABLE):
                raise SchemaError(
                    f"columns.{name}: a sensitive column must hold texts, numbers, booleans, dates or times to be "
                    f"compared, not {kind.simpleString()}."
                )
            ordered[name] = ordered[name] and isinstance(kind, _ORDERED)
            numbers |= {name} if isinstance(kind, SPELLED) else set()
    found: dict[str, list[pa.Array]] = {name: [] for name in names}
    for source, frame, columns in frames:
        wanted = [Wanted(name, column, "value") for name, column in columns.items()]
        for name, values in collect_texts(source, frame, wanted).items():
            if len(values) > MAX_LEAVES:
                raise SchemaError(f"columns.{name}: it holds more than {MAX_LEAVES:,} distinct values; round it first.")
            found[name].append(values)
    texts = {name: pa.concat_arrays(found[name]) for name in names}
    return [
        _vocabulary(
            name, pc.unique(equal_texts(of) if name in numbers else of), policy, ordered[name], numbers=name in numbers
        )
        for name, of in texts.items()
    ]


def collect_texts(table: Table | None, frame: DataFrame, wanted: Sequence[Wanted]) -> dict[str, pa.Array]:
    """Collect the distinct texts of columns, by alias; a task hands over those it has seen, and no row is shuffled."""
    if not wanted:
        return {}
    names = [want.alias for want in wanted]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        seen: dict[str, list[pa.Array]] = {name: [] for name in names}
        for rows in tables:
            for name in names:
                values = pc.drop_null(dictionary_of(rows.column(name))[0])
                texts = as_texts(values).cast(pa.string())
                seen[name] = [pc.unique(pa.concat_arrays([*seen[name], texts]))]
        for number, name in enumerate(names):
            for values in seen[name]:
                yield pa.table({"column": np.full(len(values), number, dtype=np.int32), "value": values})

    fields = [T.StructField("column", T.IntegerType(), False), T.StructField("value", T.StringType(), False)]
    told = scan(table, frame, wanted).then(step, T.StructType(fields)).frame().toArrow()
    number, values = told.column("column").to_numpy(), told.column("value")
    return {name: _once(values.filter(pa.array(number == i))) for i, name in enumerate(names)}


def _once(values: pa.ChunkedArray) -> pa.Array:
    return pc.unique(values).cast(pa.string())


def _vocabulary(name: str, texts: pa.Array, policy: Policy, ordered: bool, *, numbers: bool) -> Vocabulary:
    model = policy.assess.sensitive.get(name)
    if model is not None and model.hierarchy is not None:
        hierarchy = build(model.hierarchy, name, values=texts.to_pylist(), null_leaf=True, numbers=numbers)
        codes = ValueCodes.of_leaves(hierarchy)
        outside = codes.find(texts).null_count
        if outside:
            raise HierarchyError(f"assess.sensitive.{name}.hierarchy: {outside:,} distinct values are not in it.")
        return Vocabulary(name, codes, hierarchy.n_leaves - 1, ordered, hierarchy.ancestor)
    in_order = _sorted(texts.to_pylist(), ordered or (model is not None and model.distance == "ordered"))
    codes = ValueCodes.of({value: i for i, value in enumerate(in_order)}, numbers=numbers)
    return Vocabulary(name, codes, len(in_order), ordered)


def _sorted(texts: list[str], ordered: bool) -> list[str]:
    if ordered:
        try:
            return sorted(texts, key=lambda value: (float(value), value))
        except ValueError:  # dates, whose texts are in their order
            pass
    return sorted(texts)


@dataclass(frozen=True, eq=False)
class Release:
    """A release of the table, opened.

    Attributes
    ----------
    given : MaskedTable
        Columns and record id.
    manifest : mapping or None
        Of one that was published here.
    """

    frame: DataFrame
    source: Table
    given: MaskedTable
    title: str
    manifest: Mapping[str, Any] | None = None

    def column(self, name: str) -> str:
        """Column of the release that holds a column of the table."""
        return self.given.columns.get(name, name)


def collect_strangers(release: Release, hierarchies: Mapping[str, Hierarchy], *, key: str) -> None:
    """Refuse a release with labels that are no nodes.

    Parameters
    ----------
    hierarchies : mapping of attribute to Hierarchy
    key : str
        Where the policy names it, for messages.

    Raises
    ------
    HierarchyError
        Naming columns and how many labels.
    """
    columns = {name: release.column(name) for name in hierarchies}
    wanted = [Wanted(f"a{i}", column, "text") for i, column in enumerate(columns.values())]
    found = collect_texts(release.source, release.frame, wanted)
    faults = []
    for (name, hierarchy), texts in zip(hierarchies.items(), found.values(), strict=True):
        strangers = labels_of(hierarchy)[0].find(texts).null_count
        if strangers:
            rule = (
                f"the column '{columns[name]}' holds {strangers:,} distinct values that are no node of the "
                f"hierarchy of '{name}'; give the hierarchy the release was made by"
            )
            faults.append(Fault(key, rule))
    if faults:
        raise HierarchyError(faults)


def open_released_rows(
    release: Release, hierarchies: Mapping[str, Hierarchy], vocabularies: Sequence[Vocabulary], layout: Layout, *,
    identity: bool = False, person: str | None = None, numbers: Sequence[str] = (), numeric: Collection[str] = (),
) -> Batches:  # fmt: skip
    """Rows of a release in the layout.

    Parameters
    ----------
    hierarchies : mapping of attribute to Hierarchy
    vocabularies : sequence of Vocabulary
        Of the columns the layout holds.
    layout : Layout
        Without persons and weights, which a release does not hold.
    identity : bool
        Carry the record id.
    person : str, optional
        Column of the release to carry as ``entity``.
    numbers : sequence of str
        Columns of the release to carry as numbers ``y<j>``, NaN for a missing one.
    numeric : collection of str
        Of ``record_id`` and ``entity``, those that are numbers in the table; see :func:`numeric_ids`.
    """
    wanted = [Wanted(f"a{i}", release.column(name), "text") for i, name in enumerate(hierarchies)]
    held = {f"r{j}": vocabulary.codes for j, vocabulary in enumerate(vocabularies)}
    wanted += [Wanted(to, release.column(v.name), "value") for to, v in zip(held, vocabularies, strict=True)]
    carried = [f"y{j}" for j in range(len(numbers))]
    wanted += [Wanted(to, name, "number") for to, name in zip(carried, numbers, strict=True)]
    given = {schemas.RECORD_ID: release.given.record_id if identity else None, schemas.ENTITY: person}
    ids = {to: name for to, name in given.items() if name is not None}
    wanted += [Wanted(to, name, "text", distinct=True) for to, name in ids.items()]
    opened = scan(release.source, release.frame, wanted)
    if ids:
        opened = opened.then(partial(_as_ids, list(ids), numeric), _with_ids(opened.schema, list(ids)))
    lookups = [labels_of(hierarchy) for hierarchy in hierarchies.values()]
    return released_rows(
        opened,
        [f"a{i}" for i in range(len(hierarchies))],
        [codes for codes, _ in lookups],
        [missing for _, missing in lookups],
        held,
        layout,
        more=[*ids, *carried],
    )


def numeric_ids(table: DataFrame, given: ReleaseTable) -> list[str]:
    """Return which of ``record_id`` and ``entity`` are numbers in the table: those of a release compare as numbers."""
    named = {schemas.RECORD_ID: given.record_id, schemas.ENTITY: given.entity_id}
    return [to for to, name in named.items() if ids_are_numbers((table, name))]


def _as_ids(names: Sequence[str], numeric: Collection[str], tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    for table in tables:
        told = table
        for name in names:
            at = told.column_names.index(name)
            told = told.set_column(at, name, as_text_column(told.column(name), name, numbers=name in numeric))
        yield told


def _with_ids(schema: T.StructType, names: Sequence[str]) -> T.StructType:
    return T.StructType(
        [T.StructField(one.name, T.StringType()) if one.name in names else one for one in schema.fields]
    )


def masked_columns(release: Release, intervals: Mapping[str, Interval], table: DataFrame) -> dict[str, str]:
    """Column of the release that holds the masked form of each numeric column.

    Raises
    ------
    SchemaError
        If there is none, or one of the two holds neither numbers nor texts.
    """
    found = {name: interval.masked or release.column(name) for name, interval in intervals.items()}
    for name, masked in found.items():
        if masked not in release.frame.columns:
            raise SchemaError(f"assess.intervals.{name}.masked: the release has no column '{masked}'.")
        key = f"assess.intervals.{name}"
        for frame, held, at in ((table, name, key), (release.frame, masked, f"{key}.masked")):
            kind = frame.schema[held].dataType
            if not isinstance(kind, T.NumericType | T.StringType):
                raise SchemaError(f"{at}: the column '{held}' must hold numbers, not {kind.simpleString()}.")
    return found


def held_in(release: Release | None, name: str) -> bool:
    """Whether the release holds a column of the table."""
    return release is not None and release.column(name) in release.frame.columns


def totals(parts: Sequence[Mapping[str, Any]], layout: Layout) -> tuple[np.ndarray[Any, np.dtype[np.int64]], ...]:
    """How often a subject has each value of each attribute, from the facts of its counted rows."""
    result = [np.zeros(count + 1, dtype=np.int64) for count in layout.value_counts]
    for part in parts:
        for j, held in enumerate(part["held"]):
            result[j] += np.array(held, dtype=np.int64)
    return tuple(result)
