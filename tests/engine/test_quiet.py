from __future__ import annotations

import ctypes
import os

import pytest

from privrisk_spark.engine.quiet import quiet


def test_what_c_code_prints_is_dropped_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    """C keeps what it prints for a while: neither may what came before be lost, nor what was dropped come later."""
    c, before = ctypes.CDLL(None), len(os.listdir("/proc/self/fd"))
    c.printf(b"before ")

    def fail() -> None:
        c.printf(b"dropped ")
        os.write(1, b"dropped, too ")
        raise KeyError

    with pytest.raises(KeyError), quiet():
        fail()
    c.printf(b"after")
    c.fflush(None)
    assert capfd.readouterr().out == "before after"
    assert len(os.listdir("/proc/self/fd")) == before
