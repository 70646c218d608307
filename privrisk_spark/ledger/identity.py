"""Which table a lineage is of, by its place and its files, and what it protects; no value of the table counts."""

from __future__ import annotations

import datetime as dt
import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

from privrisk_spark.ledger.request import LONGEST_NAME, lineage_name
from privrisk_spark.policy.dictionaries import GIVEN, Table
from privrisk_spark.policy.policy import Policy
from privrisk_spark.storage.directories import resolved
from privrisk_spark.storage.table_files import files_of, identity_of, named_here

__all__ = ["TableIdentity", "table_identity"]

_DATE: Final = "{ds}"
_DAY: Final = re.compile(
    r"(?<!\d)(?P<year>[12]\d{3})(?P<between>[-/_.]?)(?P<month>\d\d)(?P=between)(?P<day>\d\d)(?!\d)", re.ASCII
)
_HIVE_DAY: Final = re.compile(
    r"year=(?P<year>[12]\d{3})/month=(?P<month>\d\d?)/day=(?P<day>\d\d?)(?!\d)", re.ASCII | re.IGNORECASE
)
_ONE_SCHEME: Final = {"s3": "s3a", "s3n": "s3a", "abfs": "abfss", "wasb": "wasbs"}
"""Several names of one file system: which connector or transport is used says nothing of what lies there."""


@dataclass(frozen=True)
class TableIdentity:
    """What tells the table of a policy from another one, and its unit from another one.

    Attributes
    ----------
    table : str
        Digest of the name of its place; of a frame, which has none, of the lineage.
    files : tuple of str
        Digests of its files: of the name of each, and of its inode. Two paths to one file share them.
    unit : str
        What a private release of it protects.
    """

    table: str
    files: tuple[str, ...]
    unit: str


def table_identity(policy: Policy, files: Iterable[str] | None = None) -> TableIdentity:
    """Return the identity of a policy's table.

    A table that is written anew to a place of each day is one table: any date in its name counts as every other one.

    Parameters
    ----------
    policy : Policy
        With a ledger.
    files : iterable of str, optional
        Paths and URIs of its files, and the URN of a lake table. By default those that its path names on this machine,
        which is all that is known before the table is opened.
    """
    table = policy.table
    if table.catalog == GIVEN and policy.ledger is not None:
        name = f"frame of {lineage_name(policy.ledger.lineage)}"
    else:
        name = f"catalog {table.catalog.replace('`', '').lower()}" if table.catalog is not None else ""
    digests = {_digest(of) for file in (_files_here(table) if files is None else files) for of in _names_of_file(file)}
    # Spark resolves names without regard to case, unless spark.sql.caseSensitive is set; quotes are no part of one.
    return TableIdentity(
        _digest(_undated(name) or _name(table.place or "")), tuple(sorted(digests)), _unit(table.entity_id)
    )


def _files_here(table: Table) -> Iterator[str]:
    """Files that the path of a table names on this machine; what alternatives in braces match, Spark decides."""
    if table.path is not None and table.lake is None and "{" not in table.path:
        yield from (str(file) for place in named_here(table.path) for file in files_of(place))


def _names_of_file(file: str) -> Iterator[str]:
    """Name of a file's place, and what it is by itself; one inode has many names, and one name many inodes in time."""
    yield _name(file)
    itself = None if "://" in file else identity_of(Path(file))
    if itself is not None:
        yield itself


def _name(path: str) -> str:
    """Return one name for all spellings of a place."""
    parsed = urlparse(path)
    if parsed.scheme in ("", "file"):
        # Links are followed: the table is what lies where they point to.
        return _undated(str(resolved(unquote(parsed.path) if parsed.scheme else path)))
    scheme = _ONE_SCHEME.get(parsed.scheme, parsed.scheme)
    # As Hadoop takes a path: slashes count once, and none at the end. Hosts and buckets have no case.
    place = posixpath.normpath("/" + path.partition(":")[2].removeprefix("//").removeprefix(parsed.netloc).lstrip("/"))
    return _undated(f"{scheme}://{parsed.netloc.lower()}{place}")


def _undated(name: str) -> str:
    for form in (_HIVE_DAY, _DAY):
        name = form.sub(_day_of, name)
    return name


def _day_of(found: re.Match[str]) -> str:
    try:
        dt.date(*(int(found[part]) for part in ("year", "month", "day")))
    except ValueError:
        return found[0]
    return _DATE


def _unit(entity_id: str | None) -> str:
    if entity_id is None:
        return "row"
    if entity_id.isprintable() and len(entity_id) <= LONGEST_NAME // 2:
        return f"person {entity_id}"
    return f"person {_digest(entity_id)}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]
