"""Patterns of values and names of columns: worked examples, and check digits that one wrong digit breaks."""

from __future__ import annotations

import pytest

from privrisk_spark.planning.first_policy.patterns import matches, patterns_of, shape_of
from privrisk_spark.planning.first_policy.scales import icd10_path, nace_path, ordered
from privrisk_spark.planning.first_policy.vocabulary import named

HOLDS = {
    "email": ["a.b@example.org"], "url": ["https://example.org/x", "www.example.org"], "ip": ["10.1.2.3", "fe80::1"],
    "mac": ["00:1B:44:11:3A:B7"], "uuid": ["123e4567-e89b-12d3-a456-426614174000"],
    "phone": ["+49 228 123456", "(020) 7946-0958"], "ssn": ["219-09-9999"], "nino": ["AB 12 34 56 C"],
    "iban": ["GB82 WEST 1234 5698 7654 32", "DE89370400440532013000", "FR14 2004 1010 0505 0001 3M02 606"],
    "card": ["4111 1111 1111 1111"],
    "dni": ["12345678Z", "X1234567L"], "nir": ["255081416802538", "2 95 10 99 126 111 93"],
    "bsn": ["111222333", "1112.22.333"], "cpf": ["529.982.247-25"],
    "codice_fiscale": ["RSSMRA85T10A562S"], "icd10": ["I21.4", "E11"], "nace": ["62.01", "J62"], "atc": ["A10BA02"],
    "iso_date": ["2024-02-29"], "iso_time": ["2024-02-29 10:11:12"], "written_date": ["29.02.2024", "2024/02/29"],
    "postcode": ["53113", "1234 AB", "SW1A 1AA", "K1A 0B1"],
}  # fmt: skip
"""Published examples of each form: of the IBAN registry, of card makers, of the tax offices."""

HOLDS_NOT = {
    "iban": ["GB82 WEST 1234 5698 7654 33", "DE89370400440532013001", "XX89370400440532013000"],
    "card": ["4111 1111 1111 1112"],
    "dni": ["12345678A", "X1234567A", "54362315"], "nir": ["255081416802539"],
    "bsn": ["111222334", "11122333", "000000000"], "cpf": ["529.982.247-24", "111.111.111-11"],
    "ssn": ["000-12-3456"], "ip": ["10.1.2.300", "1.5"], "iso_date": ["2024-13-01"], "email": ["a@b"],
}  # fmt: skip


@pytest.mark.parametrize(("pattern", "value"), [(p, v) for p, values in HOLDS.items() for v in values])
def test_examples_have_their_pattern(pattern: str, value: str) -> None:
    assert matches(pattern, value)


@pytest.mark.parametrize(("pattern", "value"), [(p, v) for p, values in HOLDS_NOT.items() for v in values])
def test_one_wrong_sign_breaks_it(pattern: str, value: str) -> None:
    assert not matches(pattern, value)


@pytest.mark.parametrize("place", range(4, 22))
def test_every_digit_of_an_iban_counts(place: int) -> None:
    text = "DE89370400440532013000"
    changed = text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]
    assert matches("iban", text)
    assert not matches("iban", changed)


def test_luhn_finds_two_neighbours_exchanged() -> None:
    assert matches("card", "4012888888881881")
    assert not matches("card", "4102888888881881")


def test_shares_and_shapes() -> None:
    assert patterns_of(["53113", "x", "53115", "1"]) == {"postcode": 0.5}
    assert [shape_of(text) for text in ("DE-53113", "Anna Maria", "é€")] == ["AA-99999", "Aa+ Aa+", "a?"]


NAMES = {
    "birth_date": "birth_date Geburtsdatum dateNaissance fecha_nacimiento data_di_nascita GEBOORTEDATUM DOB",
    "postcode": "zip PLZ code_postal codigoPostal CAP zip5", "sex": "Geschlecht sexe sexo sesso geslacht gender",
    "person_id": "patient_id customerNumber Kundennr Personalnummer id_client", "row_id": "visit_id transaction_id",
    "income": "Bruttogehalt salaire salario stipendio salary-class", "email": "e_mail E-Mail-Adresse courriel",
    "national_id": "SSN codice_fiscale dni BSN Steuer-ID", "diagnosis": "ICD10 Hauptdiagnose diagnostic_principal",
    "person_name": "Vorname last-name apellido cognome achternaam", "household": "Haushaltsgröße nb_enfants",
}  # fmt: skip


@pytest.mark.parametrize(("concept", "name"), [(c, n) for c, names in NAMES.items() for n in names.split()])
def test_names_say_what_columns_are(concept: str, name: str) -> None:
    found = named(name)
    assert found is not None
    assert found.concept == concept


@pytest.mark.parametrize("name", ["x1", "f07", "v_2", "___", "zzz"])
def test_names_that_say_nothing(name: str) -> None:
    assert named(name) is None


def test_scales_and_codes() -> None:
    assert ordered(["hoch", "niedrig", "mittel"]) == ["niedrig", "mittel", "hoch"]
    assert ordered(["65+", "18-34", "0-17", "35-64"]) == ["0-17", "18-34", "35-64", "65+"]
    assert ordered(["red", "green", "blue"]) is None
    assert nace_path("62.01") == ("62.01", "group 62.0", "division 62", "section J")
    assert nace_path("04.10") is None, "there is no division 4"
    assert icd10_path("D50.1") == ("D50.1", "category D50", "D50-D89")
