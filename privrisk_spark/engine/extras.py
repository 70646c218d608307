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
    try:
        import_module("sklearn")
    except ImportError:
        raise InputError(
            f"{key}: the package 'scikit-learn' is not installed; install privrisk_spark[ml], or leave {key} out."
        ) from None
