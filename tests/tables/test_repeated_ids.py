from __future__ import annotations

from collections import Counter
from hashlib import blake2b

import pytest

from privrisk_spark.engine.batches import Batches
from privrisk_spark.tables.record_ids import told_apart

SCHEMA = "record_id string, block binary, entity string, q0 int, q1 int"
ROWS = [
    ("alone", 1, None, 0),
    ("twice", 1, "x", 1),
    ("twice", 1, "x", 2),
    ("thrice", 2, None, 1),
    ("thrice", 2, None, 1),
    ("thrice", 2, "y", 1),
    (None, 3, None, 1),
    (None, 3, None, 1),
    (None, 4, None, -1),
    ("", 4, None, 1),
]


def block(identity: str | None) -> bytes | None:
    return None if identity is None else blake2b(repr(identity).encode(), digest_size=16).digest()


def blocks_of(spark, rows):
    frame = spark.createDataFrame([(i, block(i), entity, q0, q1) for i, q0, entity, q1 in rows], SCHEMA)
    found = told_apart(Batches.of_frame(frame))
    assert found.schema.fieldNames() == frame.schema.fieldNames()
    return [(row.record_id, row.q0, row.entity, row.q1, bytes(row.block)) for row in found.collect()]


@pytest.mark.parametrize("order", [ROWS, ROWS[::-1], ROWS[4:] + ROWS[:4]], ids=["as given", "turned", "rotated"])
def test_every_row_has_draws_of_its_own_and_the_same_in_any_order(spark, order):
    found = blocks_of(spark, order)
    assert len({own for *_, own in found}) == len(ROWS)
    assert Counter(row[:4] for row in found) == Counter((i, q0, entity, q1) for i, q0, entity, q1 in ROWS)
    assert sorted(found, key=repr) == sorted(blocks_of(spark, ROWS), key=repr)


def test_rows_with_an_id_of_their_own_keep_their_draws(spark):
    own = {row[0]: row[4] for row in blocks_of(spark, ROWS)}
    assert (own["alone"], own[""]) == (block("alone"), block(""))
    assert own["twice"] != block("twice")


def test_a_further_row_of_an_id_takes_no_draws_from_rows_of_others(spark):
    fewer = {row[:4]: row[4] for row in blocks_of(spark, [row for row in ROWS if row != ("twice", 1, "x", 2)])}
    more = {row[:4]: row[4] for row in blocks_of(spark, ROWS)}
    changed = {row[0] for row in fewer if fewer[row] != more[row]}
    assert changed == {"twice"}
    assert fewer["twice", 1, "x", 1] == block("twice"), "no other row had the id then"
