"""The order in which every job opens its tables and builds its hierarchies.

A run raises the first error. An :class:`Inspection` for ``privrisk validate`` collects every error instead, goes on
with what could be opened, and also checks that hierarchies and dictionaries hold the values of the tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.engine.failures import named
from privrisk_spark.engine.value_codes import ValueCodes
from privrisk_spark.errors import Fault, HierarchyError, InputError, PrivriskError, RefusedError, SchemaError
from privrisk_spark.hierarchies.builders import is_public
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.dictionaries import map_dictionary
from privrisk_spark.planning.readings import readings_of
from privrisk_spark.policy.dictionaries import DictionaryTable, OneDictionary, Table
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.facts import FilesRead, ValuesRead
from privrisk_spark.results.validation import Coverage, Job, Look, Validation
from privrisk_spark.tables.completeness import collect_enough_rows, collect_files_read
from privrisk_spark.tables.opening import check_columns, collect_hierarchies, open_dictionary, read, readable
from privrisk_spark.tables.tidying import OpenTable, collect_values_read, recoded, tidied

if TYPE_CHECKING:
    from privrisk_spark.tables.links import OpenLinks


@dataclass
class Inspection:
    """Errors and findings so far.

    Attributes
    ----------
    collects : bool
        Whether errors are collected; otherwise the first one is raised.
    found : list of Look
        Findings without an error.
    errors : list of PrivriskError
        As they were raised.
    unknown : list of str
        What only the run itself can tell.
    """

    collects: bool = True
    found: list[Look] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    refusals: list[Fault] = field(default_factory=list)
    errors: list[PrivriskError] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @contextmanager
    def at(self, key: str) -> Iterator[None]:
        """Do a step: collect its error, if it is a user's mistake or a refusal, and go on.

        Parameters
        ----------
        key : str
            Of the policy, for messages that name none.
        """
        if not self.collects:
            yield
            return
        try:
            with named():
                yield
        except InputError as error:
            self.errors.append(error)
            keyed = [_keyed(fault, key) for fault in error.faults]
            self.faults += [fault for fault in keyed if fault not in self.faults]
        except RefusedError as error:
            self.errors.append(error)
            self.refusals.append(_keyed(Fault("", str(error).removesuffix(".")), key))

    def note(self, key: str, found: str) -> None:
        """Keep what was found without an error."""
        if self.collects:
            self.found.append(Look(key, found))

    def conclude(self, job: Job, run_id: str, plan: str | None) -> Validation:
        """Return all of it."""
        return Validation(
            job,
            run_id,
            tuple(self.found),
            tuple(self.faults),
            tuple(self.refusals),
            tuple(self.unknown),
            plan if not self.errors else None,
        )

    def raise_errors(self) -> None:
        """Raise the errors, if there are any.

        Raises
        ------
        InputError
            With every fault, or the only error.
        RefusedError
            If there is nothing to fix.
        """
        mistakes = [error for error in self.errors if isinstance(error, InputError)]
        if len(self.errors) == 1 or (self.errors and not mistakes):
            raise self.errors[0]
        if mistakes:
            raise InputError(self.faults)


FIRST_ERROR = Inspection(collects=False)
"""Raises the first error, as a run does."""


def _keyed(fault: Fault, key: str) -> Fault:
    """Name the key of a fault whose message names it in its own words, or not at all."""
    if fault.path:
        return fault
    head, colon, rule = fault.rule.partition(": ")
    if colon and (head == key or head.startswith(f"{key}.")):
        return Fault(head, rule, fault.guide)
    return Fault(key, fault.rule, fault.guide)


@dataclass(frozen=True, eq=False)
class Sources:
    """Tables as Spark opened them, their columns checked, their values tidied. An inspection may lack some.

    Attributes
    ----------
    given : bool
        Whether the caller gave the table, so that it is read by Spark only.
    opened : OpenTable or None
        The table; in a release with its kept columns recoded. None in an inspection that could not open it.
    external : dict of key to (DictionaryTable, OpenTable)
        The dictionaries that are not the table itself.
    dictionaries : dict of name to DataFrame
        The same.
    links : OpenLinks or None
        The linkage table.
    files : FilesRead or None
        Of the table; None if the caller gave it, and on other file systems.
    values : tuple of ValuesRead
        What reading changed, in the table (not under dp) and in the dictionaries.
    """

    given: bool
    opened: OpenTable | None
    external: dict[str, tuple[DictionaryTable, OpenTable]]
    dictionaries: dict[str, DataFrame]
    links: OpenLinks | None
    files: FilesRead | None
    values: tuple[ValuesRead, ...]

    @property
    def table(self) -> DataFrame:
        """Rows of the table."""
        assert self.opened is not None, "an inspection that could not open the table does not read it"
        return self.opened.rows


def open_sources(
    spark: SparkSession,
    policy: Policy,
    table: DataFrame | None,
    dictionaries: Sequence[OneDictionary] = (),
    *,
    release: bool = False,
    recode: bool = False,
    inspection: Inspection = FIRST_ERROR,
) -> Sources:
    """Open the table and its dictionaries, and refuse those of which not every row and value can be read.

    Nothing that is counted or refused depends on a row of a table that is released privately.

    Parameters
    ----------
    policy : Policy
        By which the table is read.
    table : DataFrame or None
        Read instead of the policy's table.
    release : bool
        Also open the linkage table, and require the rows that ``checks.complete`` names.
    recode : bool
        Also recode kept columns, as they are released.
    inspection : Inspection, optional
        Collects errors.

    Raises
    ------
    SchemaError
        If one cannot be opened, or its columns are not those of the policy.
    """
    at, private = inspection.at, policy.guarantee.private
    opened = _open_table(spark, policy, table, recode=recode, inspection=inspection)
    external = {}
    for one in dictionaries:
        if one.table is not None:
            with at(one.key):
                external[one.key] = one.table, open_dictionary(spark, one.table, key=one.key)
    frames = {one.name: external[one.key][1].rows for one in dictionaries if one.key in external}
    links = None
    with at("linkage"):
        known = all(one.table is None or one.key in external for one in dictionaries)
        if release and policy.linkage is not None and known:
            from privrisk_spark.tables.links import open_links

            links = open_links(spark, policy, frames)
    files: FilesRead | None = None
    values: tuple[ValuesRead, ...] = ()
    if opened is not None:
        with at("table"):
            if table is None:
                files = collect_files_read(spark, policy.table, opened.as_read, key="table", private=private)
            if files is not None:
                inspection.note("table", f"{files.processed:,} file{'' if files.processed == 1 else 's'}, read whole")
                used = tuple(name for name in files.rounded if name in policy.used_columns)
                files = replace(files, rounded=used)
        if release and policy.checks.complete is not None and not inspection.collects:
            collect_enough_rows(opened.as_read, policy.checks.complete, said=None if files is None else files.rows)
        with at("columns"):
            values += () if private else collect_values_read(opened)
    for key, (source, attackers) in external.items():
        with at(key):
            collect_files_read(spark, source, attackers.as_read, key=key)
            values += collect_values_read(attackers)
            inspection.note(key, f"{len(attackers.rows.columns)} columns, among them all that the policy names")
    if links is not None:
        with at("linkage"):
            collect_files_read(spark, links.given, links.links, key="linkage")
    return Sources(table is not None, opened, external, frames, links, files, values)


def _open_table(
    spark: SparkSession, policy: Policy, table: DataFrame | None, *, recode: bool, inspection: Inspection
) -> OpenTable | None:
    """Open the table; an inspection goes on with one whose columns have faults."""
    if table is None:
        with inspection.at("table"):
            private = policy.guarantee.private
            table = read(spark, policy.table, key="table", used=policy.used_columns, private=private)
    if table is None:
        return None
    opened = OpenTable(table, table, {})
    with inspection.at("columns"):
        opened = tidied(table, readings_of(policy))
    with inspection.at("columns"):
        check_columns(opened.rows, policy)
        n_columns = len(table.columns)
        inspection.note("columns", f"each of the table's {n_columns} columns has a role, and a type that fits it")
        if recode:
            opened = replace(opened, rows=recoded(opened.rows, policy))
    return opened


def open_source(
    spark: SparkSession, table: Table, *, key: str, used: Collection[str], inspection: Inspection = FIRST_ERROR
) -> DataFrame | None:
    """Open another table, and refuse one of which not every row can be read; None if it cannot be opened.

    Parameters
    ----------
    key : str
        Of the policy.
    used : collection of str
        Columns whose type must be readable.
    inspection : Inspection, optional
        Collects errors.
    """
    frame = None
    with inspection.at(key):
        frame = read(spark, table, key=key, used=used)
        collect_files_read(spark, table, frame, key=key)
        inspection.note(key, f"{len(frame.columns)} columns")
    return frame


def open_hierarchies(
    policy: Policy,
    sources: Sources,
    more: Sequence[tuple[DictionaryTable, DataFrame]] = (),
    *,
    inspection: Inspection = FIRST_ERROR,
) -> dict[str, Hierarchy]:
    """Build the hierarchies, which reads the table only if leaves come from the data.

    Parameters
    ----------
    policy : Policy
        By which the table is read.
    more : sequence of (DictionaryTable, DataFrame)
        Other tables that hold leaves.
    inspection : Inspection, optional
        Collects errors, leaves out what cannot be built, and checks that the hierarchies hold the values of the tables.

    Raises
    ------
    SchemaError
        If leaves come from the data, and there are no rows.
    HierarchyError
        Naming every hierarchy that cannot be built.
    """
    table, rows = sources.opened, None if sources.files is None else sources.files.rows
    there = [] if table is None else readable(table.rows, policy)
    from_data = [n for n, of in policy.quasi_identifiers.items() if n in there and not is_public(of.hierarchy)]
    if table is not None and from_data and (table.rows.isEmpty() if rows is None else not rows):
        with inspection.at("table"):
            raise SchemaError("table: it has no rows, and hierarchies whose leaves come from the data have none then.")
        from_data = []
    columns = {
        name: of
        for name, of in policy.columns.items()
        if name not in policy.quasi_identifiers
        or is_public(policy.quasi_identifiers[name].hierarchy)
        or name in from_data
    }
    complete = len(columns) == len(policy.columns)
    found: dict[str, Hierarchy] = {}
    faults: list[Fault] = []
    with inspection.at("table"):
        found = collect_hierarchies(
            policy if complete else policy.model_copy(update={"columns": columns}),
            None if table is None else table.rows,
            [*((of, one.rows) for of, one in sources.external.values()), *more] if table is not None else [],
            given=sources.given,
            faults=faults,
        )
    with inspection.at("columns"):
        if faults:
            raise HierarchyError(faults)
    if inspection.collects:
        _check_values(policy, sources, found, there, inspection)
        for key, (source, attackers) in sources.external.items():
            _check_nodes(source, attackers, found, key=key, inspection=inspection)
    return found


def _check_values(
    policy: Policy, sources: Sources, hierarchies: dict[str, Hierarchy], there: list[str], inspection: Inspection
) -> None:
    """Check that the hierarchies hold the values of the table."""
    from privrisk_spark.tables.coverage import Held, collect_coverage

    held = {name: Held(name, ValueCodes.of_leaves(one)) for name, one in hierarchies.items() if name in there}
    coverage: dict[str, Coverage] = {}
    if policy.guarantee.private:
        inspection.unknown.append(
            "whether the hierarchies hold the values of the table, as nothing that is said under differential privacy "
            "may depend on its rows"
        )
    elif sources.opened is not None:
        with inspection.at("table"):
            coverage = collect_coverage(None if sources.given else policy.table, sources.table, held)
    for name, one in hierarchies.items():
        key = f"columns.{name}.hierarchy"
        with inspection.at(key):
            text = f"{one.n_leaves:,} leaves, levels {', '.join(one.level_names)}"
            inspection.note(key, text + _describe_coverage(policy, name, coverage.get(name)))


def _describe_coverage(policy: Policy, name: str, coverage: Coverage | None) -> str:
    """Describe how a hierarchy holds a column, or refuse it as a run would.

    Raises
    ------
    SchemaError, HierarchyError
        If values are missing that must not, or are outside.
    """
    if coverage is None:
        return ""
    from privrisk_spark.tables.coverage import missing_forbidden, outside_hierarchy

    spec = policy.quasi_identifiers[name]
    if coverage.missing and spec.nulls == "forbid":
        raise SchemaError([missing_forbidden(name, coverage.missing)])
    missing = f"; {coverage.missing:,} rows have no value ({spec.nulls})" if coverage.missing else ""
    if not coverage.outside_rows:
        return f"; every value of {coverage.rows:,} rows is in it{missing}"
    if spec.unknown != "suppress":
        where = f"privrisk hierarchy check POLICY --column {name} --values shows them"
        outside = coverage.outside_values, coverage.outside_rows
        raise HierarchyError([outside_hierarchy(name, spec.hierarchy, *outside, where)])
    return (
        f"; {coverage.outside_values:,} value(s) in {coverage.outside_rows:,} row(s) are not in it, and suppressed"
        f"{missing}"
    )


def _check_nodes(
    dictionary: DictionaryTable,
    opened: OpenTable,
    hierarchies: dict[str, Hierarchy],
    *,
    key: str,
    inspection: Inspection,
) -> None:
    """Check that a dictionary's values are the nodes that the policy names."""
    from privrisk_spark.tables.coverage import Held, collect_coverage

    held = {}
    for name, hierarchy in hierarchies.items():
        with inspection.at(f"{key}.columns.{name}"):
            mapping = map_dictionary(dictionary, {name: hierarchy}, key=key)[name]
            if mapping is not None:
                held[name] = Held(mapping.column, ValueCodes.of(mapping.nodes, numbers=mapping.numbers))
    coverage: dict[str, Coverage] = {}
    with inspection.at(key):
        coverage = collect_coverage(dictionary, opened.rows, held)
    for name, one in coverage.items():
        found = f"every value of {one.rows:,} rows is a node"
        if one.outside_rows:
            found = (
                f"{one.outside_values:,} value(s) in {one.outside_rows:,} of {one.rows:,} rows are no node, and fit "
                "suppressed values alone; if there should be fewer, see level, age_in and mapping"
            )
        inspection.note(f"{key}.columns.{name}", found)
