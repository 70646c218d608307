"""Where a place is: on a file system or in an object store, whatever the spelling of its URI."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote, urlparse

from privrisk_spark.errors import ConfigError, Fault

__all__ = ["AbsolutePath", "Location", "is_remote", "locate"]

Kind = Literal["file", "hdfs", "s3", "az", "gs"]

_KINDS: Final[dict[str, Kind]] = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "az": "az",
    "azure": "az",
    "abfs": "az",
    "abfss": "az",
    "wasb": "az",
    "wasbs": "az",
    "gs": "gs",
    "gcs": "gs",
    "hdfs": "hdfs",
}
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_ROOTED: Final = re.compile(r"/|file:|[A-Za-z][A-Za-z0-9+.-]*:/")
_CONTAINER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}", re.ASCII)
_NAME_NODE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(:[0-9]{1,5})?", re.ASCII)
_KNOWN: Final = "a path, file://, hdfs://, s3://, az://, abfss:// or gs://"


class AbsolutePath(str):
    """A path or URI that does not depend on the directory of this process or of Java's any more.

    Attributes
    ----------
    written : str
        The text it was made of, for what must be equal on every machine, such as digests and manifests.
    """

    written: str

    @classmethod
    def of(cls, text: str) -> AbsolutePath:
        """Return a text as a path from the present directory. Links and ``..`` stay: they are followed on use."""
        if isinstance(text, cls):
            return text
        found = cls(text if _ROOTED.match(text) else os.path.join(os.getcwd(), text))
        found.written = text
        return found


@dataclass(frozen=True)
class Location:
    """A place, by parts that are equal for all its spellings.

    Attributes
    ----------
    kind : {"file", "hdfs", "s3", "az", "gs"}
    container : str
        Bucket or container, or name node or name service of HDFS; empty for the file system of this machine.
    path : str
        Absolute with links followed on a file system, else the key's beginning without slashes at its ends.
    account : str
        Storage account of an Azure URI that names one.
    key : str
        Of the policy or the command that names the place, for messages.
    """

    kind: Kind
    container: str
    path: str
    account: str = ""
    key: str = field(default="", compare=False, repr=False)

    @property
    def remote(self) -> bool:
        """Whether it is in a store that other machines reach: HDFS, or an object store."""
        return self.kind != "file"

    def __str__(self) -> str:
        """Return the usual spelling, without credentials."""
        if not self.remote:
            return self.path
        if self.account:
            return f"abfss://{self.container}@{self.account}/{self.path}".rstrip("/")
        return f"{self.kind}://{self.container}/{self.path}".rstrip("/")

    def below(self, name: str) -> Location:
        """Return the place of a name below this one."""
        path = f"{self.path.rstrip('/')}/{name}" if self.path else name
        return replace(self, path=path)

    @property
    def above(self) -> tuple[Location, str]:
        """The place that it lies in, and its name there."""
        path, _, name = self.path.rpartition("/")
        return replace(self, path=path), name

    def overlaps(self, other: Location) -> bool:
        """Tell whether two places are one, or one lies in the other."""
        one, another = self._parts(), other._parts()
        shorter = min(len(one), len(another))
        return one[:shorter] == another[:shorter]

    def lies_in(self, other: Location) -> bool:
        """Tell whether it is another place or lies in it."""
        return self.overlaps(other) and len(self._parts()) >= len(other._parts())

    def _parts(self) -> tuple[str, ...]:
        # An Azure account is said in some spellings only; a name for two containers is then taken for one place.
        container = self.container.casefold() if self.kind == "hdfs" else self.container
        return (self.kind, container, *(part for part in self.path.split("/") if part))


def is_remote(text: str) -> bool:
    """Return True if a text of a policy names a store that other machines reach."""
    found = _SCHEME.match(text)
    return found is not None and found[1].lower() in _KINDS


def locate(text: str, *, key: str) -> Location:
    """Return the place that a text of a policy or command names.

    Parameters
    ----------
    text : str
        A path, or a URI.
    key : str
        Of the policy or the command, for messages.

    Raises
    ------
    ConfigError
        If it is of another file system, holds credentials, or is no clean path.
    """
    found = _SCHEME.match(text)
    if found is None or found[1].lower() == "file":
        path = unquote(urlparse(text).path) if found or text.startswith("file:/") else text
        return Location("file", "", str(Path(path).resolve()), key=key)
    scheme = found[1].lower()
    if scheme not in _KINDS:
        raise ConfigError([Fault(key, f"is on a file system ('{scheme}') that is not available; allowed: {_KNOWN}")])
    authority, _, path = text[found.end() :].partition("/")
    user, at, host = authority.rpartition("@")
    account = ""
    if _KINDS[scheme] == "az" and at:
        authority, account = user, host
    elif at:
        raise ConfigError([Fault(key, "must hold no credentials; set them in the environment of driver and tasks")])
    if _KINDS[scheme] == "hdfs":
        if not _NAME_NODE.fullmatch(authority):
            raise ConfigError([Fault(key, f"must name the name node or name service after '{scheme}://'")])
    elif not _CONTAINER.fullmatch(authority):
        raise ConfigError([Fault(key, f"must name a bucket or container after '{scheme}://'")])
    if any(mark in path for mark in "?#"):
        raise ConfigError([Fault(key, "must be a plain path: no '?' and no '#', which often carry credentials")])
    parts = path.rstrip("/").split("/") if path.strip("/") else []
    if any(part in ("", ".", "..") for part in parts):
        raise ConfigError([Fault(key, "must be a plain path: no empty parts, '.' or '..'")])
    return Location(_KINDS[scheme], authority, "/".join(parts), account, key)
