"""How far a claim is guaranteed: the one word that code, manifest and report say of it."""

from __future__ import annotations

from typing import Literal

Status = Literal["proved", "tested", "heuristic"]
"""``proved``: a theorem, cited or proved in a docstring; ``tested``: against definitions, by tests or in the run;
``heuristic``: neither."""
