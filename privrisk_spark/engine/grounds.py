"""How far values of a sensitive column are apart, by the hierarchy a condition names."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from privrisk_spark.engine.sources import as_texts
from privrisk_spark.errors import HierarchyError
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.kernels.arrays import IntArray
from privrisk_spark.policy.anonymity import KAnonymityGuarantee, TCloseness


def grounds_of(asked: KAnonymityGuarantee, values: Mapping[str, pa.Array | pa.ChunkedArray]) -> dict[int, IntArray]:
    """Place the values of sensitive columns in the hierarchies of hierarchical distances.

    Parameters
    ----------
    asked : KAnonymityGuarantee
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
                texts = as_texts(values[one.column]).cast(pa.string()).to_pylist()
                there = [text for text in texts if text is not None]
                tree = build(one.hierarchy, one.column, values=there, null_leaf=True)
                outside = sum(text not in tree.code_of for text in there)
                if outside:
                    key = f"guarantee.also.{place}.t_closeness.hierarchy"
                    raise HierarchyError(f"{key}: {outside:,} distinct values of '{one.column}' are not in it.")
                codes = [tree.n_leaves - 1 if text is None else tree.code_of[text] for text in texts]
                found[place] = tree.ancestor[np.array(codes, dtype=np.int64)]
    return found


def missing_codes(values: Mapping[str, pa.Array | pa.ChunkedArray]) -> dict[str, int]:
    """Return the code of the missing value of each column that has one.

    Parameters
    ----------
    values : mapping of column to array
        Distinct values in their order, in which a missing one is the last.
    """
    return {name: len(of) - 1 for name, of in values.items() if of.null_count}
