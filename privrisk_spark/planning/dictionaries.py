"""What the values of a dictionary mean: which node of a hierarchy each is, and each attribute as counting sees it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from privrisk_spark.errors import HierarchyError, InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, Consistency
from privrisk_spark.policy.dictionaries import (
    Dictionary,
    DictionaryColumn,
    DictionaryTable,
    EstimatedDictionary,
    OneDictionary,
)
from privrisk_spark.policy.policy import Policy
from privrisk_spark.storage.whole_files import contents

UNKNOWN = -1
"""Code of a value outside its hierarchy, until the policy's ``unknown`` resolves it."""

NULL = -2
"""Code of a missing value, until the policy's ``nulls`` resolves it."""


@dataclass(frozen=True)
class DictionaryMapping:
    """How a quasi-identifier's values appear in the dictionary.

    Attributes
    ----------
    column : str
        Column of the dictionary.
    nodes : dict of str to int
        Dictionary value to node.
    numbers : bool
        Whether the values are numbers whatever the type of the column.
    """

    column: str
    nodes: dict[str, int]
    numbers: bool


def entry_of(given: str | DictionaryColumn | None) -> DictionaryColumn | None:
    """Return a dictionary column in its long form."""
    return DictionaryColumn(column=given) if isinstance(given, str) else given


def leaf_columns(dictionary: DictionaryTable) -> dict[str, str]:
    """Return the columns of a dictionary whose values are leaves, by attribute."""
    return {
        name: entry.column
        for name, entry in ((name, entry_of(given)) for name, given in dictionary.columns.items())
        if entry is not None and not entry.level and entry.age_in is None and entry.mapping is None
    }


def map_dictionary(
    dictionary: DictionaryTable, hierarchies: Mapping[str, Hierarchy], *, key: str = "dictionary"
) -> dict[str, DictionaryMapping | None]:
    """Resolve each dictionary column to nodes; None for an attribute the dictionary lacks.

    Raises
    ------
    HierarchyError
        If a mapping file or a level cannot be used.
    """
    result: dict[str, DictionaryMapping | None] = {}
    for name, hierarchy in hierarchies.items():
        entry = entry_of(dictionary.columns.get(name))
        result[name] = (
            None
            if entry is None
            else DictionaryMapping(
                entry.column,
                _node_of_value(f"{key}.columns.{name}", hierarchy, entry),
                hierarchy.numbers or entry.age_in is not None,
            )
        )
    return result


def _node_of_value(key: str, hierarchy: Hierarchy, entry: DictionaryColumn) -> dict[str, int]:
    level = entry.level or 0
    if level > hierarchy.height:
        raise HierarchyError(
            f"{key}.level: must be at most {hierarchy.height}, the height of the hierarchy. Got {level}."
        )
    if entry.mapping is not None:
        return {value: hierarchy.find(label, level=entry.level) for value, label in _read_mapping(key, entry.mapping)}
    at_level = [int(node) for node in hierarchy.nodes_at_level(level) if hierarchy.labels[int(node)] is not None]
    # The root's label is how a suppressed value is written, whatever level the other values have.
    by_label = {str(hierarchy.labels[hierarchy.root]): hierarchy.root}
    for node in (node for node in at_level if node != hierarchy.root):
        label = str(hierarchy.labels[node])
        if label in by_label:
            raise HierarchyError(
                f"{key}.level: {_shown(hierarchy, label)} names several nodes at level {level}; use a mapping or "
                "another level."
            )
        by_label[label] = node
    if entry.age_in is None:
        return by_label
    ages = {}
    for label, node in by_label.items():
        if node == hierarchy.root:
            ages[label] = node
            continue
        if not label.isdecimal():
            raise HierarchyError(
                f"{key}.age_in: the labels at level {level} must be years, and {_shown(hierarchy, label)} is none."
            )
        if int(label) <= entry.age_in:
            ages[str(entry.age_in - int(label))] = node
    return ages


def _shown(hierarchy: Hierarchy, label: str) -> str:
    """Name a label only where it comes from the policy, not from records."""
    return f"the label '{label}'" if hierarchy.public else "a label"


def _read_mapping(key: str, path: str) -> list[tuple[str, str]]:
    try:
        text = contents(path).decode("utf-8-sig")
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=";") if row]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise HierarchyError(f"{key}.mapping: '{path}' cannot be read ({reason}).") from None
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise HierarchyError(f"{key}.mapping: '{path}' line {number} must be 'dictionary value;node label'.")
    if len({row[0] for row in rows}) < len(rows):
        raise HierarchyError(f"{key}.mapping: '{path}' maps a dictionary value twice.")
    return [(row[0], row[1]) for row in rows]


@dataclass(frozen=True, eq=False)
class Alphabet:
    """The codes a column can hold, so that vectors of them take little room.

    Attributes
    ----------
    codes : ndarray of int32, shape (n,)
        Ascending; :data:`NULL` and :data:`UNKNOWN` among them.
    """

    codes: npt.NDArray[np.int32]

    @classmethod
    def of(cls, codes: Iterable[int]) -> Alphabet:
        """Of given codes, and of missing and unknown values."""
        return cls(np.array(sorted({*codes, NULL, UNKNOWN}), dtype=np.int32))

    def ranks(self) -> npt.NDArray[np.int32]:
        """int32 (largest code + 3,): rank of each code plus 2."""
        result = np.zeros(int(self.codes[-1]) - NULL + 1, dtype=np.int32)
        result[self.codes - NULL] = np.arange(len(self.codes), dtype=np.int32)
        return result


def axes(policy: Policy, hierarchies: Mapping[str, Hierarchy], one: OneDictionary | None = None) -> tuple[Axis, ...]:
    """Return each quasi-identifier as counting sees it, under the policy's consistency and one of its dictionaries.

    Parameters
    ----------
    hierarchies : mapping of attribute to Hierarchy
    one : OneDictionary, optional
        The policy's first if not given.
    """
    table = (one or policy.dictionaries[0]).table
    given = policy.dictionary
    return tuple(
        Axis(
            at_depth=hierarchy.at_depth,
            ancestor=hierarchy.ancestor,
            consistency=_consistency(given, name),
            known=table is None or name in table.columns,
            wildcard=policy.quasi_identifiers[name].nulls == "wildcard",
            similarity=_similarity(name, hierarchy, given.similar[name]) if name in given.similar else None,
        )
        for name, hierarchy in hierarchies.items()
    )


MOST_SIMILAR = 20_000
"""Most labels whose similarity is worked out pair by pair."""


def _consistency(given: Dictionary, name: str) -> Consistency:
    if given.consistency != "similar":
        return given.consistency
    return "similar" if name in given.similar else "compatible"


def _similarity(name: str, hierarchy: Hierarchy, threshold: float) -> scipy.sparse.csr_array:
    if hierarchy.n_nodes > MOST_SIMILAR:
        raise InputError(
            f"dictionary.similar.{name}: its hierarchy has {hierarchy.n_nodes:,} labels and at most {MOST_SIMILAR:,} "
            "are compared with each other; leave it out, or round the column first."
        )
    from privrisk_spark.kernels.counting.similarity import node_similarity

    return node_similarity(hierarchy.labels, threshold)


def alphabets(hierarchies: Mapping[str, Hierarchy], one: OneDictionary) -> dict[str, Alphabet]:
    """Return the codes each attribute can have in a dictionary, by attribute; none for one it lacks.

    Leaf codes where the dictionary is the table itself, nodes otherwise.
    """
    if one.table is None:
        return {name: Alphabet.of(range(hierarchy.n_leaves + 1)) for name, hierarchy in hierarchies.items()}
    mappings = map_dictionary(one.table, hierarchies, key=one.key)
    return {name: Alphabet.of(mapping.nodes.values()) for name, mapping in mappings.items() if mapping is not None}


def possible_codes(hierarchies: Mapping[str, Hierarchy], one: OneDictionary) -> list[npt.NDArray[np.int32]]:
    """Return the resolved codes an attribute can have in a dictionary, ascending, per axis."""
    found = alphabets(hierarchies, one)
    result = []
    for name, hierarchy in hierarchies.items():
        if name not in found:
            codes = np.zeros(1, dtype=np.int32)
        elif one.table is None:
            codes = np.append(np.arange(hierarchy.n_leaves), hierarchy.root)
        else:
            special = [hierarchy.root, hierarchy.n_nodes]
            if hierarchy.code_of_null < hierarchy.n_leaves:
                special.append(hierarchy.code_of_null)
            codes = np.append(found[name].codes[found[name].codes >= 0], special)
        result.append(np.unique(codes).astype(np.int32))
    return result


ALMOST_NONE = 0.01
"""Share of the values up to which they are almost none."""


def describe_mismatch(key: str, found: str, why: str | None = None) -> str:
    """Return the warning about a column of a dictionary that matches almost no record.

    Parameters
    ----------
    found : str
        How few values are shared.
    why : str, optional
        The likely reason and its fix.
    """
    why = why or "Check that both columns mean the same, or set level, age_in, mapping or read"
    return f"{key}: {found}. It matches almost no record, and the risk is overestimated. {why}."


def true_dictionary(policy: Policy) -> OneDictionary | None:
    """Return the dictionary the policy's estimate is held against; None if there is no such."""
    given = policy.dictionary
    if not isinstance(given, EstimatedDictionary) or given.against is None:
        return None
    return OneDictionary("true", given.against, "dictionary.against")


def counted_unit(policy: Policy, one: OneDictionary) -> str:
    """What is counted in a dictionary."""
    if (policy.table if one.table is None else one.table).entity_id is not None:
        return "persons"
    return "rows" if one.table is None or one.table.weight is None else "people"


def entity_of(policy: Policy, one: OneDictionary) -> str | None:
    """Return the column that names the person in a dictionary with several rows a person."""
    return policy.table.entity_id if one.table is None else one.table.entity_id
