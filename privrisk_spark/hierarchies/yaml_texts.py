"""YAML and JSON of a policy, or of a file it names: no scalar becomes another text than the one that is written.

YAML reads ``010`` as 8, ``12:30`` as 750, ``1.10`` as 1.1 and ``NO`` as false. Here a scalar is a number or a truth
value only if it is written as Python writes it, so that its text can be had back; any other scalar stays a text. What
a key wants decides: a number takes ``1_000``, a truth value ``yes``.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import yaml

MOST_VALUES = 4_000_000
"""Values a YAML document may stand for, each as often as an alias repeats it."""


class RepetitionError(ValueError):
    """A YAML document is refused for what its aliases stand for."""


def scalar_text(value: object) -> str | None:
    """Return the text of a scalar as it is written in YAML and JSON; None if it is no scalar, or nothing.

    Parameters
    ----------
    value : object
        As :func:`load_yaml` and :func:`load_json` return it, or of a document made in Python.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float | dt.date) else None


def load_json(text: str) -> Any:
    """Parse JSON; numbers are texts, and a ValueError names what is wrong."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if key in seen:
                raise ValueError(f"the key '{key}' is given twice in one mapping")
            seen[key] = value
        return seen

    try:
        return json.loads(text, object_pairs_hook=unique, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}: not readable as JSON ({error.msg})") from None


def load_yaml(text: str) -> Any:
    """Parse YAML; a ValueError names what is wrong, without quoting values."""
    try:
        loader = _TextLoader(text)
        try:
            node = loader.get_single_node()
            refuse_repetition(node)
            return None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except RepetitionError as error:
        raise ValueError(str(error)) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        if isinstance(error, RecursionError):
            problem = "it is nested too deeply"
        if problem is None:
            character = isinstance(error, yaml.reader.ReaderError)
            problem = "it holds a character YAML does not allow" if character else "a value cannot be read"
        hint = ""
        if "\\t" in problem:
            hint = "; indent with spaces, not tabs"
        elif isinstance(error, yaml.parser.ParserError | yaml.scanner.ScannerError):
            hint = "; check indentation and brackets, and put a text with { } [ ] , * & # % @ or ': ' in quotes"
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(f"{where}{problem}{hint}") from None


class _TextLoader(yaml.SafeLoader):
    """Safe YAML whose scalars keep their texts."""


def _read_mapping(loader: _TextLoader, node: yaml.MappingNode) -> dict[str, Any]:
    """Return a mapping with text keys, none given twice; keys merged by ``<<`` may be given again."""
    seen: set[str] = set()
    for key, _ in node.value:
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        if not isinstance(key, yaml.ScalarNode):
            raise _problem("a key must be a text; if it starts with {, write it in quotes", key)
        if key.tag == "tag:yaml.org,2002:null":
            raise _problem(f"the key {key.value!r} is not read as text; write it in quotes", key)
        if key.value in seen:
            raise _problem(f"the key '{key.value}' is given twice in one mapping", key)
        seen.add(key.value)
    loader.flatten_mapping(node)
    return {key.value: loader.construct_object(value, deep=True) for key, value in node.value}


def _read_scalar(_: _TextLoader, node: yaml.ScalarNode) -> str | int | float | bool:
    """Return a number or a truth value that is written as Python writes it, or else the text."""
    text: str = node.value
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            if str(kind(text)) == text:
                return kind(text)
        except ValueError:
            continue
    return text


def _problem(text: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, text, node.start_mark)


_TextLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _read_mapping)
for _kind in ("bool", "int", "float", "timestamp", "value"):
    _TextLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", _read_scalar)


def refuse_repetition(top: yaml.Node | None) -> None:
    """Refuse a document whose aliases make it too large, or endless, before anything is made of it.

    Parameters
    ----------
    top : yaml.Node or None
        As it is composed: an alias is the very node it stands for.

    Raises
    ------
    RepetitionError
        Saying which.
    """
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    # Depth first with a stack of its own: a document may be nested deeper than Python's calls.
    todo = [] if top is None else [(top, False)]
    while todo:
        node, done = todo.pop()
        below = _below(node)
        if done:
            open_nodes.discard(id(node))
            sizes[id(node)] = 1 + sum(sizes[id(one)] for one in below)
            if sizes[id(node)] > MOST_VALUES:
                raise RepetitionError(f"its aliases (*name) make it stand for more than {MOST_VALUES:,} values")
        elif id(node) in open_nodes:
            raise RepetitionError("an alias (*name) stands for something it is itself a part of")
        elif id(node) not in sizes:
            open_nodes.add(id(node))
            todo.append((node, True))
            todo += [(one, False) for one in below if id(one) not in sizes]


def _below(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node.value, str):
        return []
    return [part for one in node.value for part in (one if isinstance(one, tuple) else (one,))]
