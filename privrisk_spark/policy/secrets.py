"""What of a policy enters no digest that is published: who reads a digest can try the few values a secret may have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KeyPath = tuple[str, ...]

_PLACES = frozenset({"path", "file", "tree_file", "mapping", "vault"})
_SECRET_OPTION = re.compile("pass|pwd|secret|token|credential|key|user|account|sas|signature", re.IGNORECASE)


@dataclass(frozen=True)
class FromEnvironment:
    """A text of a policy that an environment variable had a part in.

    Attributes
    ----------
    keys : tuple of str
        Where it stands.
    text : str
        As the policy has it.
    without : str
        The same without the environment: the default of a reference, or the reference itself.
    """

    keys: KeyPath
    text: str
    without: str


def without_credentials(path: str) -> str:
    """Return a path without what only its user should know: ``s3a://key:secret@bucket/x?token`` has three such."""
    scheme, of_scheme, rest = path.partition("://")
    if not of_scheme:
        return path
    authority, slash, name = rest.partition("?")[0].partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{name}"


def without_secrets(document: Any, given: tuple[FromEnvironment, ...] = ()) -> Any:
    """Return a policy's document without secrets.

    URLs lose their credentials and reader options with such names their values; texts from the environment become what
    the policy says without it. Everything else stays, so a policy without any of these is as it was.

    Parameters
    ----------
    document : JSON value
    """
    for one in given:
        document, found = _replaced(document, one.keys, one)
        if not found:  # what was written in short has been filled in, and stands elsewhere
            document = _everywhere(document, one)
    return _plain(document, "")


def _replaced(value: Any, keys: KeyPath, one: FromEnvironment) -> tuple[Any, bool]:
    if not keys:
        if value is None:  # something else has taken its place
            return None, True
        return (value, False) if isinstance(value, dict | list) else (one.without, True)
    key = keys[0]
    if isinstance(value, Mapping) and key in value:
        below, found = _replaced(value[key], keys[1:], one)
        return {**value, key: below}, found
    if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
        below, found = _replaced(value[int(key)], keys[1:], one)
        return [*value[: int(key)], below, *value[int(key) + 1 :]], found
    return value, False


def _everywhere(value: Any, one: FromEnvironment) -> Any:
    if isinstance(value, Mapping):
        return {key: _everywhere(below, one) for key, below in value.items()}
    if isinstance(value, list):
        return [_everywhere(below, one) for below in value]
    return one.without if value == one.text else value


def _plain(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        secret = {name for name in value if key == "options" and _SECRET_OPTION.search(name)}
        return {name: None if name in secret else _plain(below, name) for name, below in value.items()}
    if isinstance(value, list):
        return [_plain(below, key) for below in value]
    return without_credentials(value) if isinstance(value, str) and key in _PLACES else value
