"""The guide for the privacy officer, and which section of it explains a refusal."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from privrisk_spark.errors import BudgetError, ConfigError, InputError, PrivriskError, listing, nearest

_BY_KEY = (
    ("guarantee.epsilon", "epsilon"),
    ("guarantee.delta", "delta"),
    ("guarantee.public_rows", "delta"),
    ("guarantee.crowd", "crowd"),
    ("guarantee.keep_fraction", "crowd"),
    ("guarantee.key", "keys"),
    ("guarantee.schemes", "schemes"),
    ("guarantee.candidates", "schemes"),
    ("guarantee.frequent", "schemes"),
    ("guarantee.noise", "schemes"),
    ("guarantee.objective", "not-promised"),
    ("guarantee.accept_unproven", "as-published"),
    *(
        (f"guarantee.{key}", "k-anonymity")
        for key in ("k", "also", "suppression_limit", "metric", "suppressed", "scheme")
    ),
    ("guarantee", "promise"),
    ("ledger", "budget"),
)


@cache
def sections() -> dict[str, str]:
    """Return the guide's sections by name, in order; each begins with its heading."""
    text = files("privrisk_spark.reporting").joinpath("guides", "privacy.md").read_text(encoding="utf-8")
    _, *parts = text.split("\n## ")
    return {part.partition("\n")[0]: f"## {part.rstrip()}\n" for part in parts}


def text(section: str | None = None) -> str:
    """Return the guide, or a section of it.

    Raises
    ------
    InputError
        If there is no such section.
    """
    if section is None:
        return files("privrisk_spark.reporting").joinpath("guides", "privacy.md").read_text(encoding="utf-8")
    known = sections()
    if section not in known:
        raise InputError(
            f"SECTION must be one of {listing(list(known))}{nearest(section, list(known))}. Got {section}."
        )
    return known[section]


def section_of(error: PrivriskError) -> str | None:
    """Return the section that explains a refusal under differential privacy, or None.

    Of several faults the first that has one counts.
    """
    if isinstance(error, BudgetError):
        return "budget"
    if isinstance(error, ConfigError):
        for fault in error.faults:
            if fault.guide is not None:
                return fault.guide
            for key, section in _BY_KEY:
                if fault.path == key or fault.path.startswith(key + "."):
                    return section
    return None


def told(error: PrivriskError) -> str:
    """Return an error as a command prints it, with where to read on."""
    section = section_of(error)
    return f"privrisk: {error}" + ("" if section is None else f"\n  why, and what to do: privrisk guide {section}")
