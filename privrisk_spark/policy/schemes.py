"""A fitted scheme as a file: what was fitted, to what, what it achieved, and who approved it.

The file is written by ``privrisk fit``, approved by ``privrisk approve``, and named by ``guarantee.scheme`` of a policy
or ``privrisk release --scheme``. An approval holds for the content it was given for: its digest is recorded. It is no
signature; who may write the file may approve it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, TypeAdapter, ValidationError, model_validator

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.policy.types import NUMBER, Day, Finite, Instant, Natural, NullPolicy, Part, Text, unsaid
from privrisk_spark.storage.locations import AbsolutePath
from privrisk_spark.storage.whole_files import contents

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class RecodedColumn(Part):
    """A quasi-identifier, and what it was recoded by."""

    name: Text
    height: Natural = Field(description="Of the hierarchy: the level of a suppressed value.")
    hierarchy: Sha256 = Field(
        description="Digest of the hierarchy, or of how it is built where leaves are the table's."
    )
    nulls: NullPolicy


class SchemeColumn(RecodedColumn):
    """A quasi-identifier with one level for the whole table."""

    level: Natural = Field(description="Of every released value, cut at its depth.")

    @model_validator(mode="after")
    def is_of_the_hierarchy(self) -> SchemeColumn:
        """Refuse a level that the hierarchy does not have."""
        if self.level > self.height:
            raise ValueError(f"level must be at most {self.height}, the height of its hierarchy; it is {self.level}")
        return self


class PartitionColumn(RecodedColumn):
    """A quasi-identifier whose levels differ from class to class."""

    nodes: list[list[str | None]] = Field(
        description="Nodes that the cuts and classes refer to by their places here: each the labels from below the "
        "root down to it."
    )


class MetricValue(Part):
    """A metric, and what it came to."""

    name: Text
    value: Finite


class PeopleOfClasses(Part):
    """What the people of a population came to in the released classes."""

    fewest: Natural | None = Field(description="People of the class with the fewest; null where no class is released.")
    greatest_share: Annotated[float, Field(ge=0), NUMBER] | None = Field(
        description="Of them, the greatest share who are in the class; null where nobody is consistent with one."
    )


class Achieved(Part):
    """What a scheme came to on a table."""

    rows: Natural
    suppressed: Natural
    classes: Natural
    metric: MetricValue
    people: PeopleOfClasses | None = Field(None, exclude_if=unsaid)


class FittedPopulation(Part):
    """The people a scheme was held against."""

    digest: Sha256 = Field(description="Of them and of what makes one consistent with a class, whatever their order.")
    people: Natural = Field(description="Rows, or distinct persons, of the dictionary.")


class Approval(Part):
    """Who approved a scheme."""

    by: Text
    at: Instant
    digest: Sha256 = Field(description="Of the content that was approved.")


class Fitted(Part):
    """What was fitted to a table, whatever its form."""

    version: Annotated[Literal[1], NUMBER] = Field(description="Version of the form of this file: 1.")
    name: Text = Field(description="run.name of the policy.")
    date: Day = Field(description="Business date of the table.")
    policy_digest: Sha256
    guarantee: dict[str, Any] = Field(description="As the policy asked for it.")
    achieved: Achieved
    method: Text
    approvals: list[Approval] = Field(default_factory=list)

    def digest(self) -> str:
        """SHA-256 of everything but the approvals, hex."""
        return hashlib.sha256(self.model_dump_json(exclude={"approvals"}).encode()).hexdigest()

    @property
    def approval(self) -> Approval | None:
        """The last approval of this very content; None if there is none."""
        digest = self.digest()
        return next((one for one in reversed(self.approvals) if one.digest == digest), None)

    def approved(self, by: str, at: dt.datetime) -> Self:
        """Return it with one more approval, of what it holds now."""
        one = Approval(by=by, at=at, digest=self.digest())
        return self.model_copy(update={"approvals": [*self.approvals, one]})


class FittedScheme(Fitted):
    """One level for each quasi-identifier."""

    columns: list[SchemeColumn] = Field(min_length=1)
    nodes_evaluated: Natural
    optimal: bool
    population: FittedPopulation | None = Field(
        None, description="Where classes are held against the people of a dictionary.", exclude_if=unsaid
    )


class Cut(Part):
    """A region of the tree that is cut in one attribute."""

    region: Natural
    column: Natural = Field(description="Place in columns.")
    depth: Natural = Field(description="From the root, of the nodes that its parts have; 1 is below the root.")
    parts: list[tuple[Natural, Natural]] = Field(min_length=1, description="Node, and the region its records go to.")


class FittedPartition(Fitted):
    """A tree of cuts, whose classes have levels of their own."""

    columns: list[PartitionColumn] = Field(min_length=1)
    cuts: list[Cut] = Field(description="Of regions, of which 0 is the whole table.")
    groups: list[tuple[Natural, Natural]] = Field(description="Regions that are released, and the class of each.")
    classes: list[list[tuple[Natural, Natural]]] = Field(
        description="Depth from the root, and node, of each quasi-identifier in each class."
    )

    @model_validator(mode="after")
    def is_a_tree(self) -> FittedPartition:
        """Refuse what is no tree of regions that are reached once, or refers to what is not there."""
        regions = {0, *(region for cut in self.cuts for _, region in cut.parts)}
        if max(regions) >= len(regions) or not _is_tree(self.cuts, regions):
            raise ValueError(
                "cuts must be a tree: regions are numbered without gaps, each is cut once, and its parts come after it"
            )
        of_columns = [len(column.nodes) for column in self.columns]
        cut = {one.region for one in self.cuts}
        sound = (
            all(one.column < len(of_columns) and 1 <= one.depth <= self.columns[one.column].height for one in self.cuts)
            and all(node < of_columns[one.column] for one in self.cuts for node, _ in one.parts)
            and all(region in regions and region not in cut for region, _ in self.groups)
            and all(of < len(self.classes) for _, of in self.groups)
            and all(len(one) == len(of_columns) for one in self.classes)
            and len({tuple(one) for one in self.classes}) == len(self.classes)
            and all(
                depth <= column.height and node < len(column.nodes)
                for one in self.classes
                for (depth, node), column in zip(one, self.columns, strict=True)
            )
        )
        if not sound:
            raise ValueError(
                "cuts, groups and classes must refer to columns, nodes, regions and classes that are there"
            )
        return self


def _is_tree(cuts: list[Cut], regions: set[int]) -> bool:
    owners = [cut.region for cut in cuts]
    parents: dict[int, int] = {}
    for cut in cuts:
        for _, region in cut.parts:
            if region <= cut.region or parents.setdefault(region, cut.region) != cut.region:
                return False
    return len(owners) == len(set(owners)) and set(owners) <= regions


def _form(given: Any) -> str:
    of = given.get("cuts") if isinstance(given, dict) else getattr(given, "cuts", None)
    return "scheme" if of is None else "partition"


_FITTED: TypeAdapter[FittedScheme | FittedPartition] = TypeAdapter(
    Annotated[
        Annotated[FittedScheme, Tag("scheme")] | Annotated[FittedPartition, Tag("partition")], Discriminator(_form)
    ]
)


def read_scheme(path: str, *, key: str) -> FittedScheme | FittedPartition:
    """Read a fitted scheme.

    Parameters
    ----------
    path : str
        File, or its URI in an object store.
    key : str
        That names it, for errors.

    Raises
    ------
    ConfigError
        If it cannot be read, or is none.
    """
    try:
        return _FITTED.validate_json(contents(path))
    except OSError as error:
        place = AbsolutePath.of(path)
        raise ConfigError([Fault(key, f"'{place}' cannot be read: {error.strerror or error}")]) from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        at = ".".join(map(str, first["loc"][1:])) or "the file"
        raise ConfigError([Fault(key, f"'{path}' is no scheme of `privrisk fit`: {at}: {first['msg']}")]) from None
