"""Loops over one record's lattice as machine code, by Numba.

Numba and the code take a second to import: kernels that use this are imported where a record's lattice is searched, and
nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of numbers and arrays on its first call.

    The code is kept beside its module or in the user's cache directory; where neither can be written, every process
    compiles its own. Code that is kept knows of changes of its own file alone: after a change of a function that others
    call, empty ``__pycache__``.
    """
    try:
        return cast("Callable[P, R]", numba.njit(function, cache=True))
    except RuntimeError:
        # No directory to keep the code in: a read-only installation without a home.
        return cast("Callable[P, R]", numba.njit(function))
