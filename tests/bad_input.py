"""Wrong and hostile input by kind: how it is made of good input, how the command ends, and what it says."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.ownership import claim

SECRET = "Xq7secret"
"""Planted as a record's value: no line of any kind may repeat it."""

POLICY = """version: 1
run: {{name: small}}
table: {{path: {root}/table.csv, format: csv, options: {{sep: ";", header: true}}, record_id: id}}
columns:
  id: {{role: identifier}}
  age: {{role: quasi-identifier, hierarchy: {{intervals: {{widths: [5, 10, 20], domain: [0, 99]}}}}}}
  sex: {{role: quasi-identifier, hierarchy: {{flat: {{values: [F, M]}}}}}}
  city: {{role: quasi-identifier, hierarchy: {{file: {root}/city.csv}}}}
  diagnosis: {{role: sensitive}}
decision: {{problem: min-risk, utility_at_least: 3}}
output: {{path: {root}/out, vault: {root}/vault}}
"""

Change = Callable[[Path], object]


def good(root: Path) -> None:
    """A policy, a table of 60 rows and a hierarchy file; released as they are, they end with 0."""
    rows = ["id;age;sex;city;diagnosis"]
    rows += [f"p{i};{20 + i % 30};{'FM'[i % 2]};{('Ulm', 'Bonn', 'Kiel')[i % 3]};{'abc'[i % 3]}" for i in range(60)]
    (root / "table.csv").write_text("\n".join(rows) + "\n")
    (root / "city.csv").write_text("Ulm;south;*\nBonn;north;*\nKiel;north;*\n")
    (root / "policy.yaml").write_text(POLICY.format(root=root))


@dataclass(frozen=True)
class Kind:
    """One kind of bad input.

    Attributes
    ----------
    what : str
        As the documentation calls it.
    code : int
        Exit code.
    said : str
        What the line on standard error holds: the key, the file or the column, and what would do.
    change : callable
        Makes it of good input, in the directory given.
    arguments : tuple of str
        Added to the command.
    on_spark : str
        What the line holds on Spark, if that is something else.
    """

    what: str
    code: int
    said: str
    change: Change = lambda _: None
    arguments: tuple[str, ...] = ()
    on_spark: str = ""


def replaced(file: str, old: str, new: str) -> Change:
    def change(root: Path) -> None:
        text = (root / file).read_text()
        assert old in text
        (root / file).write_text(text.replace(old, new, 1))

    return change


def written(file: str, content: str | bytes) -> Change:
    return lambda root: (root / file).write_bytes(content if isinstance(content, bytes) else content.encode())


def lacking(file: str) -> Change:
    return lambda root: (root / file).unlink()


def piped(file: str) -> Change:
    def change(root: Path) -> None:
        (root / file).unlink(missing_ok=True)
        os.mkfifo(root / file)

    return change


def occupied(name: str) -> Change:
    return lambda root: (root / name).write_text("a file")


def policy(old: str, new: str) -> Change:
    return replaced("policy.yaml", old, new)


def path(new: str) -> Change:
    def change(root: Path) -> None:
        policy(f"{root}/table.csv", new)(root)

    return change


def set_to(assignment: str) -> tuple[str, ...]:
    return (f"--set={assignment}",)


def yours(name: str) -> Change:
    def change(root: Path) -> None:
        (root / name).mkdir()
        (root / name / "report.html").write_text("yours")

    return change


def damaged_manifest(root: Path) -> None:
    claim(locate(str(root / "out"), key="output.path"), "output.path", "releases", public=True)
    (root / "out" / "manifest.json").write_text(json.dumps({"sequence": "one"}))


NINE = ", ".join(["*a"] * 9)
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"b{i}: &b{i} [{', '.join(['*a' if i == 0 else f'*b{i - 1}'] * 9)}]\n" for i in range(8)
)
NOISE = bytes(range(256)) * 2

KINDS = (
    # ---- the policy as a file
    Kind("no policy is named", 2, "name a policy file", lambda root: (root / "policy.yaml").unlink(), ("NO POLICY",)),
    Kind("the policy file is not there", 2, "there is no policy file", lacking("policy.yaml")),
    Kind("the policy file is a pipe", 2, "it is a pipe or a device", piped("policy.yaml")),
    Kind("the policy file is empty", 2, "must hold a mapping of keys", written("policy.yaml", "")),
    Kind("the policy file is a list", 2, "must hold a mapping of keys", written("policy.yaml", "- a\n- b\n")),
    Kind("the policy file is no text", 2, "is not UTF-8 text", written("policy.yaml", NOISE)),
    Kind("the policy is no YAML", 2, "is not valid YAML: line 2", written("policy.yaml", "a: 1\n  b: [\n")),
    Kind("the policy stands for a thousand million values", 2, "its aliases (*name)", written("policy.yaml", BOMB)),
    Kind("the policy contains itself", 2, "itself a part of", written("policy.yaml", "a: &a [*a]\n")),
    Kind("a key is given twice", 2, "the key 'run' is given twice", policy("decision:", "run: {name: x}\ndecision:")),
    Kind("a variable that is not set", 2, "NOT_SET_HERE", policy("name: small", "name: '${NOT_SET_HERE}'")),
    # ---- its keys
    Kind("an unknown key", 2, "decision.utilty_at_least: there is no such key", policy("utility_at", "utilty_at")),
    Kind(
        "an unknown key on the command line",
        2,
        "decision.foo: there is no such key",
        arguments=set_to("decision.foo=1"),
    ),
    Kind("a setting without a value", 2, "must be written key=value", arguments=("--set=decision",)),
    Kind("a floor that is no number", 2, "utility_at_least", arguments=set_to("decision.utility_at_least=many")),
    Kind("a floor that is infinite", 2, "must be a finite number", arguments=set_to("decision.utility_at_least=.inf")),
    Kind("a floor below every utility", 2, "must be at least 0", arguments=set_to("decision.utility_at_least=-1")),
    Kind("a floor above every utility", 2, "must be at most 7", arguments=set_to("decision.utility_at_least=1000")),
    Kind("a role that does not exist", 2, "columns.diagnosis.role", policy("sensitive", "sensitiv")),
    Kind("widths that do not nest", 2, "columns.age.hierarchy", policy("[5, 10, 20]", "[5, 7]")),
    Kind("a run id that is empty", 2, "--run-id: must be 1 to 128", arguments=("--run-id", "")),
    Kind("a run id that is a path", 2, "--run-id: must be 1 to 128", arguments=("--run-id", "../x")),
    Kind("a day that is none", 2, "--date: must be a date", arguments=("--date", "2026-13-01")),
    Kind("no output", 2, "output", policy("output: {path", "outputs: {path")),
    Kind("another version", 2, "version", policy("version: 1", "version: 9")),
    # ---- hierarchies
    Kind("a hierarchy file is not there", 2, "city.csv': the file cannot be read", lacking("city.csv")),
    Kind("a hierarchy file is a pipe", 2, "it is a pipe or a device", piped("city.csv")),
    Kind("a hierarchy file is empty", 2, "city.csv': the file has no rows", written("city.csv", "")),
    Kind(
        "a hierarchy file is no text",
        2,
        "byte 129: not UTF-8 (0x80)",
        written("city.csv", bytes(range(32, 127)) * 1 + b" " * 33 + NOISE[128:]),
    ),
    Kind(
        "a hierarchy in another encoding",
        2,
        "line 1, byte 6: not UTF-8",
        written("city.csv", "Ulm;süd;*\n".encode("latin-1")),
    ),
    Kind(
        "a hierarchy with rows of two lengths",
        2,
        "line 2: every row must have 3 columns",
        written("city.csv", "Ulm;south;*\nBonn;*\nKiel;north;*\n"),
    ),
    Kind(
        "a hierarchy with two roots",
        2,
        "the last column must be the root's label in every row",
        written("city.csv", "Ulm;south;A\nBonn;north;B\nKiel;north;B\n"),
    ),
    Kind(
        "a hierarchy with two parents of a value",
        2,
        "has two parents",
        written("city.csv", "Ulm;south;*\nUlm;north;*\nBonn;north;*\n"),
    ),
    Kind(
        "a hierarchy with one label for two nodes",
        2,
        "labels: qualify",
        written("city.csv", "Ulm;X;*\nBonn;Y;*\nKiel;Ulm;*\n"),
    ),
    # ---- the table
    Kind("the table is not there", 2, "there is nothing there", lacking("table.csv")),
    Kind("the table is empty", 2, "file table.csv has 0 bytes", written("table.csv", "")),
    Kind("the table has no rows", 2, "table: it has no rows", written("table.csv", "id;age;sex;city;diagnosis\n")),
    Kind(
        "the table is no Parquet",
        2,
        "table.path",
        lambda root: (
            written("table.csv", NOISE)(root),
            policy('csv, options: {sep: ";", header: true}', "parquet")(root),
        ),
    ),
    Kind("a line that is cut", 2, "1 lines are cut", replaced("table.csv", "p3;23;M;Ulm;a", "p3;23;M")),
    Kind(
        "a line with too many values",
        2,
        "1 lines are cut",
        replaced("table.csv", "p3;23;M;Ulm;a", f"p3;23;M;Ulm;a;{SECRET}"),
    ),
    Kind(
        "bytes that are no text",
        2,
        "1 rows have bytes that are no text in UTF-8",
        lambda root: (root / "table.csv").write_bytes(
            (root / "table.csv").read_bytes().replace(b"p3;23;M;Ulm;a", b"p3;23;M;Ulm;\xff")
        ),
    ),
    Kind("a format Spark does not know", 2, "cannot be read as xlsx", policy("format: csv", "format: xlsx")),
    Kind("a file system Spark does not know", 2, "file system", path("dbfs://bucket/x")),
    Kind(
        "a catalog table that is not there",
        2,
        "TABLE_OR_VIEW_NOT_FOUND",
        lambda root: policy(
            f'path: {root}/table.csv, format: csv, options: {{sep: ";", header: true}}', "catalog: nowhere.here"
        )(root),
    ),
    Kind("the wrong separator", 2, "columns.id: the table has no such column", policy('sep: ";"', 'sep: ","')),
    Kind(
        "a column lacks a role",
        2,
        "the table's column 'diagnosis' has no role",
        policy("  diagnosis: {role: sensitive}\n", ""),
    ),
    Kind("a column's name in another case", 2, "(did you mean 'Age'?)", replaced("table.csv", "id;age", "id;Age")),
    Kind(
        "two columns of one name",
        2,
        "has the column 'city' twice",
        replaced("table.csv", "city;diagnosis", "city;city"),
        # Spark itself renames both.
        on_spark="columns.city: the table has no such column",
    ),
    Kind(
        "a value that is not in its hierarchy",
        2,
        "columns.city.unknown: suppress",
        replaced("table.csv", "Bonn", SECRET),
    ),
    Kind(
        "a text where numbers are", 2, "columns.age.unknown: suppress", replaced("table.csv", "p3;23", f"p3;{SECRET}")
    ),
    Kind("a number outside the domain", 2, "columns.age.unknown: suppress", replaced("table.csv", "p3;23", "p3;777")),
    Kind("a zero byte in a value", 2, "columns.city.unknown: suppress", replaced("table.csv", "Ulm", "U\0lm")),
    Kind(
        "two records of one id",
        2,
        "table.record_id: must hold that no two records share an id",
        replaced("table.csv", "p3;", "p4;"),
    ),
    Kind(
        "a record without an id",
        2,
        "table.record_id: must hold that every record has an id",
        replaced("table.csv", "p3;", ";"),
    ),
    Kind("too few rows", 1, "row", arguments=set_to("checks={row_count: {at_least: 100}}")),
    # ---- places
    Kind("a file of yours in the output", 2, "output.path: has other content than the releases", yours("out")),
    Kind("a file of yours in the vault", 2, "output.vault: has other content than the vault", yours("vault")),
    Kind("a file where the output goes", 2, "output.path: must be a directory", occupied("out")),
    Kind("a file where the vault goes", 2, "output.vault: must be a directory", occupied("vault")),
    Kind(
        "an output that cannot be made",
        3,
        "output.path: '/proc/none' cannot be made",
        lambda root: policy(f"{root}/out", "/proc/none/out")(root),
    ),
    Kind(
        "a vault that cannot be made",
        3,
        "output.vault: '/proc/none/vault' cannot be made",
        lambda root: policy(f"{root}/vault", "/proc/none/vault")(root),
    ),
    Kind(
        "the vault in the output",
        2,
        "output.vault: must not be output.path or inside it",
        lambda root: policy(f"{root}/vault", f"{root}/out/vault")(root),
    ),
    Kind(
        "the output on the table",
        2,
        "never writes onto its input",
        lambda root: policy(f"{root}/out", f"{root}/table.csv")(root),
    ),
    Kind(
        "the vault on a file system that is not known",
        2,
        "output.vault: is on a file system ('dbfs') that is not available",
        lambda root: policy(f"{root}/vault", "dbfs://name/vault")(root),
    ),
    Kind(
        "the output on a file system that is not known",
        2,
        "output.path: is on a file system ('dbfs') that is not available",
        lambda root: policy(f"{root}/out", "dbfs://name/out")(root),
    ),
    Kind(
        "a lock that is a link",
        2,
        "must not hold a link named '.lock'",
        lambda root: (
            claim(locate(str(root / "out"), key="output.path"), "output.path", "releases", public=True),
            (root / "out" / ".lock").symlink_to(root / "table.csv"),
        ),
    ),
    Kind("a manifest that is damaged", 1, "manifest.json' is damaged", damaged_manifest),
)


def table_of(name: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Change:
    """Another table beside ``table.parquet``, made of its rows."""

    def write(root: Path) -> None:
        rows = change(pq.read_table(root / "table.parquet").to_pylist())
        pq.write_table(pa.Table.from_pylist(rows), root / f"{name}.parquet")

    return write


def in_place_of_the_table(name: str, *more: str) -> tuple[str, ...]:
    return (f"--set=table.path={{root}}/{name}.parquet", *more)


def in_place_of_the_release(name: str, more: str = "") -> tuple[str, ...]:
    return (f"--set=assess.release={{{{path: {{root}}/{name}.parquet, record_id: who{more}}}}}",)


NO_VAULT = "--set=output.vault={root}/no-vault"
INTERVALS = "{{intervals: {{widths: [100000], domain: [0, 99999]}}}}"
AS_LABELS = (
    *(f"--set=columns.{name}.hierarchy={INTERVALS}" for name in ("age", "income")),
    *(f"--set=columns.{name}.mask=null" for name in ("age", "income", "pay")),
    "--set=guarantee={{kind: risk}}",
)

ASSESSED = (
    Kind(
        "a masked release is assessed by another mask",
        2,
        "columns.pay.mask: is not the mask that release",
        arguments=set_to("columns.pay.mask.percent=9"),
    ),
    Kind(
        "a masked release is assessed by a policy of another kind",
        2,
        "is of the kind 'masked', and guarantee.kind is 'risk'",
        arguments=AS_LABELS,
    ),
    Kind(
        "intervals of a column that is not masked",
        2,
        "assess.intervals.team: 'team' is no column that is masked as numbers",
        arguments=set_to("assess.intervals={{team: {{}}}}"),
    ),
    Kind(
        "no masked release where it is looked for",
        2,
        "assess.release: 'published', and there is no release at output.path",
        arguments=set_to("output.path={root}/nowhere"),
    ),
    Kind(
        "a value of the table has changed since it was masked",
        2,
        "the table is not the one that release",
        table_of("changed", lambda rows: [{**row, "pay": row["pay"] + (row["who"] == "p5")} for row in rows]),
        in_place_of_the_table("changed"),
    ),
    Kind(
        "a record has gone since it was masked, and the vault, too",
        2,
        "has 90 rows and the table 89",
        table_of("shorter", lambda rows: rows[1:]),
        in_place_of_the_table("shorter", NO_VAULT),
    ),
    Kind(
        "intervals of a masked release whose vault has gone",
        2,
        "assess.release: the vault no longer holds the decisions of release",
        arguments=(NO_VAULT, *set_to("assess.intervals={{pay: {{}}}}")),
    ),
    Kind(
        "two records of one id are to be held against masked ones",
        2,
        "table.record_id: every record must have an id of its own",
        table_of("twice", lambda rows: [*rows[:-1], {**rows[-1], "who": "p0"}]),
        in_place_of_the_table("twice", NO_VAULT),
    ),
    Kind(
        "a masked table of another program without a column",
        2,
        "assess.release.columns.pay: the release has no column 'pay'",
        table_of("lacking", lambda rows: [{k: v for k, v in row.items() if k != "pay"} for row in rows]),
        in_place_of_the_release("lacking"),
    ),
    Kind(
        "a masked table of another program without the ids",
        2,
        "assess.release.record_id: the release has no column 'who'",
        table_of("nameless", lambda rows: [{k: v for k, v in row.items() if k != "who"} for row in rows]),
        in_place_of_the_release("nameless"),
    ),
    Kind(
        "a masked value that is no number",
        2,
        "holds 1 values that are no",
        table_of(
            "texts", lambda rows: [{**row, "pay": SECRET if row["who"] == "p5" else str(row["pay"])} for row in rows]
        ),
        in_place_of_the_release("texts"),
    ),
    Kind(
        "a record without a masked one",
        2,
        "2 records of the table have no row in",
        table_of("fewer", lambda rows: rows[2:]),
        in_place_of_the_release("fewer"),
    ),
    Kind(
        "a masked row of nobody",
        2,
        "1 rows are of no record of it",
        table_of("more", lambda rows: [*rows, {**rows[0], "who": "nobody"}]),
        in_place_of_the_release("more"),
    ),
)
"""Masked releases that ``privrisk assess`` refuses; ``{root}`` in arguments is where the files are."""
