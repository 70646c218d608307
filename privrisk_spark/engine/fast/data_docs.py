"""Views of Great Expectations' Data Docs that compile a template once in a process, not once a page.

Every section of every build has a view with an environment of its own, and compiling is most of what a page costs.
Unless fast starts are asked for, the views are Great Expectations' own.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from great_expectations.render.view import DefaultJinjaIndexPageView, DefaultJinjaPageView
from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from privrisk_spark.engine import fast


class _Compiled(BytecodeCache):
    """Code of templates by their key; what is in a bucket is checked against the template's text by Jinja."""

    def __init__(self) -> None:
        self.codes: dict[str, tuple[str, CodeType]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        checksum, code = self.codes.get(bucket.key, ("", None))
        if checksum == bucket.checksum:
            bucket.code = code

    def dump_bytecode(self, bucket: Bucket) -> None:
        assert bucket.code is not None
        self.codes[bucket.key] = bucket.checksum, bucket.code


_COMPILED = _Compiled()


class PageView(DefaultJinjaPageView):  # type: ignore[misc]  # untyped
    """A page of a suite or of results."""

    def __init__(self, **directories: Any) -> None:
        super().__init__(**directories)
        if fast.on("templates"):
            self.env.bytecode_cache = _COMPILED


class IndexPageView(DefaultJinjaIndexPageView):  # type: ignore[misc]  # untyped
    """The page that lists the others."""

    def __init__(self, **directories: Any) -> None:
        super().__init__(**directories)
        if fast.on("templates"):
            self.env.bytecode_cache = _COMPILED
