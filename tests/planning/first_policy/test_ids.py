"""Ids with unknown names: two independent barriers of a first policy, and their false alarms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from first_policies import profiled
from id_tables import INDIVIDUALS, NAMES, id_table
from unprepared import TABLES

from privrisk_spark.planning.first_policy import roles
from privrisk_spark.planning.first_policy.codes import code_form
from privrisk_spark.planning.first_policy.draft import draft
from privrisk_spark.planning.first_policy.roles import guess_ids, guess_roles

REPEATED = [name for name in NAMES if name not in ("of a row", "composed")]
UNSURE = [name for name in NAMES if name not in ("token", "kontaktweg", "zahlweg", "of a row")]
"""Tables whose ids repeat and have no pattern that shows what they are."""
CODED = ["KVNR", "h1", "wagen", "vnx", "of a row"]


@pytest.mark.parametrize("name", NAMES)
def test_draft_table_with_ids_drops_them(name: str) -> None:
    of = id_table(name)
    found = draft(*profiled(of.table.to_pandas()))
    columns = found.columns({})
    assert {columns[column]["role"] for column in of.ids} == {"identifier"}
    assert (set(of.ids) <= set(found.undecided)) == (name in UNSURE)
    assert found.document({}, name, {}, floor=0, output=None).get("undecided", []) == list(found.undecided)


@pytest.mark.parametrize("name", REPEATED)
def test_draft_id_that_repeats_is_proposed_as_entity_id(name: str) -> None:
    ids = draft(*profiled(id_table(name).table.to_pandas())).ids
    assert ids.entity == name
    assert f"{INDIVIDUALS:,} values" in ids.reason


@pytest.mark.parametrize("name", CODED)
def test_guess_roles_code_without_other_columns_is_an_identifier(name: str) -> None:
    """What a code looks like is enough: nothing is known of what it determines."""
    of = id_table(name)
    profile, _ = profiled(of.table.select(of.ids).to_pandas())
    assert not profile.naming
    (guess,) = guess_roles(profile)
    assert (guess.role, guess.kept, guess.unsure) == ("identifier", False, True)


@pytest.mark.parametrize("name", REPEATED)
def test_guess_roles_id_that_determines_is_an_identifier_whatever_its_form(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roles, "code_form", lambda _: None)
    monkeypatch.setattr(roles, "_identifying", lambda _: None)
    profile, _ = profiled(id_table(name).table.to_pandas())
    guesses = guess_roles(profile)
    assert (guesses[0].role, guesses[0].kept, guesses[0].unsure) == ("identifier", False, True)
    assert guess_ids(guesses, profile).entity == name


def test_guess_roles_name_of_a_postcode_or_a_finding_over_values_of_ids_is_an_identifier() -> None:
    frame = pd.DataFrame({"plz": [f"M{n:06d}" for n in range(200)], "Befundnr": [f"B{n:05d}" for n in range(200)]})
    profile, _ = profiled(pd.concat([frame, frame]))
    assert {(one.column, one.role, one.unsure) for one in guess_roles(replace(profile, naming={}))} == {
        ("plz", "identifier", True),
        ("Befundnr", "identifier", True),
    }


@pytest.mark.parametrize(
    ("values", "is_code"),
    [
        ([f"{n}:{m:02d}" for n in range(8, 18) for m in range(0, 60, 5)], False),
        ([f"{n}-{n + 4}" for n in range(0, 100, 5)], False),
        ([f"Ort {chr(65 + n % 26)}{chr(97 + n // 26)}" for n in range(60)], False),
        ([f"I{n:02d}.{n % 9}" for n in range(10, 90)], False),
        ([f"K{n:07d}" for n in range(10, 90)], True),
        ([float(n * 7_919 + 100_000) for n in range(60)], True),
        ([1_000 + 13.5 * n for n in range(60)], False),
        ([round(170 + 7 * ((n * 7_919 % 1_000) / 250 - 2) ** 3) for n in range(400)], False),
        (list(range(1, 301)), True),
    ],
)
def test_code_form_values_is_code(values: list[object], is_code: bool) -> None:
    profile, _ = profiled(pd.DataFrame({"x": values * 3}))
    assert (code_form(profile["x"]) is not None) == is_code


@pytest.mark.parametrize(
    ("values", "undecided"),
    [
        (list(range(3, 9_000, 13)), True),  # numbers given out with gaps
        ([1_000 + n * n for n in range(60)], True),  # four digits each
        ([n * n for n in range(60)], False),
        ([1_960 + n for n in range(60)], False),  # years
        ([n / 7 for n in range(900)], False),
        ([-n * 7_919 % 1_000 - 500 for n in range(200)], False),
        ([n % 29 * 1_000 + 1_000 for n in range(290)], False),
        (["".join(chr(97 + n // 6**i % 6) for i in range(3)) for n in range(200)], True),  # may be names
        (["".join(chr(97 + n // 5**i % 5) for i in range(2)) for n in range(200)], False),  # 25 of them
    ],
)
def test_draft_column_of_an_unknown_name_is_undecided_if_it_may_be_an_id(values: list[object], undecided: bool) -> None:
    found = draft(*profiled(pd.DataFrame({"x": values * 4, "age": [20 + n % 50 for n in range(4 * len(values))]})))
    assert found.guess("x").unsure
    assert found.guess("x").role == "quasi-identifier"
    assert ("x" in found.undecided) == undecided


def test_barriers_on_generated_tables_raise_at_most_one_false_alarm_in_twenty_columns() -> None:
    columns, wrong, undecided = 0, [], []
    for name, make in TABLES.items():
        of = make(1_200)
        frame = of.table.to_pandas()
        for column in frame:
            if frame[column].dtype.kind not in "iuf":
                frame[column] = [None if pd.isna(value) else str(value) for value in frame[column]]
        profile, values = profiled(frame)
        columns += len(profile.columns)
        undecided += [(name, column) for column in draft(profile, values).undecided]
        wrong += [
            (name, guess.column)
            for guess in guess_roles(profile)
            if of.truth[guess.column][0] != "identifier"
            and ("as ids have" in guess.reason or guess.column in profile.naming)
        ]
    assert len(wrong) <= columns / 20, wrong
    assert len([one for one in undecided if one not in wrong]) <= columns / 20, undecided


@pytest.mark.parametrize("name", ["credit", "party", "union", "treatment", "result", "cause", "total", "score"])
@pytest.mark.parametrize("barrier", ["codes", "determined columns"])
def test_draft_id_under_the_name_of_something_sensitive_is_dropped(
    name: str, barrier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if barrier == "determined columns":
        monkeypatch.setattr(roles, "code_form", lambda _: None)
    random = np.random.default_rng(5)
    who = random.integers(0, 76, 3_000)
    born, sex = random.integers(1940, 2000, 76), random.choice(["f", "m"], 76)
    frame = pd.DataFrame({
        name: [f"A10{n * 7_919 + 7_000:07d}" for n in who],
        "birth_date": [f"{born[n]}-0{n % 9 + 1}-{n % 28 + 1:02d}" for n in who],
        "sex": sex[who],
        "diagnosis": random.choice(["asthma", "burn", "cold", "flu"], 3_000),
    })  # fmt: skip
    if barrier == "codes":
        frame["birth_date"] = random.permutation(frame["birth_date"])
    found = draft(*profiled(frame))
    assert found.columns({})[name]["role"] == "identifier"
    assert name in found.undecided
    assert found.ids.entity == (None if barrier == "codes" else name)
    assert found.columns({})["diagnosis"]["role"] == "sensitive"
