"""A policy as a person would write it: YAML with a comment at every key that needs one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

DECIDE, CHECK = "# DECIDE", "# CHECK"
"""Begin the question at the line of an undecided column, and of one that is unsure and that a release accepts."""

_WIDTH = 118

_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""Several times as fast in C, where PyYAML has it; the texts read the same."""


@dataclass(frozen=True)
class Remark:
    """What is said of a key.

    Attributes
    ----------
    above : tuple of str
        Sentences in lines of their own above it.
    question : str or None
        At the end of its line.
    mark : str
        `DECIDE` or `CHECK`.
    """

    above: tuple[str, ...] = ()
    question: str | None = None
    mark: str = DECIDE


def policy_text(
    document: Mapping[str, Any], remarks: Mapping[tuple[str, ...], Remark], *, head: tuple[str, ...] = ()
) -> str:
    """Return a policy as YAML, which reads as the same document.

    The parts ``columns`` and ``table`` have a line for each of their keys, other parts one line; long ones are broken.

    Parameters
    ----------
    document : mapping
        A policy, JSON-safe.
    remarks : mapping of key path to Remark
        Of parts such as ``("utility",)``, and of columns such as ``("columns", "age")``.
    head : tuple of str
        Paragraphs before all else.
    """
    lines = [line for paragraph in head for line in _comment(paragraph, "")]
    for key, part in document.items():
        said = remarks.get((key,), Remark())
        if said.above and lines:
            lines.append("")
        lines += [line for text in said.above for line in _comment(text, "")]
        if key in ("columns", "table") and isinstance(part, Mapping) and part:
            lines.append(f"{key}:" + _mark(said))
            for name, value in part.items():
                of_key = remarks.get((key, name), Remark())
                lines += [line for text in of_key.above for line in _comment(text, "  ")]
                lines += _entry(name, value, "  ", of_key)
        else:
            lines += _entry(key, part, "", said)
    return "\n".join(lines) + "\n"


def _entry(key: str, value: Any, indent: str, said: Remark) -> Iterator[str]:
    """Lines of a key: one, if it fits."""
    line = f"{indent}{_flow(key)}: {_flow(value)}"
    if isinstance(value, Mapping) and value and len(line) > _WIDTH:
        yield f"{indent}{_flow(key)}:{_mark(said)}"
        for name, inside in value.items():
            yield from _entry(name, inside, indent + "  ", Remark())
    else:
        yield line + _mark(said)


def _mark(said: Remark) -> str:
    return "" if said.question is None else f"  {said.mark}: {said.question}"


def _comment(text: str, indent: str) -> list[str]:
    lead = f"{indent}# "
    # A column's name may hold a sign that YAML does not allow, in comments neither.
    text = "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text)
    return textwrap.wrap(text, _WIDTH, initial_indent=lead, subsequent_indent=lead, break_on_hyphens=False)


def _flow(value: Any) -> str:
    """A value on one line; a text that YAML would read as something else is in quotes."""
    text: str = yaml.dump(
        value, Dumper=_DUMPER, default_flow_style=True, allow_unicode=True, width=2**31 - 1, sort_keys=False
    )
    # Not every blank of Python is one of YAML, such as that which does not break a line.
    return text.removesuffix("\n").removesuffix("\n...").strip(" \n")
