"""Which table a lineage is of, and what it protects: as far as a policy tells, and nothing the table holds."""

from __future__ import annotations

import datetime as dt
import hashlib
import posixpath
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlparse

from privrisk_spark.ledger.request import LONGEST_NAME
from privrisk_spark.policy.dictionaries import GIVEN, Table
from privrisk_spark.policy.policy import Policy
from privrisk_spark.storage.directories import resolved

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
    table : str or None
        Digest of where it is; None for a frame, of which nobody knows that.
    formerly : tuple of str
        Digests by which earlier versions of the program, which knew fewer names of one place, may have called it.
    unit : str
        What a private release of it protects.
    """

    table: str | None
    formerly: tuple[str, ...]
    unit: str

    def arguments(self) -> dict[str, Any]:
        """Return what the ledger is told of the table."""
        return {"table": self.table, "formerly": self.formerly}


def table_identity(policy: Policy, date: dt.date) -> TableIdentity:
    """Return the identity of a policy's table.

    A table that is written anew to a place of each day is one table: any date in its name counts as every other one.

    Parameters
    ----------
    policy : Policy
    date : date
        Business date.
    """
    table = policy.table
    earlier = _digest(_former_name(table, policy.run.date or date))
    now = None if table.catalog == GIVEN else _digest(_name(table))
    return TableIdentity(now, () if earlier == now else (earlier,), _unit(table.entity_id))


def _name(table: Table) -> str:
    """Return one name for all spellings of a place."""
    if table.catalog is not None:
        # Spark resolves names without regard to case, unless spark.sql.caseSensitive is set; quotes are no part of one.
        return _undated(f"catalog {table.catalog.replace('`', '').lower()}")
    path = table.place or ""
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


def _former_name(table: Table, day: dt.date) -> str:
    """Return the name before all spellings of a place had one, and only the business date counted as any."""
    if table.catalog is not None:
        name = f"catalog {table.catalog}"
    else:
        name = table.place or ""
        parsed = urlparse(name)
        if parsed.scheme in ("", "file"):
            name = str(resolved(unquote(parsed.path) if parsed.scheme else name))
    for form in ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d"):
        name = name.replace(day.strftime(form), _DATE)
    return name


def _unit(entity_id: str | None) -> str:
    if entity_id is None:
        return "row"
    if entity_id.isprintable() and len(entity_id) <= LONGEST_NAME // 2:
        return f"person {entity_id}"
    return f"person {_digest(entity_id)}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]
