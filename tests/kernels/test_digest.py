from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.kernels import digest

ALPHABETS = st.one_of(st.binary(max_size=70), st.binary(min_size=53, max_size=58), st.text(max_size=15).map(str.encode))


def digests(strings: list[bytes]) -> list[bytes]:
    offsets = np.concatenate([[0], np.cumsum([len(string) for string in strings])]).astype(np.int64)
    found = digest.sha256(np.frombuffer(b"".join(strings), dtype=np.uint8), offsets)
    assert found.dtype == np.uint8
    assert found.shape == (len(strings), 32)
    return [row.tobytes() for row in found]


@pytest.mark.parametrize("few", [0, digest.FEW])
def test_it_is_sha_256(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """Planted: padding one byte late, 55 bytes taken for two blocks, lanes of the last group left as they were."""
    monkeypatch.setattr(digest, "FEW", few)

    @settings(max_examples=60, deadline=None)
    @given(st.lists(ALPHABETS, max_size=150))
    def holds(strings: list[bytes]) -> None:
        assert digests(strings) == [hashlib.sha256(string).digest() for string in strings]

    holds()


def test_every_length_by_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "FEW", 0)
    generator = np.random.default_rng(1)
    strings = [generator.bytes(n) for n in range(130)] * 3
    assert digests(strings) == [hashlib.sha256(string).digest() for string in strings]


def test_many_strings_from_the_middle_of_a_buffer() -> None:
    generator = np.random.default_rng(2)
    lengths = generator.integers(0, 20, digest.FEW + 1000)
    offsets = 5 + np.concatenate([[0], np.cumsum(lengths)])
    data = generator.integers(0, 256, int(offsets[-1]) + 7, dtype=np.uint8)
    found = digest.sha256(data, offsets)
    text = data.tobytes()
    for i in (0, 1, 63, 64, 65, *generator.integers(0, len(lengths), 2000), len(lengths) - 1):
        assert found[i].tobytes() == hashlib.sha256(text[offsets[i] : offsets[i + 1]]).digest()


def test_constants_are_those_of_the_standard() -> None:
    assert [hex(word) for word in digest._ROOTS[[0, 1, 63]]] == ["0x428a2f98", "0x71374491", "0xc67178f2"]
    assert [hex(word) for word in digest._START[[0, 7]]] == ["0x6a09e667", "0x5be0cd19"]
