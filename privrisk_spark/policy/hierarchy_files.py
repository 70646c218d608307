"""What a path names of which somebody wants to see the hierarchies: a policy, or the file of one hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from privrisk_spark.errors import ConfigError, Fault, HierarchyError
from privrisk_spark.hierarchies.text import FileHierarchy, TreeHierarchy
from privrisk_spark.hierarchies.yaml_texts import RepetitionError, refuse_repetition
from privrisk_spark.policy import reading
from privrisk_spark.policy.policy import Policy
from privrisk_spark.storage.locations import AbsolutePath
from privrisk_spark.storage.whole_files import contents


def policy_or_hierarchy(
    path: str, *, separator: str = ";", overrides: Sequence[str] = ()
) -> Policy | FileHierarchy | TreeHierarchy:
    """Return the policy in a file, or the rule of the one hierarchy in it.

    A file named ``.yaml``, ``.yml`` or ``.json`` is a policy if it has the keys ``version`` and ``columns``, else a
    tree; any other file has ARX's format.

    Parameters
    ----------
    separator : str
        Between the cells of a file in ARX's format.
    overrides : sequence of str
        Of a policy: ``dotted.key=value``.

    Raises
    ------
    ConfigError, HierarchyError
        If the file is none of them.
    """
    if Path(path).suffix.lower() not in (".yaml", ".yml", ".json"):
        if len(separator) != 1 or separator in '"\r\n':
            raise ConfigError(
                [Fault("--separator", f"must be one character, not a quote or line end. Got {separator!r}")]
            )
        return FileHierarchy(file=path, separator=separator)
    if _is_policy(path):
        return reading.load([path], overrides=overrides, releasing=False)
    return TreeHierarchy(tree_file=path)


def _is_policy(path: str) -> bool:
    """Whether the top of the document is that of a policy."""
    try:
        top = yaml.compose(contents(path), Loader=yaml.SafeLoader)
        refuse_repetition(top)
    except OSError as error:
        raise HierarchyError(f"file '{AbsolutePath.of(path)}': it cannot be read ({error.strerror}).") from None
    except RepetitionError as error:
        raise HierarchyError(f"file '{path}': {error}.") from None
    except (yaml.YAMLError, RecursionError):
        return True  # whose reader says what is wrong
    keys = {key.value for key, _ in top.value} if isinstance(top, yaml.MappingNode) else set()
    return {"version", "columns"} <= keys
