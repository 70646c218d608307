"""The seeded, SYNTHETIC hospital of the benchmark ``hospital``: stays by rows, partitioned Parquet.

Nothing here comes from a real person, place or hospital. A person has a birth date, a postcode and a sex; a stay is one
row with its ward and a diagnosis, and nearly every row differs from all others in what is quasi-identifying. The table
is a directory of parts ``ward=NAME``, as Hive and Spark write it: the column ``ward`` is in the names alone.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

WARDS = (
    "cardiology", "dermatology", "ear, nose and throat", "emergency", "geriatrics", "haematology", "intensive care",
    "neurology", "obstetrics/gynaecology", "oncology", "orthopaedics", "paediatrics", "psychiatry", "surgery",
)  # fmt: skip
DIAGNOSES = tuple(f"{letter}{number:02d}" for letter in "ABCDEFGHIJ" for number in range(0, 100, 5))
FIRST_DAY, LAST_DAY = np.datetime64("1916-01-01"), np.datetime64("2015-12-31")

_PEOPLE, _STAYS = range(2)  # purposes of the random streams


def generate(directory: Path, *, persons: int, rows: int, seed: int) -> None:
    """Write the table: ``ward=NAME/part-0.parquet`` of stay_id, person_id, birth_date, postcode, sex and diagnosis.

    Parameters
    ----------
    directory : Path
        Created; must not be there.
    persons : int
        People who may have stays.
    rows : int
        Stays. Their ids are given out at random.
    """
    rng = np.random.default_rng([seed, _PEOPLE])
    days = int((LAST_DAY - FIRST_DAY).astype(np.int64)) + 1
    # Fewer of the oldest, as in any hospital.
    born = (np.sqrt(rng.random(persons)) * days).astype(np.int32) + np.int32(
        FIRST_DAY.astype("datetime64[D]").astype(int)
    )
    places = _postcodes(rng)
    home = places[(rng.random(persons) ** 1.5 * len(places)).astype(np.int64)]
    sex = rng.integers(0, 2, persons)
    rng = np.random.default_rng([seed, _STAYS])
    person = rng.integers(0, persons, rows)
    ward = (rng.random(rows) ** 1.3 * len(WARDS)).astype(np.int64)
    diagnosis = (rng.random(rows) ** 2 * len(DIAGNOSES)).astype(np.int32)
    number = rng.permutation(rows)
    for w, name in enumerate(WARDS):
        there = np.flatnonzero(ward == w)
        if not len(there):
            continue
        who = person[there]
        table = pa.table(
            {
                "stay_id": _numbered("S", number[there]),
                "person_id": _numbered("P", who),
                "birth_date": pa.array(born[who]).cast(pa.date32()),
                "postcode": pa.array(home[who].astype(str)),
                "sex": pa.array(np.array(["female", "male"])[sex[who]]),
                "diagnosis": pa.DictionaryArray.from_arrays(pa.array(diagnosis[there]), pa.array(DIAGNOSES)).cast(
                    pa.string()
                ),
            }
        )
        part = directory / f"ward={quote(name, safe=', ')}"
        part.mkdir(parents=True)
        pq.write_table(table, part / "part-0.parquet", row_group_size=1 << 18, store_schema=False)


def _postcodes(rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Six digits each: 60 regions, 10 to 30 districts in each, and some ten places in each of those."""
    found = []
    for region in np.sort(rng.choice(np.arange(10, 99), 60, replace=False)):
        for district in np.sort(rng.choice(100, rng.integers(10, 31), replace=False)):
            places = rng.choice(100, rng.integers(4, 17), replace=False)
            found.append(region * 10_000 + district * 100 + np.sort(places))
    return np.concatenate(found)


def _numbered(letter: str, numbers: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(np.char.add(letter, np.char.zfill(numbers.astype(str), 8)))
