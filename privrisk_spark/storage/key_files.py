"""Files of keys in a vault: each whole or not there, and its first content for ever; on a disk overwritten before."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.storage.directories import make_missing
from privrisk_spark.storage.store import RemoteStore

__all__ = ["KeyFiles", "key_files"]

_DIRECTORY: Final = "keys"


class KeyFiles(Protocol):
    """Small files by names without slashes; each call may raise OSError or StorageError."""

    def read(self, name: str) -> bytes:
        """Return the content; FileNotFoundError if there is none."""

    def there(self, name: str) -> bool:
        """Tell whether there is one of this name."""

    def give(self, name: str, content: bytes, *, secret: bool) -> None:
        """Give a name content that is whole and stays; if it has some already, nothing happens.

        Parameters
        ----------
        secret : bool
            Whether it is to be destroyed: ConfigError where that cannot be.
        """

    def remove(self, name: str) -> None:
        """Remove a file; one that is not there is no error."""

    def destroy(self, name: str, at_least: int) -> bool:
        """Remove a file, on a disk overwritten with at least so many bytes before; False if there is none."""


def key_files(vault: str | Path | RemoteStore) -> KeyFiles:
    """Return the key files of a vault; nothing is read or made yet.

    Parameters
    ----------
    vault : str, pathlib.Path or RemoteStore
        A directory, or the store the vault is in.
    """
    return _InDirectory(Path(vault) / _DIRECTORY) if isinstance(vault, str | Path) else _InStore(vault)


@dataclass(frozen=True)
class _InStore:
    """Created by one, read by all. What a store did with the bytes of an object that is removed, it does not say."""

    store: RemoteStore

    def read(self, name: str) -> bytes:
        return self.store.read(f"{_DIRECTORY}/{name}").content

    def there(self, name: str) -> bool:
        return self.store.find(f"{_DIRECTORY}/{name}") is not None

    def give(self, name: str, content: bytes, *, secret: bool) -> None:
        if secret and self.store.keeps_versions():
            rule = (
                "is in a bucket that keeps earlier versions, so that a drawn key could not be destroyed; use a bucket "
                "without versions, or name a key of a secret store in guarantee.key"
            )
            raise ConfigError([Fault("output.vault", rule)])
        self.store.create(f"{_DIRECTORY}/{name}", content)

    def remove(self, name: str) -> None:
        self.store.remove(f"{_DIRECTORY}/{name}")

    def destroy(self, name: str, at_least: int) -> bool:  # noqa: ARG002 - of disks
        # Other bytes under the name would be a key to who reads it meanwhile, and take the place of nothing.
        there = self.there(name)
        self.remove(name)
        return there


@dataclass(frozen=True)
class _InDirectory:
    """Mode 0600 in a directory of mode 0700; links are not followed."""

    directory: Path

    def read(self, name: str) -> bytes:
        handle = os.open(self.directory / name, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb") as file:
            return file.read()

    def there(self, name: str) -> bool:
        return os.path.lexists(self.directory / name)

    def give(self, name: str, content: bytes, *, secret: bool) -> None:  # noqa: ARG002 - a disk keeps no versions
        """Give content its name once it is on disk, so that no reader ever sees half of it."""
        make_missing(self.directory)
        draft = self.directory / f".{secrets.token_hex(8)}.new"
        try:
            handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
            try:
                _write_all(handle, content)
                os.fsync(handle)
            finally:
                os.close(handle)
            with suppress(FileExistsError):
                os.link(draft, self.directory / name)
        finally:
            draft.unlink(missing_ok=True)
        self._sync()

    def remove(self, name: str) -> None:
        (self.directory / name).unlink(missing_ok=True)

    def destroy(self, name: str, at_least: int) -> bool:
        try:
            handle = os.open(self.directory / name, os.O_WRONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            _write_all(handle, secrets.token_bytes(max(os.fstat(handle).st_size, at_least)))
            os.fsync(handle)
        finally:
            os.close(handle)
        self.remove(name)
        self._sync()
        return True

    def _sync(self) -> None:
        handle = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _write_all(handle: int, content: bytes) -> None:
    while content:
        content = content[os.write(handle, content) :]
