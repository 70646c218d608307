"""The layers as a program: who may import what, where Spark acts, and how long a module may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "privrisk_spark"
MODULES = sorted(PACKAGE.rglob("*.py"))

ENGINE = {"pyspark", "pandas", "pyarrow", "great_expectations", "py4j"}
KERNELS_MAY = {"numpy", "scipy", "cryptography", "rapidfuzz", "numba"}
# Modules that may know the engine, and what of it.
ENGINE_MODULES = {
    "schemas": {"pyspark"},
    "batches": {"pyspark", "pyarrow"},
    "source": {"pyspark", "pyarrow"},
    "encoding": {"pyspark", "pyarrow"},
    "table": {"pyspark", "py4j"},
    "counts": {"pyspark", "pyarrow"},
    "cells": {"pyspark", "pyarrow"},
    "anonymize": {"pyspark", "pyarrow"},
    "sampling": {"pyspark", "pyarrow"},
    "scheme_cells": {"pyarrow"},
    "adversary": {"pyspark", "pyarrow"},
    "admission": {"pyspark", "pyarrow"},
    "published_draws": {"pyarrow"},
    "estimated": {"pyspark", "pyarrow"},
    "linkage": {"pyspark", "pyarrow"},
    "measure": {"pyspark", "pyarrow"},
    "bound": {"pyspark", "pyarrow"},
    "crossing": {"pyspark", "pyarrow"},
    "links": {"pyspark", "pyarrow"},
    "ranks": {"pyspark", "pyarrow"},
    "findings": {"pyspark"},
    "pinning": {"pyspark"},
    "canonical": {"pyspark", "pyarrow"},
    "release": {"pyspark", "pyarrow"},
    "decisions": {"pyspark"},
    "disclosure_rules": {"pyspark", "pyarrow"},
    "contracts": {"pyspark", "pandas", "great_expectations"},
    "data_docs": {"great_expectations"},
    "pipeline": {"pyspark"},
    "curves": {"pyspark", "pyarrow"},
    "deciding": {"pyspark"},
    "privacy": {"pyspark"},
    "planned_attack": {"pyspark", "pyarrow"},
    "audit": {"pyspark"},
    "assess": {"pyspark", "pyarrow"},
    "assessment.classes": {"pyspark", "pyarrow"},
    "assessment.opened": {"pyspark"},
    "assessment.sources": {"pyspark", "pyarrow"},
    "assessment.records": {"pyspark", "pyarrow"},
    "assessment.matched": {"pyspark", "pyarrow"},
    "assessment.pairs": {"pyspark", "pyarrow"},
    "assessment.people": {"pyspark"},
    "assessment.special": {"pyarrow"},
    "dry_run": {"pyspark"},
    "session": {"pyspark"},
    "worker_daemon": {"pyspark"},
    "cli": {"pyspark", "py4j"},
    "synthetic": {"pyarrow"},
}
TOP = {"pipeline", "assess", "curves", "deciding", "privacy", "planned_attack", "audit", "dry_run", "cli", "session"}
"""Nothing below imports these."""

ACTIONS = {"collect", "toArrow", "toPandas", "first", "head", "take", "isEmpty", "foreach", "show", "toLocalIterator"}
WRITES = {"parquet", "csv", "json", "orc", "save", "saveAsTable"}
ACTING = ("collect_", "measure_", "write_")
"""Prefixes of functions that make Spark work; called from pipeline.py and from each other only."""


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def imports(path: Path) -> Iterator[str]:
    """Every imported module, in function bodies too; what only type checkers see is exempt."""
    tree = ast.parse(path.read_text())
    exempt = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in exempt:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "absolute imports only"
            yield str(node.module)
            if node.module == "privrisk_spark":
                yield from (f"privrisk_spark.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_down(path: Path) -> None:
    name = name_of(path)
    allowed_engine = ENGINE_MODULES.get(name, set())
    for imported in imports(path):
        top = imported.split(".")[0]
        assert top not in ENGINE - allowed_engine, f"{name} imports {imported}"
        inside = imported.removeprefix("privrisk_spark.")
        if imported.startswith("privrisk_spark."):
            assert inside.split(".")[0] not in TOP or name in TOP, f"{name} imports {imported}"
            if allowed_engine == set():
                assert inside.split(".")[0] not in ENGINE_MODULES or name in {"documents", "progress"}, imported
        if name.startswith("kernels."):
            standard = top in {"__future__", "collections", "dataclasses", "functools", "fractions", "math", "typing",
                               "itertools", "hashlib", "heapq", "hmac", "decimal"}  # fmt: skip
            own = imported in {"privrisk_spark.errors"} or imported.startswith("privrisk_spark.kernels")
            assert standard or own or top in KERNELS_MAY or imported == "privrisk_spark", f"{name} imports {imported}"


def test_what_an_audit_draws_by_reaches_no_release() -> None:
    """The audit's keys are public: only the audit imports them, and it imports nothing that makes a release."""
    importers = {name_of(path) for path in MODULES if "privrisk_spark.adversary" in set(imports(path))}
    assert importers == {"audit"}
    assert {name_of(path) for path in MODULES if "privrisk_spark.audit" in set(imports(path))} == {"cli"}
    for name in ("audit", "adversary", "audit_profile", "audit_results", "audit_page"):
        of_release = {"pipeline", "keystore", "ledger", "contracts", "documents"}
        assert not {f"privrisk_spark.{module}" for module in of_release} & set(imports(PACKAGE / f"{name}.py"))


def functions_of(tree: ast.AST) -> Iterator[tuple[ast.FunctionDef, list[str]]]:
    """Every function with the names of the functions around it."""

    def walk(node: ast.AST, around: list[str]) -> Iterator[tuple[ast.FunctionDef, list[str]]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                yield child, around
                yield from walk(child, [*around, child.name])
            else:
                yield from walk(child, around)

    yield from walk(tree, [])


def acts(call: ast.Call) -> bool:
    """Whether a call makes Spark work."""
    if not isinstance(call.func, ast.Attribute):
        return False
    attribute, owner = call.func.attr, ast.dump(call.func.value)
    if attribute == "count":
        return not call.args and "'F'" not in owner
    if attribute == "take":  # of a frame a number of rows, of an Arrow table the rows of an array
        return bool(call.args) and isinstance(call.args[0], ast.Constant)
    if attribute in WRITES:
        return "'write'" in owner or "'writer'" in owner
    return attribute in ACTIONS and "'F'" not in owner


@pytest.mark.parametrize("path", [p for p in MODULES if name_of(p) in ENGINE_MODULES], ids=name_of)
def test_spark_acts_only_where_it_can_be_seen(path: Path) -> None:
    name = name_of(path)
    if name in (TOP - {"cli", "session"}) | {"synthetic"}:
        return
    for function, around in functions_of(ast.parse(path.read_text())):
        names = [*around, function.name]
        acting = any(n.lstrip("_").startswith(ACTING) for n in names)
        own = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        for call in own:
            if acts(call):
                # A grouped count (`groupBy().count()`) is lazy.
                lazy = (
                    isinstance(call.func, ast.Attribute)
                    and call.func.attr == "count"
                    and "groupBy" in ast.dump(call.func.value)
                )
                assert acting or lazy, f"{name}.{function.name} acts, line {call.lineno}"
            called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if called.startswith(("collect_", "measure_")):
                assert acting, f"{name}.{function.name} calls {called}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_house_rules(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert text.count("\n") <= 600, "few deep modules, but under 600 lines"
    assert ast.get_docstring(tree) or path.name == "__init__.py"
    assert path.stem not in {"utils", "helpers", "common", "manager", "misc"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert node.attr not in {"rdd", "_jvm", "_jsc", "_jdf", "sparkContext"}, f"line {node.lineno}"
            if node.attr == "getOrCreate":
                assert name_of(path) == "session"
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            assert called not in {"print", "eval", "exec"}, f"line {node.lineno}"
            if name_of(path).startswith("kernels."):
                assert called not in {"open"}, f"line {node.lineno}"
                dotted = ast.unparse(node.func)
                assert not dotted.startswith(("np.random", "numpy.random", "random.", "logging")), f"line {node.lineno}"


def test_the_package_imports_without_spark() -> None:
    """Policies, hierarchies and kernels are usable where there is no Spark."""
    import subprocess
    import sys

    program = (
        "import sys\n"
        "for name in ('pyspark', 'pandas', 'great_expectations'): sys.modules[name] = None\n"
        "import privrisk_spark.config, privrisk_spark.mechanism, privrisk_spark.ledger, privrisk_spark.report\n"
        "import privrisk_spark.experiments.page\n"
        "import privrisk_spark.kernels.decide, privrisk_spark.kernels.crowd, privrisk_spark.problem\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
