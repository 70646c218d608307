"""What a table must have before it is read, and a release before it is published."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from privrisk_spark.policy.types import NUMBER, Count, Natural, NonNegative, Part, Text, unsaid


class RowCount(Part):
    """Range of the number of rows."""

    at_least: Natural = Field(1, description="Fewest rows the table may have.")
    at_most: Natural | None = Field(None, description="Most rows the table may have; null: any number.")


class Complete(Part):
    """What tells that the table has arrived whole; a run that comes too early ends with exit code 3."""

    marker: Text | None = Field(
        None, description="File that must lie in the table's directory, such as _SUCCESS.", pattern="^[^/]+$"
    )
    rows_at_least: Count | None = Field(None, description="Fewer rows are a part of the table.")
    written_within_days: Natural | None = Field(
        None,
        description="The newest data file must have been written no earlier than so many days before the business "
        "date; 0: on it, or later.",
    )


class Checks(Part):
    """Contracts a release must meet."""

    complete: Complete | None = Field(
        None, description="What the table must have before it is read, such as {marker: _SUCCESS}.", exclude_if=unsaid
    )
    row_count: RowCount = RowCount()
    min_class_size: Count | None = Field(None, description="Least class size of released quasi-identifiers.")
    max_mean_risk: NonNegative | None = Field(None, description="Mean weighted risk of the released records, at most.")
    max_risk: NonNegative | None = Field(None, description="Weighted risk of any released record, at most.")
    forbid_verbatim: bool = Field(False, description="No record may be released with all its original values.")
    kept_uniqueness_at_most: Annotated[float, Field(ge=0, le=1), NUMBER] | None = Field(
        None,
        description="Of no kept column may a greater share of the rows, or of the persons with table.entity_id, have a "
        "value that no other has.",
        exclude_if=unsaid,
    )
    fail_on: Literal["error", "warning"] = Field(
        "error", description="From which severity a failed check ends the run."
    )
