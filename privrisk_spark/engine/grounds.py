"""How far values of a sensitive column are apart, by the hierarchy a condition names."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from privrisk_spark.engine.fingerprints import one_chunk
from privrisk_spark.engine.number_texts import as_texts, is_spelled
from privrisk_spark.engine.schemas import NULL, UNKNOWN
from privrisk_spark.engine.value_codes import ValueCodes
from privrisk_spark.errors import HierarchyError
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.kernels.arrays import IntArray
from privrisk_spark.policy.anonymity import KAnonymityGuarantee, TCloseness


def grounds_of(asked: KAnonymityGuarantee, values: Mapping[str, pa.Array | pa.ChunkedArray]) -> dict[int, IntArray]:
    """Place the values of sensitive columns in the hierarchies of hierarchical distances.

    Parameters
    ----------
    values : mapping of sensitive column to Array
        Its distinct values, in the order in which conditions number them; a missing value is one that meets the others
        at the root.

    Returns
    -------
    dict of int to ndarray of int32, shape (v, H + 1)
        By the place in ``also``: the node of each value at each level.

    Raises
    ------
    HierarchyError
        If a value is not in the hierarchy.
    """
    found: dict[int, IntArray] = {}
    for place, part in enumerate(asked.also):
        for one in part.given.values():
            if isinstance(one, TCloseness) and one.hierarchy is not None:
                given = values[one.column]
                given = one_chunk(given) if isinstance(given, pa.ChunkedArray) else given
                there = as_texts(given).cast(pa.string()).drop_null().to_pylist()
                tree = build(one.hierarchy, one.column, values=there, null_leaf=True, numbers=is_spelled(given.type))
                codes = ValueCodes.of_leaves(tree).encoded(pa.chunked_array([given]))
                outside = int(np.count_nonzero(codes == UNKNOWN))
                if outside:
                    key = f"guarantee.also.{place}.t_closeness.hierarchy"
                    raise HierarchyError(f"{key}: {outside:,} distinct values of '{one.column}' are not in it.")
                found[place] = tree.ancestor[np.where(codes == NULL, tree.n_leaves - 1, codes)]
    return found


def missing_codes(values: Mapping[str, pa.Array | pa.ChunkedArray]) -> dict[str, int]:
    """Return the code of the missing value of each column that has one.

    Parameters
    ----------
    values : mapping of column to array
        Distinct values in their order, in which a missing one is the last.
    """
    return {name: len(of) - 1 for name, of in values.items() if of.null_count}
