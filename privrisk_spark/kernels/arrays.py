"""Names of the array types of the kernels: one dtype each, of any shape; docstrings give the shapes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
"""Marks."""
ByteArray = npt.NDArray[np.uint8]
"""Bytes, or numbers below 256."""
LevelArray = npt.NDArray[np.int8]
"""Levels of a hierarchy."""
IntArray = npt.NDArray[np.int32]
"""Codes: leaves, nodes, values."""
LongArray = npt.NDArray[np.int64]
"""Rows and other counts, and positions."""
HalfWordArray = npt.NDArray[np.uint32]
"""Words of 32 bits."""
WordArray = npt.NDArray[np.uint64]
"""Words of 64 bits: hashes, and bits drawn by key."""
IndexArray = npt.NDArray[np.intp]
"""Positions of the machine's own width, as numpy gives them."""
FloatArray = npt.NDArray[np.float64]
"""Probabilities, weights, risks and other measured numbers."""
