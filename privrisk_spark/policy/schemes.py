"""A fitted scheme as a file: what was fitted, to what, what it achieved, and who approved it.

The file is written by ``privrisk fit``, approved by ``privrisk approve``, and named by ``guarantee.scheme`` of a policy
or ``privrisk release --scheme``. An approval holds for the content it was given for: its digest is recorded. It is no
signature; who may write the file may approve it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.policy.types import NUMBER, Day, Finite, Instant, Natural, NullPolicy, Part, Text
from privrisk_spark.storage.whole_files import contents

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class SchemeColumn(Part):
    """A quasi-identifier, and what a level of it means."""

    name: Text
    level: Natural = Field(description="Of every released value, cut at its depth.")
    height: Natural = Field(description="Of the hierarchy: the level of a suppressed value.")
    hierarchy: Sha256 = Field(
        description="Digest of the hierarchy, or of how it is built where leaves are the table's."
    )
    nulls: NullPolicy

    @model_validator(mode="after")
    def is_of_the_hierarchy(self) -> SchemeColumn:
        """Refuse a level that the hierarchy does not have."""
        if self.level > self.height:
            raise ValueError(f"level must be at most {self.height}, the height of its hierarchy; it is {self.level}")
        return self


class MetricValue(Part):
    """A metric, and what it came to."""

    name: Text
    value: Finite


class Achieved(Part):
    """What a scheme came to on a table."""

    rows: Natural
    suppressed: Natural
    classes: Natural
    metric: MetricValue


class Approval(Part):
    """Who approved a scheme."""

    by: Text
    at: Instant
    digest: Sha256 = Field(description="Of the content that was approved.")


class FittedScheme(Part):
    """A scheme that was fitted to a table."""

    version: Annotated[Literal[1], NUMBER] = Field(description="Version of the form of this file: 1.")
    name: Text = Field(description="run.name of the policy.")
    date: Day = Field(description="Business date of the table.")
    policy_digest: Sha256
    guarantee: dict[str, Any] = Field(description="As the policy asked for it.")
    columns: list[SchemeColumn] = Field(min_length=1)
    achieved: Achieved
    method: Text
    nodes_evaluated: Natural
    optimal: bool
    approvals: list[Approval] = Field(default_factory=list)

    def digest(self) -> str:
        """SHA-256 of everything but the approvals, hex."""
        return hashlib.sha256(self.model_dump_json(exclude={"approvals"}).encode()).hexdigest()

    @property
    def approval(self) -> Approval | None:
        """The last approval of this very content; None if there is none."""
        digest = self.digest()
        return next((one for one in reversed(self.approvals) if one.digest == digest), None)

    def approved(self, by: str, at: dt.datetime) -> FittedScheme:
        """Return the scheme with one more approval, of what it holds now."""
        one = Approval(by=by, at=at, digest=self.digest())
        return self.model_copy(update={"approvals": [*self.approvals, one]})


def read_scheme(path: str, *, key: str) -> FittedScheme:
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
        return FittedScheme.model_validate_json(contents(path))
    except OSError as error:
        raise ConfigError([Fault(key, f"'{path}' cannot be read: {error.strerror or error}")]) from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        at = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError([Fault(key, f"'{path}' is no scheme of `privrisk fit`: {at}: {first['msg']}")]) from None
