from __future__ import annotations

import hashlib
import hmac
import itertools

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.random import keyed
from privrisk_spark.kernels.random.keyed import Streams, cell_messages, derive_key, keep, prf, record_messages, uniforms

KEY = bytes(range(32))


def naive_mac(aes_key: bytes, message: bytes) -> bytes:
    """The last block of AES-CBC with initial vector zero: CBC-MAC by another route."""
    encryptor = Cipher(algorithms.AES(aes_key), modes.CBC(bytes(16))).encryptor()
    return (encryptor.update(message) + encryptor.finalize())[-16:]


def naive_words(aes_key: bytes, message: bytes) -> list[int]:
    mac = naive_mac(aes_key, message)
    return [int.from_bytes(mac[:8], "little"), int.from_bytes(mac[8:], "little")]


def naive_stream(key: bytes, row: np.ndarray, count: int) -> list[int]:
    message = row.astype("<u4").tobytes()
    aes_key = derive_key(key, "privrisk stream", str(len(message) // 16 + 1))
    words: list[int] = []
    for counter in range(-(-count // 2)):
        words += naive_words(aes_key, message + counter.to_bytes(8, "little") + bytes(8))
    return words[:count]


def random_messages(n: int, words: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**32, (n, words), dtype=np.uint32)


def numbered(n: int) -> np.ndarray:
    messages = np.zeros((n, 4), dtype=np.uint32)
    messages[:, 0] = np.arange(n)
    return messages


# --- keys


def test_derived_key_is_hmac_of_length_prefixed_contexts():
    message = bytes([2, 0, 0, 0, 0, 0, 0, 0])
    message += bytes([4, 0, 0, 0, 0, 0, 0, 0]) + b"run1" + bytes([3, 0, 0, 0, 0, 0, 0, 0]) + "é1".encode()
    assert derive_key(KEY, "run1", "é1") == hmac.new(KEY, message, hashlib.sha256).digest()


def test_distinct_contexts_have_distinct_keys():
    contexts = [
        ("ab", "c"),
        ("a", "bc"),
        ("abc",),
        ("abc", ""),
        ("", "abc"),
        ("c", "ab"),
        ("keep",),
        ("recode",),
    ]
    keys = {derive_key(KEY, *context) for context in contexts}
    keys.add(derive_key(bytes(32), "keep"))
    assert len(keys) == len(contexts) + 1


@pytest.mark.parametrize("key", [b"", bytes(16), b"secret-secret-secret-secret-secre", "s" * 32, bytearray(32)])
def test_other_keys_are_refused_without_showing_them(key):
    for use in (
        lambda: derive_key(key, "keep"),
        lambda: prf(key, numbered(1)),
        lambda: Streams(key, numbered(1)),
    ):
        with pytest.raises(InputError, match="must be 32 bytes") as refused:
            use()
        assert "secret" not in str(refused.value)


def test_a_key_needs_a_context():
    with pytest.raises(InputError, match="context"):
        derive_key(KEY)


# --- the function


def test_one_block_chain_is_fips_197_aes_256():
    # FIPS 197, appendix C.3.
    plain = np.frombuffer(bytes.fromhex("00112233445566778899aabbccddeeff"), dtype="<u4").reshape(1, 4)
    block = keyed._chain(keyed._cipher(KEY), plain.astype(np.uint32))
    assert block.astype("<u4").tobytes().hex() == "8ea2b7ca516745bfeafc49904b496089"


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_prf_is_the_literal_mac(blocks):
    messages = random_messages(20, 4 * blocks)
    aes_key = derive_key(KEY, "privrisk prf", str(blocks))
    expected = [naive_words(aes_key, row.astype("<u4").tobytes()) for row in messages]
    assert prf(KEY, messages).tolist() == expected


def test_prf_accepts_any_layout_and_no_rows():
    messages = random_messages(9, 8)
    assert np.array_equal(prf(KEY, np.asfortranarray(messages)), prf(KEY, messages))
    assert np.array_equal(prf(KEY, messages[::2]), prf(KEY, messages)[::2])
    assert prf(KEY, messages[:0]).shape == (0, 2)
    assert Streams(KEY, messages[:0]).draw(np.zeros(0, dtype=int)).shape == (0,)


@given(st.lists(st.integers(0, 11), max_size=30))
def test_prf_of_a_row_does_not_depend_on_its_batch(picked):
    messages = random_messages(12, 8)
    assert np.array_equal(prf(KEY, messages[picked]), prf(KEY, messages)[picked])


def test_mixed_lengths_do_not_extend_one_another():
    # With one AES key for all lengths, MAC(b || b xor T) = T, T = MAC(b).
    block = random_messages(1, 4)
    mac = prf(KEY, block)
    longer = np.hstack([block, block ^ mac.astype("<u8").view("<u4").astype(np.uint32)])
    assert not np.array_equal(prf(KEY, longer), mac)


@pytest.mark.parametrize(
    "messages",
    [
        np.zeros((2, 3), np.uint32),
        np.zeros((2, 0), np.uint32),
        np.zeros(4, np.uint32),
        np.zeros((2, 4), np.int32),
        np.zeros((2, 4), np.uint64),
    ],
)
def test_other_messages_are_refused(messages):
    for use in (prf, Streams):
        with pytest.raises(InputError, match="uint32"):
            use(KEY, messages)


# --- streams


@pytest.mark.parametrize("blocks", [1, 3])
def test_stream_is_the_literal_mac_with_a_counter(blocks):
    messages = random_messages(3, 4 * blocks)
    streams = Streams(KEY, messages)
    drawn = np.stack([streams.draw(np.arange(3)) for _ in range(7)], axis=1)
    assert drawn.tolist() == [naive_stream(KEY, row, 7) for row in messages]


@given(st.lists(st.sets(st.integers(0, 5)), max_size=15), st.randoms(use_true_random=False))
def test_stream_position_is_per_element(steps, shuffler):
    messages = random_messages(6, 4)
    streams, seen = Streams(KEY, messages), [[] for _ in range(6)]
    for step in steps:
        order = list(step)
        shuffler.shuffle(order)
        for element, word in zip(order, streams.draw(np.array(order, dtype=int)).tolist(), strict=True):
            seen[element].append(word)
    assert seen == [naive_stream(KEY, row, len(words)) for row, words in zip(messages, seen, strict=True)]


def test_streams_are_apart_from_prf_and_each_other():
    messages = numbered(50)
    with_counter = np.hstack([messages, np.zeros_like(messages)])
    streams = Streams(KEY, messages)
    words = [streams.draw(np.arange(50)) for _ in range(4)]
    words += [*prf(KEY, messages).T, *prf(KEY, with_counter).T]
    words += [Streams(derive_key(KEY, "noise"), messages).draw(np.arange(50))]
    assert np.unique(np.concatenate(words)).size == 50 * 9


@pytest.mark.parametrize("index", [[0, 0], [1, 0, 1], [-1], [3], [[0, 1]]])
def test_ambiguous_or_missing_elements_are_refused(index):
    with pytest.raises(InputError):
        Streams(KEY, numbered(3)).draw(np.array(index))


# --- numbers


def test_uniforms_are_exact_and_inside():
    words = np.array([0, 2**12 - 1, 2**12, 2**63, 2**64 - 1], dtype=np.uint64)
    expected = [2**-53, 2**-53, 3 * 2**-53, 0.5 + 2**-53, 1 - 2**-53]
    assert uniforms(words).tolist() == expected


def test_words_are_uniform_in_every_part():
    words = prf(derive_key(KEY, "chi-square"), numbered(200_000))
    for half in words.T:
        for part in (uniforms(half), uniforms(half << np.uint64(32)), uniforms(half << np.uint64(12))):
            assert chisquare(np.bincount((part * 256).astype(int), minlength=256)).pvalue > 1e-4
    streams = Streams(derive_key(KEY, "chi-square"), numbered(50_000))
    later = np.concatenate([streams.draw(np.arange(50_000)) for _ in range(3)])
    assert chisquare(np.bincount((uniforms(later) * 256).astype(int), minlength=256)).pvalue > 1e-4


def test_neighbouring_words_are_independent():
    pairs = (uniforms(prf(derive_key(KEY, "pairs"), numbered(100_000))) * 16).astype(int)
    cells = np.concatenate([pairs[:, 0] * 16 + pairs[:, 1], pairs[1:, 0] * 16 + pairs[:-1, 0]])
    assert chisquare(np.bincount(cells, minlength=256)).pvalue > 1e-4


@pytest.mark.parametrize("numerator", [0, 1, 1357468563, 2**32 - 1, 2**32])
def test_keep_compares_the_top_32_bits(numerator):
    tops = [top for top in (0, 1, numerator - 1, numerator, 2**32 - 1) if 0 <= top < 2**32]
    for top, low in itertools.product(tops, (0, 2**32 - 1)):
        word = np.array([(top << 32) | low], dtype=np.uint64)
        assert keep(word, numerator).tolist() == [top < numerator]


@pytest.mark.parametrize("numerator", [-1, 2**32 + 1])
def test_keep_refuses_other_numerators(numerator):
    with pytest.raises(InputError, match="numerator"):
        keep(np.zeros(1, np.uint64), numerator)


# --- messages


def test_record_messages_are_the_bytes_little_endian():
    blocks = np.arange(32, dtype=np.uint8).reshape(2, 16)
    assert record_messages(blocks)[1].tolist() == [0x13121110, 0x17161514, 0x1B1A1918, 0x1F1E1D1C]
    assert record_messages(np.asfortranarray(blocks)).astype("<u4").tobytes() == blocks.tobytes()
    for other in (blocks.astype(np.int64), blocks[:, :15], blocks[0]):
        with pytest.raises(InputError, match="uint8"):
            record_messages(other)


def test_cell_messages_layout():
    codes = np.array([[5, -1, 7]], dtype=np.int32)
    assert cell_messages(9, codes).tolist() == [[3, 9, 5, 2**32 - 1, 7, 0, 0, 0]]
    assert cell_messages(9, codes[:, :2]).tolist() == [[2, 9, 5, 2**32 - 1]]
    assert cell_messages(0, np.zeros((2, 0), np.int32)).tolist() == [[0, 0, 0, 0]] * 2


CELLS = st.tuples(st.integers(0, 3), st.lists(st.integers(-1, 2), min_size=0, max_size=7))


@given(CELLS, CELLS)
def test_distinct_cells_have_distinct_messages(first, second):
    messages = [
        cell_messages(scheme, np.array([codes], dtype=np.int32).reshape(1, -1)).tolist()
        for scheme, codes in (first, second)
    ]
    assert (messages[0] == messages[1]) == (first == second)


def test_other_cells_are_refused():
    codes = np.zeros((1, 2), dtype=np.int32)
    for scheme in (-1, 2**32):
        with pytest.raises(InputError, match="scheme"):
            cell_messages(scheme, codes)
    for other in (codes.astype(np.int64), codes[0]):
        with pytest.raises(InputError, match="int32"):
            cell_messages(1, other)
