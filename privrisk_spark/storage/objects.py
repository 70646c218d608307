"""Small files and large ones in an object store: S3 and compatible, Azure Data Lake, Google Cloud Storage."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal

from privrisk_spark.errors import ConfigError, Fault, InputError
from privrisk_spark.extras import is_installed, require
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.store import RETRY_SECONDS, Entry, StorageError, Stored, open_ranges

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.auth.boto3 import Boto3CredentialProvider
    from obstore.store import ObjectStore as Opened

__all__ = ["ObjectStore"]

_DIGEST: Final = "sha256"
_CHUNK: Final = 8 * 2**20

_BUCKET: Final = "there is no such bucket"
_NO_BUCKET: Final = "'{}': there is no such bucket or container; make it, or mend the name"
_DENIED: Final = "access is denied"
_NO_CREDENTIALS: Final = "there are no credentials"
_REPLACED: Final = "'{}' was replaced or removed while it was read; run again."

_PAUSES: Final = (0.1, 10.0)
"""Seconds of the first pause before another try, which doubles, and of the longest."""


class _LostError(StorageError):
    """No answer came, so that nobody knows whether the request was carried out."""


class ObjectStore:
    """Objects below a prefix.

    Parameters
    ----------
    location : Location
        In an object store.
    retry_seconds : float
        For how long a request that failed is tried again.

    Raises
    ------
    InputError
        If the package ``obstore`` is not installed, or the store cannot be set up as the environment says.

    Notes
    -----
    How the store is reached and who asks is said by the environment of each process: ``AWS_ACCESS_KEY_ID``,
    ``AWS_SECRET_ACCESS_KEY``, ``AWS_REGION``, ``AWS_ENDPOINT_URL``, ``AWS_VIRTUAL_HOSTED_STYLE_REQUEST``,
    ``AWS_SKIP_SIGNATURE``, ``AWS_ALLOW_HTTP``, likewise ``AZURE_*`` and ``GOOGLE_*``, or by the machine's role. Of S3
    also by AWS's own chain: ``AWS_PROFILE``, a web identity, and ``PRIVRISK_AWS_PROFILES``, the profile of each bucket
    as ``bucket=profile`` with commas between them.
    Requests that meet throttling, a server's fault or a lost connection are tried again with growing pauses. A write
    whose answer was lost may have happened: :meth:`create`, :meth:`replace` and :meth:`remove` look at what is there
    before they try again.
    """

    def __init__(self, location: Location, *, retry_seconds: float = RETRY_SECONDS) -> None:
        self._location = location
        self._retry_seconds = retry_seconds
        self._store = _open(location, retry_seconds)
        self._told_by: Literal["e_tag", "version"] = "version" if location.kind == "gs" else "e_tag"

    @property
    def location(self) -> Location:
        """The place."""
        return self._location

    def read(self, name: str) -> Stored:
        """Read an object; its version is its ETag, in Google's stores its generation."""
        import obstore

        with self._faults(name):
            found = obstore.get(self._store, name)
            content = bytes(found.bytes())
        return Stored(content, str(found.meta[self._told_by]))

    def create(self, name: str, content: bytes) -> bool:
        """Write an object that must not be there, by If-None-Match or its like."""
        return self._put(name, content, "create")

    def replace(self, name: str, content: bytes, version: str) -> bool:
        """Write an object if it still has a version, by If-Match or its like."""
        return self._put(name, content, {self._told_by: version})

    def write(self, name: str, content: bytes) -> None:
        """Write an object, whatever is there."""
        import obstore

        with self._faults(name, "write"):
            obstore.put(self._store, name, content)

    def upload(self, name: str, source: Path) -> None:
        """Write an object with the content of a local file; its SHA-256 is kept with it."""
        import obstore

        with source.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        with self._faults(name, "write"):
            obstore.put(self._store, name, source, attributes={_DIGEST: digest}, chunk_size=_CHUNK)

    def download(self, name: str, target: Path) -> None:
        """Write an object to a local file that is not there, and hold it against the SHA-256 that is kept with it."""
        import obstore

        digest = hashlib.sha256()
        with self._faults(name):
            found = obstore.get(self._store, name)
            with target.open("xb") as stream:
                for piece in found.stream(min_chunk_size=_CHUNK):
                    digest.update(piece)
                    stream.write(piece)
        expected = found.attributes.get(_DIGEST)
        if target.stat().st_size != found.meta["size"] or expected not in (None, digest.hexdigest()):
            target.unlink()
            raise StorageError(f"'{self._location.below(name)}' arrived with other bytes than were stored.")

    def open(self, name: str, version: str = "") -> IO[bytes]:
        """Open an object for reading at any place of it.

        Parameters
        ----------
        version : str
            As a listing told it; of another one nothing is read. By default the one that is there now, to the end.

        Raises
        ------
        StorageError
            Now or when it is read: if the object was replaced.
        """
        import obstore

        with self._faults(name):
            found = obstore.head(self._store, name)
        if version not in ("", self._entry(name, found).version):
            raise StorageError(_REPLACED.format(self._location.below(name)))
        only: dict[str, Any] = {"if_match": found["e_tag"]} if self._told_by == "e_tag" and found["e_tag"] else {}

        def fetch(begin: int, end: int) -> bytes:
            options: Any = {"range": (begin, end), **only}
            try:
                with self._faults(name):
                    content = bytes(obstore.get(self._store, name, options=options).bytes())
            except FileNotFoundError:
                raise StorageError(_REPLACED.format(self._location.below(name))) from None
            if len(content) != end - begin:
                raise StorageError(f"'{self._location.below(name)}' arrived with fewer bytes than were asked for.")
            return content

        return open_ranges(fetch, found["size"])

    def find(self, name: str) -> Entry | None:
        """Return what a listing says of an object; None if there is none."""
        import obstore

        try:
            with self._faults(name):
                found = obstore.head(self._store, name)
        except FileNotFoundError:
            return None
        return self._entry(name, found)

    def entries(self, below: str = "") -> Iterator[Entry]:
        """List the objects below a name, or all; ascending by name."""
        import obstore

        found: list[Entry] = []
        with self._faults(below, "list"):
            for piece in obstore.list(self._store, prefix=below.rstrip("/") or None, chunk_size=1000):
                # Consoles make an object without a name for a place that is to look like a directory.
                found += [self._entry(one["path"], one) for one in piece if one["path"]]
        yield from sorted(found, key=lambda entry: entry.name)

    def names(self) -> Iterator[str]:
        """Yield the names of all objects as the store lists them, which ends early if the caller does."""
        import obstore

        with self._faults("", "list"):
            for piece in obstore.list(self._store, chunk_size=50):
                yield from (one["path"] for one in piece if one["path"])

    def _entry(self, name: str, meta: ObjectMeta) -> Entry:
        # Azure puts it into quotes where it tells of one object, and lists it without.
        version = str(meta["e_tag"] or "").strip('"') if self._told_by == "e_tag" else ""
        return Entry(name, meta["size"], meta["last_modified"].timestamp(), version)

    def remove(self, *names: str) -> None:
        """Remove objects, many with one request; one that is not there is no error."""
        left = list(names)

        def look() -> bool | None:
            there = {entry.name for entry in self.entries(os.path.commonpath(left).rpartition("/")[0])}
            left[:] = [name for name in left if name in there]
            return None if left else True

        def look_at_one() -> bool | None:
            return None if self.find(left[0]) else True

        if left:
            self._tried(lambda: self._remove(left), look if len(left) > 1 else look_at_one)

    def _remove(self, names: list[str]) -> bool:
        import obstore

        try:
            with self._faults(names[0] if len(names) == 1 else "", "remove"):
                obstore.delete(self._store, names)
        except FileNotFoundError:
            # Stores that take one name a request may end at the first that is not there.
            for name in names if len(names) > 1 else ():
                with suppress(FileNotFoundError), self._faults(name, "remove"):
                    obstore.delete(self._store, [name])
        return True

    def make(self, *, public: bool) -> None:
        """Do nothing: a store has no directories, and the rules of the bucket grant access."""

    def clear(self) -> None:
        """Remove all objects."""
        self.remove(*(entry.name for entry in self.entries()))

    def keeps_versions(self) -> bool:
        """Tell whether the store says that it keeps what is replaced or removed; of Google's it cannot be told."""
        import obstore

        name = f".versions-{os.urandom(8).hex()}"
        with self._faults(name, "write"):
            put = obstore.put(self._store, name, b"")
        self.remove(name)
        return self._location.kind != "gs" and put["version"] not in (None, "null")

    def _put(self, name: str, content: bytes, mode: Any) -> bool:
        import obstore
        from obstore import exceptions

        def put() -> bool:
            try:
                with self._faults(name, "write", conditional=mode != "create"):
                    try:
                        obstore.put(self._store, name, content, mode=mode, use_multipart=False)
                    except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                        return self._content(name) == content
            except FileNotFoundError:
                return False  # what S3 says of a version of what is gone
            return True

        # Another try keeps its condition, so that a first one which arrives late changes nothing.
        return self._tried(put, lambda: True if self._content(name) == content else None)

    def _content(self, name: str) -> bytes | None:
        try:
            return self.read(name).content
        except FileNotFoundError:
            return None

    def _tried(self, act: Callable[[], bool], look: Callable[[], bool | None]) -> bool:
        """Carry out a request that the library does not repeat, as it might have happened.

        Parameters
        ----------
        look : callable
            Returns the result of a request whose answer was lost, by what is there; None if it is to be tried again.
        """
        last, (pause, longest) = time.monotonic() + self._retry_seconds, _PAUSES
        while True:
            try:
                return act()
            except StorageError as error:
                with suppress(_LostError):
                    found = look()
                    if found is not None:
                        return found
                if not isinstance(error, _LostError) or time.monotonic() + pause > last:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, longest)

    @contextmanager
    def _faults(self, name: str, doing: str = "read", *, conditional: bool = False) -> Iterator[None]:
        from obstore import exceptions

        place = self._location.below(name) if name else self._location
        try:
            yield
        # What the library says may quote a URL with a token in it: nothing of it is repeated.
        except exceptions.PreconditionError:
            raise StorageError(_REPLACED.format(place)) from None
        except exceptions.InvalidPathError:
            raise InputError(
                f"'{place}' holds an object whose name has an empty part, '.' or '..', as in 'a//b', which is no path; "
                "rename or remove it."
            ) from None
        except FileNotFoundError:
            if doing == "write" and not conditional:
                raise self._refused(_NO_BUCKET.format(place)) from None
            raise FileNotFoundError(str(place)) from None
        except (exceptions.BaseError, OSError, ValueError) as error:
            denied = isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError)
            reason = _DENIED if denied and _NO_CREDENTIALS not in _reason(error) else _reason(error)
            if reason == _BUCKET:
                raise self._refused(_NO_BUCKET.format(place)) from None
            if reason in (_DENIED, _NO_CREDENTIALS):
                raise self._refused(
                    f"'{place}': {reason} to {doing} in bucket or container '{place.container}'. Fix: check the "
                    "credentials in the environment of driver and tasks, and what they allow"
                ) from None
            kind = _LostError if reason in _LOST else StorageError
            raise kind(f"'{place}' cannot be read or written ({reason}).") from None

    def _refused(self, rule: str) -> InputError:
        key = self._location.key
        return ConfigError([Fault(key, rule)]) if key else InputError(f"{rule}.")


_ALLOW_HTTP: Final = {"s3": "AWS_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP"}

_REASONS: Final = (
    ("NoSuchBucket", _BUCKET),
    ("SlowDown", "the store throttles requests"),
    ("status code: 503", "the store throttles requests or is not available"),
    ("status code: 5", "the store's server failed"),
    # Addresses by which a machine gets credentials of its role: asked only if the environment has none.
    *((address, _NO_CREDENTIALS) for address in ("169.254.169.254", "169.254.170.", "metadata.google.internal")),
    ("ExpiredToken", _DENIED),
    ("InvalidToken", _DENIED),
    ("status code: 401", _DENIED),
    ("status code: 403", _DENIED),
    ("timed out", "no answer in time"),
    ("operation timed out", "no answer in time"),
    ("builder error", "an address without TLS needs AWS_ALLOW_HTTP=true, or AZURE_ or GOOGLE_ALLOW_HTTP"),
    ("error sending request", "the store cannot be reached"),
    ("connection", "the connection was lost"),
)


_NO_ROLE: Final = "no answer in time from the address that gives this machine its credentials"
_LOST: Final = (_NO_ROLE, "no answer in time", "the store cannot be reached", "the connection was lost")


def _reason(error: BaseException) -> str:
    said = str(error)
    found = next((reason for mark, reason in _REASONS if mark in said), "the store answered with a fault")
    return _NO_ROLE if found == _NO_CREDENTIALS and "timed out" in said else found


_PROFILES: Final = "PRIVRISK_AWS_PROFILES"


def _aws_credentials(location: Location) -> Boto3CredentialProvider | None:
    """Return AWS's own chain of credentials if a bucket needs it; None if the environment has keys, or needs none."""
    environment = os.environ
    pairs = [pair.partition("=") for pair in environment.get(_PROFILES, "").split(",") if pair.strip()]
    if not all(equals for _, equals, _ in pairs):
        raise InputError(f"'{location}': {_PROFILES} must be bucket=profile with commas between them. Fix: set it so.")
    of_buckets = {bucket.strip(): profile.strip() for bucket, _, profile in pairs}
    profile = of_buckets.get(location.container)
    if profile is None and {"AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE"} & environment.keys():
        return None
    profile = profile or environment.get("AWS_PROFILE")
    files = (environment.get(f"AWS_{name}_FILE", f"~/.aws/{file}") for name, file in _AWS_FILES)
    in_files = any(Path(file).expanduser().exists() for file in files)
    asked = profile is not None or "AWS_WEB_IDENTITY_TOKEN_FILE" in environment
    if not asked and not (in_files and is_installed("boto3")):
        return None  # the role of the machine, which the store's library finds
    require("boto3", f"'{location}' with credentials of a profile or of a web identity")
    from boto3.session import Session
    from botocore.exceptions import BotoCoreError
    from obstore.auth.boto3 import Boto3CredentialProvider

    try:
        return Boto3CredentialProvider(Session(profile_name=profile))
    except (BotoCoreError, ValueError):
        if not asked:
            return None
        named = f"the profile '{profile}'" if profile else "the environment"
        raise InputError(f"'{location}': {named} has no credentials. Fix: set AWS_PROFILE or {_PROFILES}.") from None


_AWS_FILES: Final = (("SHARED_CREDENTIALS", "credentials"), ("CONFIG", "config"))


def _open(location: Location, retry_seconds: float) -> Opened:
    require("obstore", f"'{location}'")
    from obstore.exceptions import BaseError
    from obstore.store import AzureStore, GCSStore, S3Store

    common: dict[str, Any] = {
        "prefix": location.path or None,
        "client_options": {
            "timeout": timedelta(minutes=5),
            "connect_timeout": timedelta(seconds=10),
            "allow_http": os.environ.get(_ALLOW_HTTP[location.kind], "").lower() in ("true", "1"),
        },
        "retry_config": {"retry_timeout": timedelta(seconds=retry_seconds)},
    }
    if location.kind == "s3":
        common["credential_provider"] = _aws_credentials(location)
    try:
        if location.kind == "s3":
            return S3Store(location.container, **common)
        if location.kind == "az":
            account: Any = {"account_name": location.account.partition(".")[0]} if location.account else {}
            return AzureStore(location.container, config=account, **common)
        return GCSStore(location.container, **common)
    except (BaseError, ValueError):
        raise InputError(
            f"'{location}': the store cannot be set up; check the settings and credentials in the environment."
        ) from None
