"""Small files of this machine: read whole, replaced atomically and durably, or given their name once they are whole."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privrisk_spark.storage.permissions import PRIVATE_FILE, PUBLIC_FILE

__all__ = [
    "FileState", "linked_when_whole", "read", "read_text", "size_and_digest", "state_of", "sync", "write_json",
    "write_plainly",
    "write_text",
]  # fmt: skip


def sync(path: Path) -> None:
    """Make what is written of a file, or the names in a directory, survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True)
class FileState:
    """What a file system says of a file, links followed.

    Attributes
    ----------
    size : int
        Bytes.
    modified_ns : int
        When it was last written, ns since 1970.
    regular : bool
        Whether it is a file that can be read twice: no directory, pipe, socket or device.
    """

    size: int
    modified_ns: int
    regular: bool

    @property
    def modified(self) -> float:
        """When it was last written, seconds since 1970."""
        return self.modified_ns / 1e9


def state_of(path: Path) -> FileState | None:
    """Return what is known of a file; None if there is none. Raises OSError if nobody can tell."""
    try:
        known = path.stat()
    except FileNotFoundError:
        return None
    return FileState(known.st_size, known.st_mtime_ns, stat.S_ISREG(known.st_mode))


def read(path: Path) -> bytes | None:
    """Return what a file holds; None if there is none. Raises OSError if it cannot be read."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_text(path: Path, *, encoding: str = "utf-8") -> str:
    """Return the text of a file that is there.

    Raises
    ------
    OSError
        If there is none, or it cannot be read.
    UnicodeDecodeError
        If it is of another encoding.
    """
    return path.read_text(encoding=encoding)


def size_and_digest(path: Path) -> tuple[int, str]:
    """Return the bytes of a file, and its SHA-256 in hex."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return stream.tell(), digest


def write_text(path: Path, text: str, *, published: float | None = None) -> None:
    """Replace a file atomically and durably, for its owner alone.

    Parameters
    ----------
    published : float, optional
        The time it is to bear, in seconds since 1970, if everyone may read it.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as stream:
        os.fchmod(stream.fileno(), PRIVATE_FILE if published is None else PUBLIC_FILE)
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    if published is not None:
        os.utime(temporary, (published, published))
    temporary.replace(path)


def write_json(path: Path, document: Any, *, published: float | None = None) -> None:
    """Replace a JSON file as :func:`write_text` does; the document must be JSON-safe, without NaN and infinities."""
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n", published=published)


def write_plainly(path: Path, content: str | bytes) -> None:
    """Write a file as any program does: in place of what is there, and for whom the umask says."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def linked_when_whole(path: Path) -> Iterator[Path]:
    """Give an empty file of another name, for the owner alone, and link it under its own once it is filled.

    So what bears the name is whole and stays: if there is a file of the name already, nothing happens.

    Parameters
    ----------
    path : Path
        In a directory that is there.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    # Never with wider permissions, whoever opens it.
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, PRIVATE_FILE))
    try:
        yield draft
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
