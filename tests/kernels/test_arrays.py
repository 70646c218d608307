"""Array types have their names in one module, and modules are short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import privrisk_spark.kernels
from privrisk_spark.kernels import arrays

KERNELS = Path(privrisk_spark.kernels.__file__).parent
ROOMS = ("numeric", "random", "classes", "measures", "dp", "adversary", "as_published")
NAMED = {"bool_", "uint8", "int8", "int32", "int64", "uint32", "uint64", "intp", "float64"}


@pytest.mark.parametrize("room", ROOMS)
def test_no_other_module_names_them(room: str) -> None:
    for path in sorted((KERNELS / room).rglob("*.py")):
        spelled = set(re.findall(r"NDArray\[np\.(\w+)\]", path.read_text()))
        assert not spelled & NAMED, f"{path.name}: take the names of privrisk_spark.kernels.arrays"


@pytest.mark.parametrize("room", ROOMS)
def test_modules_are_short(room: str) -> None:
    for path in sorted((KERNELS / room).rglob("*.py")):
        assert path.read_text().count("\n") <= 500, f"{path.name}: split by noun"


def test_each_has_one_dtype() -> None:
    text = Path(arrays.__file__).read_text()
    assert sorted(re.findall(r"NDArray\[np\.(\w+)\]", text)) == sorted(NAMED)
