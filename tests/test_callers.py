"""Every public function, class and method of the package has a caller outside the tests."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "privrisk_spark"
CALLING = (PACKAGE, "reproduce", "jobs", "dags", "benchmarks", "docs")
"""Directories in which a reference counts as a call; not ``tests``."""

BY_A_LIBRARY = re.compile(r"validator|serializer|command|callback|overload|register|setter|filter|compiled|njit")
"""Decorators with which a library calls the function."""

NAMES = re.compile(r"[A-Za-z_][\w.:]*( [A-Za-z_]\w*)*")
"""Texts that are names of attributes, or of a module and a function."""

WITHOUT_CALLS = {"Protocol", "Generic", "NamedTuple", "TypedDict", "ABC", "BaseModel", "Exception", "Enum", "StrEnum"}
"""Bases outside the package that call no method of a class; every other one may."""

Definition = ast.FunctionDef | ast.ClassDef


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def trees() -> dict[str, ast.Module]:
    files = (file for name in CALLING if (ROOT / name).is_dir() for file in sorted((ROOT / name).rglob("*.py")))
    stub = {"stub": ast.parse((ROOT / PACKAGE / "__init__.pyi").read_text())}
    return {module_of(file): ast.parse(file.read_text()) for file in files} | stub


class References:
    """Which names each module uses, and on which lines."""

    def __init__(self, modules: Mapping[str, ast.Module]) -> None:
        self.names: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.members: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self.imported: set[tuple[str, str]] = set()
        for module, tree in modules.items():
            self._read(module, tree, modules)

    def _read(self, module: str, tree: ast.Module, modules: Mapping[str, ast.Module]) -> None:
        nodes = list(ast.walk(tree))
        aliases = {}
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self.imported.add((node.module, alias.name))
                    if f"{node.module}.{alias.name}" in modules:
                        aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif isinstance(node, ast.Import):
                aliases.update({alias.asname or alias.name: alias.name for alias in node.names})
        on_demand = any(isinstance(node, ast.Name) and node.id == "import_module" for node in nodes)
        for node in nodes:
            if isinstance(node, ast.Name):
                self.names[module, node.id].append(node.lineno)
            elif isinstance(node, ast.Attribute):
                self.members[node.attr].append((module, node.lineno))
                of = ast.unparse(node.value) if isinstance(node.value, ast.Name | ast.Attribute) else ""
                if of in aliases:
                    self.imported.add((aliases[of], node.attr))
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".load"):
                # A module of an extension, and a name in it.
                self.imported |= {("", ast.literal_eval(one)) for one in node.args[1:] if isinstance(one, ast.Constant)}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMES.fullmatch(node.value):
                for word in re.findall(r"\w+", node.value):
                    self.members[word].append((module, node.lineno))
                    if on_demand:
                        self.imported.add(("", word))

    def of_name(self, module: str, node: Definition) -> bool:
        """Whether a name of a module is used: in it, outside the definition, or by a module that imports it."""
        inside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        return (
            (module, node.name) in self.imported
            or ("", node.name) in self.imported
            or any(line not in inside for line in self.names[module, node.name])
        )

    def of_member(self, module: str, node: Definition) -> bool:
        """Whether any attribute or text outside the definition has the name of a member."""
        inside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        return any(where != module or line not in inside for where, line in self.members[node.name])


def bases_outside(node: ast.ClassDef, tree: ast.Module) -> bool:
    """Whether a library may call the methods of a class."""
    ours = {alias.asname or alias.name for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)
            and str(one.module).startswith(PACKAGE) for alias in one.names}  # fmt: skip
    ours |= {one.name for one in tree.body if isinstance(one, ast.ClassDef)}
    names = {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}
    return bool(names - ours - WITHOUT_CALLS)


def public(body: list[ast.stmt]) -> Iterator[Definition]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if not any(BY_A_LIBRARY.search(ast.unparse(one)) for one in node.decorator_list):
            yield node


def read_by_templates() -> set[str]:
    """Return the words in the expressions of templates."""
    texts = "".join(file.read_text() for file in (ROOT / PACKAGE).rglob("*.j2"))
    return {word for of in re.findall(r"{[{%].*?[%}]}", texts, re.DOTALL) for word in re.findall(r"\w+", of)}


def without_callers(modules: Mapping[str, ast.Module], read: Set[str] = frozenset()) -> Iterator[str]:
    """Yield the public names that only tests use; members of the API's classes are for users."""
    references = References(modules)
    for module, tree in modules.items():
        if module.split(".")[0] != PACKAGE:
            continue
        for node in public(tree.body):
            if not references.of_name(module, node):
                yield f"{module}.{node.name}"
        if ".api" in module:
            continue
        for of in (node for node in public(tree.body) if isinstance(node, ast.ClassDef)):
            if bases_outside(of, tree):
                continue
            for node in public(of.body):
                if node.name not in read and not references.of_member(module, node):
                    yield f"{module}.{of.name}.{node.name}"


def test_every_public_name_has_a_caller() -> None:
    assert not list(without_callers(trees(), read_by_templates()))


def test_without_callers_finds_planted_names() -> None:
    sources = {
        "privrisk_spark.one": (
            "from privrisk_spark.two import used\n"
            "def recursive(n): return recursive(n - 1)\n"
            "class Unused: pass\n"
            "class Used:\n    def called(self): pass\n    def not_called(self): self.not_called()\n"
            "value = Used().called()\n"
        ),
        "privrisk_spark.two": (
            "def used(): pass\ndef local(): pass\nresult = local()\n@app.command()\ndef command(): pass\n"
        ),
        "privrisk_spark.three": "import library\nclass Handler(library.Base):\n    def emit(self): pass\nHandler()\n",
        "jobs.four": "from privrisk_spark import five\nfive.by_a_job()\n",
        "privrisk_spark.five": "def by_a_job(): pass\ndef by_nothing(): pass\n",
    }
    assert list(without_callers({name: ast.parse(text) for name, text in sources.items()})) == [
        "privrisk_spark.one.recursive",
        "privrisk_spark.one.Unused",
        "privrisk_spark.one.Used.not_called",
        "privrisk_spark.five.by_nothing",
    ]
