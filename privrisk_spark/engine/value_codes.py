"""Codes of the texts of a column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.number_texts import SPELLED, as_texts, dictionary_of, equal_texts, is_spelled
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import IntArray
from privrisk_spark.policy.policy import QuasiIdentifier


@dataclass(frozen=True, eq=False)
class ValueCodes:
    """Codes of the texts of one column.

    Attributes
    ----------
    texts : pa.Array of string
        Distinct.
    codes : ndarray of int32, shape (n,)
    numbers : bool
        Whether a text that is not among them means the number, or the true or false, that it is. A value of a column of
        these always does.
    """

    texts: pa.Array
    codes: IntArray
    numbers: bool = False

    @classmethod
    def of(cls, code_of: Mapping[str, int], *, numbers: bool = False) -> ValueCodes:
        """From a mapping of text to code."""
        codes = np.fromiter(code_of.values(), dtype=np.int32, count=len(code_of))
        return cls(pa.array(list(code_of), pa.string()), codes, numbers)

    @classmethod
    def of_leaves(cls, hierarchy: Hierarchy) -> ValueCodes:
        """Of the leaves of a hierarchy."""
        return cls.of(hierarchy.code_of, numbers=hierarchy.numbers)

    @cached_property
    def _as_numbers(self) -> pa.Array:
        return equal_texts(self.texts)

    def find(self, distinct: pa.Array) -> pa.Array:
        """Return the place of each distinct value among the texts; null for one that is not there."""
        texts = as_texts(distinct)
        found = pc.index_in(texts, value_set=self.texts)
        if found.null_count and (self.numbers or is_spelled(distinct.type)):
            found = pc.coalesce(found, pc.index_in(equal_texts(texts), value_set=self._as_numbers))
        return found

    def encoded(self, values: pa.ChunkedArray) -> IntArray:
        """Codes of a column: :data:`schemas.NULL` where it is missing, :data:`schemas.UNKNOWN` for no such text."""
        distinct, place = dictionary_of(values)
        position = self.find(distinct).fill_null(-1).to_numpy(zero_copy_only=False)
        # One more entry, for missing values.
        codes = np.full(len(position) + 1, schemas.NULL, dtype=np.int32)
        codes[:-1] = np.where(position >= 0, np.append(self.codes, schemas.UNKNOWN)[position], schemas.UNKNOWN)
        missing = distinct.is_null().to_numpy(zero_copy_only=False)
        codes[:-1][missing] = schemas.NULL
        result: IntArray = codes[place.fill_null(len(position)).to_numpy(zero_copy_only=False)]
        return result


def as_text_column(values: pa.ChunkedArray, name: str, *, numbers: bool = False) -> pa.ChunkedArray:
    """Return ids as texts, which are equal for equal numbers if they are `numbers`; weights stay numbers."""
    if name == schemas.PEOPLE or (pa.types.is_string(values.type) and not numbers):
        return values
    texts = [as_texts(chunk) for chunk in values.chunks]
    return pa.chunked_array(map(equal_texts, texts) if numbers else texts, pa.string())


def ids_are_numbers(*ids: tuple[DataFrame | None, str | None]) -> bool:
    """Whether one of several columns of ids, as frame and name, holds numbers: then all of them compare as numbers."""
    found = [frame.schema[name].dataType for frame, name in ids if frame is not None and name in frame.columns]
    return any(isinstance(kind, SPELLED) for kind in found)


def resolve(
    coded: Batches, hierarchies: Mapping[str, Hierarchy], specs: Mapping[str, QuasiIdentifier], *, dictionary: bool
) -> Batches:
    """Replace NULL and UNKNOWN by codes, by the one declared policy.

    In the table a suppressed value is the code after the last leaf, ⊥ at every level; in the dictionary it is the root.
    A dictionary value outside the hierarchy is the code after the last node, consistent with ⊥ alone.
    """
    instead = _instead(coded.schema.fieldNames(), hierarchies, specs, dictionary=dictionary)

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            resolved = table
            for name, codes in instead.items():
                clean = codes.applied(table.column(name).to_numpy())
                resolved = resolved.set_column(table.column_names.index(name), name, pa.array(clean))
            yield resolved

    return coded.then(step, coded.schema)


def resolved_vectors(
    vectors: IntArray,
    names: Sequence[str],
    hierarchies: Mapping[str, Hierarchy],
    specs: Mapping[str, QuasiIdentifier],
) -> IntArray:
    """Dictionary vectors in axis order with NULL and UNKNOWN replaced, as :func:`resolve` does on frames.

    Parameters
    ----------
    vectors : ndarray of int32, shape (m, number of names)
    names : sequence of str
        Their columns ``t<i>``; an attribute that has none becomes zeros.
    hierarchies, specs : mapping of attribute to Hierarchy and to QuasiIdentifier

    Returns
    -------
    ndarray of int32, shape (m, k)
    """
    instead = _instead(names, hierarchies, specs, dictionary=True)
    result = np.zeros((len(vectors), len(hierarchies)), dtype=np.int32, order="F")
    for i, name in enumerate(schemas.dictionary_codes(len(hierarchies))):
        if name in instead:
            result[:, i] = instead[name].applied(vectors[:, list(names).index(name)])
    return result


@dataclass(frozen=True)
class _Instead:
    missing: int
    unknown: int

    def applied(self, codes: IntArray) -> IntArray:
        if not (codes < 0).any():
            return codes
        clean = np.where(codes == schemas.NULL, self.missing, np.where(codes == schemas.UNKNOWN, self.unknown, codes))
        result: IntArray = clean.astype(np.int32)
        return result


def _instead(
    names: Sequence[str],
    hierarchies: Mapping[str, Hierarchy],
    specs: Mapping[str, QuasiIdentifier],
    *,
    dictionary: bool,
) -> dict[str, _Instead]:
    k = len(hierarchies)
    aliases = schemas.dictionary_codes(k) if dictionary else schemas.codes(k)
    instead = {}
    for (attribute, hierarchy), name in zip(hierarchies.items(), aliases, strict=True):
        if name in names:
            suppressed = hierarchy.root if dictionary else hierarchy.n_leaves
            missing = hierarchy.code_of_null if specs[attribute].nulls == "own-value" else suppressed
            instead[name] = _Instead(missing, hierarchy.n_nodes if dictionary else suppressed)
    return instead


def labels_of(hierarchy: Hierarchy) -> tuple[ValueCodes, int]:
    """What a label in a release means, and what a missing cell does.

    A label that several nodes have means the first of them, the most specific: a release does not tell them apart. A
    missing cell is the value of its own that the policy makes of one, else ⊥.
    """
    nodes: dict[str, int] = {}
    missing = hierarchy.root
    for node, label in enumerate(hierarchy.labels):
        if label is None:
            missing = node
        else:
            nodes.setdefault(label, node)
    return ValueCodes.of(nodes, numbers=hierarchy.numbers), missing
