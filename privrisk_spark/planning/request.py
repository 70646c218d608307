"""What a release is asked for, as digests by name: a run that is started again must agree in each."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from privrisk_spark.policy.contents import contents_of
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import Policy
from privrisk_spark.storage.directories import files_below, is_file
from privrisk_spark.storage.documents import state_of
from privrisk_spark.storage.table_files import named_here

_APART: Final = ("columns", "guarantee")
"""Parts of a policy that are told apart key by key."""

_ELSEWHERE: Final = ("date", "output")
"""What a release that nothing is charged for may be asked for again with: on another day, with another vault."""


def asked_of(policy: Policy, date: dt.date) -> dict[str, str]:
    """Return digests of all that a release is asked for, by name: a retry of the run must agree in each.

    Parameters
    ----------
    policy : Policy
        Part by part, and the contents of the hierarchy and mapping files it names. A table counts by what the policy
        says of it; what it holds is another matter (the snapshot).
    date : date
        Business date.
    """
    return {name: hashlib.sha256(text.encode()).hexdigest()[:32] for name, text in _asked(policy, date)}


def _asked(policy: Policy, date: dt.date) -> Iterator[tuple[str, str]]:
    yield "date", (policy.run.date or date).isoformat()
    for part, value in json.loads(policy.canonical()).items():
        for name in value if part in _APART else ():
            yield f"{part}.{name}", json.dumps(value[name], sort_keys=True)
        if part not in _APART:
            yield part, json.dumps(value, sort_keys=True)
    for key, digest in contents_of(policy, but=("assess",)).items():
        yield f"contents of {key}", digest


FRAME: Final = "the given frame"
"""Name of the digest of a frame that the caller gave."""


def request_of(policy: Policy, *, given: bool, frame: str | None = None) -> dict[str, str]:
    """Return digests of what a release is asked for whose guarantee is not charged to a ledger.

    Parameters
    ----------
    given : bool
        Whether the caller gave the table.
    frame : str, optional
        Digest of that table's content.

    Returns
    -------
    dict of str to str
        As :func:`asked_of`, without the day and the places; with the columns whose values name directories, and with
        the names and sizes of the files of the tables it reads, where these lie on a local or mounted path. That a file
        was written anew at its size is not seen.
    """
    found = {name: value for name, value in asked_of(policy, dt.date.min).items() if name not in _ELSEWHERE}
    if policy.output is not None and policy.output.partition_by:
        found["output.partition_by"] = hashlib.sha256(json.dumps(policy.output.partition_by).encode()).hexdigest()[:32]
    if frame is not None:
        found[FRAME] = frame
    for key, table in tables_of(policy, given=given).items():
        # Which files a version of a lake table has is settled by the version, which the run id pins.
        named = [] if table.path is None or table.lake is not None else named_here(table.path)
        if named:
            text = json.dumps(sorted(file for place in named for file in _files(place)))
            found[f"files of {key}"] = hashlib.sha256(text.encode()).hexdigest()[:32]
    return found


def tables_of(policy: Policy, *, given: bool) -> dict[str, Table]:
    """Return what a release reads: the table, unless the caller gave it, its dictionaries and the linkage table."""
    found: dict[str, Table | None] = {} if given else {"table": policy.table}
    found |= {one.key: one.table for one in policy.dictionaries} | {"linkage": policy.linkage}
    return {key: table for key, table in found.items() if table is not None}


def _files(path: Path) -> Iterator[tuple[str, int]]:
    """Name and bytes of each file, below the path."""
    alone = is_file(path)
    for file in [path] if alone else files_below(path):
        known = state_of(file) if alone or not file.name.startswith((".", "_")) else None
        if known is not None:
            yield file.name if alone else file.relative_to(path).as_posix(), known.size


def differing(recorded: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the names in which two requests differ, in order."""
    return sorted(name for name in recorded.keys() | now.keys() if recorded.get(name) != now.get(name))
