"""Rules of several keys for a policy of which some keys have faults: everything wrong is reported at once."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from privrisk_spark.errors import Fault
from privrisk_spark.policy.faults import faulty_keys
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.rules.release import impossible
from privrisk_spark.policy.variants import Variant

_REQUIRED: dict[str, Any] = {
    "version": 1,
    "run": {"name": "any"},
    "table": {"catalog": "any"},
    "columns": {"any": {"role": "identifier"}},
}
"""Values of required keys with faults. They are hidden before a rule can read them."""


def impossible_without(error: ValidationError, document: Mapping[str, Any], *, releasing: bool) -> list[Fault]:
    """Return the faults of the rules that read no key with a fault of its own.

    Parameters
    ----------
    error : ValidationError
        Raised for the document.
    releasing : bool
        Demand what a release needs.
    """
    rest = {**_REQUIRED, **copy.deepcopy(dict(document))}
    removed: set[tuple[int | str, ...]] = set()
    while True:
        paths = {_remove(rest, keys) for keys in faulty_keys(error, rest)} - {()}
        if not paths:
            return []
        removed |= paths
        rest = {**_REQUIRED, **rest}
        try:
            # Deep, because policies share the parts that are defaults.
            policy = Policy.model_validate(rest).model_copy(deep=True)
            break
        except ValidationError as another:
            error = another
    for path in {*removed, *((key,) for key in _REQUIRED.keys() - document.keys())}:
        _hide(policy, path)
    return list(impossible(policy, releasing=releasing, partial=True))


def _remove(document: dict[str, Any], keys: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Remove a key, or the nearest above it that exists; return its path, which is empty if there is none."""
    holders: list[Any] = [document]
    path: list[int | str] = []
    for key in keys:
        if not isinstance(holders[-1], dict) or key not in holders[-1]:
            break
        path.append(key)
        holders.append(holders[-1][key])
    if path:
        del holders[len(path) - 1][path[-1]]
    return tuple(path)


def _hide(part: BaseModel, path: tuple[int | str, ...]) -> None:
    """Let each reader of a key fail; of an unknown key, each reader of a key that it may stand for."""
    fields = type(part).model_fields
    name = next((name for name, field in fields.items() if field.alias == path[0]), str(path[0]))
    found, below = vars(part).get(name), path[1:]
    if below and isinstance(found, BaseModel) and not isinstance(found, Variant):
        _hide(found, below)
        return
    meant = [name] if name in fields else get_close_matches(name, fields, n=1)
    for hidden in meant or fields.keys() - part.model_fields_set:
        vars(part).pop(hidden, None)
