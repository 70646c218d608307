"""How large the core is, as budgets: a commit that raises one names in its message what it removed for that.

The budgets of lines are :data:`test_layers.LINES`.

``python tests/test_size.py`` prints what is reached next to the goals.
"""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from test_layers import LINES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "privrisk_spark"
APART = ("extensions",)
"""Packages that are no part of the core; ``reproduce`` lies next to the package."""

CHARGING = ("policy", "planning", "ledger")
"""Packages between what a person writes and what the ledger holds."""

KINDS = {"risk", "k-anonymity", "masked", "dp", "as-published"}
"""Values of guarantee.kind."""


RELEASE_MODULES = 239
"""Most modules of the package that a release by risk imports, without charts and on the embedded engine."""
RELEASE_LINES = 38_314
"""Most lines of these modules."""
NOT_BEFORE_USE = ("scipy.optimize", "scipy.stats", "sqlalchemy", "matplotlib", "great_expectations", "dp_accounting")
"""Libraries that such a release does not import."""
MODULES = 568
"""Most modules of the core."""
CORE_LINES = 95_358
CORE_CODE = 54_869
"""Most lines of the core, and most lines without blank lines, comments and docstrings."""
CHAIN = 27
"""Most modules of which each imports the next one when it is imported."""
DATACLASSES = 7.93
"""Most dataclasses per 1,000 lines of code."""
HAND_WRITTEN = 3
"""Most functions ``to_dict`` and ``from_dict``."""
ASKING_KINDS = 8
"""Most modules outside ``policy`` and the registries that compare a guarantee's kind."""
EPSILONS = 15
"""Most declarations of a field ``epsilon`` between policy and ledger."""

GOALS = {
    "lines": 74_000, "code": 44_000, "modules": 480, "modules of a release by risk": 200,
    "lines of a release by risk": 35_000, "modules that ask for a kind": 0, "fields epsilon": 4,
    "dataclasses per 1,000 lines": 5.0, "to_dict and from_dict": 0, "longest chain of imports": 18,
}  # fmt: skip
"""What is aimed at."""


# -------------------------------------------------------------------------------------------------------- counting


def package_of(file: Path) -> str:
    """Return the package below the package in which a module is; "" for those at the top."""
    parts = file.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def core() -> list[Path]:
    """Return the modules of the core."""
    return [file for file in sorted(PACKAGE.rglob("*.py")) if package_of(file) not in APART]


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def count_lines(file: Path) -> int:
    return file.read_text().count("\n")


def count_code(text: str) -> int:
    """Count the lines without blank lines, comments, and texts that stand by themselves."""
    texts: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            texts.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - texts)


def count_by_package() -> dict[str, int]:
    """Count the lines of each package of the core."""
    found: Counter[str] = Counter()
    for file in core():
        found[package_of(file)] += count_lines(file)
    return dict(found)


def count_dataclasses(tree: ast.Module) -> int:
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return sum(any("dataclass" in ast.unparse(one) for one in node.decorator_list) for node in classes)


def count_hand_written(tree: ast.Module) -> int:
    return sum(isinstance(n, ast.FunctionDef) and n.name in ("to_dict", "from_dict") for n in ast.walk(tree))


def count_epsilons(tree: ast.Module) -> int:
    """Count the fields ``epsilon`` of classes."""
    fields = (one for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for one in node.body)
    return sum(isinstance(one, ast.AnnAssign) and ast.unparse(one.target) == "epsilon" for one in fields)


def asks_kind(tree: ast.Module) -> bool:
    """Return True if a module compares a guarantee's kind, by its text or by its class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            named = any(isinstance(s, ast.Attribute | ast.Name) and ast.unparse(s).endswith("kind") for s in sides)
            texts = {n.value for s in sides for n in ast.walk(s) if isinstance(n, ast.Constant)}
            if named and texts & KINDS:
                return True
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            classes = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
            if any(name.endswith("Guarantee") for name in classes):
                return True
    return False


def asking_kinds() -> list[str]:
    """Return the modules that ask for a kind, but for ``policy`` and the registries."""
    files = (file for file in core() if package_of(file) != "policy" and file.stem != "registry")
    return [str(file.relative_to(PACKAGE)) for file in files if asks_kind(parsed(file))]


def imported_at_once(body: list[ast.stmt]) -> Iterator[str]:
    """Yield what is imported when the module is: not in functions, and not for type checkers."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (name for alias in node.names for name in (f"{node.module}.{alias.name}", str(node.module)))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from imported_at_once([*node.body, *node.orelse])
        elif isinstance(node, ast.Try | ast.With | ast.ClassDef):
            yield from imported_at_once(node.body)


def longest_chain(trees: Mapping[str, ast.Module]) -> list[str]:
    """Return the longest list of modules of which each imports the next one."""
    graph = {
        name: {one for one in imported_at_once(tree.body) if one in trees} - {name} for name, tree in trees.items()
    }

    @cache
    def chain(name: str) -> tuple[str, ...]:
        return (name, *max((chain(other) for other in sorted(graph[name])), key=len, default=()))

    return list(max((chain(name) for name in sorted(graph)), key=len, default=()))


def core_trees() -> dict[str, ast.Module]:
    """Return the modules of the core by name, without the packages' own."""
    files = (file for file in core() if file.name != "__init__.py")
    return {".".join(file.relative_to(ROOT).with_suffix("").parts): parsed(file) for file in files}


# ------------------------------------------------------------------------------------------------------- a release

PROGRAM = """
import json, os, sys, tempfile
from pathlib import Path

sys.modules["matplotlib"] = None  # without charts
sys.path.insert(0, {tests!r})
import small_release

work = Path(tempfile.mkdtemp())
os.chdir(work)
policy = small_release.policy("risk", small_release.write_table(work), work / "root")
sys.argv = ["privrisk", "release", policy, "--run-id", "r1", "--engine", "embedded", "--quiet"]
from privrisk_spark.cli.app import main

try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print(json.dumps([name for name, module in sys.modules.items() if module is not None]))
"""


def import_for_release(directory: Path) -> list[str]:
    """Release a table by risk in a process of its own, and return all modules it imported."""
    program = PROGRAM.format(tests=str(ROOT / "tests"))
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(directory)}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=directory, env=environment)
    found: list[str] = json.loads(ran.stdout.splitlines()[-1])
    return found


def size_of_release(names: list[str]) -> tuple[int, int]:
    """Return how many modules of the package there are, and their lines."""
    ours = [name for name in names if name.split(".")[0] == "privrisk_spark"]
    lines = 0
    for name in ours:
        place = ROOT.joinpath(*name.split("."))
        lines += count_lines(place / "__init__.py" if place.is_dir() else place.with_suffix(".py"))
    return len(ours), lines


# ----------------------------------------------------------------------------------------------------------- tests


def test_no_package_is_larger_than_its_budget() -> None:
    found = count_by_package()
    assert {name: lines for name, lines in found.items() if lines > LINES.get(name, 0)} == {}


def test_the_core_is_within_its_budgets() -> None:
    found = reached()
    budgets = {
        "lines": CORE_LINES, "code": CORE_CODE, "modules": MODULES, "modules that ask for a kind": ASKING_KINDS,
        "fields epsilon": EPSILONS, "dataclasses per 1,000 lines": DATACLASSES,
        "to_dict and from_dict": HAND_WRITTEN, "longest chain of imports": CHAIN,
    }  # fmt: skip
    assert {name: (found[name], most) for name, most in budgets.items() if found[name] > most} == {}


@pytest.mark.spark
def test_a_release_by_risk_imports_within_its_budget(tmp_path: Path) -> None:
    pytest.importorskip("pysail")
    names = import_for_release(tmp_path)
    modules, lines = size_of_release(names)
    assert modules <= RELEASE_MODULES
    assert lines <= RELEASE_LINES
    assert not set(NOT_BEFORE_USE) & set(names)


def test_count_code_counts_neither_blanks_nor_comments_nor_docstrings() -> None:
    module = '"""One\n\ntwo."""\n\nimport os  # why\n# how\nX = """a\nb"""\n"""What X is."""\n\n'
    text = module + 'def f():\n    """F."""\n    return X\n'
    assert count_code(text) == 5


def test_planted_modules_are_counted() -> None:
    tree = ast.parse(
        "@dataclass(frozen=True)\nclass A:\n    epsilon: float\n    def to_dict(self): return {}\n"
        "    @classmethod\n    def from_dict(cls, of): return cls(of)\n"
    )
    assert (count_dataclasses(tree), count_hand_written(tree), count_epsilons(tree)) == (1, 2, 1)
    asking = (
        "policy.guarantee.kind == 'dp'",
        "kind in ('dp', 'x')",
        "isinstance(g, DpGuarantee | X)",
        "'dp' != a.kind",
    )
    assert all(asks_kind(ast.parse(source)) for source in asking)
    assert not any(asks_kind(ast.parse(source)) for source in ("hierarchy.kind == 'flat'", "isinstance(g, Policy)"))


def test_longest_chain_leaves_out_what_is_imported_later() -> None:
    sources = {
        "p.a": "from p import b",
        "p.b": "from p.c import x",
        "p.c": "def f():\n    import p.d\nif TYPE_CHECKING:\n    import p.d",
        "p.d": "import p.a",
    }
    assert longest_chain({name: ast.parse(text) for name, text in sources.items()}) == ["p.d", "p.a", "p.b", "p.c"]


# ------------------------------------------------------------------------------------------------------- the table


def reached() -> dict[str, float]:
    """Return what is counted of the sources."""
    files = core()
    code = sum(count_code(file.read_text()) for file in files)
    trees = [parsed(file) for file in files]
    return {
        "lines": sum(count_lines(file) for file in files),
        "code": code,
        "modules": len(files),
        "modules that ask for a kind": len(asking_kinds()),
        "fields epsilon": sum(count_epsilons(parsed(file)) for file in files if package_of(file) in CHARGING),
        "dataclasses per 1,000 lines": round(1000 * sum(map(count_dataclasses, trees)) / code, 2),
        "to_dict and from_dict": sum(map(count_hand_written, trees)),
        "longest chain of imports": len(longest_chain(core_trees())),
    }


def main() -> None:
    """Print what is reached, next to the goals."""
    found = reached()
    with tempfile.TemporaryDirectory() as directory:
        modules, lines = size_of_release(import_for_release(Path(directory)))
    found |= {"modules of a release by risk": modules, "lines of a release by risk": lines}
    rows = [("", "today", "goal"), *((name, f"{found[name]:,}", f"{goal:,}") for name, goal in GOALS.items())]
    rows += [("", "", ""), ("package", "lines", "budget")]
    rows += [(name or "(top)", f"{n:,}", f"{LINES.get(name, 0):,}") for name, n in sorted(count_by_package().items())]
    for name in APART:
        apart = sum(count_lines(file) for file in (PACKAGE / name).rglob("*.py"))
        rows.append((name, f"{apart:,}", ""))
    rows.append(("reproduce", f"{sum(count_lines(file) for file in (ROOT / 'reproduce').rglob('*.py')):,}", ""))
    sys.stdout.write("".join(f"{name:32}{today:>10}{goal:>10}\n" for name, today, goal in rows))


if __name__ == "__main__":
    main()
