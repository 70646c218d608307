"""Packages that only some runs need. Each is an extra of this package."""

from __future__ import annotations

from importlib.util import find_spec

from privrisk_spark.errors import InputError

_EXTRAS = {
    "boto3": "aws",
    "deltalake": "delta",
    "dp_accounting": "private",
    "hdfs_native": "hdfs",
    "matplotlib": "charts",
    "obstore": "objects",
    "psycopg": "postgres",
    "pyiceberg": "iceberg",
    "resvg_py": "charts",
    "sklearn": "ml",
    "splink": "splink",
    "sqlalchemy": "private",
}
"""Extra that installs each package."""


def is_installed(package: str) -> bool:
    """Return True if a package can be imported; it is not imported."""
    return find_spec(package) is not None


def require(package: str, where: str) -> None:
    """Refuse to go on without a package of an extra.

    Parameters
    ----------
    where : str
        Key, place or command that needs it.

    Raises
    ------
    InputError
        Naming what to install.
    """
    if not is_installed(package):
        raise _missing(package, where)


def missing(error: Exception) -> InputError | None:
    """Return what to install, if an error is the missing package of an extra."""
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or package not in _EXTRAS:
        return None
    return _missing(package, "this run")


def _missing(package: str, where: str) -> InputError:
    return InputError(
        f"{where}: needs the package '{package}', which is not installed. "
        f"Fix: pip install 'privrisk-spark[{_EXTRAS[package]}]'."
    )
