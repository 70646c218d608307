"""What an intruder is told of how columns were masked, and what that leaves him to guess."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.planning.attacks import known_columns
from privrisk_spark.extensions.attack.policy import AttackPolicy
from privrisk_spark.extensions.perturb.planning import mask_plan
from privrisk_spark.policy.masking import Mask, Microaggregation, NoMask, RankSwapping, Rounding, TopBottom
from privrisk_spark.policy.policy import Policy


@dataclass(frozen=True)
class ToldMask:
    """Columns that are masked together in a way that bounds what a value can have become.

    Attributes
    ----------
    columns : tuple of str
        The intruder knows all of them.
    """

    columns: tuple[str, ...]
    mask: Mask

    @property
    def repeatable(self) -> bool:
        """Whether whoever has all values finds the groups again that were made of them."""
        return isinstance(self.mask, Microaggregation)


def refuse_other_masks(policy: Policy, manifest: Mapping[str, Any] | None) -> None:
    """Refuse masks that are not those of the release that is attacked: what they bound would be wrong.

    Parameters
    ----------
    policy : Policy
        Of the kind 'masked'.
    manifest : mapping or None
        Of a release of ours.

    Raises
    ------
    InputError
        Naming a column.
    """
    released = {} if manifest is None else {column["name"]: column["released"] for column in manifest["columns"]}
    for name in known_columns(policy):
        mask = policy.masks.get(name)
        if name in released and mask is not None and released[name] != mask.declared():
            raise InputError(
                f"columns.{name}.mask: 'transparency' takes the masks that the release was made with, and this one is "
                "another; give it as it was, or release again."
            )


def refuse_windows(asked: AttackPolicy, comparisons: int) -> None:
    """Refuse a search of what records can have become that takes more comparisons than it may.

    Parameters
    ----------
    comparisons : int
        Of values with bounds, in the shortest window of each record that is tried.

    Raises
    ------
    InputError
        Naming a share of the people that would do.
    """
    if comparisons > asked.exact_pairs:
        enough = asked.intruder.share * asked.exact_pairs / comparisons
        unit = 10.0 ** math.floor(math.log10(enough))
        raise InputError(
            f"attack.exact_pairs: 'transparency' holds up to {comparisons:.2g} values against what masks bound, more "
            f"than {asked.exact_pairs:.2g}. Raise it, or attack a sample, such as "
            f"attack.intruder.share={math.floor(enough / unit) * unit:.1g}."
        )


def told_masks(policy: Policy) -> tuple[ToldMask, ...]:
    """Return the masks that leave an intruder some rows and not others.

    Noise, post-randomization and shuffling leave all rows possible; so does microaggregation together with columns
    that he does not know.

    Parameters
    ----------
    policy : Policy
        Of the kind 'masked'.
    """
    known = known_columns(policy)
    found = [
        ToldMask(one.columns, one.mask)
        for one in mask_plan(policy).arranged
        if isinstance(one.mask, RankSwapping | Microaggregation) and set(one.columns) <= set(known)
    ]
    for name in known:
        mask = policy.masks.get(name)
        if isinstance(mask, NoMask | Rounding | TopBottom):
            found.append(ToldMask((name,), mask))
    return tuple(found)
