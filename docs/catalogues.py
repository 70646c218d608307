"""Write pages from the program: ``python docs/catalogues.py`` (``--check`` only says whether one is old).

``policy-keys.md`` is made of the policy's JSON Schema and ``policy_examples.yaml``, ``command-line.md`` of the
commands, ``measures.md`` of the catalogue of measures, ``glossary.md`` of the words of reports, ``bibliography.md`` of
``references.bib``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import typer.main
import yaml

from privrisk_spark.cli.app import app
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.glossary import read_glossary
from privrisk_spark.results.measures import read_families, read_measures

DOCS = Path(__file__).parent
EXAMPLES = DOCS / "policy_examples.yaml"

ALWAYS = ("run", "table", "columns")
"""Sections that nearly every policy has; the page begins with them."""

Schema = Mapping[str, Any]


def cell(text: object) -> str:
    """Return a text as the cell of a Markdown table."""
    return re.sub(r"``([^`]+)``", r"`\1`", str(text)).replace("|", "\\|").replace("\n", " ").strip()


def within(schema: Any) -> Iterator[str]:
    """Names of the types a schema refers to, in the order they are written."""
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        for key, value in schema.items():
            if key != "discriminator":
                yield from within(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from within(value)


def kind(schema: Schema, types: Mapping[str, Schema]) -> str:
    """Say in words what a key takes."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})" if "properties" in types[name] else kind(types[name], types)
    for union in ("anyOf", "oneOf"):
        if union in schema:
            if [one.get("type") for one in schema[union]] == ["string", "integer", "number", "boolean"]:
                return "text"  # a scalar, which stays the text that is written
            return " or ".join(dict.fromkeys(kind(one, types) for one in schema[union]))
    if "const" in schema:
        return f"`{yaml_of(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if schema.get("type") == "array":
        items = schema.get("prefixItems")
        inner = ", ".join(kind(one, types) for one in items) if items else kind(schema.get("items", {}), types)
        return f"list of {inner}"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"names, each with {kind(values, types)}" if isinstance(values, Mapping) else "names and values"
    words = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
        "null": "null",
    }
    return words.get(schema.get("type", ""), "anything") + bounds(schema)


def bounds(schema: Schema) -> str:
    """Say which numbers are allowed."""
    said = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    found = [f"{word} {schema[key]:g}" for key, word in said.items() if key in schema]
    return f" ({', '.join(found)})" if found else ""


def yaml_of(value: object) -> str:
    """Return a value as YAML on one line."""
    return (
        yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True).removesuffix("\n...\n").strip()
    )


def default(schema: Schema, required: bool) -> str:
    """Say what a key is if it is not written."""
    if required:
        return "**required**"
    return f"`{cell(yaml_of(schema['default']))}`" if schema.get("default", {}) != {} else ""


def keys_of(name: str, types: Mapping[str, Schema], examples: Mapping[str, object]) -> Iterator[str]:
    """Lines of one type: what it is, an example, its keys."""
    schema = types[name]
    yield from (f"### {name}", "", cell(schema.get("description", "")), "")
    yield from (
        "```yaml",
        yaml.safe_dump(examples[name], sort_keys=False, width=110, allow_unicode=True).strip(),
        "```",
    )
    yield from ("", "| key | takes | if not given | description |", "|---|---|---|---|")
    for key, one in schema["properties"].items():
        inner = next((types[other] for other in within(one) if "properties" in types[other]), {})
        said = one.get("description") or ("" if "const" in one else inner.get("description", ""))
        required = key in schema.get("required", ())
        yield f"| `{key}` | {kind(one, types)} | {default(one, required)} | {cell(said)} |"
    yield ""


def policy_keys() -> str:
    """Return the page of the policy's keys."""
    schema = Policy.model_json_schema(by_alias=True)
    types: Mapping[str, Schema] = schema["$defs"]
    examples = yaml.safe_load(EXAMPLES.read_text(encoding="utf-8"))
    lines = [
        "# Every key of a policy",
        "",
        "*Written by `python docs/catalogues.py` from the policy's JSON Schema; change the descriptions there.*",
        "",
        "[policy.md](policy.md) explains how the sections work together. Here is each part with an example that is",
        "accepted as it is, and all its keys. A part that several sections take is described in the first of them.",
        "",
    ]
    sections = [*ALWAYS, *(name for name in schema["properties"] if name not in (*ALWAYS, "version"))]
    seen: set[str] = set()
    for section in sections:
        one = schema["properties"][section]
        lines += [f"## `{section}`", "", cell(one.get("description", "")), ""]
        waiting = list(dict.fromkeys(within(one)))
        if waiting:
            lines += ["Takes " + kind(one, types) + ".", ""]
        while waiting:
            name = waiting.pop(0)
            if name in seen:
                continue
            seen.add(name)
            waiting = [*dict.fromkeys(within(types[name])), *waiting]
            if "properties" in types[name]:
                lines += keys_of(name, types, examples)
    return page(lines)


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, with the words that call it."""
    if hasattr(command, "commands"):
        for word, one in command.commands.items():
            yield from commands(one, f"{name} {word}")
    else:
        yield name, command


def command_line() -> str:
    """Return the page of the commands."""
    lines = [
        "# Command line",
        "",
        "*Written by `python docs/catalogues.py` from the commands themselves.*",
        "",
        "Every command ends with 0 (done), 1 (refused by a check, a threshold or the budget), 2 (the policy or the",
        "input must be mended) or 3 (the engine failed; a retry may help): [outputs.md](outputs.md#exit-codes).",
        "",
    ]
    for name, command in commands(typer.main.get_command(app), "privrisk"):
        parameters = [one for one in command.params if one.name != "help"]
        arguments = [one for one in parameters if one.param_type_name == "argument"]
        words = [one.metavar or (one.name.upper() if one.required else f"[{one.name.upper()}]") for one in arguments]
        usage = " ".join([name, "[OPTIONS]", *words])
        lines += [f"## `{name}`", "", cell(command.help), "", "```text", usage, "```", ""]
        lines += ["| option | if not given | does |", "|---|---|---|"]
        for one in parameters:
            words = (
                (one.metavar or one.name.upper()) if one in arguments else ", ".join([*one.opts, *one.secondary_opts])
            )
            given = "**required**" if one.required else "" if one.default in (None, (), []) else f"`{one.default}`"
            lines.append(f"| `{cell(words)}` | {cell(given)} | {cell(getattr(one, 'help', '') or '')} |")
        lines.append("")
    return page(lines)


def measures() -> str:
    """Return the page of the measures."""
    lines = [
        "# Measures",
        "",
        "*Written by `python docs/catalogues.py` from the catalogue that reports use.*",
        "",
        "What `privrisk assess` can tell, and what `assess.thresholds` may bound: the name is that of `measures.json`.",
        "A measure that is *tested* is computed exactly; one that is *heuristic* is an estimate under a model.",
        "",
    ]
    for family, title in read_families().items():
        lines += [f"## {title}", "", "| name | unit | means | safe | status | source |", "|---|---|---|---|---|---|"]
        for name, one in read_measures().items():
            if one.family == family:
                told = (f"`{name}`", one.unit, f"**{one.title}.** {one.means}", one.safe or "", one.status, one.source)
                lines.append("| " + " | ".join(cell(part) for part in told) + " |")
        lines.append("")
    return page(lines)


def glossary() -> str:
    """Return the page of the words."""
    lines = [
        "# Words",
        "",
        "*Written by `python docs/catalogues.py` from the glossary that reports use.*",
        "",
        "The words of documents, reports and messages, as they are used here. The formulas are those of"
        " [design.md](design.md#formulas-and-their-modules), the sources in [references.bib](references.bib).",
        "",
        "| word | means | formula | in the code |",
        "|---|---|---|---|",
    ]
    for term in read_glossary():
        formula, where = (f"`{text}`" if text else "" for text in (term.formula, term.where))
        lines.append("| " + " | ".join(cell(part) for part in (f"**{term.word}**", term.means, formula, where)) + " |")
    return page(lines)


def bibliography() -> str:
    """Return the page of the works that are cited, by the headings of ``references.bib``."""
    text = (DOCS / "references.bib").read_text(encoding="utf-8")
    lines = [
        "# Bibliography",
        "",
        "*Written by `python docs/catalogues.py` from [references.bib](references.bib).*",
        "",
        "These are the works that the code and the documents cite. For example, F12 in a docstring is the first one.",
        "",
    ]
    for heading, entry in re.findall(r"(?ms)^% -+ ([^\n]+)$|^@\w+\{(.*?)^\}", text):
        lines += ["", f"## {heading}", ""] if heading else [cite(entry)]
    return page(lines)


def cite(entry: str) -> str:
    """Return one entry of a BibTeX file as a bullet."""
    key, _, rest = entry.partition(",\n")
    of = {name: re.sub(r"[{}\\]", "", value) for name, value in re.findall(r"(?ms)^  (\w+) *= \{(.*?)\},?$", rest)}
    names = [name.partition(",")[0].strip() for name in re.split(r"\s+and\s+", of["author"])]
    who = ", ".join(names[:-1]) + " and " * (len(names) > 1) + names[-1]
    issue = " ".join(filter(None, (of.get("volume"), of.get("number") and f"({of['number']})")))
    venues = ("booktitle", "journal", "school", "institution", "publisher", "note")
    where = " ".join(filter(None, (next((of[name] for name in venues if name in of), ""), issue)))
    code = f"**{key}** " if key.isupper() else ""
    link = f" [doi:{of['doi']}](https://doi.org/{quote(of['doi'])})" if "doi" in of else ""
    title = f" *{of['title']}*." if "title" in of else ""
    return f"- {code}{who} ({of['year']}).{title}{f' {where}.' * bool(where)}{link}"


def page(lines: list[str]) -> str:
    """Return lines as a file, without blank lines one after the other."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


PAGES = {
    "policy-keys.md": policy_keys,
    "command-line.md": command_line,
    "measures.md": measures,
    "glossary.md": glossary,
    "bibliography.md": bibliography,
}


def main() -> int:
    """Write the pages, or say that one is old (exit code 1)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a page is old")
    check = parser.parse_args().check
    old = 0
    for name, made in PAGES.items():
        text, place = made(), DOCS / name
        if not place.exists() or place.read_text(encoding="utf-8") != text:
            old = 1
            if not check:
                place.write_text(text, encoding="utf-8")
    return old if check else 0


if __name__ == "__main__":
    sys.exit(main())
