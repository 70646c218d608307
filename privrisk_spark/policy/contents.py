"""Files a policy reads besides its tables: hierarchies, mappings, a scheme. What they hold is part of what is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

from privrisk_spark.hierarchies.text import FileHierarchy, TreeHierarchy
from privrisk_spark.policy.anonymity import KAnonymityGuarantee
from privrisk_spark.policy.dictionaries import DictionaryColumn
from privrisk_spark.storage.whole_files import contents

__all__ = ["contents_of"]


def contents_of(policy: BaseModel, *, but: Sequence[str] = ()) -> dict[str, str]:
    """Return the SHA-256 of every file of a policy, hex, by the key that names it.

    Parameters
    ----------
    policy : BaseModel
        Or a part of one.
    but : sequence of str
        Keys at the top whose files do not count.

    Returns
    -------
    dict of str to str
        ``unreadable`` stands for a file that cannot be read, which is refused where it is used.
    """
    found = {}
    for name in type(policy).model_fields:
        if name not in but:
            for key, path in _files(getattr(policy, name), name):
                found[key] = _digest(path)
    return found


def _files(value: object, key: str) -> Iterator[tuple[str, str]]:
    named = None
    if isinstance(value, FileHierarchy):
        named = ("file", value.file)
    elif isinstance(value, TreeHierarchy) and value.tree_file is not None:
        named = ("tree_file", value.tree_file)
    elif isinstance(value, DictionaryColumn) and value.mapping is not None:
        named = ("mapping", value.mapping)
    elif isinstance(value, KAnonymityGuarantee) and value.scheme is not None:
        named = ("scheme", value.scheme)
    if named is not None:
        yield f"{key}.{named[0]}", named[1]
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _files(getattr(value, name), f"{key}.{name}")
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from _files(part, f"{key}.{name}")
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            yield from _files(part, f"{key}.{number}")


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(contents(path)).hexdigest()
    except (OSError, ValueError):
        return "unreadable"
