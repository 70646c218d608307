"""The layers as a program: who may import what, where Spark acts, and how long a module may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "privrisk_spark"
MODULES = sorted(PACKAGE.rglob("*.py"))

FLOORS = (
    ("errors", "claims"),
    ("kernels", "storage"),
    ("hierarchies",),
    ("results",),
    ("runs",),
    ("policy",),
    ("ledger",),
    ("planning",),
    ("reporting",),
    ("engine",),
    ("stages",),
    ("experiments", "audit"),
    ("pipelines",),
    ("api",),
    ("cli", "jobs"),
)
"""The house: a package may import itself and what stands on a floor below; packages of one floor know nothing of each
other."""

KERNELS = (
    ("arrays",),
    ("numeric",),
    ("random",),
    ("lattice",),
    ("counting",),
    ("disclosure",),
    ("search", "recoding", "classes"),
    ("measures", "dp", "adversary", "linkage", "masking", "sharing"),
    ("as_published",),
)
"""The same inside the kernels."""

MEETING_PLACE = "engine.schemas"
"""Stages of different chapters do not know each other: they meet here, and in pipelines."""

OPEN: set[tuple[str, str]] = {
    ("privrisk_spark.kernels.counting", "privrisk_spark.kernels.search"),
    ("privrisk_spark.kernels.disclosure", "privrisk_spark.kernels.search"),
    ("privrisk_spark.results.audit", "privrisk_spark.planning.audit"),
}
"""Imports that still point upward."""

LIBRARIES = {
    "pyspark": {"engine", "stages", "pipelines", "experiments", "audit", "api"},
    "py4j": {"stages", "engine"},
    "pyarrow": {"storage", "engine", "stages", "pipelines", "experiments", "audit"},
    "pandas": {"results", "engine", "stages"},
    "great_expectations": {"stages", "engine"},
    "pydantic": {"policy", "hierarchies"},
    "yaml": {"policy", "hierarchies"},
    "sqlalchemy": {"ledger"},
    "psycopg": {"ledger"},
    "dp_accounting": {"ledger"},
    "matplotlib": {"reporting"},
    "jinja2": {"reporting", "engine"},
    "markupsafe": {"reporting", "experiments"},
    "typer": {"cli"},
    "numba": {"kernels"},
    "cryptography": {"kernels"},
    "rapidfuzz": {"kernels"},
    "scipy": {"kernels", "planning", "experiments"},
}
"""Libraries that only some packages may import."""

KERNELS_MAY = {"numpy", "scipy", "cryptography", "rapidfuzz", "numba"}
ACTING_PACKAGES = {"pipelines", "experiments", "audit"}
"""Packages in which Spark may act in any function; in a stage the function's name says so."""

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
            if str(node.module).startswith("privrisk_spark"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_libraries_stay_in_their_rooms(path: Path) -> None:
    name = name_of(path)
    for imported in imports(path):
        top = imported.split(".")[0]
        rooms = LIBRARIES.get(top)
        if rooms is not None:
            assert any(name.startswith(f"{room}.") for room in rooms), f"{name} imports {imported}"
        if name.startswith("kernels."):
            standard = top in {"__future__", "collections", "dataclasses", "functools", "fractions", "math", "typing",
                               "itertools", "hashlib", "heapq", "hmac", "decimal"}  # fmt: skip
            own = top == "privrisk_spark"
            assert standard or own or top in KERNELS_MAY, f"{name} imports {imported}"


def test_what_an_audit_draws_by_reaches_no_release() -> None:
    """The audit's keys are public: only the audit imports them, and it imports nothing that makes a release."""
    importers = {name_of(path) for path in MODULES if "privrisk_spark.audit.trials" in set(imports(path))}
    assert importers == {"pipelines.audit"}
    callers = {name_of(path) for path in MODULES if "privrisk_spark.pipelines.audit" in set(imports(path))}
    assert callers == {"api.auditing", "cli.audit"}
    for name in ("pipelines.audit", "audit.trials", "planning.audit", "results.audit", "reporting.audit_page"):
        of_release = {
            "pipelines.release", "runs.keystore", "ledger.ledger", "stages.publishing.contracts",
            "stages.publishing.documents",
        }  # fmt: skip
        path = PACKAGE.joinpath(*name.split(".")).with_suffix(".py")
        assert not {f"privrisk_spark.{module}" for module in of_release} & set(imports(path))


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


@pytest.mark.parametrize("path", [p for p in MODULES if name_of(p).split(".")[0] not in ACTING_PACKAGES], ids=name_of)
def test_spark_acts_only_where_it_can_be_seen(path: Path) -> None:
    name = name_of(path)
    if not {"pyspark", "pyarrow"} & {imported.split(".")[0] for imported in imports(path)}:
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
                assert name_of(path) == "engine.session"
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
        "import privrisk_spark.policy.reading, privrisk_spark.planning.mechanism, privrisk_spark.ledger.ledger\n"
        "import privrisk_spark.reporting.report, privrisk_spark.planning.problem, privrisk_spark.experiments.page\n"
        "import privrisk_spark.kernels.search.table_search, privrisk_spark.kernels.dp.crowd\n"
        "import privrisk_spark.api, privrisk_spark.cli.app\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
