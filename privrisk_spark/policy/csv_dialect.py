"""How the rows of a CSV table are written: what ``options`` of the format csv may set."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from privrisk_spark.errors import ConfigError, Fault, listing, nearest
from privrisk_spark.policy.types import Natural, Part


def _check_sign(text: str) -> str:
    if len(text) != 1 or not text.isascii() or text in "\r\n":
        raise ValueError("must be one ASCII character, and no line end")
    return text


def _check_encoding(name: str) -> str:
    try:
        " ".encode(name)
    except LookupError:  # unknown, or a codec of bytes such as hex
        raise ValueError("must be an encoding that Python knows, such as UTF-8, windows-1252 or UTF-16") from None
    return name


def _take_tab(given: object) -> object:
    return "\t" if given == r"\t" else given


Sign = Annotated[str, AfterValidator(_check_sign)]


class CsvDialect(Part):
    """How rows are written: RFC 4180 unless an option differs.

    Attributes are named as options, with underscores.
    """

    header: bool = Field(False, description="The first line has the names of the columns.")
    sep: Annotated[Sign, BeforeValidator(_take_tab)] = Field(",", description="Between two values; `\\t` is a tab.")
    quote: Sign | Literal[""] = Field('"', description="Around a value; empty: quotes mean nothing.")
    escape: Sign | None = Field(None, description="Before a quote within quotes. By default quotes are doubled.")
    encoding: Annotated[str, AfterValidator(_check_encoding)] = Field("UTF-8", description="Character encoding.")
    null_value: str = Field("", description="Text that means a missing value; an empty value is missing, too.")
    empty_value: str = Field("", description="What two quotes with nothing between them stand for.")
    comment: Sign | None = Field(None, description="Lines that begin with it are skipped.")
    multi_line: bool = Field(False, description="Values in quotes may hold line breaks.")
    skip_rows: Natural = Field(0, description="Lines above the header, such as a title, that are left out.")
    mode: Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"] | None = Field(
        None, description="What is done with malformed lines. By default a run that finds one is refused."
    )

    @property
    def is_divisible(self) -> bool:
        """Whether a task can begin anywhere in a file: a line end is one byte, and no record has two lines."""
        name = codecs.lookup(self.encoding).name
        return not self.multi_line and (name == "utf-8" or name.startswith(("ascii", "iso8859", "cp125")))

    @property
    def escape_sign(self) -> str | None:
        """The sign before a quote within quotes; None if quotes are doubled."""
        return None if self.escape == self.quote else self.escape

    @property
    def spark_options(self) -> dict[str, str]:
        """The same for Spark's own reader, which knows no ``skipRows``."""
        found = {
            "header": str(self.header),
            "sep": self.sep,
            "quote": self.quote,
            "escape": self.escape or self.quote or '"',
            "encoding": self.encoding,
            "nullValue": self.null_value,
            "emptyValue": self.empty_value,
            "multiLine": str(self.multi_line),
            "mode": self.mode or "PERMISSIVE",
        }
        return found if self.comment is None else found | {"comment": self.comment}


CSV_OPTIONS: Final = {
    "header": "header", "sep": "sep", "delimiter": "sep", "quote": "quote", "escape": "escape", "encoding": "encoding",
    "charset": "encoding", "nullValue": "null_value", "emptyValue": "empty_value", "comment": "comment",
    "multiLine": "multi_line", "skipRows": "skip_rows", "mode": "mode",
}  # fmt: skip
"""Options as they are written, in any case of the letters, and what they set."""


def find_csv_faults(options: Mapping[str, str], key: str) -> Iterable[Fault]:
    """Yield what is wrong with the options of a CSV table.

    Parameters
    ----------
    key : str
        Where they are in the policy.
    """
    try:
        parse_csv_dialect(options, key)
    except ConfigError as error:
        yield from error.faults


def parse_csv_dialect(options: Mapping[str, str], key: str) -> CsvDialect:
    """Return what the options of a CSV table set.

    Parameters
    ----------
    options : mapping
        Names in any case of the letters.
    key : str
        Where they are in the policy, for messages.

    Raises
    ------
    ConfigError
        Naming every option that is unknown or has a value that is not allowed.
    """
    known = {name.lower(): field for name, field in CSV_OPTIONS.items()}
    faults, given, written = [], dict[str, str](), dict[str, str]()
    for name, value in options.items():
        field = known.get(name.lower())
        if field is None:
            faults.append(Fault(f"{key}.{name}", _explain_unknown(name)))
        elif field in given:
            faults.append(Fault(f"{key}.{name}", f"sets the same as {written[field]}. Fix: leave one out"))
        else:
            given[field], written[field] = value, name
    if "mode" in given:
        given["mode"] = given["mode"].upper()
    try:
        found = CsvDialect.model_validate(given)
    except ValidationError as error:
        for item in error.errors(include_url=False):
            rule = item["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
            name = str(item["loc"][0])
            faults.append(Fault(f"{key}.{written[name]}", f"{rule}. Got {options[written[name]]!r}"))
        raise ConfigError(faults) from None
    if not faults:
        faults += _find_contradictions(found, written, key)
    if faults:
        raise ConfigError(faults)
    return found


def _explain_unknown(name: str) -> str:
    if name.lower() == "inferschema":
        return "is an unknown option of csv, whose values are texts. Fix: set columns.X.read: {cast: number}"
    names = list(CSV_OPTIONS)
    return f"is an unknown option of csv{nearest(name, names)}. Fix: use one of {listing(names)}"


def _find_contradictions(found: CsvDialect, written: Mapping[str, str], key: str) -> list[Fault]:
    faults = []
    if found.sep in (found.quote, found.comment):
        faults.append(Fault(f"{key}.{written.get('sep', 'sep')}", "must differ from quote and comment"))
    if found.comment == found.quote:
        faults.append(Fault(f"{key}.{written['comment']}", "must differ from quote"))
    if found.multi_line and found.comment is not None:
        rule = "must be left out with multiLine: a quote in a comment would begin a value. Fix: use skipRows"
        faults.append(Fault(f"{key}.{written['comment']}", rule))
    if found.multi_line and found.escape_sign is not None:
        rule = "goes with doubled quotes only. Fix: leave escape out, or write the table anew"
        faults.append(Fault(f"{key}.{written['multi_line']}", rule))
    return faults
