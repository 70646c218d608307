"""Keyed randomness: a pseudo-random function of a record or a cell, never of where or when it is evaluated.

An engine that recomputes, retries and re-partitions must not draw twice for one record. Every random number
of a release is therefore a function of (release key, label, stable identity) and of nothing else: equal
inputs give equal bits on any machine, in any batch, in any order.

Status: *proved*, under the assumptions that HMAC-SHA256 is a pseudo-random function (PRF) and AES-256 a
pseudo-random permutation, that the release key is 256 uniform bits nobody else holds, and that distinct
records and cells have distinct messages. Guarantees that use these bits are computational. The layout of
bytes is *tested* against FIPS 197 and against a literal cipher-block-chaining twin.

Construction. One AES key per (purpose, message length): ``K = derive_key(key, purpose, blocks)``. A message
of m blocks of 16 bytes maps to its CBC-MAC under K: ``c_0 = 0``, ``c_i = AES_K(c_{i-1} xor block_i)``,
result ``c_m``. CBC-MAC is a PRF on messages of one *fixed* length: with q messages of m blocks an
observer's advantage is at most ``2 m^2 q^2 / 2^128`` on top of the advantage against AES (Bellare, Kilian
and Rogaway 2000); for 10^9 messages of 4 blocks that is below 10^-18. It is not a PRF over mixed lengths:
for a block b with ``T = MAC(b)``, ``MAC(b || (b xor T)) = T``. Deriving K from m keeps every key to a
single length.

References
----------
M. Bellare, J. Kilian, P. Rogaway, "The Security of the Cipher Block Chaining Message Authentication Code",
JCSS 61(3), 2000. NIST FIPS 197 (AES). RFC 2104 (HMAC).
"""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import (
    BoolArray,
    ByteArray,
    FloatArray,
    HalfWordArray,
    IndexArray,
    IntArray,
    WordArray,
)

KEY_BYTES = 32
BLOCK_BYTES = 16
KEEP_BITS = 32

_BLOCK_WORDS = BLOCK_BYTES // 4
_LITTLE32 = np.dtype("<u4")
_LITTLE64 = np.dtype("<u8")


def derive_key(release_key: bytes, *context: str) -> bytes:
    """Derive an independent key for one purpose.

    HMAC-SHA256 of the release key over the number of context strings and each string's UTF-8 bytes preceded
    by their length, so that no two different contexts collide: ``("ab", "c")`` and ``("a", "bc")`` differ.

    Parameters
    ----------
    release_key : bytes
        32 secret bytes.
    *context : str
        What the key is for: run id, snapshot id, digest of the mechanism, label. At least one.

    Returns
    -------
    bytes
        32 bytes; for distinct contexts indistinguishable from independent uniform keys.

    Raises
    ------
    InputError
        If the key does not have 32 bytes or there is no context. The message never holds the key.
    """
    _check_key(release_key)
    if not context:
        raise InputError("A derived key needs at least one context string. Got none.")
    message = [len(context).to_bytes(8, "little")]
    for part in context:
        encoded = part.encode("utf-8")
        message += [len(encoded).to_bytes(8, "little"), encoded]
    return hmac.new(release_key, b"".join(message), hashlib.sha256).digest()


def prf(key: bytes, messages: HalfWordArray) -> WordArray:
    """Map each message to 128 pseudo-random bits.

    Parameters
    ----------
    key : bytes
        32 secret bytes, one per label (see :func:`derive_key`).
    messages : ndarray of uint32, shape (n, 4 m)
        One message per row, ``m >= 1`` blocks of four words. The length is bound into the key, so messages
        of different lengths never meet under one AES key.

    Returns
    -------
    ndarray of uint64, shape (n, 2)
        The two halves of the last CBC-MAC block, each read little-endian. Row ``i`` depends on
        ``messages[i]`` only.

    Raises
    ------
    InputError
        If the key does not have 32 bytes, or the messages are not uint32 of shape (n, 4 m).
    """
    blocks = _check_messages(messages)
    cipher = _cipher(derive_key(key, "privrisk prf", str(blocks)))
    return _words(_chain(cipher, messages))


def uniforms(words: WordArray) -> FloatArray:
    """Map 64-bit words to uniform numbers strictly between 0 and 1.

    The top 52 bits x become ``(x + 1/2) 2^-52``. Both operations are exact in float64, so the 2^52 values
    are equally likely, symmetric about 1/2 and never 0 or 1. (With 53 bits the half would be rounded, and
    the largest word would become 1.)

    Parameters
    ----------
    words : ndarray of uint64
        Any shape.

    Returns
    -------
    ndarray of float64
        Same shape, in [2^-53, 1 - 2^-53].
    """
    top = (np.asarray(words, dtype=np.uint64) >> np.uint64(12)).astype(np.float64)
    result: FloatArray = (top + 0.5) * 2.0**-52
    return result


def keep(words: WordArray, numerator: int) -> BoolArray:
    """Decide which records are kept: exactly ``numerator`` of every 2^32 words.

    Parameters
    ----------
    words : ndarray of uint64
        One word per record; its top 32 bits are compared, as integers.
    numerator : int
        B of the keep probability B / 2^32, in [0, 2^32].

    Returns
    -------
    ndarray of bool
        Same shape.

    Raises
    ------
    InputError
        If the numerator is out of range.
    """
    if not 0 <= numerator <= 1 << KEEP_BITS:
        raise InputError(f"The keep numerator must be in [0, 2^{KEEP_BITS}]. Got {numerator}.")
    top = np.asarray(words, dtype=np.uint64) >> np.uint64(64 - KEEP_BITS)
    kept: BoolArray = top < np.uint64(numerator)
    return kept


class Streams:
    """One pseudo-random stream per message, each with its own position.

    Word ``2 i + h`` of an element is half ``h`` of the CBC-MAC of its message followed by one counter block
    holding ``i`` (64 bits little-endian, then 64 zero bits): a message of fixed length ``m + 1`` blocks,
    whose first ``m`` are absorbed once. The AES key has its own purpose string, so a stream block is never
    an output of :func:`prf`, whatever the lengths. An element's words depend on its message and on how many
    it has drawn, not on which other elements share the batch.

    Parameters
    ----------
    key : bytes
        32 secret bytes, one per label (see :func:`derive_key`).
    messages : ndarray of uint32, shape (n, 4 m)
        One message per element; equal messages have equal streams.

    Attributes
    ----------
    size : int
        Number of elements.

    Raises
    ------
    InputError
        As :func:`prf`.
    """

    def __init__(self, key: bytes, messages: HalfWordArray) -> None:
        blocks = _check_messages(messages)
        self._cipher = _cipher(derive_key(key, "privrisk stream", str(blocks + 1)))
        self._state = _words(_chain(self._cipher, messages))
        self._buffer = np.zeros_like(self._state)
        self._drawn = np.zeros(len(messages), dtype=np.uint64)
        self.size = len(messages)

    def draw(self, index: IndexArray) -> WordArray:
        """Return the next word of each named element.

        Parameters
        ----------
        index : ndarray of int, shape (r,)
            Distinct elements, in [0, size).

        Returns
        -------
        ndarray of uint64, shape (r,)

        Raises
        ------
        InputError
            If an element is named twice or does not exist.
        """
        index = np.asarray(index, dtype=np.intp)
        self._check_index(index)
        drawn = self._drawn[index]
        odd = (drawn & np.uint64(1)).astype(bool)
        fresh = index[~odd]
        if fresh.size:
            block = self._state[fresh]
            block[:, 0] ^= drawn[~odd] >> np.uint64(1)
            self._buffer[fresh] = _words(_encrypt(self._cipher, block.astype(_LITTLE64, copy=False)))
        self._drawn[index] = drawn + np.uint64(1)
        words: WordArray = self._buffer[index, odd.astype(np.intp)]
        return words

    def _check_index(self, index: IndexArray) -> None:
        if index.ndim != 1:
            raise InputError(f"Stream elements must be named by a vector. Got {index.ndim} dimensions.")
        if not index.size:
            return
        # Callers pass np.flatnonzero(mask): one pass, no sort.
        if not (np.diff(index) > 0).all() and np.unique(index).size != index.size:
            raise InputError("A stream element is named twice in one draw; its next word would be ambiguous.")
        if index.min() < 0 or index.max() >= self.size:
            raise InputError(f"Stream elements must be in [0, {self.size}).")


def record_messages(blocks: ByteArray) -> HalfWordArray:
    """Turn 16-byte record identities into messages of one block.

    Parameters
    ----------
    blocks : ndarray of uint8, shape (n, 16)
        A stable, unique identity of each record, fixed before the key exists.

    Returns
    -------
    ndarray of uint32, shape (n, 4)
        The same bytes as little-endian words; injective.

    Raises
    ------
    InputError
        If the shape or dtype differs.
    """
    if blocks.dtype != np.uint8 or blocks.ndim != 2 or blocks.shape[1] != BLOCK_BYTES:
        raise InputError(f"Record identities must be uint8 of shape (n, {BLOCK_BYTES}). Got {_described(blocks)}.")
    return np.ascontiguousarray(blocks).view(_LITTLE32).astype(np.uint32, copy=False)


def cell_messages(scheme: int, codes: IntArray) -> HalfWordArray:
    """Turn the cells of one scheme into messages.

    A message is ``k, scheme, code_1, ..., code_k`` and zeros up to a multiple of four words. As k is
    written down, the padding is no ambiguity: distinct (scheme, codes) have distinct messages for every k.

    Parameters
    ----------
    scheme : int
        Number of the scheme (level vector) the cells belong to, in [0, 2^32).
    codes : ndarray of int32, shape (n, k)
        Node code per attribute of each cell; negative codes are taken in two's complement.

    Returns
    -------
    ndarray of uint32, shape (n, 4 m)
        With ``m = ceil((k + 2) / 4)``.

    Raises
    ------
    InputError
        If the scheme is out of range, or codes are not int32 of shape (n, k).
    """
    if not 0 <= scheme < 1 << 32:
        raise InputError(f"The scheme number must be in [0, 2^32). Got {scheme}.")
    if codes.dtype != np.int32 or codes.ndim != 2:
        raise InputError(f"Cell codes must be int32 of shape (n, k). Got {_described(codes)}.")
    n, k = codes.shape
    messages = np.zeros((n, -(-(k + 2) // _BLOCK_WORDS) * _BLOCK_WORDS), dtype=np.uint32)
    messages[:, 0] = k
    messages[:, 1] = scheme
    messages[:, 2 : 2 + k] = np.ascontiguousarray(codes).view(np.uint32)
    return messages


def _chain(cipher: CipherContext, messages: HalfWordArray) -> HalfWordArray:
    """Return the last CBC-MAC block of each message, little-endian words of shape (n, 4)."""
    little = messages.astype(_LITTLE32, copy=False)
    state = np.zeros((len(messages), _BLOCK_WORDS), dtype=_LITTLE32)
    for first in range(0, messages.shape[1], _BLOCK_WORDS):
        state = _encrypt(cipher, state ^ little[:, first : first + _BLOCK_WORDS]).view(_LITTLE32)
        state = state.reshape(len(messages), _BLOCK_WORDS)
    return state


def _encrypt(cipher: CipherContext, blocks: HalfWordArray | WordArray) -> ByteArray:
    """Encrypt contiguous 16-byte blocks, each by itself; returns uint8 of shape (n, 16)."""
    # update_into wants room for one block more than it writes, less one byte.
    room = np.empty(blocks.nbytes + BLOCK_BYTES - 1, dtype=np.uint8)
    if blocks.nbytes:
        cipher.update_into(np.ascontiguousarray(blocks).view(np.uint8).data, room.data)
    return room[: blocks.nbytes].reshape(-1, BLOCK_BYTES)


def _words(blocks: ByteArray | HalfWordArray) -> WordArray:
    """Read 16-byte blocks as two little-endian words each, shape (n, 2)."""
    words = np.ascontiguousarray(blocks).view(_LITTLE64).astype(np.uint64, copy=False)
    return words.reshape(-1, BLOCK_BYTES // 8)


def _cipher(key: bytes) -> CipherContext:
    # ECB is only the block cipher applied to many blocks at once; the chaining is done here.
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()


def _check_key(key: bytes) -> None:
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        length = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__
        raise InputError(f"A key must be {KEY_BYTES} bytes. Got {length}.")


def _check_messages(messages: HalfWordArray) -> int:
    """Return the number of blocks per message."""
    words = messages.shape[1] if messages.ndim == 2 else 0
    if messages.dtype != np.uint32 or words == 0 or words % _BLOCK_WORDS:
        raise InputError(f"Messages must be uint32 of shape (n, 4 m), m >= 1. Got {_described(messages)}.")
    return words // _BLOCK_WORDS


def _described(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
    return f"{array.dtype} of shape {array.shape}"
