"""The house as a program: who may import what, where Spark acts, and how long a module may be.

The tables below are the import rule, whole; :func:`faults_of` holds one module against them, and every row has a
planted violation that must be found.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "privrisk_spark"
MODULES = sorted(PACKAGE.rglob("*.py"))
REPRODUCE = sorted((ROOT / "reproduce").rglob("*.py"))
"""The papers' experiments: they import any module of the package, and no module of the package imports them."""

FLOORS = (
    ("errors", "claims", "json_values", "machine_code", "registry", "version"),
    ("extras",),
    ("kernels", "storage"),
    ("hierarchies",),
    ("results",),
    ("runs",),
    ("policy",),
    ("ledger",),
    ("planning",),
    ("reporting",),
    ("engine",),
    ("tables",),
    ("stages",),
    ("audit",),
    ("pipelines",),
    ("api",),
    ("cli",),
)
"""A package may import itself and what stands on a floor below; packages of one floor know nothing of each other."""

LINES: Mapping[str, int] = {
    "": 737,
    "api": 2_590,
    "audit": 569,
    "cli": 1_813,
    "engine": 3_621,
    "hierarchies": 2_230,
    "kernels": 26_980,
    "ledger": 5_052,
    "pipelines": 6_630,
    "planning": 7_221,
    "policy": 5_823,
    "reporting": 3_844,
    "results": 2_607,
    "runs": 2_953,
    "stages": 11_937,
    "storage": 5_075,
    "tables": 5_676,
}
"""Most lines of each package of the core, "" for the modules at its top; ``test_size.py`` counts them.

A commit that raises one names in its message what it removed for that.
"""

PARTS = {
    "rules": "policy",
    "pipeline": "pipelines",
    "release": "pipelines",
    "assess": "pipelines",
    "page": "reporting",
    "drawing": "reporting",
}
"""Modules of an extension that have another name than the package whose floor they share."""

EXTENSIONS: dict[str, set[str]] = {"attack": {"perturb"}, "network": set(), "perturb": set()}
"""The extensions, each with the others that it may import. The core imports none."""

KERNELS = (
    ("arrays",),
    ("numeric",),
    ("random",),
    ("lattice",),
    ("counting",),
    ("disclosure",),
    ("search", "classes"),
    ("recoding", "measures", "dp", "adversary"),
    ("as_published",),
)
"""The same for the chapters of the kernels."""

CHAPTERS = ("stages",)
"""Packages whose chapters do not know each other: what they share lies on a floor below."""

LIBRARIES: dict[str, set[str]] = {
    "pyspark": {"engine", "stages", "tables", "pipelines", "audit", "api"},
    "py4j": {"engine", "stages"},
    "pyarrow": {"storage", "engine", "stages", "tables", "pipelines", "audit"},
    "pandas": {"results", "engine", "stages", "tables", "api"},
    "great_expectations": set(),
    "pydantic": {"policy", "hierarchies", "ledger"},
    "yaml": {"policy", "hierarchies"},
    "stdnum": {"planning"},
    "sqlalchemy": {"ledger"},
    "psycopg": {"ledger"},
    "dp_accounting": {"ledger"},
    "deltalake": {"storage"},
    "pyiceberg": {"storage"},
    "airflow": set(),
    "matplotlib": {"reporting"},
    "resvg_py": {"results"},
    "jinja2": {"reporting", "engine"},
    "markupsafe": {"reporting"},
    "typer": {"cli"},
    "rich": {"runs"},
    "numba": {"machine_code"},
    "llvmlite": {"machine_code"},
    "cryptography": {"kernels"},
    "splink": {"stages"},
    "duckdb": {"stages"},
    "rapidfuzz": {"kernels"},
    "sklearn": {"kernels", "stages"},
    "scipy": {"kernels", "planning"},
    "numpy": {
        "json_values", "kernels", "storage", "hierarchies", "results", "ledger", "planning", "reporting", "engine",
        "stages", "tables", "audit", "pipelines",
    },
}  # fmt: skip
"""Every library that is imported, with the packages that may."""

STANDARD_IN_KERNELS = {
    "__future__", "collections", "copy", "dataclasses", "decimal", "fractions", "functools", "hashlib", "heapq", "hmac",
    "itertools", "math", "typing",
}  # fmt: skip
"""What the kernels take of the standard library: nothing that reads, writes, logs or draws."""

ARRAYS = {
    ast.unparse(node.value)
    for node in ast.parse((PACKAGE / "kernels" / "arrays.py").read_text()).body
    if isinstance(node, ast.Assign)
}
"""Array types that have a name in :mod:`privrisk_spark.kernels.arrays`; no other module names one again."""

ACTING_PACKAGES = {"pipelines", "audit"}
"""Packages in which Spark may act in any function; in a stage the function's name says so."""

ACTIONS = {"collect", "toArrow", "toPandas", "first", "head", "take", "isEmpty", "foreach", "show", "toLocalIterator"}
WRITES = {"parquet", "csv", "json", "orc", "save", "saveAsTable"}
ACTING = ("collect_", "measure_", "write_")
"""Prefixes of functions that make Spark work; called from pipelines and from each other only."""

DESCRIBING = {"catalog_properties"}
"""Functions that execute a DESCRIBE statement, which is no job."""


# ---------------------------------------------------------------------------------------------------- the import rule


@dataclass(frozen=True)
class Import:
    """One imported name: ``from module import name``, or ``import module`` with no name."""

    module: str
    name: str | None = None


def name_of(path: Path) -> str:
    """Name of a module below the package; that of a package is its folder's."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path) for path in MODULES}


def imports_in(tree: ast.Module) -> Iterator[Import]:
    """Every import, wherever it stands: in a function, in a branch for type checkers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (Import(module, alias.name) for alias in node.names)


def target(one: Import) -> str | None:
    """Return the module of ours that is imported, by its name below the package; None for a library."""
    if one.module != "privrisk_spark" and not one.module.startswith("privrisk_spark."):
        return None
    inside = one.module.removeprefix("privrisk_spark").removeprefix(".")
    whole = f"{inside}.{one.name}".removeprefix(".")
    return whole if one.name is not None and whole in NAMES else inside


def extension_of(name: str) -> str | None:
    """Return the extension that a module belongs to; None for the core."""
    parts = name.split(".")
    return parts[1] if parts[0] == "extensions" and len(parts) > 1 else None


def place_of(name: str) -> list[str]:
    """Return where a module would be in the core, in parts: the package first."""
    parts = name.split(".")
    if extension_of(name) is None or len(parts) < 3:
        return parts
    return [PARTS.get(parts[2], parts[2]), *parts[3:]]


def floor_of(room: str, floors: tuple[tuple[str, ...], ...]) -> int | None:
    return next((i for i, rooms in enumerate(floors) if room in rooms), None)


def faults_of(name: str, imported: list[Import]) -> Iterator[str]:
    """What a module imports against the tables above.

    Parameters
    ----------
    name : str
        Of the module, below the package; the package itself is "".
    """
    room, *inner = place_of(name)
    extension = extension_of(name)
    for one in imported:
        if one.module.startswith("."):
            yield f"{name}: relative import of {one.module}"
        there = target(one)
        if there is None:
            library = one.module.split(".")[0]
            if library in LIBRARIES and room not in LIBRARIES[library]:
                yield f"{name}: {library} stays in {', '.join(sorted(LIBRARIES[library]))}"
            if room == "kernels" and library not in STANDARD_IN_KERNELS | set(LIBRARIES):
                yield f"{name}: {library} is none of the standard modules kernels take"
            continue
        if one.name is not None and one.name.startswith("_") and not one.name.startswith("__"):
            yield f"{name}: private name {one.module}.{one.name}"
        if not there:  # the package's own names, such as its version
            continue
        if not name:  # the package's face takes from its public modules
            continue
        other, *below = place_of(there)
        mine, theirs = floor_of(room, FLOORS), floor_of(other, FLOORS)
        of = extension_of(there)
        if of is not None and of != extension and of not in EXTENSIONS.get(extension or "", ()):
            yield f"{name}: {there} is of an extension"
        if mine is None or theirs is None:
            yield f"{name}: {room if mine is None else other} has no floor"
        elif room != other and theirs >= mine:
            yield f"{name}: {there} is not below it"
        if extension is not None or of is not None:
            continue
        if room == other == "kernels" and inner and below and inner[0] != below[0]:
            mine, theirs = floor_of(inner[0], KERNELS), floor_of(below[0], KERNELS)
            if mine is None or theirs is None or theirs >= mine:
                yield f"{name}: {there} is not below it"
        if room == other and room in CHAPTERS and inner and below and inner[0] != below[0]:
            yield f"{name}: {there} is of another chapter"


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Strongly connected parts of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in graph.get(module, set()):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            part = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(part) > 1 or module in graph.get(module, set()):
                found.append(sorted(part))

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return found


def graph_of(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for name, tree in trees.items():
        targets = {target(one) for one in imports_in(tree)}
        graph[name] = {there for there in targets if there is not None and there != name}
    return graph


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def test_imports_obey_the_tables() -> None:
    assert not [fault for path in MODULES for fault in faults_of(name_of(path), list(imports_in(parsed(path))))]


def test_there_is_no_circle() -> None:
    """Not even inside a function, or for a type checker alone. A package's face is no part of its modules."""
    assert not circles(graph_of({name_of(path): parsed(path) for path in MODULES if path.name != "__init__.py"}))


def test_reproduce_has_no_circle() -> None:
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in REPRODUCE}
    graph = {
        name: {f"{one.module}.{one.name}" if f"{one.module}.{one.name}" in names else one.module for one in imported}
        for name, imported in ((name, list(imports_in(parsed(path)))) for name, path in names.items())
    }
    assert graph["reproduce.collection"] >= {"reproduce.run", "reproduce.pages"}
    assert not circles(graph)


def test_every_room_has_a_floor() -> None:
    rooms = {place_of(name)[0] for name in NAMES if name and name.count(".") > 0} - {"extensions"}
    assert rooms <= {room for floor in FLOORS for room in floor}
    assert {extension_of(name) for name in NAMES} == {None, *EXTENSIONS}
    chapters = {name.split(".")[1] for name in NAMES if name.startswith("kernels.")}
    assert chapters <= {room for floor in KERNELS for room in floor}


def a_module_of(room: str) -> str:
    return next((name for name in sorted(NAMES) if name.startswith(f"{room}.")), room)


PLANTED = [
    *(
        (f"{below} may not import {above}", a_module_of(below), f"import privrisk_spark.{a_module_of(above)}")
        for i, floor in enumerate(FLOORS)
        for below in floor
        for above in (other for floor in FLOORS[i:] for other in floor)
        if above != below and {below, above} <= {name.split(".")[0] for name in NAMES}
    ),
    *(
        (
            f"kernels.{below} may not import kernels.{above}",
            a_module_of(f"kernels.{below}"),
            f"def inside():\n    from privrisk_spark.kernels.{above} import x",
        )
        for i, floor in enumerate(KERNELS)
        for below in floor
        for above in (other for floor in KERNELS[i:] for other in floor)
        if above != below
    ),
    *(
        (f"{library} stays in its rooms", f"{room}.anything", f"import {library}")
        for library, rooms in LIBRARIES.items()
        for room in (room for floor in FLOORS for room in floor)
        if room not in rooms
    ),
    *(
        ("chapters of stages do not meet", f"stages.{one}.any", f"from privrisk_spark.stages.{other} import x")
        for one, other in (("deciding", "counting"), ("counting", "deciding"), ("publishing", "private"))
    ),
    *(
        (f"the core does not import {one}", f"{room}.any", f"import privrisk_spark.extensions.{one}.policy")
        for one in EXTENSIONS
        for room in (room for floor in FLOORS for room in floor)
    ),
    ("no other extension", "extensions.network.api", "import privrisk_spark.extensions.attack.policy"),
    ("floors of an extension", "extensions.attack.policy", "import privrisk_spark.extensions.attack.stages.blocks"),
    ("floors under an extension", "extensions.attack.planning.any", "import privrisk_spark.tables.opening"),
    ("libraries of an extension", "extensions.attack.policy", "import pyspark"),
    ("kernels of an extension", "extensions.attack.kernels.any", "import os"),
    ("private names stay", "tables.encode", "from privrisk_spark.kernels.numeric.packing import _words"),
    ("no relative import", "kernels.numeric.packing", "from . import distinct"),
    (
        "a type checker's import counts",
        "kernels.numeric.packing",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from privrisk_spark.policy.policy import Policy",
    ),
    *(("kernels neither read nor draw", "kernels.numeric.packing", f"import {m}") for m in ("os", "random", "logging")),
]


def test_a_planted_violation_of_each_row_is_found() -> None:
    assert len(PLANTED) > 500
    assert not [row for row, name, source in PLANTED if not list(faults_of(name, list(imports_in(ast.parse(source)))))]


def test_a_planted_circle_is_found() -> None:
    """Through a function and a type checker's branch. Planted also: modules that import each other's package only."""
    sources = {
        "runs.progress": "def f():\n    from privrisk_spark.runs import places",
        "runs.places": "if TYPE_CHECKING:\n    from privrisk_spark.runs.keystore import x",
        "runs.keystore": "from privrisk_spark.runs.progress import y",
        "policy.types": "from privrisk_spark.runs.keystore import x",
    }
    trees = {name: ast.parse(source) for name, source in sources.items()}
    assert circles(graph_of(trees)) == [["runs.keystore", "runs.places", "runs.progress"]]
    assert not circles(graph_of(trees | {"runs.keystore": ast.parse("import os")}))


# ------------------------------------------------------------------------------------------------------ other rules


def imported_by(path: Path) -> set[str]:
    """Dotted names of all modules a module imports, and of all names."""
    found = list(imports_in(parsed(path)))
    return {one.module for one in found} | {f"{one.module}.{one.name}" for one in found if one.name is not None}


def test_what_an_audit_draws_by_reaches_no_release() -> None:
    """The audit's keys are public: only the audit imports them, and it imports nothing that makes a release."""
    importers = {name_of(path) for path in MODULES if "privrisk_spark.audit.trials" in imported_by(path)}
    assert importers == {"pipelines.audit"}
    callers = {name_of(path) for path in MODULES if "privrisk_spark.pipelines.audit" in imported_by(path)}
    assert callers == {"api.auditing", "cli.audit"}
    of_audit = (
        "pipelines.audit", "audit.trials", "audit.judging", "planning.audit", "results.audit", "reporting.pages",
    )  # fmt: skip
    for name in of_audit:
        of_release = (
            "pipelines.release", "runs.keystore", "ledger.ledger", "stages.publishing.contracts",
            "reporting.models", "reporting.manifest", "reporting.release_reports",
        )  # fmt: skip
        path = PACKAGE.joinpath(*name.split(".")).with_suffix(".py")
        for imported in imported_by(path):
            assert not f"{imported}.".startswith(tuple(f"privrisk_spark.{room}." for room in of_release)), imported


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


def test_spark_acts_only_where_it_can_be_seen() -> None:
    seen = [path for path in MODULES if place_of(name_of(path))[0] not in ACTING_PACKAGES]
    spark = [p for p in seen if {"pyspark", "pyarrow"} & {one.split(".")[0] for one in imported_by(p)}]
    assert len(spark) > 50
    assert not [fault for path in spark for fault in hidden_actions(name_of(path), parsed(path))]


def hidden_actions(name: str, tree: ast.Module) -> Iterator[str]:
    """Where Spark works in a function whose name does not say so."""
    for function, around in functions_of(tree):
        acting = any(n.lstrip("_").startswith(ACTING) or n in DESCRIBING for n in [*around, function.name])
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            # A grouped count (`groupBy().count()`) is lazy.
            lazy = (
                isinstance(call.func, ast.Attribute)
                and call.func.attr == "count"
                and "groupBy" in ast.dump(call.func.value)
            )
            if acts(call) and not (acting or lazy):
                yield f"{name}.{function.name} acts, line {call.lineno}"
            called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if called.startswith(("collect_", "measure_")) and not acting:
                yield f"{name}.{function.name} calls {called}"


def test_a_planted_hidden_action_is_found() -> None:
    for body in ("return frame.collect()", "return collect_rows(frame)", "frame.write.parquet('there')"):
        assert list(hidden_actions("stages.any", ast.parse(f"def rows_of(frame):\n    {body}")))
        assert not list(hidden_actions("stages.any", ast.parse(f"def collect_some(frame):\n    {body}")))


def test_house_rules() -> None:
    modules = {name_of(path): path for path in MODULES} | {str(path): path for path in REPRODUCE}
    assert not [
        fault for name, path in modules.items() for fault in against_house_rules(name, path.read_text(), parsed(path))
    ]
    stems = {path.stem for path in MODULES}
    assert not stems & {"utils", "helpers", "common", "manager", "misc"}


def against_house_rules(name: str, text: str, tree: ast.Module) -> Iterator[str]:
    """What in a module is longer, less told or further from Spark's public interface than the house allows."""
    if text.count("\n") > 500:
        yield f"{name}: few deep modules, but under 500 lines"
    if text and not ast.get_docstring(tree):
        yield f"{name}: no docstring"
    kernel = place_of(name)[0] == "kernels"
    # Storage is on one level with the kernels, and imports none of them.
    for node in () if name == "kernels.arrays" or name.startswith("storage.") else tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.value) in ARRAYS:
            yield f"{name}: {ast.unparse(node)} is a name of kernels.arrays, line {node.lineno}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if node.attr in {"rdd", "_jvm", "_jsc", "_jdf"}:
                yield f"{name}: {node.attr}, line {node.lineno}"
            # Nothing else tells how many tasks have ended; with Spark Connect it is not asked.
            if node.attr == "sparkContext" and name != "engine.labels":
                yield f"{name}: sparkContext, line {node.lineno}"
            if node.attr == "getOrCreate" and name != "engine.session":
                yield f"{name}: getOrCreate, line {node.lineno}"
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            if called in {"print", "eval", "exec"} or (kernel and called == "open"):
                yield f"{name}: {called}, line {node.lineno}"
            if kernel and ast.unparse(node.func).startswith(("np.random", "numpy.random", "random.", "logging")):
                yield f"{name}: {ast.unparse(node.func)}, line {node.lineno}"
        if isinstance(node, ast.ClassDef) and is_protocol_of_properties(node):
            yield f"{name}: {node.name} is a protocol of properties only; take the concrete type, line {node.lineno}"


def is_protocol_of_properties(node: ast.ClassDef) -> bool:
    """Return True if a class is a Protocol without a method."""
    bases = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return "Protocol" in bases and all("property" in map(ast.unparse, one.decorator_list) for one in methods)


@pytest.mark.parametrize(
    "source",
    [
        "x = 1", '"""Said."""\nFloats = npt.NDArray[np.float64]',
        '"""Said."""\nframe.rdd', '"""Said."""\nspark.sparkContext', '"""Said."""\nbuilder.getOrCreate()',
        '"""Said."""\nprint(1)', '"""Said."""\nopen("there")', '"""Said."""\nnp.random.default_rng()',
        '"""Said."""\n' + "x = 1\n" * 500,
        '"""Said."""\nclass Keys(Protocol):\n    @property\n    def k(self) -> int: ...',
        '"""Said."""\nclass Keys(typing.Protocol[T]):\n    k: int',
    ],
)  # fmt: skip
def test_a_planted_breach_of_each_house_rule_is_found(source: str) -> None:
    assert list(against_house_rules("kernels.numeric.any", source, ast.parse(source)))


def test_protocol_with_a_method_is_allowed() -> None:
    source = (
        '"""Said."""\nclass Fold(Protocol):\n    @property\n    def n(self) -> int: ...\n    def add(self) -> None: ...'
    )
    assert not list(against_house_rules("kernels.numeric.any", source, ast.parse(source)))


def test_the_package_imports_without_spark() -> None:
    """Policies, hierarchies and kernels are usable where there is no Spark."""
    import subprocess
    import sys

    program = (
        "import sys\n"
        "for name in ('pyspark', 'pandas', 'great_expectations', 'matplotlib'): sys.modules[name] = None\n"
        "import privrisk_spark.policy.reading, privrisk_spark.ledger.calibrated, privrisk_spark.ledger.ledger\n"
        "import privrisk_spark.reporting.report, privrisk_spark.reporting.pages\n"
        "import privrisk_spark.planning.decisions.registry\n"
        "import privrisk_spark.kernels.search.table_search, privrisk_spark.kernels.dp.crowd\n"
        "from privrisk_spark import *\n"
        "import privrisk_spark.cli.app\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
