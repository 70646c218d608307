"""Release keys: where the 256 bits behind every random draw of a release come from, live, and end.

All randomness of a release is a keyed function of the record (same key and snapshot: same bytes), so
whoever has the key can redo the sampling and is left with the crowd threshold alone. Hence a key comes from
the operating system or a secret store, stays in the vault until the release is committed, and is then
destroyed. Neither a key nor the text it was read from, nor the reference that led to it, ever appears in an
error.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from privrisk_spark.errors import BudgetError, EngineError, InputError
from privrisk_spark.storage.documents import read_text
from privrisk_spark.storage.key_files import KeyFiles, key_files
from privrisk_spark.storage.store import RemoteStore

__all__ = ["KEY_BYTES", "VaultKey", "destroy_key", "history_key", "key_commitment", "pin_snapshot", "release_key"]

KEY_BYTES: Final = 32

_HEXADECIMAL: Final = re.compile(rf"[0-9a-fA-F]{{{2 * KEY_BYTES}}}", re.ASCII)
# No separators and no leading dot: a run id names a file of the key directory and nothing else. Colon and
# plus occur in the run ids of schedulers.
_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+@=-]{0,199}", re.ASCII)
_SUFFIX: Final = ".key"
_HISTORY_KEY: Final = f"~history{_SUFFIX}"
_FORMS: Final = (
    "guarantee.key must be env:NAME or file:PATH, naming an environment variable or a file that holds "
    f"{2 * KEY_BYTES} hexadecimal digits, or be left out (a key is then drawn for the run and kept in the "
    "vault)."
)


_COMMITMENT: Final = b"privrisk: commitment of a run to its release key, 1"


@dataclass(frozen=True)
class VaultKey:
    """The key of a run: where it is kept, or by which reference it is given.

    Attributes
    ----------
    vault : Path or RemoteStore
        The vault's directory, or the store it is in.
    reference, lineage : str or None
        As `release_key` has them.
    """

    vault: Path | RemoteStore
    run_id: str
    reference: str | None = None
    lineage: str | None = None

    def check_reference(self) -> None:
        """Raise InputError if a reference does not lead to a key: a run must fail before its budget is reserved."""
        if self.reference is not None:
            _referenced(self.reference)

    def obtain(self, *, draw: bool) -> bytes:
        """Return the key; see `release_key`."""
        return release_key(self.vault, self.run_id, reference=self.reference, draw=draw, lineage=self.lineage)

    def destroy(self) -> None:
        """Destroy it, unless it was given by reference; see `destroy_key`."""
        destroy_key(self.vault, self.run_id, lineage=self.lineage)


def key_commitment(key: bytes, *, lineage: str, run_id: str) -> str:
    """Return what a ledger may know of a key: that another attempt has the same one, and nothing else.

    HMAC-SHA256 under the key, of a text no other use of the key has (draws use derived keys, whose messages begin with
    a count), with the lineage and the run, hex. It binds, as SHA-256 has no known collisions; it hides, as the key has
    256 random bits.

    Parameters
    ----------
    key : bytes of length 32
    lineage, run_id : str
        Equal keys of two runs do not show.
    """
    message = [_COMMITMENT]
    for part in (lineage, run_id):
        encoded = part.encode("utf-8")
        message += [len(encoded).to_bytes(8, "little"), encoded]
    return hmac.new(key, b"".join(message), hashlib.sha256).hexdigest()


def release_key(
    vault: str | Path | RemoteStore,
    run_id: str,
    *,
    reference: str | None = None,
    draw: bool = True,
    lineage: str | None = None,
) -> bytes:
    """Return the key of a run, drawing it if the run has none yet.

    Parameters
    ----------
    vault : str, pathlib.Path or RemoteStore
        The vault's directory, or the store it is in.
    run_id : str
        The run: letters, digits and ``. _ : + @ = -``, at most 200, beginning with a letter or digit.
    reference : str, optional
        ``env:NAME`` or ``file:PATH``, holding 64 hexadecimal digits (white space around them is ignored).
        By default the key is ``<vault>/keys/<run_id>~<digest of the lineage>.key``, read if it is there and drawn
        from the operating system if not.
    draw : bool, default True
        False refuses to draw: something was made with the run's key already, or may have been. A key that an earlier
        version drew, which knew files by the run id alone, is found then.
    lineage : str, optional
        Of the ledger, by the name all its spellings have: two lineages may have runs of one id in one vault. Without
        one the run is charged nowhere, and its file is named by the run id alone.

    Returns
    -------
    bytes of length 32

    Raises
    ------
    InputError
        If the reference has another form, what it names is missing or is not such a key, or the run id
        could leave the key directory.
    BudgetError
        If there is no key and none may be drawn.
    EngineError
        If the key directory cannot be read or written, or its key file is damaged.

    Notes
    -----
    The budget must be reserved before this is called (`privrisk_spark.ledger.ledger.Ledger.reserve`).

    A drawn key belongs to one run. A key given by reference is returned as it is: two releases drawn with
    one key share their draws, and the sum of their costs then says nothing about them, so the secret behind
    a reference must be new for each run.

    The key file appears whole or not at all, with mode 0600 in a directory of mode 0700, and is on disk
    before this returns: after a crash the same run finds the same key, and its second attempt is
    bit-identical to the first. If two processes draw at once, both get the key that was first. In an object store it is
    created if there is none, by whichever machine comes first; a bucket that keeps versions is refused.
    """
    if reference is not None:
        return _referenced(reference)
    files, name = key_files(vault), _key_name(run_id, lineage)
    with _failures(run_id):
        try:
            return _read_key(files, name, run_id)
        except FileNotFoundError:
            if not draw:
                with suppress(FileNotFoundError):
                    return _read_key(files, _key_name(run_id), run_id)
                raise BudgetError(
                    f"run id {run_id} was begun with a key that is not in output.vault: it is in another vault, or was "
                    "destroyed after publication. Its budget covers one draw. Use a new run id, or the vault it was "
                    "begun with."
                ) from None
            files.give(name, secrets.token_bytes(KEY_BYTES), secret=True)
            return _read_key(files, name, run_id)


def history_key(vault: Path | RemoteStore, *, draw: bool) -> bytes:
    """Return the key of a vault under which it keeps digests of record ids, in place of the ids.

    It stays as long as the vault: later releases find the records of earlier ones by it. Without it nobody can tell
    whose the digests are.

    Parameters
    ----------
    vault : Path or RemoteStore
        The vault's directory, or the store it is in.
    draw : bool
        Whether to draw the key if there is none.

    Raises
    ------
    FileNotFoundError
        If there is none, and none is drawn.
    EngineError
        If it is damaged.
    """
    files = key_files(vault)
    if draw and not files.there(_HISTORY_KEY):
        files.give(_HISTORY_KEY, secrets.token_bytes(KEY_BYTES), secret=False)
    key = files.read(_HISTORY_KEY)
    if len(key) != KEY_BYTES:
        raise EngineError("the key of output.vault for its history is damaged; restore it from a copy.")
    return key


def pin_snapshot(vault: str | Path | RemoteStore, run_id: str, snapshot: str) -> None:
    """Bind a run to the content it first read; a run on other content is another release.

    Parameters
    ----------
    vault : str, pathlib.Path or RemoteStore
        The vault's directory, or the store it is in.
    run_id : str
        The run.
    snapshot : str
        Identity of the content.

    Raises
    ------
    BudgetError
        If the run was bound to other content: its budget paid for one draw on that.
    EngineError
        If the key directory cannot be read or written; the run is then bound to nothing.

    Notes
    -----
    Like a key, the pin appears whole or not at all. An empty one, which earlier versions left on a full disk, pins
    nothing and is replaced.
    """
    files, name = key_files(vault), _pin_name(_key_name(run_id))
    with _failures(run_id):
        pinned = _pinned(files, name)
        if pinned is None:
            files.give(name, snapshot.encode(), secret=False)
            pinned = _pinned(files, name)
    if pinned != snapshot:
        raise BudgetError(
            f"The table changed since the run id '{run_id}' was reserved; its budget covers one release of what it was "
            "then. Use a new run id."
        )


def destroy_key(vault: str | Path | RemoteStore, run_id: str, *, lineage: str | None = None) -> bool:
    """Overwrite and remove the drawn key of a run, once its release is committed.

    Parameters
    ----------
    vault : str, pathlib.Path or RemoteStore
        The vault's directory, or the store it is in.
    run_id : str
        The run.
    lineage : str, optional
        As `release_key` has it. A run of it that has no file of its own has that of an earlier version, if any.

    Returns
    -------
    bool
        True if there was a key; False if there was none, which is no error. A key given by reference is not
        touched.

    Raises
    ------
    InputError
        If the run id could leave the key directory.
    EngineError
        If the key cannot be removed.

    Notes
    -----
    Overwriting reaches the same blocks on simple disks only. On flash memory, copy-on-write or
    journalled file systems, in backups, and wherever an object store keeps its bytes, an old copy may survive: keep the
    vault on an encrypted volume, or in an encrypted bucket.
    """
    files, name = key_files(vault), _key_name(run_id, lineage)
    with _failures(run_id):
        if not files.there(name):
            name = _key_name(run_id)
        files.remove(_pin_name(name))
        return files.destroy(name, KEY_BYTES)


def _referenced(reference: str) -> bytes:
    # Messages repeat no part of the reference: a key pasted where its name belongs must not reach a log.
    kind, _, name = reference.partition(":")
    if kind == "env" and name:
        text = os.environ.get(name)
        if text is None:
            raise InputError("guarantee.key names an environment variable that is not set. " + _FORMS)
    elif kind == "file" and name:
        try:
            text = read_text(Path(name), encoding="ascii")
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "not text"
            # The cause holds the path, and may hold the text: it is not chained.
            raise InputError(f"guarantee.key names a file that cannot be read ({why}). " + _FORMS) from None
    else:
        raise InputError(_FORMS)
    if not _HEXADECIMAL.fullmatch(text.strip()):
        raise InputError(
            f"guarantee.key names a secret that is not {2 * KEY_BYTES} hexadecimal digits; draw one with "
            f"'openssl rand -hex {KEY_BYTES}'."
        )
    return bytes.fromhex(text.strip())


def _pin_name(key: str) -> str:
    return f"{key.removesuffix(_SUFFIX)}.snapshot"


def _key_name(run_id: str, lineage: str | None = None) -> str:
    if not _RUN_ID.fullmatch(run_id):
        raise InputError(
            "the run id must be 1 to 200 letters, digits and . _ : + @ = -, beginning with a letter or digit."
        )
    # No run id has a tilde.
    of = "" if lineage is None else f"~{hashlib.sha256(lineage.encode()).hexdigest()[:16]}"
    return f"{run_id}{of}{_SUFFIX}"


def _read_key(files: KeyFiles, name: str, run_id: str) -> bytes:
    key = files.read(name)
    if len(key) != KEY_BYTES:
        raise EngineError(
            f"the key file of run {run_id} is damaged; void the run in the ledger and start one with a new run id."
        )
    return key


def _pinned(files: KeyFiles, name: str) -> str | None:
    try:
        text = files.read(name).decode()
    except FileNotFoundError:
        return None
    if not text:
        files.remove(name)
    return text or None


@contextmanager
def _failures(run_id: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EngineError(
            f"the key of run {run_id} could not be read or written ({error.strerror}); nothing may be drawn."
        ) from error
