"""What a person writes under ``hierarchy:`` for values that are taken as text: written out, masked or listed.

One frozen model per rule; each model is the builder: it gives the path of a value to the root, and the values it
declares itself. Whether leaves are declared matters beyond convenience: leaves taken from the data tell something
about the data, leaves declared in the policy do not.

A value a builder does not understand has no path. What then happens is the table's policy for unknown values, and not
decided here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from operator import mul
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_serializer,
    model_validator,
)

from privrisk_spark.errors import HierarchyError, listing
from privrisk_spark.hierarchies.files import paths_of_tree, read_arx, read_tree
from privrisk_spark.hierarchies.hierarchy import MAX_LEAVES, ROOT
from privrisk_spark.hierarchies.paths import MAX_HEIGHT, LeafPath
from privrisk_spark.hierarchies.yaml_texts import scalar_text
from privrisk_spark.storage.locations import AbsolutePath


def _as_written(path: str) -> str:
    """Return the text of a policy, which is the same on every machine."""
    return path.written if isinstance(path, AbsolutePath) else path


def _keep_absolute(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Keep an absolute path, because validation as a text drops how it was written."""
    return value if isinstance(value, AbsolutePath) else handler(value)


KEEP_ABSOLUTE = WrapValidator(_keep_absolute)
AS_WRITTEN = PlainSerializer(_as_written, return_type=str)
PathText = Annotated[str, Field(min_length=1), AfterValidator(AbsolutePath.of), KEEP_ABSOLUTE, AS_WRITTEN]
"""A path or URI: absolute for who uses it, and dumped as it is written."""


def _text(value: object) -> object:
    """Turn a scalar into its text; leave the rest for pydantic to refuse."""
    if value is None:
        raise ValueError("a label must be text; null is not, so write it in quotes")
    text = scalar_text(value)
    return value if text is None else text


def _filled(value: object) -> object:
    """Refuse an empty list before pydantic looks at its items: after, a wrong item counts as missing too."""
    if isinstance(value, list | tuple) and not value:
        raise ValueError("must hold at least one item")
    return value


_T = TypeVar("_T")
Some = Annotated[tuple[_T, ...], BeforeValidator(_filled), Field(json_schema_extra={"minItems": 1})]
Written = Annotated[str, BeforeValidator(_text, json_schema_input_type=str | int | float | bool)]
"""A scalar by its text as it is written."""
Label = Annotated[Written, Field(min_length=1)]


class Builder(BaseModel, ABC):
    """What all kinds share: how to get from values to paths."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    understands: ClassVar[str]
    """What a value must look like, for messages."""

    numbers: ClassVar[bool] = False
    """Whether every value is a number, so that texts of one number are one value."""

    @property
    def public(self) -> bool:
        """True if the leaves are declared by the policy, independent of the data. Reads no file."""
        return self.declared() is not None

    @abstractmethod
    def path(self, value: str) -> LeafPath | None:
        """Return ``(value, parent, …)`` without the root, or None if the value is not understood.

        Where leaves are declared, exactly the declared ones are understood. The root's own label never is: it
        stands for a suppressed value.
        """

    @abstractmethod
    def declared(self) -> Sequence[str] | None:
        """Return the leaves the policy declares, in order, or None if the data decide."""

    def remedy(self) -> str:
        """Return what to do with values that are not understood, for messages."""
        return "Add them"

    def level_names(self) -> tuple[str, ...]:
        """Return names of the levels from 0 up, as far as the rule has any; see `Hierarchy.level_names`."""
        return ()

    def named_level(self, level: int) -> str:
        """Return the name of a level that is not the root's."""
        names = self.level_names()
        return names[level] if level < len(names) else f"level {level}"

    def paths(self, attribute: str) -> list[LeafPath]:  # noqa: ARG002 - for files
        """Return the path of every declared leaf; `attribute` is for messages."""
        found = [self.path(value) for value in self.declared() or ()]
        return [path for path in found if path is not None]

    def rooted_paths(self, attribute: str) -> tuple[list[LeafPath], str]:
        """Return :meth:`paths`, and the label of the root."""
        return self.paths(attribute), ROOT

    def sort_key(self, value: str) -> Any:
        """Return what puts values into their canonical order: the text itself."""
        return value


# ------------------------------------------------------------------------------------- files and trees


class _Written(Builder):
    """Leaves written out with their paths."""

    labels: Literal["distinct", "qualify"] = Field(
        "distinct",
        description="Where two nodes have one label: distinct refuses them, qualify puts the labels above before it.",
    )

    @model_serializer(mode="wrap")
    def _without_silence(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return what says something: policies that mean the same keep the digest they had."""
        own: dict[str, Any] = handler(self)
        if own.get("labels") == "distinct":
            del own["labels"]
        return own

    @property
    def public(self) -> bool:
        """True: the leaves are written in the policy or a file of it."""
        return True

    @cached_property
    def _path_of(self) -> dict[str, LeafPath]:
        return {path[0]: path for path in self.paths("")}

    def path(self, value: str) -> LeafPath | None:
        """Return the path as written."""
        return self._path_of.get(value)

    def declared(self) -> Sequence[str]:
        """Return the leaves in the order written."""
        return list(self._path_of)

    @abstractmethod
    def paths(self, attribute: str) -> list[LeafPath]:
        """Read the paths; `attribute` is for messages."""


class FileHierarchy(_Written):
    """Hierarchy in a file of ARX: one row ``leaf;level 1;…;root`` per value."""

    understands: ClassVar[str] = "a value in the first column of the file"

    file: PathText = Field(description="CSV file in UTF-8, one row `leaf;level 1;…;root` per value, all of one root.")
    separator: Written = Field(";", pattern=r'^[^"\r\n]$', description="The character between cells.")

    def paths(self, attribute: str) -> list[LeafPath]:
        """Read the file."""
        return self.rooted_paths(attribute)[0]

    def rooted_paths(self, attribute: str) -> tuple[list[LeafPath], str]:
        """Read the file; see :func:`privrisk_spark.hierarchies.files.read_arx`."""
        return read_arx(self.file, attribute=attribute, separator=self.separator, qualify=self.labels == "qualify")


class TreeHierarchy(_Written):
    """Hierarchy as a nested mapping, in the policy or in a YAML or JSON file."""

    understands: ClassVar[str] = "a leaf of the tree"

    tree: dict[Any, Any] | None = Field(
        None,
        description="Nested mapping: a key is an inner node, a list holds leaves or further mappings.",
        examples=[{"*": {"North": ["a", "b"], "South": {"x": ["c"]}}}],
    )
    tree_file: PathText | None = Field(None, description="YAML or JSON file with such a mapping.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.tree is None) == (self.tree_file is None):
            raise ValueError("give exactly one of tree and tree_file")
        return self

    @field_validator("tree")
    @classmethod
    def _well_formed(cls, tree: dict[Any, Any] | None, info: ValidationInfo) -> dict[Any, Any] | None:
        if tree is not None:
            try:
                paths_of_tree(tree, "", qualify=info.data.get("labels") == "qualify")
            except HierarchyError as error:
                raise ValueError(str(error).removeprefix("hierarchy: ")) from error
        return tree

    def paths(self, attribute: str) -> list[LeafPath]:
        """Walk the tree; see :func:`privrisk_spark.hierarchies.files.paths_of_tree`."""
        if self.tree is not None:
            return paths_of_tree(self.tree, attribute, qualify=self.labels == "qualify")
        return read_tree(str(self.tree_file), attribute=attribute, qualify=self.labels == "qualify")


class Mask(Builder):
    """Text masked one character per step, such as 47906, 4790*, 479**.

    The fully masked value is the root. Values of different length are on different branches, each as deep
    as it has characters to mask.
    """

    understands: ClassVar[str] = "text, of the given length and within the domain if there are such"

    side: Literal["right", "left"] = Field("right", alias="from", description="The end that is masked first.")
    steps: int = Field(ge=1, lt=MAX_HEIGHT, strict=True, description="Most masked levels, one character each.")
    character: Written = Field("*", min_length=1, max_length=1, description="What stands for a masked character.")
    length: int | None = Field(None, ge=1, strict=True, description="Characters every value must have.")
    domain: Some[Written] | None = Field(
        None, max_length=MAX_LEAVES, description="All values there may be; declares the leaves."
    )

    @model_validator(mode="after")
    def _check_domain(self) -> Self:
        if self.domain is not None:
            _refuse_repeats("domain", self.domain)
            wrong = [value for value in self.domain if self._masked(value) is None]
            if wrong:
                length = "" if self.length is None else f" of {self.length} characters"
                got = listing([repr(value) for value in wrong])
                raise ValueError(f"domain must hold text{length} other than '{ROOT}'; got {got}")
        return self

    @cached_property
    def _domain(self) -> frozenset[str]:
        return frozenset(self.domain or ())

    def path(self, value: str) -> LeafPath | None:
        """Return the value and its masked forms."""
        return self._masked(value) if self.domain is None or value in self._domain else None

    def _masked(self, value: str) -> LeafPath | None:
        size = len(value)
        if not size or value == ROOT or self.length not in (None, size):
            return None
        masked = range(1, min(self.steps, size - 1) + 1)
        if self.side == "right":
            return (value, *(value[: size - count] + self.character * count for count in masked))
        return (value, *(self.character * count + value[count:] for count in masked))

    def declared(self) -> Sequence[str] | None:
        """Return the domain."""
        return self.domain

    def level_names(self) -> tuple[str, ...]:
        """Return how many characters are masked."""
        masked = (f"{count} character{'' if count == 1 else 's'} masked" for count in range(1, self.steps + 1))
        return ("as it is", *masked)


class Order(Builder):
    """Ordinal values in groups of neighbours, ``fanouts[0] · … · fanouts[j - 1]`` of them at level j."""

    understands: ClassVar[str] = "one of the values listed"

    values: Some[Label] = Field(max_length=MAX_LEAVES, description="All values, from least to greatest.")
    fanouts: Some[Annotated[int, Field(ge=2, strict=True)]] = Field(
        max_length=MAX_HEIGHT - 1,
        description="How many neighbours are grouped at each level; the last group may be smaller.",
    )

    @field_validator("values")
    @classmethod
    def _once(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        return _refuse_repeats("values", values)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {value: place for place, value in enumerate(self.values)}

    def path(self, value: str) -> LeafPath | None:
        """Return the value and the groups around it, labelled ``first..last``."""
        place = self._place.get(value)
        if place is None:
            return None
        return (value, *(self._group(place, size) for size in accumulate(self.fanouts, mul)))

    def _group(self, place: int, size: int) -> str:
        first = place - place % size
        last = min(first + size, len(self.values)) - 1
        return self.values[first] if first == last else f"{self.values[first]}..{self.values[last]}"

    def declared(self) -> Sequence[str]:
        """Return the values in their order."""
        return self.values

    def level_names(self) -> tuple[str, ...]:
        """Return how many neighbours are grouped."""
        return ("as it is", *(f"groups of {size}" for size in accumulate(self.fanouts, mul)))


class Flat(Builder):
    """A value is either disclosed or suppressed."""

    understands: ClassVar[str] = "one of the values listed, or any text if none are"

    values: Some[Label] | None = Field(
        None, max_length=MAX_LEAVES, description="All values there may be; declares the leaves."
    )

    @field_validator("values")
    @classmethod
    def _once(cls, values: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if values is None else _refuse_repeats("values", values)

    @cached_property
    def _listed(self) -> frozenset[str]:
        return frozenset(self.values or ())

    def path(self, value: str) -> LeafPath | None:
        """Return the value alone."""
        if value == ROOT or (self.values is not None and value not in self._listed):
            return None
        return (value,)

    def declared(self) -> Sequence[str] | None:
        """Return the values."""
        return self.values


def _refuse_repeats(key: str, values: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a value given twice, and the root's label."""
    seen = set[str]()
    for value in values:
        if value == ROOT:
            raise ValueError(f"{key} must not hold '{ROOT}', the label of the root")
        if value in seen:
            raise ValueError(f"{key} must hold each value once; '{value}' is listed twice")
        seen.add(value)
    return values
