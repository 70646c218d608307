"""Rules of columns that are masked and of a policy of the kind 'masked'; each fault names the key to mend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from privrisk_spark.errors import ConfigError, Fault, listing, nearest
from privrisk_spark.policy.masking import Mask, MaskedGuarantee, Microaggregation, Noise, NoMask, Shuffle
from privrisk_spark.policy.policy import Policy, QuasiIdentifier

_KIND = "when guarantee.kind is 'masked'"


def refuse_other_kinds(policy: Policy) -> None:
    """Refuse a policy that does not mask.

    Raises
    ------
    ConfigError
        If ``guarantee.kind`` is another one.
    """
    if policy.guarantee.generalizes:
        rule = f"must be 'masked' to mask a table; use privrisk release. Got '{policy.guarantee.kind}'"
        raise ConfigError([Fault("guarantee.kind", rule, guide="masked")])


def find_masking_faults(policy: Policy, _: MaskedGuarantee) -> Iterable[Fault]:
    """Yield the errors of a policy of the kind 'masked' that take several keys together."""
    masks = policy.masks
    for name, column in policy.columns.items():
        mask = masks.get(name)
        if isinstance(column, QuasiIdentifier) and mask is None:
            yield Fault(
                f"columns.{name}.mask",
                f"is required of a quasi-identifier {_KIND}: choose a method, such as {{method: microaggregation, "
                "k: 5}, or say that it is released as it is: {method: none}",
            )
        if mask is not None and getattr(column, "action", "keep") == "drop":
            yield Fault(f"columns.{name}.mask", "is only used by columns that are released, and action is 'drop'")
        elif mask is not None and not isinstance(mask, NoMask) and getattr(column, "release", None) is not None:
            yield Fault(f"columns.{name}.release", "and mask say two things of one column; leave one of them out")
    if not any(not isinstance(mask, NoMask) for mask in masks.values()):
        yield Fault("columns", f"no column is masked; give one at least a mask {_KIND}")
    yield from _groups(masks)
    for name, mask in masks.items():
        if isinstance(mask, Shuffle):
            yield from _known(policy, name, mask)


def _groups(masks: dict[str, Mask]) -> Iterator[Fault]:
    """Columns of a group are masked by one rule."""
    first: dict[str, tuple[str, Mask]] = {}
    for name, mask in masks.items():
        if isinstance(mask, Microaggregation) and mask.algorithm == "univariate":
            continue
        if not isinstance(mask, Microaggregation | Noise) or (isinstance(mask, Noise) and mask.group is None):
            continue
        group = mask.group or ""
        before, other = first.setdefault(f"{mask.method} {group}", (name, mask))
        for key in ("k", "algorithm", "gamma", "share"):
            if getattr(mask, key, None) != getattr(other, key, None):
                which = f"the group '{group}'" if group else "the group of all that name none"
                yield Fault(
                    f"columns.{name}.mask.{key}",
                    f"must be that of columns.{before}.mask, {getattr(other, key)}, as both are of {which}. "
                    f"Got {getattr(mask, key)}",
                )
    alone = [
        key
        for key in first
        if key.startswith("noise ")
        and sum(isinstance(mask, Noise) and f"noise {mask.group}" == key for mask in masks.values()) == 1
    ]
    for key in alone:
        name, _ = first[key]
        yield Fault(
            f"columns.{name}.mask.group",
            f"'{key.removeprefix('noise ')}' has no other column of the method 'noise', so there is nothing it could "
            "be correlated with; leave it out, or name it in another column",
        )


def _known(policy: Policy, name: str, mask: Shuffle) -> Iterator[Fault]:
    released = policy.kept_columns
    for i, other in enumerate(mask.known):
        at = f"columns.{name}.mask.known.{i}"
        if other == name:
            yield Fault(at, "is the column itself; name others, or leave it out")
        elif other not in policy.columns:
            yield Fault(
                at, f"'{other}' is not among columns{nearest(other, released)}; released are {listing(released)}"
            )
        elif other not in released:
            yield Fault(at, f"'{other}' is not released, so nothing is known of it; released are {listing(released)}")
        elif other in mask.known[:i]:
            yield Fault(at, f"'{other}' is there already; name it once")
