"""The main job with a linkage table: what it measures, where it says so, and what it refuses."""

from __future__ import annotations

import datetime as dt
import json
import math
from pathlib import Path

import pandas as pd
import pytest
from product import Privrisk, Ran

SECRETS = ["zQxCanaryJob", "zQxCanaryTeam", "zQxCanaryRow", "4242424241"]
NORTH = {"Bonn": "north", "Kiel": "north", "Ulm": "south"}
LINKAGE = """
linkage:
  path: {root}/links.csv
  format: csv
  options: {{header: true}}
  record_id: person
  linked_id: row
  probability: p
  columns:
    job: {{column: work, hierarchy: {{flat: true}}, dictionary: occupation, weight: 2}}
    team: {{column: club, hierarchy: {{flat: {{values: [red, blue, zQxCanaryTeam]}}}}}}
"""
DICTIONARY = """
dictionary:
  kind: table
  path: {root}/register.csv
  format: csv
  options: {{header: true}}
  consistency: compatible
  columns: {{age: years, city: town}}
"""
JOBS = ["clerk", "baker", "nurse"]


@pytest.fixture
def linkable(small: Path) -> Path:
    """The small policy with a linkage table and a register that knows the jobs; every third record has links."""
    root = small.parent
    links = ["row,person,p,work,club"]
    for i in range(0, 60, 3):
        links.append(f"r{i},p{i},0.5,{JOBS[i % 2]},red")
        links.append(f"s{i},p{i},0.25,,blue")
    links.append("zQxCanaryRow,p1,1,zQxCanaryJob,zQxCanaryTeam")
    (root / "links.csv").write_text("\n".join(links) + "\n")
    register = ["years,town,occupation"]
    for i in range(90):
        register.append(f"{20 + i % 32},{['Ulm', 'Bonn', 'Kiel', ''][i % 4]},{JOBS[i % 3]}")
    (root / "register.csv").write_text("\n".join(register) + "\n")
    small.write_text(small.read_text() + LINKAGE.format(root=root) + DICTIONARY.format(root=root))
    return small


def rows_of(path: Path) -> list[dict[str, str]]:
    return [
        {str(name): str(value) for name, value in row.items()}
        for row in pd.read_csv(path, dtype=str, keep_default_na=False, sep=None, engine="python").to_dict("records")
    ]


def age_at(age: int, level: int) -> tuple[int, int]:
    """Range of an age at a level of the widths 5, 10 and 20."""
    width = (1, 5, 10, 20, 100)[level]
    low = age - age % width
    return low, low + width


def literal(ran: Ran, root: Path) -> tuple[list[float], list[float], list[float], int]:
    """Risk of each record alone, expected and at worst over its links; links the register has no row for."""
    register, links = rows_of(root / "register.csv"), rows_of(root / "links.csv")
    table = {row["id"]: row for row in rows_of(root / "table.csv")}
    decisions = pd.read_parquet(ran.root / "vault" / "decisions").to_dict("records")
    contradicted = 0

    def fits(row: dict[str, str], ages: tuple[int, int], place: str, job: str) -> bool:
        town = row["town"]
        city = place == "*" or not town or place in (town, NORTH[town])
        return ages[0] <= int(row["years"]) < ages[1] and city and job in ("", row["occupation"])

    def loss(decision: dict[str, object], job: str, club: str) -> tuple[float, bool]:
        record = table[str(decision["id"])]
        age, city = int(record["age"]), record["city"]
        levels = [int(str(decision[f"level_{name}"])) for name in ("age", "sex", "city")]
        ages, place = age_at(age, levels[0]), (city, NORTH[city], "*")[levels[2]]
        absent = not any(fits(row, age_at(age, 0), city, job) for row in register)
        rho = sum(fits(row, ages, place, job) for row in register) + absent
        phi = 0.0 if levels[0] == 4 else 1 / (ages[1] - ages[0])
        phi += 1.0 - levels[1]
        phi += {city: 1.0, "north": 0.5, "south": 1.0, "*": 0.0}[place]
        return (phi + (2.0 if job else 0.0) + (1.0 if club else 0.0)) / rho, absent

    alone, expected, worst = [], [], []
    for decision in decisions:
        base = loss(decision, "", "")[0]
        assert decision["risk"] == pytest.approx(base, rel=1e-12)
        total, left, most = 0.0, 1.0, base
        for link in links:
            if link["person"] == decision["id"]:
                value, absent = loss(decision, link["work"], link["club"])
                total, left, most = total + float(link["p"]) * value, left - float(link["p"]), max(most, value)
                contradicted += absent
        alone.append(base)
        expected.append(total + left * base)
        worst.append(most)
    return alone, expected, worst, contradicted


def test_the_risk_after_linkage_is_the_literal_one(
    privrisk: Privrisk, linkable: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = privrisk(str(linkable), "--run-id", "one", "--explain")
    assert ran.code == 0, ran.err
    alone, expected, worst, contradicted = literal(ran, linkable.parent)
    facts = ran.summary["linkage"]
    assert facts["attributes"] == ["job", "team"]
    assert (facts["rows"], facts["linked"], facts["links"]) == (60, 21, 41)
    assert facts["contradicted"] == contradicted > 0, "no row of the register has the canary's job"
    for name, values in (("unlinked_risk", alone), ("linked_risk", expected), ("greatest_risk", worst)):
        found = facts[name]
        assert found["mean"] == pytest.approx(math.fsum(values) / 60, rel=1e-12)
        assert (found["max"], found["min"]) == pytest.approx((max(values), min(values)), rel=1e-12)
    assert facts["unlinked_risk"] == ran.summary["risk_after"]
    assert facts["unlinked_risk"]["mean"] < facts["linked_risk"]["mean"] < facts["greatest_risk"]["mean"]
    report = (ran.root / "vault" / "report.html").read_text()
    assert '<h2 id="linkage">Record linkage</h2>' in report
    assert "21 of 60 records (35.0 %) have a link, 41 links in all." in report
    assert "rows that tell job, team too" in report
    assert f"no row that fits the record and {contradicted} of these links" in report
    target = ran.root / "out" / "releases" / "one"
    public = (target / "report.html").read_text()
    assert '<h2 id="linkage">' not in public
    assert '"linkage"' not in json.dumps(ran.manifest)
    # Nothing that a link holds is said anywhere but in the release's own data and the decisions.
    captured = capfd.readouterr()
    spoken = ran.out + ran.err + captured.out + captured.err
    assert "link" in spoken
    for path in ran.root.rglob("*"):
        if path.is_file() and path.suffix in {".json", ".html"}:
            spoken += path.read_text()
    assert not [secret for secret in SECRETS if secret in spoken]
    assert not [path for path in ran.root.rglob("*") if "links" in path.name and path.parent != linkable.parent]


@pytest.mark.parametrize(
    ("plan", "form"),
    [
        ("sorted", "{form: linear}"),
        # What attributes weigh together stays with the released ones.
        ("dense", "{form: interaction, interactions: [{columns: [age, sex], weight: 3}]}"),
    ],
)
def test_a_table_that_is_its_own_dictionary_knows_no_added_attribute(
    privrisk: Privrisk, linkable: Path, plan: str, form: str
) -> None:
    document = linkable.read_text()
    own = document[: document.index("\ndictionary:")].replace(", dictionary: occupation", "")
    linkable.write_text(own)
    ran = privrisk(str(linkable), f"--set=counting.plan={plan}", f"--set=risk.sensitivity={form}")
    assert ran.code == 0, ran.err
    facts = ran.summary["linkage"]
    assert facts["unlinked_risk"] == ran.summary["risk_after"]
    assert facts["contradicted"] == 0
    # A link adds its weights to Φ and leaves ρ as it is: job 2 and team 1 in half the cases, team in a quarter.
    decisions = pd.read_parquet(ran.root / "vault" / "decisions").set_index("id")
    added = {f"p{i}": 0.5 * 3 + 0.25 * 1 for i in range(0, 60, 3)} | {"p1": 3.0}
    more = math.fsum(weight / decisions.loc[person, "consistent"] for person, weight in added.items())
    assert facts["linked_risk"]["mean"] - facts["unlinked_risk"]["mean"] == pytest.approx(more / 60, rel=1e-9)


@pytest.mark.parametrize("table", ["parquet", "csv read as numbers"])
def test_release_links_as_texts_of_numbers_match_numeric_records(
    privrisk: Privrisk, linkable: Path, table: str
) -> None:
    """A number in the table is one id with its texts; texts of the table can be read as numbers."""
    root, expected = linkable.parent, privrisk(str(linkable)).summary["linkage"]
    links, records = pd.read_csv(root / "links.csv"), pd.read_csv(root / "table.csv", sep=";")
    links["person"] = links["person"].str[1:] + ".0"
    links.to_csv(root / "links.csv", index=False)
    records["id"] = records["id"].str[1:].astype(int)
    more = []
    if table == "parquet":
        csv = f'{root}/table.csv, format: csv, options: {{sep: ";", header: true}}'
        linkable.write_text(linkable.read_text().replace(csv, f"{root}/table.parquet"))
    else:
        records["id"] = records["id"].astype(str) + ".0"
        more = ["--set=columns.id.read={cast: number}"]
    records.to_csv(root / "table.csv", sep=";", index=False)
    records.to_parquet(root / "table.parquet", index=False)
    ran = privrisk(str(linkable), *more)
    assert ran.code == 0, ran.err
    assert ran.summary["linkage"] == expected


def test_faults_of_the_linkage_table_end_the_run(privrisk: Privrisk, linkable: Path) -> None:
    links = linkable.parent / "links.csv"
    good = links.read_text()
    links.write_text(
        good
        + "r0,p0,0,clerk,red\nq1,p3,0.75,,red\nq2,4242424241,0.5,,red\n,p5,0.5,,red\nq3,p7,zQxCanaryRow,,red\n"
        + "q4,p8,0.5,clerk,zQxCanaryClub\n"
    )
    ran = privrisk(str(linkable))
    assert ran.code == 2
    (message,) = [line for line in ran.err.splitlines() if line.startswith("privrisk: ")]
    for part in (
        "linkage.record_id: 1 rows do not name their record",
        "linkage.record_id: 1 rows name a record that the table lacks",
        "linkage.linked_id: 1 rows repeat",
        "linkage.probability: 1 rows have none",
        "linkage.probability: 1 records have probabilities that sum to more than 1",
        "linkage.columns.team.hierarchy: 1 rows hold a value outside the hierarchy",
    ):
        assert part in message, message
    spoken = ran.out + ran.err + (ran.root / "vault" / "status.json").read_text()
    assert not [secret for secret in [*SECRETS, "zQxCanaryClub", "q4", "p8"] if secret in spoken]
    assert ran.status["code"] == 2
    assert not (ran.root / "out" / "manifest.json").exists()
    links.write_text(good.replace("row,person", "row,people"))
    ran = privrisk(str(linkable))
    assert ran.code == 2
    assert "linkage.record_id: the linkage table has no column 'person'" in ran.err
    assert privrisk(str(linkable), "--dry-run").code == 2, "before anything is read"


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ("--set=counting.plan=shuffle", ["counting.plan: must be 'auto', 'dense' or 'sorted' with linkage"]),
        ("--set=dictionary.entity_id=years", ["linkage: is not available where a dictionary's entity_id"]),
        ("--set=risk.model=II", ["linkage.columns.job.weight: is only used by"]),
        ("--set=linkage.columns.sex={column: x, hierarchy: {flat: true}}", ["linkage.columns.sex: is a column of the"]),
        ("--set=dictionary={kind: self}", ["linkage.columns.job.dictionary: the dictionary is the table itself"]),
        (
            "--set=risk.sensitivity.personal={factor: age, sum_to: 2}",
            ["risk.sensitivity.personal: must not be normalized", "linkage"],
        ),
        ("--set=linkage.record_ids=x", ["linkage.record_ids: there is no such key (did you mean 'record_id'"]),
    ],
)
def test_what_linkage_does_not_go_with_is_refused_by_name(
    privrisk: Privrisk, linkable: Path, change: str, parts: list[str]
) -> None:
    ran = privrisk(str(linkable), change)
    assert ran.code == 2
    for part in parts:
        assert part in ran.err, ran.err


def test_dry_run_columns_without_a_use_may_have_any_type(privrisk: Privrisk, linkable: Path) -> None:
    """Of the table, the dictionary and the linkage table, each as Parquet with a time of day."""
    root = linkable.parent
    text = linkable.read_text()
    for name, separator in (("links", ","), ("register", ","), ("table", ";")):
        rows = pd.read_csv(root / f"{name}.csv", sep=separator, dtype={"age": int})
        rows["opened"] = dt.time(8, 30)
        rows.to_parquet(root / f"{name}.parquet", index=False)
        text = text.replace(f"path: {root}/{name}.csv", f"path: {root}/{name}.parquet")
    text = text.replace(', format: csv, options: {sep: ";", header: true}', "")
    text = text.replace("  format: csv\n", "").replace("  options: {header: true}\n", "")
    linkable.write_text(text.replace("decision:", "  opened: {role: identifier}\ndecision:"))
    assert privrisk(str(linkable), "--dry-run").code == 0
    refused = privrisk(str(linkable), "--dry-run", "--set=linkage.columns.job.column=opened")
    assert refused.code == 2
    assert "linkage.path: " in refused.err
    assert "column 'opened' is of type time64[us], which cannot be read" in " ".join(refused.err.split())
