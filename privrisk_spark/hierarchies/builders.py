"""The ``hierarchy:`` of a policy: one model per key that names a kind, their union, and how one becomes a hierarchy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WrapValidator

from privrisk_spark.errors import HierarchyError, listing, nearest
from privrisk_spark.hierarchies.hierarchy import ROOT, Hierarchy
from privrisk_spark.hierarchies.numbers import equal_text
from privrisk_spark.hierarchies.paths import LeafPath, message_head, refuse_equal_labels
from privrisk_spark.hierarchies.scales import Cuts, Dates, DateStep, Widths
from privrisk_spark.hierarchies.text import Builder, FileHierarchy, Flat, Mask, Order, TreeHierarchy


class _Keyed(Builder):
    """A rule under the key that names its kind; everything is the rule's."""

    @property
    def rule(self) -> Builder:
        """The rule under the key."""
        rule: Builder = getattr(self, next(iter(type(self).model_fields)))
        return rule

    @property
    def public(self) -> bool:
        """Whether the rule declares its leaves."""
        return self.rule.public

    def path(self, value: str) -> LeafPath | None:
        """Return the rule's path of a value."""
        return self.rule.path(value)

    def declared(self) -> Sequence[str] | None:
        """Return what the rule declares."""
        return self.rule.declared()

    def sort_key(self, value: str) -> Any:
        """Order as the rule does."""
        return self.rule.sort_key(value)

    def remedy(self) -> str:
        """Return what the rule says."""
        return self.rule.remedy()

    def level_names(self) -> tuple[str, ...]:
        """Return the rule's names of levels."""
        return self.rule.level_names()


def _widths_or_cuts(value: object, handler: Any) -> object:
    if not isinstance(value, Mapping):
        return handler(value)
    if ("widths" in value) == ("cuts" in value):
        raise ValueError("give exactly one of widths and cuts")
    return (Widths if "widths" in value else Cuts).model_validate(value)


def _listed_steps(value: object) -> object:
    if isinstance(value, list | tuple):
        return {"steps": value}
    if not isinstance(value, Mapping | Dates):
        raise ValueError("must be a list of steps, such as [day, month, year], or a mapping with steps and domain")
    return value


def _true_is_empty(value: object) -> object:
    if value is True or (isinstance(value, str) and value.lower() in ("true", "yes", "on")):
        return {}
    if not isinstance(value, Mapping | Flat):
        raise ValueError("must be true or a mapping with values")
    return value


class IntervalHierarchy(_Keyed):
    """Numeric values in intervals."""

    intervals: Annotated[Widths | Cuts, WrapValidator(_widths_or_cuts)] = Field(
        description="Numbers in intervals, by widths or by cuts."
    )


class MaskHierarchy(_Keyed):
    """Text masked character by character."""

    mask: Mask = Field(description="Text masked one character per step.")


class DateHierarchy(_Keyed):
    """Dates along the calendar."""

    dates: Annotated[Dates, BeforeValidator(_listed_steps, json_schema_input_type=tuple[DateStep, ...] | Dates)] = (
        Field(description="Dates along the calendar: the steps alone, or steps and domain.")
    )


class OrderHierarchy(_Keyed):
    """Ordinal values in groups of neighbours."""

    order: Order = Field(description="Ordinal values in groups of neighbours.")


class FlatHierarchy(_Keyed):
    """Disclosed or suppressed."""

    flat: Annotated[Flat, BeforeValidator(_true_is_empty, json_schema_input_type=Literal[True] | Flat)] = Field(
        description="Disclosed or suppressed: true, or the values there may be."
    )


_KINDS: dict[str, type[Builder]] = {
    "file": FileHierarchy,
    "tree": TreeHierarchy,
    "tree_file": TreeHierarchy,
    "intervals": IntervalHierarchy,
    "mask": MaskHierarchy,
    "dates": DateHierarchy,
    "order": OrderHierarchy,
    "flat": FlatHierarchy,
}


def _by_kind(value: object, _handler: Any) -> object:
    """Choose the model by the one key that names a kind, so that a fault is reported at its own key only."""
    if isinstance(value, Builder):
        if type(value) not in _KINDS.values():
            raise ValueError(f"{type(value).__name__} is a rule; put it under the key of its kind")
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"a hierarchy must be a mapping with one of the keys {listing(list(_KINDS))}")
    given = [str(key) for key in value]
    kinds = [key for key in given if key in _KINDS]
    if len(kinds) > 1:  # a dumped policy has every key, null where it is not used
        kinds = [key for key in kinds if value[key] is not None]
    if len(kinds) > 1:
        raise ValueError(f"a hierarchy must be of one kind; got {listing(kinds)}: leave one, or make the others null")
    if not kinds:
        said = f"'{given[0]}'{nearest(given[0], list(_KINDS))}" if given else "none"
        raise ValueError(f"a hierarchy must be one of {listing(list(_KINDS))}; got {said}")
    model = _KINDS[kinds[0]]
    unused = {key for key in value if key in _KINDS and key not in model.model_fields and value[key] is None}
    return model.model_validate({key: content for key, content in value.items() if key not in unused})


HierarchySpec = Annotated[
    FileHierarchy | TreeHierarchy | IntervalHierarchy | MaskHierarchy | DateHierarchy | OrderHierarchy | FlatHierarchy,
    WrapValidator(_by_kind),
]
"""The type of a ``hierarchy:`` field of the policy."""


def is_public(spec: Builder) -> bool:
    """Return whether the leaves are declared by the policy, independent of the data. Reads no file."""
    return spec.public


def build(
    spec: Builder,
    attribute: str,
    *,
    values: Iterable[str] | None = None,
    null_leaf: bool = False,
    numbers: bool = False,
) -> Hierarchy:
    """Build the hierarchy of an attribute.

    Parameters
    ----------
    spec : Builder
        What the policy says.
    attribute : str
        Name of the attribute, for messages.
    values : iterable of str, optional
        Values of the column, in any order and number. Ignored where the policy declares the leaves.
        Otherwise those understood become the leaves, in canonical order (numbers by size, else by text):
        one set of values always gives one numbering.
    null_leaf : bool
        Add a leaf for null.
    numbers : bool
        Whether a column holds numbers or booleans. Then, and if the rule is one of numbers, all texts of one number, of
        true and of false are one value.

    Returns
    -------
    Hierarchy
        With ``public`` false if the leaves come from the data.

    Raises
    ------
    HierarchyError
        The file or tree is refused, there is no value or none is understood, or there are more than `MAX_LEAVES`.
    """
    rule = spec.rule if isinstance(spec, _Keyed) else spec
    numbers = numbers or rule.numbers
    names = rule.level_names()
    if rule.public:
        paths, root = rule.rooted_paths(attribute)
        _refuse_equal_labels(attribute, paths, root, public=True)
        return Hierarchy.from_paths(attribute, paths, root=root, null_leaf=null_leaf, steps=names, numbers=numbers)
    given = {equal_text(value) if numbers else value for value in values or ()}
    if not given:
        raise HierarchyError(
            f"hierarchy of '{attribute}': no value of the column is there, every one is missing, and the leaves were "
            f"to come from them: it takes {rule.understands}. Declare the values there may be, or leave the column out."
        )
    understood = {value: path for value in given if (path := rule.path(value)) is not None}
    if not understood:
        raise HierarchyError(
            f"hierarchy of '{attribute}': no value of the column is understood; it takes {rule.understands}."
        )
    paths = [understood[value] for value in sorted(understood, key=rule.sort_key)]
    _refuse_equal_labels(attribute, paths, ROOT, public=False)
    return Hierarchy.from_paths(attribute, paths, null_leaf=null_leaf, public=False, steps=names, numbers=numbers)


def _refuse_equal_labels(attribute: str, paths: Sequence[LeafPath], root: str, *, public: bool) -> None:
    remedy = "make the labels of groups differ" if public else "a value of the column is written like a generalized one"
    refuse_equal_labels(paths, root=root, where=lambda _: message_head(attribute), public=public, remedy=remedy)
