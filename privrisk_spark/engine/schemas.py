"""Frame contracts between stages: the only place where an internal column is named.

========  ==========================================================================================================
frame     columns
========  ==========================================================================================================
ENCODED   ``record_id`` string; ``block`` binary, 16 bytes (dp only); ``entity`` string and ``sample_weight`` double
          where the policy names them; ``q<i>`` int leaf code of quasi-identifier i, or :data:`UNKNOWN` or
          :data:`NULL`; ``w<i>`` double personal weight i; ``r<i>`` released column i as it is
VECTORS   ``q<i>`` (table) or ``t<i>`` (dictionary node codes), ``w<i>``, ``n_rows`` long (records)
HISTORY   ENCODED with codes resolved, then ``h<i>`` tinyint deepest level that is out already of each value,
          ``releases`` long earlier releases of the record, ``changed`` boolean whether a value was another in one
DECIDED   ENCODED with codes resolved, then ``l<i>`` tinyint level, ``n<i>`` int node, ``risk`` and ``risk_before``
          double (unit of the model), ``utility`` double (unit of the measure), ``consistent`` long (dictionary rows)
          and ``consistent_before``, ``feasible`` boolean, ``kept`` boolean (drawn into the sample; true outside dp);
          with a history ``risk_alone`` and ``risk_out`` double, ``beyond`` boolean
CELLS     ``scheme`` int, ``n<i>`` int node, ``n_rows`` long; admitted: ``noisy`` long
MEMBERS   ``n<i>`` int node, ``entity`` string, ``v<i>`` long fingerprints of released columns, ``r<i>`` those whose
          values persons are counted by, ``n_rows`` long, ``millionths`` long sampling weight: who is in a released
          class, where the policy names persons or sampling weights
HELD      ``record_id`` string, ``block`` binary, ``r<i>`` released column i as it is, ``d<i>`` double of column i
          where it is masked as a number, NaN where missing
TUPLES    ``n<i>`` int node, ``r<i>`` released column i, ``n_rows`` long: what is released, each tuple once or once a
          part; under dp the crowd histogram, which has no ``r<i>``, is all that leaves the trusted zone
========  ==========================================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning import dictionaries

NULL, UNKNOWN = dictionaries.NULL, dictionaries.UNKNOWN
RECORD_ID = "record_id"
DIGEST = "record_digest"
BLOCK = "block"
ENTITY = "entity"
PEOPLE = "people"
SAMPLE_WEIGHT = "sample_weight"
MILLIONTHS = "millionths"
N_ROWS = "n_rows"
SCHEME = "scheme"
NOISY = "noisy"
RISK = "risk"
RISK_BEFORE = "risk_before"
CONSISTENT_BEFORE = "consistent_before"
UTILITY = "utility"
CONSISTENT = "consistent"
FEASIBLE = "feasible"
GAP = "gap"
KEPT = "kept"
RELEASES = "releases"
CHANGED = "changed"
RISK_ALONE = "risk_alone"
RISK_OUT = "risk_out"
BEYOND = "beyond"


def codes(k: int) -> list[str]:
    """Columns of leaf codes."""
    return [f"q{i}" for i in range(k)]


def dictionary_codes(k: int) -> list[str]:
    """Columns of dictionary node codes."""
    return [f"t{i}" for i in range(k)]


def chosen(k: int) -> list[str]:
    """Columns of levels a rule has chosen, before they are evaluated."""
    return [f"x{i}" for i in range(k)]


def nodes(k: int) -> list[str]:
    """Columns of disclosed nodes."""
    return [f"n{i}" for i in range(k)]


def levels(k: int) -> list[str]:
    """Columns of chosen levels."""
    return [f"l{i}" for i in range(k)]


def history(k: int) -> list[str]:
    """Columns of the deepest levels that are out already."""
    return [f"h{i}" for i in range(k)]


def paths(k: int) -> list[str]:
    """Columns of what stands for a value with its path to the root."""
    return [f"p{i}" for i in range(k)]


def with_history(frame: T.StructType, k: int) -> T.StructType:
    """Schema of HISTORY over the columns already there."""
    added = [T.StructField(name, T.ByteType(), False) for name in history(k)]
    added += [T.StructField(RELEASES, T.LongType(), False), T.StructField(CHANGED, T.BooleanType(), False)]
    return T.StructType([*frame.fields, *added])


def remembered(k: int) -> T.StructType:
    """Schema of what a vault remembers of the records of a release."""
    fields = [T.StructField(DIGEST, T.StringType())]
    fields += [T.StructField(name, T.ByteType()) for name in levels(k)]
    fields += [T.StructField(name, T.LongType()) for name in paths(k)]
    return T.StructType(fields)


def weights(n: int) -> list[str]:
    """Columns of personal weights."""
    return [f"w{i}" for i in range(n)]


def released(n: int) -> list[str]:
    """Columns released as they are."""
    return [f"r{i}" for i in range(n)]


def doubles(positions: Iterable[int]) -> list[str]:
    """Columns of numbers, by the positions of the released columns they are of."""
    return [f"d{i}" for i in positions]


def sensitive(n: int) -> list[str]:
    """Columns of codes of sensitive values."""
    return [f"s{i}" for i in range(n)]


def kept_words(n: int) -> list[str]:
    """Columns of fingerprints of the values of columns released as they are, and last of all of them together."""
    return [f"v{i}" for i in range(n + 1)]


def decided(frame: T.StructType, k: int, *, gaps: bool = False) -> T.StructType:
    """Schema of DECIDED over the columns already there; with the gap of each decision where a search may leave one."""
    after = [
        T.StructField(RISK_ALONE, T.DoubleType(), False),
        T.StructField(RISK_OUT, T.DoubleType(), False),
        T.StructField(BEYOND, T.BooleanType(), False),
    ]
    added = [
        *[T.StructField(name, T.ByteType(), False) for name in levels(k)],
        *[T.StructField(name, T.IntegerType(), False) for name in nodes(k)],
        T.StructField(RISK, T.DoubleType(), False),
        T.StructField(RISK_BEFORE, T.DoubleType(), False),
        T.StructField(UTILITY, T.DoubleType(), False),
        T.StructField(CONSISTENT, T.LongType(), False),
        T.StructField(CONSISTENT_BEFORE, T.LongType(), False),
        T.StructField(FEASIBLE, T.BooleanType(), False),
        T.StructField(KEPT, T.BooleanType(), False),
        *([T.StructField(GAP, T.DoubleType(), False)] if gaps else []),
        *(after if history(1)[0] in frame.fieldNames() else []),
    ]
    return T.StructType([*frame.fields, *added])


def cells(k: int, *, noisy: bool) -> T.StructType:
    """Schema of CELLS."""
    fields = [T.StructField(SCHEME, T.IntegerType(), False)]
    fields += [T.StructField(name, T.IntegerType(), False) for name in nodes(k)]
    fields += [T.StructField(NOISY if noisy else N_ROWS, T.LongType(), False)]
    return T.StructType(fields)


def members(frame: T.StructType, k: int, valued: Sequence[str] = ()) -> T.StructType:
    """Schema of MEMBERS of an ENCODED frame, with the values of some of its columns ``r<j>``."""
    there = frame.fieldNames()
    nodes_of = [T.StructField(name, T.IntegerType(), False) for name in nodes(k)]
    entity = [T.StructField(ENTITY, T.StringType())] if ENTITY in there else []
    weight = [T.StructField(MILLIONTHS, T.LongType(), False)] if SAMPLE_WEIGHT in there else []
    kept = [name for name in there if re.fullmatch(r"r\d+", name)]
    words = [T.StructField(name, T.LongType()) for name in kept_words(len(kept))] if entity and kept else []
    values = [frame[name] for name in valued]
    return T.StructType([*nodes_of, *entity, *words, *values, T.StructField(N_ROWS, T.LongType(), False), *weight])


def tuples(frame: T.StructType, k: int) -> T.StructType:
    """Schema of TUPLES of an ENCODED frame."""
    released_columns = [field for field in frame.fields if re.fullmatch(r"r\d+", field.name)]
    nodes_of = [T.StructField(name, T.IntegerType(), False) for name in nodes(k)]
    return T.StructType([*nodes_of, *released_columns, T.StructField(N_ROWS, T.LongType(), False)])


def node_labels(spark: SparkSession, hierarchy: Hierarchy) -> DataFrame:
    """Frame of ``node`` and ``label`` of a hierarchy."""
    nodes = np.arange(hierarchy.n_nodes, dtype=np.int32)
    arrays = [pa.array(nodes), pa.array(list(hierarchy.labels), type=pa.string())]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, names=["node", "label"]), "node int, label string")


ID = "id"
"""Column of a dictionary's identities."""
