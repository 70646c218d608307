"""Write ``docs/api.md`` from the docstrings: ``python docs/reference.py`` (``--check`` only says whether it is old)."""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import privrisk_spark as pr

PAGE = Path(__file__).with_name("api.md")

GROUPS: dict[str, tuple[str, ...]] = {
    "What to run": (
        "profile",
        "suggest_policy",
        "assess",
        "attack",
        "share",
        "plan",
        "validate",
        "release",
        "mask_table",
        "withdraw",
        "fit",
        "approve",
        "curves",
        "compose",
        "audit",
    ),
    "Sessions": ("session",),
    "Policies": ("load", "Policy"),
    "Roles of columns": ("quasi_identifier", "sensitive", "insensitive", "identifier", "weight"),
    "Hierarchies": ("intervals", "mask", "dates", "order", "flat", "tree", "file"),
    "Results": (
        "Suggested",
        "Assessed",
        "Attacked",
        "Shared",
        "Plan",
        "Validation",
        "Released",
        "Withdrawal",
        "Fitted",
        "Curves",
        "Composed",
        "Audited",
        "Page",
    ),
}
"""Order of the page; every public name but ``errors`` is in one group."""

HEAD = """\
# Python interface

*Written by `python docs/reference.py` from the docstrings; change those.*

```python
import privrisk_spark as pr
```

The import loads nothing else: a name is loaded when it is first used, and Spark when a session is needed. A DataFrame
comes first, or `None` for the table the policy names; the policy is second. [quickstart.ipynb](quickstart.ipynb) shows
all of it on seven rows.
"""

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_ITEM = re.compile(r"^(\*{0,2}[\w., *]+?) : (.+)$")


def sections(docstring: str) -> dict[str, str]:
    """Split a numpydoc docstring; the text before the first section has the empty name."""
    parts = _SECTION.split(docstring)
    return {"": parts[0].strip()} | {
        name: text.strip("\n") for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def written(text: str) -> str:
    """Return reStructuredText inlines as Markdown."""
    text = re.sub(r":(?:func|class|mod|meth|data|pep):`([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")


def listed(text: str) -> Iterator[str]:
    """Lines of a section of names and what they are, as a Markdown list."""
    for line in text.splitlines():
        if line.startswith(" "):
            yield f"  {written(line.strip())}"
        elif match := _ITEM.match(line):
            yield f"- **{match[1].replace('*', chr(92) + '*')}** : *{written(match[2])}*"
        elif line:
            yield f"- *{written(line)}*"


def entry(name: str, thing: Any, *, depth: int = 3) -> Iterator[str]:
    """Lines of one name."""
    found = sections(inspect.cleandoc(thing.__doc__ or ""))
    yield f"{'#' * depth} `{name}`"
    yield ""
    if callable(thing) and not (inspect.isclass(thing) and hasattr(thing, "__dataclass_fields__")):
        yield from ("```python", *call(name.rsplit(".", 1)[-1], thing), "```", "")
    yield from (written(found.pop("")), "")
    for title, text in found.items():
        yield from (f"**{title}**", "")
        if title == "Examples":
            yield from ("```pycon", text, "```")
        elif title == "References":
            yield written(text)
        else:
            yield from listed(text)
        yield ""


def call(name: str, thing: Any) -> Iterator[str]:
    """Lines of how a function is called, one argument a line."""
    signature = inspect.signature(thing.__init__ if inspect.isclass(thing) else thing)
    yield f"{name}("
    keywords = False
    for one in signature.parameters.values():
        if one.kind is one.VAR_POSITIONAL:
            keywords = True
        if one.kind is one.KEYWORD_ONLY and not keywords:
            keywords = True
            yield "    *,"
        if one.name != "self":
            yield f"    {str(one).replace(chr(39), '', 2) if isinstance(one.annotation, str) else one},".replace(
                "written.", ""
            )
    yield ")" if inspect.isclass(thing) else f") -> {signature.return_annotation}"


def members(thing: type) -> Iterator[tuple[str, Any]]:
    """Public properties and methods of a result, in the order they are written, inherited ones last."""
    for owner in thing.__mro__:
        if not owner.__module__.startswith("privrisk_spark"):
            continue
        for name, member in vars(owner).items():
            if name.startswith("_") or not isinstance(member, Callable | property | cached_property):  # type: ignore[arg-type]
                continue
            if member.__doc__:
                yield name, member


def page() -> str:
    """Return the whole page."""
    lines = [HEAD]
    for group, names in GROUPS.items():
        lines += [f"## {group}", ""]
        for name in names:
            thing = getattr(pr, name)
            lines += entry(f"pr.{name}", thing)
            if group == "Results":
                for member, value in members(thing):
                    lines += entry(f"{name}.{member}", value, depth=4)
    lines += ["## Errors", "", "Only these leave the interface; `privrisk` ends with their exit code.", ""]
    lines += ["| `pr.errors.` | exit code | when |", "|---|---|---|"]
    for name, value in vars(pr.errors).items():
        if inspect.isclass(value) and issubclass(value, pr.errors.PrivriskError):
            summary = inspect.cleandoc(value.__doc__ or "").splitlines()[0]
            lines.append(f"| `{name}` | {value.exit_code} | {written(summary)} |")
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Write the page, or say that it is old (exit code 1)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if the page is old")
    made = page()
    if parser.parse_args().check:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != made)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
