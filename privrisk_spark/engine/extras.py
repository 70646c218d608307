"""Packages that only some keys of a policy need."""

from __future__ import annotations

from importlib import import_module

from privrisk_spark.errors import InputError


def require_scikit_learn(key: str) -> None:
    """Refuse to go on without scikit-learn, before anything is read.

    Parameters
    ----------
    key : str
        Of the policy, which asks for it.

    Raises
    ------
    InputError
    """
    _require(["sklearn"], f"{key}: the package 'scikit-learn'", f"install privrisk_spark[ml], or leave {key} out")


def require_splink(key: str) -> None:
    """Refuse to go on without Splink and the database it computes with, as :func:`require_scikit_learn`."""
    _require(["duckdb", "splink"], f"{key}: the package 'splink'", "install privrisk_spark[splink], or take 'own'")


def _require(modules: list[str], what: str, way: str) -> None:
    try:
        for name in modules:
            import_module(name)
    except ImportError:
        raise InputError(f"{what} is not installed; {way}.") from None
