"""Rules of a differentially private policy that take several keys together; each fault names the key to mend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from privrisk_spark.errors import Fault, listing, nearest
from privrisk_spark.policy.csv_dialect import CSV_OPTIONS, find_csv_faults, parse_csv_dialect
from privrisk_spark.policy.dictionaries import Table, TableDictionary
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.private import AnyDp, GlobalDp, PeeledDp, PublicDp
from privrisk_spark.policy.rules.drawn import find_drawn_faults
from privrisk_spark.storage.directories import resolved


def find_private_faults(policy: Policy, dp: AnyDp) -> Iterable[Fault]:
    """Yield the errors of a differentially private policy that take several keys together."""
    if policy.ledger is None:
        yield Fault("ledger", "is required when guarantee.kind is 'dp'; write ledger: {url: …, lineage: …, cap: …}")
    quasi = policy.quasi_identifiers
    if isinstance(dp, PeeledDp | GlobalDp):
        yield from _impossible_vectors("guarantee.candidates", dp.candidates, len(quasi))
    else:
        yield from _impossible_vectors("guarantee.schemes", dp.schemes, len(quasi))
    limit = min(Decimal("1e-6"), Decimal(1) / (100 * dp.public_rows))
    if dp.delta > limit:
        yield Fault(
            "guarantee.delta", f"must be at most min(1e-6, 1/(100 · public_rows)) = {limit:.3g}. Got {dp.delta}"
        )
    if policy.dictionary.consistency == "similar":
        yield Fault("dictionary.consistency", "'similar' is not available under dp")
    if policy.counting.plan == "shuffle":
        yield Fault("counting.plan", "'shuffle' is not available under dp; choose 'iceberg' for large dictionaries")
    yield from find_drawn_faults(policy)
    yield from _readers_that_join_rows(policy.table)
    yield from _patterns(policy.table)
    for name in dp.public_shares:
        if name not in quasi:
            at = f"guarantee.public_shares.{name}"
            yield Fault(at, f"is not a quasi-identifier{nearest(name, list(quasi))}; there are {listing(list(quasi))}")
    if isinstance(dp, PublicDp):
        yield from _impossible_dictionary(policy)


def _impossible_vectors(key: str, vectors: Sequence[Sequence[int]] | None, length: int) -> Iterable[Fault]:
    first_at: dict[tuple[int, ...], int] = {}
    for position, scheme in enumerate(vectors or ()):
        at = f"{key}.{position}"
        if len(scheme) != length:
            yield Fault(
                at,
                f"must give one level for each of the {length} quasi-identifiers, in the order of columns. "
                f"Got {len(scheme)}",
            )
        first = first_at.setdefault(tuple(scheme), position)
        if first != position:
            yield Fault(at, f"repeats {key}.{first}; give each level vector once")


def _impossible_dictionary(policy: Policy) -> Iterable[Fault]:
    """Yield the errors of the dictionary in mode 'public-dictionary'."""
    if not isinstance(policy.dictionary, TableDictionary):
        yield Fault("dictionary.kind", f"must be 'table' in mode 'public-dictionary'. Got '{policy.dictionary.kind}'")
    elif not policy.dictionary.public:
        yield Fault("dictionary.public", "must be true in mode 'public-dictionary': state that the table is public")
    elif _source(policy.dictionary) == _source(policy.table):
        yield Fault("dictionary.path", "must be another table than the one released, which is not public")


READER_OPTIONS = {
    "csv": ("sep", "delimiter", "header", "quote", "escape", "encoding", "charset", "nullValue", "skipRows"),
    "parquet": (),
    "orc": (),
    "delta": (),
    "iceberg": (),
}
"""Formats of a table released under dp, and the reader options that leave a line of it a line."""


def _readers_that_join_rows(table: Table) -> Iterable[Fault]:
    """Yield what would make a row's values or the run's end depend on another row.

    A schema inferred from all rows does, and so does an option by which a quote that is left open swallows what
    follows, or a row that cannot be read stops the run.
    """
    if (
        table.catalog is not None and table.lake is None
    ):  # its format and options are those of the catalog: looked at when it is opened
        return
    given = table.format.lower()
    if given not in READER_OPTIONS:
        yield Fault(
            "table.format",
            f"'{table.format}' is refused under dp, where a schema must not come from the rows; convert it to parquet",
        )
        return
    allowed = READER_OPTIONS[given]
    there = f"{given} takes {listing(allowed)} there" if allowed else f"{given} takes none there"
    known = {option.lower() for option in CSV_OPTIONS}
    for name in table.options:
        if given == "csv" and name.lower() not in known:
            continue  # refused in any release
        if name.lower() not in [option.lower() for option in allowed]:
            yield Fault(
                f"table.options.{name}",
                "is refused under dp, as a reader option must not let one row decide about others or about how the "
                f"run ends; {there}. Leave it out, or convert the table to parquet",
            )
    if given == "csv" and not list(find_csv_faults(table.option_texts, "")):
        dialect = parse_csv_dialect(table.option_texts, "")
        if not dialect.is_divisible and not dialect.multi_line:
            yield Fault(
                "table.options.encoding",
                "must be UTF-8 or have one byte per letter under dp: one line must not change how others are read. "
                f"Got '{dialect.encoding}'. Fix: write the table in UTF-8",
            )
    headers = [value.lower() for name, value in table.option_texts.items() if name.lower() == "header"]
    if given == "csv" and headers != ["true"]:
        yield Fault(
            "table.options.header",
            "must be true under dp: without a header the columns would be read off the first row. "
            f"Got {listing(headers) or 'none'}",
        )


def _patterns(table: Table) -> Iterable[Fault]:
    """Yield a path that Spark takes for a pattern, by which one table could have many names."""
    marks = sorted(set("*?[{\\").intersection(table.path or "")) if table.lake is None else []
    if marks:
        yield Fault(
            "table.path",
            f"must name one file or directory under dp, without {listing(marks)}, which make it a pattern; name the "
            f"directory of the files, or rename it. Got '{table.path}'",
        )


def _source(table: Table) -> str:
    if table.catalog is not None:
        return f"catalog {table.catalog}"
    return str(resolved(table.path or "")) if "://" not in (table.path or "") else str(table.path)
