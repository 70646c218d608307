"""Classes of a protected table and the sensitive values in them, beside what people truly hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, in_chunks
from privrisk_spark.engine.decided import integers
from privrisk_spark.engine.value_codes import ValueCodes
from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.extensions.attack.kernels.minimality import Parts
from privrisk_spark.extensions.attack.stages.protected import Tuples
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import BoolArray, IntArray, LongArray
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.recoding.listed import keys_of, places_of


@dataclass(frozen=True, eq=False)
class SensitiveClasses:
    """Distinct tuples of the columns an intruder knows, and the sensitive values of the rows with each.

    Attributes
    ----------
    held : tuple of SensitiveRuns
        Of each sensitive column, one class a tuple: rows with each value.
    """

    tuples: Tuples
    held: tuple[SensitiveRuns, ...]


def with_values(
    encoded: Batches,
    hierarchies: Sequence[Hierarchy],
    known: Sequence[int],
    sensitive: Mapping[str, tuple[ValueCodes, int]],
) -> Batches:
    """Return what the intruder knows of every record of the original table, and what he wants to know.

    Parameters
    ----------
    encoded : Batches
        ENCODED, resolved, with all quasi-identifiers.
    hierarchies : sequence of k Hierarchy
        Of the known columns.
    known : sequence of int
        Their positions among all quasi-identifiers.
    sensitive : mapping of column ``r<i>`` to (ValueCodes, int)
        Codes of the values, below the number; a missing value, or one without a code, gets that number.

    Returns
    -------
    Batches
        ``record_id``; ``entity`` where the table names persons; ``q<j>`` nodes of the known columns, the root for a
        value that is missing; ``s<j>`` codes.
    """
    k, names = len(hierarchies), schemas.sensitive(len(sensitive))
    persons = schemas.ENTITY in encoded.schema.fieldNames()
    texts = [schemas.RECORD_ID, *([schemas.ENTITY] if persons else [])]
    leaves, roots = [tree.n_leaves for tree in hierarchies], [tree.root for tree in hierarchies]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            columns = {name: table.column(name) for name in texts}
            for j, i in enumerate(known):
                code = table.column(f"q{i}").to_numpy()
                columns[f"q{j}"] = pa.array(np.where(code == leaves[j], np.int32(roots[j]), code).astype(np.int32))
            for name, (column, (codes, count)) in zip(names, sensitive.items(), strict=True):
                code = codes.encoded(table.column(column))
                columns[name] = pa.array(np.where(code < 0, np.int32(count), code).astype(np.int32))
            yield pa.table(columns)

    fields = [T.StructField(name, T.StringType()) for name in texts]
    fields += [T.StructField(name, T.IntegerType(), False) for name in (*schemas.codes(k), *names)]
    return encoded.then(step, T.StructType(fields))


def beside_values(records: Batches, people: Batches, k: int, n: int) -> Batches:
    """Put the protected forms of people beside what they hold.

    Parameters
    ----------
    records : Batches
        ``record_id``, and ``n<j>`` of ``k`` known columns.
    people : Batches
        As :func:`with_values` returns them, with ``n`` sensitive columns.

    Returns
    -------
    Batches
        ``record_id``, ``entity`` where there is one, ``q<j>``, ``n<j>``, ``s<j>`` of the records.
    """
    shown = records.frame().select(schemas.RECORD_ID, *schemas.nodes(k))
    joined = people.frame().join(shown, schemas.RECORD_ID)
    texts = [name for name in (schemas.RECORD_ID, schemas.ENTITY) if name in joined.columns]
    return Batches.of_frame(joined.select(*texts, *schemas.codes(k), *schemas.nodes(k), *schemas.sensitive(n)))


def collect_sensitive_classes(
    rows: Batches, names: Sequence[str], sensitive: Sequence[str], *, most: int, key: str
) -> SensitiveClasses:
    """Collect the classes of a table in some columns, and the sensitive values of each.

    Parameters
    ----------
    rows : Batches
        Of a release, or people beside their protected forms.
    names : sequence of k str
        Columns of nodes; ``n<j>`` of what is shown, ``q<j>`` of what is known. Rows with a negative one, or none, are
        in no class and left out.
    sensitive : sequence of str
        Columns of codes of sensitive values, one at least; a missing value has a code, too.
    most : int
        Pairs of class and value that the driver may hold of each column.
    key : str
        Of the policy, for messages.

    Raises
    ------
    InputError
        If there are more, or no row.
    """
    frame = rows.frame()
    for name in names:
        frame = frame.where(F.col(name) >= 0)
    tuples: Tuples | None = None
    held = []
    for column in sensitive:
        counted = frame.groupBy(*names, column).agg(F.count("*").alias(schemas.N_ROWS))
        told = counted.limit(most + 1).toArrow()
        _refuse_size(told, most, key)
        nodes, value = integers(told, names), told.column(column).to_numpy().astype(np.int64)
        first, owner = distinct_rows([nodes[:, j] for j in range(len(names))])
        if tuples is None:
            of_class = np.zeros(len(first), dtype=np.int64)
            np.add.at(of_class, owner, told.column(schemas.N_ROWS).to_numpy())
            tuples = Tuples(np.ascontiguousarray(nodes[first]), of_class)
        count = told.column(schemas.N_ROWS).to_numpy().astype(np.int64)
        held.append(SensitiveRuns.of_entries(owner, value, count, len(first)))
    if tuples is None:
        raise InputError(f"{key}: an attack on sensitive values needs a sensitive column.")
    return SensitiveClasses(tuples, tuple(held))


def _refuse_size(told: pa.Table, most: int, key: str) -> None:
    if told.num_rows > most:
        raise InputError(
            f"counting.sorted_vectors: {key} has more than {most:,} distinct rows of what is known and a sensitive "
            "value; raise it."
        )
    if not told.num_rows:
        raise InputError(f"{key}: there are no rows.")


def matched(people: SensitiveClasses, shown: SensitiveClasses) -> tuple[BoolArray, SensitiveClasses, SensitiveClasses]:
    """Put the people of each class beside what the protected table shows of it.

    Parameters
    ----------
    people : SensitiveClasses
        Truth, by the protected form of the people, or by what it would be.
    shown : SensitiveClasses
        Of the protected table.

    Returns
    -------
    there : ndarray of bool, shape (p,)
        Classes of people that the protected table has; nobody can be inferred anything of in the others.
    people, shown : SensitiveClasses
        Of these, class by class.
    """
    place = places_of(keys_of(shown.tuples.nodes), people.tuples.nodes)
    there = place >= 0
    return there, _chosen(people, np.flatnonzero(there)), _chosen(shown, place[there])


def _chosen(classes: SensitiveClasses, places: LongArray) -> SensitiveClasses:
    """Some classes, ascending."""
    kept: BoolArray = np.zeros(len(classes.tuples.rows), dtype=np.bool_)
    kept[places] = True
    tuples = Tuples(classes.tuples.nodes[places], classes.tuples.rows[places])
    return SensitiveClasses(tuples, tuple(runs.where(kept) for runs in classes.held))


def _leaf_codes(nodes: IntArray, hierarchies: Sequence[Hierarchy], key: str) -> IntArray:
    """Leaf codes of what is known; a root is the code after the leaves, as among the ancestors."""
    codes = np.empty(nodes.shape, dtype=np.int32)
    for j, tree in enumerate(hierarchies):
        unknown = nodes[:, j] == tree.root
        codes[:, j] = np.where(unknown, tree.n_leaves, nodes[:, j])
        if (~unknown & (nodes[:, j] >= tree.n_leaves)).any():
            raise InputError(
                f"{key}: this attack takes values as they are, and those of '{tree.attribute}' are known coarsely; "
                "leave the attack out, or the levels of the column."
            )
    return codes


@dataclass(frozen=True, eq=False)
class SchemeClasses:
    """Classes of the people by a scheme, and the rows of a release in each.

    Attributes
    ----------
    tuples : Tuples
        Nodes that the labels at the scheme's levels name, and people.
    released : ndarray of int64, shape (m,)
        Rows of the release.
    suppressed : int
        Rows of the release that are suppressed whole.
    member : ndarray of int64, shape (p,)
        Class of each known tuple.
    """

    tuples: Tuples
    released: LongArray
    suppressed: int
    member: LongArray


def scheme_classes(
    known: Tuples, shown: Tuples, hierarchies: Sequence[Hierarchy], levels: Sequence[int], *, key: str
) -> SchemeClasses:
    """Recode what is known by the levels of a release, and find the released rows of each class.

    Parameters
    ----------
    known : Tuples
        Of all people: leaves, or roots where a value is missing.
    shown : Tuples
        Of the release.
    hierarchies : sequence of k Hierarchy
    levels : sequence of k int
        Of the known columns.
    key : str
        Of the policy, for messages.

    Raises
    ------
    InputError
        If something is known coarsely, or the release has rows that no people have at these levels.
    """
    recoded = recoded_by(known.nodes, hierarchies, levels, key=key)
    first, member = distinct_rows([recoded[:, j] for j in range(len(hierarchies))])
    people = np.zeros(len(first), dtype=np.int64)
    np.add.at(people, member, known.rows)
    tuples = Tuples(np.ascontiguousarray(recoded[first]), people)
    place = places_of(keys_of(tuples.nodes), shown.nodes)
    released = np.zeros(len(first), dtype=np.int64)
    released[place[place >= 0]] = shown.rows[place >= 0]
    roots = np.array([tree.named[tree.root] for tree in hierarchies])
    outside = place < 0
    suppressed = outside & (shown.nodes == roots).all(axis=1)
    if (outside & ~suppressed).any():
        raise InputError(
            f"{key}: the protected table has rows that nobody has at the levels {list(levels)}; give the levels it was "
            "recoded by, of one scheme for the whole table."
        )
    return SchemeClasses(tuples, released, int(shown.rows[suppressed].sum()), member)


def recoded_by(nodes: IntArray, hierarchies: Sequence[Hierarchy], levels: Sequence[int], *, key: str) -> IntArray:
    """Nodes that the labels of people's values at some levels name, ndarray of int32, shape (n, k)."""
    codes = _leaf_codes(nodes, hierarchies, key)
    columns = [
        tree.named[tree.ancestor[codes[:, j], level]]
        for j, (tree, level) in enumerate(zip(hierarchies, levels, strict=True))
    ]
    return np.column_stack(columns).astype(np.int32)


@dataclass(frozen=True, eq=False)
class FinerParts:
    """Classes of a finer scheme that those of a scheme were put together from.

    Attributes
    ----------
    owner : ndarray of int64, shape (u,)
        Class of each part, ascending.
    people : ndarray of int64, shape (u,)
    member : ndarray of int64, shape (p,)
        Part of each known tuple.
    """

    owner: LongArray
    people: LongArray
    member: LongArray


def finer_parts(
    known: Tuples, classes: SchemeClasses, hierarchies: Sequence[Hierarchy], levels: Sequence[int], *, key: str
) -> FinerParts:
    """Classes of a finer scheme that those of a scheme were put together from.

    Parameters
    ----------
    known : Tuples
        Of all people, as :func:`scheme_classes` took them.
    hierarchies : sequence of k Hierarchy
    levels : sequence of k int
        Of the finer scheme, none above the scheme's.
    key : str
        Of the policy, for messages.
    """
    recoded = recoded_by(known.nodes, hierarchies, levels, key=key)
    first, part = distinct_rows([classes.member, *(recoded[:, j] for j in range(len(hierarchies)))])
    people = np.zeros(len(first), dtype=np.int64)
    np.add.at(people, part, known.rows)
    return FinerParts(classes.member[first], people, part)


def parts_of_classes(parts: FinerParts, classes: SchemeClasses, shown: SensitiveClasses, i: int) -> Parts:
    """Put the parts of the classes next to how often each class holds each value of a sensitive column.

    Parameters
    ----------
    classes : SchemeClasses
        All of them released, whole.
    shown : SensitiveClasses
        Of the release.
    i : int
        Which of its sensitive columns.
    """
    # Classes are in the order of their nodes on both sides.
    place = places_of(keys_of(shown.tuples.nodes), classes.tuples.nodes)
    if not np.array_equal(place, np.arange(len(shown.tuples.rows))):
        raise InternalError("The classes of a scheme are not those of the release.")
    return Parts(parts.owner, parts.people, shown.held[i])
