"""What was looked at so far and what was found, and how the tables, hierarchies and places of any run are looked at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.engine.failures import named
from privrisk_spark.engine.value_codes import ValueCodes
from privrisk_spark.errors import Fault, HierarchyError, InputError, PrivriskError, RefusedError, SchemaError
from privrisk_spark.hierarchies.builders import is_public
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.dictionaries import map_dictionary
from privrisk_spark.planning.readings import readings_of
from privrisk_spark.policy.dictionaries import DictionaryTable, Table
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.validation import Coverage, Job, Look, Validation
from privrisk_spark.runs.places import ResultPlace
from privrisk_spark.tables.completeness import collect_files_read
from privrisk_spark.tables.coverage import Held, collect_coverage, missing_forbidden, outside_hierarchy
from privrisk_spark.tables.opening import check_columns, collect_hierarchies, open_dictionary, read, readable
from privrisk_spark.tables.tidying import OpenTable, collect_values_read, tidied

Dictionaries = Sequence[tuple[DictionaryTable, DataFrame]]


@dataclass
class Looks:
    """What was looked at so far.

    Attributes
    ----------
    found : list of Look
        In which nothing was wrong.
    faults, refusals : list of Fault
    errors : list of PrivriskError
        As they were raised.
    unknown : list of str
        What only the run itself can tell.
    """

    found: list[Look] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    refusals: list[Fault] = field(default_factory=list)
    errors: list[PrivriskError] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @contextmanager
    def at(self, key: str) -> Iterator[None]:
        """Look at something: what it raises as a user's mistake or a refusal is kept, and all else goes on.

        Parameters
        ----------
        key : str
            Of the policy, for messages that name none apart.
        """
        try:
            with named():
                yield
        except InputError as error:
            self.errors.append(error)
            self.faults += [_keyed(fault, key) for fault in error.faults]
        except RefusedError as error:
            self.errors.append(error)
            self.refusals.append(_keyed(Fault("", str(error).removesuffix(".")), key))

    def saw(self, key: str, found: str) -> None:
        """Keep what is there, where nothing was wrong."""
        self.found.append(Look(key, found))

    def told(self, job: Job, run_id: str, plan: str | None) -> Validation:
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

    def raise_faults(self) -> None:
        """Raise what was found, if anything was.

        Raises
        ------
        InputError
            With every fault, or the one error there is.
        RefusedError
            If there is nothing to mend.
        """
        mistakes = [error for error in self.errors if isinstance(error, InputError)]
        if len(self.errors) == 1 or (self.errors and not mistakes):
            raise self.errors[0]
        if mistakes:
            raise InputError(self.faults)


def _keyed(fault: Fault, key: str) -> Fault:
    """Name the key of a fault whose message names it in its own words, or not at all."""
    if fault.path:
        return fault
    head, colon, rule = fault.rule.partition(": ")
    if colon and (head == key or head.startswith(f"{key}.")):
        return Fault(head, rule, fault.guide)
    return Fault(key, fault.rule, fault.guide)


def look_at_table(looks: Looks, spark: SparkSession, policy: Policy, table: DataFrame | None) -> OpenTable | None:
    """Look at the table's files and columns; return it even where columns are wrong, None where it cannot be opened.

    Parameters
    ----------
    looks : Looks
    spark : SparkSession
    policy : Policy
        By which the table is read.
    table : DataFrame or None
        Read instead of the policy's.
    """
    private, source = is_private(policy), table
    if source is None:
        with looks.at("table"):
            source = read(spark, policy.table, key="table", used=policy.used_columns, private=private)
    if source is None:
        return None
    opened = OpenTable(source, source, {})
    with looks.at("columns"):
        opened = tidied(source, readings_of(policy))
    with looks.at("columns"):
        check_columns(opened.rows, policy)
        looks.saw("columns", f"each of the table's {len(source.columns)} columns has a role, and a type that fits it")
    if table is None:
        with looks.at("table"):
            files = collect_files_read(spark, policy.table, opened.as_read, key="table", private=private)
            if files is not None:
                looks.saw("table", f"{files.processed:,} file{'' if files.processed == 1 else 's'}, read whole")
    if not private:
        with looks.at("columns"):
            collect_values_read(opened)
    return opened


def is_private(policy: Policy) -> bool:
    """Whether nothing that is said may depend on a row of the table."""
    return policy.guarantee.kind == "dp"


def look_at_hierarchies(
    looks: Looks, policy: Policy, opened: OpenTable | None, known: Dictionaries = (), *, given: bool
) -> dict[str, Hierarchy]:
    """Look at the hierarchies, and hold them against the values of the table; return those that can be built.

    Parameters
    ----------
    looks : Looks
    policy : Policy
        By which the table is read.
    opened : OpenTable or None
        As :func:`look_at_table` returns it.
    known : sequence of (DictionaryTable, DataFrame)
        Dictionaries that may hold leaves.
    given : bool
        Whether a caller gave the table.
    """
    there = [] if opened is None else readable(opened.rows, policy)
    open_names = [n for n, of in policy.quasi_identifiers.items() if n in there and not is_public(of.hierarchy)]
    if opened is not None and open_names and opened.rows.isEmpty():
        with looks.at("table"):
            raise SchemaError("table: it has no rows, and hierarchies whose leaves come from the data have none then.")
        open_names = []
    looked_at = {
        name: of
        for name, of in policy.columns.items()
        if name not in policy.quasi_identifiers
        or is_public(policy.quasi_identifiers[name].hierarchy)
        or name in open_names
    }
    found: dict[str, Hierarchy] = {}
    faults: list[Fault] = []
    with looks.at("table"):
        found = collect_hierarchies(
            policy.model_copy(update={"columns": looked_at}),
            None if opened is None else opened.rows,
            known if opened is not None else (),
            given=given,
            faults=faults,
        )
    with looks.at("columns"):
        if faults:
            raise HierarchyError(faults)
    told = {name: f"{one.n_leaves:,} leaves, levels {', '.join(one.level_names)}" for name, one in found.items()}
    held = {name: Held(name, ValueCodes.of_leaves(one)) for name, one in found.items() if name in there}
    coverage: dict[str, Coverage] = {}
    if is_private(policy):
        looks.unknown.append(
            "whether the hierarchies hold the values of the table, as nothing that is said under differential privacy "
            "may depend on its rows"
        )
    elif opened is not None:
        with looks.at("table"):
            coverage = collect_coverage(None if given else policy.table, opened.rows, held)
    for name, text in told.items():
        with looks.at(f"columns.{name}.hierarchy"):
            looks.saw(f"columns.{name}.hierarchy", text + _covered(policy, name, coverage.get(name)))
    return found


def _covered(policy: Policy, name: str, coverage: Coverage | None) -> str:
    """Say how a hierarchy holds a column, or refuse it as a run would.

    Raises
    ------
    SchemaError, HierarchyError
        If values are missing that must not, or are outside.
    """
    if coverage is None:
        return ""
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


def look_at_dictionary(
    looks: Looks, spark: SparkSession, dictionary: DictionaryTable, *, key: str
) -> tuple[DictionaryTable, OpenTable] | None:
    """Look at the files and columns of a dictionary; None where it cannot be read as the policy says.

    Parameters
    ----------
    looks : Looks
    spark : SparkSession
    dictionary : DictionaryTable
    key : str
        Of the policy.
    """
    opened = None
    with looks.at(key):
        opened = open_dictionary(spark, dictionary, key=key)
    if opened is None:
        return None
    with looks.at(key):
        collect_files_read(spark, dictionary, opened.as_read, key=key)
        collect_values_read(opened)
        looks.saw(key, f"{len(opened.rows.columns)} columns, among them all that the policy names")
    return dictionary, opened


def look_at_nodes(
    looks: Looks, dictionary: DictionaryTable, opened: OpenTable, hierarchies: Mapping[str, Hierarchy], *, key: str
) -> None:
    """Hold a dictionary's values against the nodes that the policy says they are.

    Parameters
    ----------
    looks : Looks
    dictionary : DictionaryTable
    opened : OpenTable
    hierarchies : mapping of attribute to Hierarchy
    key : str
        Of the policy.
    """
    held = {}
    for name, hierarchy in hierarchies.items():
        with looks.at(f"{key}.columns.{name}"):
            mapping = map_dictionary(dictionary, {name: hierarchy}, key=key)[name]
            if mapping is not None:
                held[name] = Held(mapping.column, ValueCodes.of(mapping.nodes, numbers=mapping.numbers))
    coverage: dict[str, Coverage] = {}
    with looks.at(key):
        coverage = collect_coverage(dictionary, opened.rows, held)
    for name, one in coverage.items():
        found = f"every value of {one.rows:,} rows is a node"
        if one.outside_rows:
            found = (
                f"{one.outside_values:,} value(s) in {one.outside_rows:,} of {one.rows:,} rows are no node, and fit "
                "suppressed values alone; if there should be fewer, see level, age_in and mapping"
            )
        looks.saw(f"{key}.columns.{name}", found)


def look_at_source(
    looks: Looks, spark: SparkSession, table: Table, *, key: str, used: Collection[str]
) -> DataFrame | None:
    """Look at the files of another table; None where it cannot be opened.

    Parameters
    ----------
    looks : Looks
    spark : SparkSession
    table : Table
    key : str
        Of the policy.
    used : collection of str
        Columns whose type must be readable.
    """
    frame = None
    with looks.at(key):
        frame = read(spark, table, key=key, used=used)
        collect_files_read(spark, table, frame, key=key)
        looks.saw(key, f"{len(frame.columns)} columns")
    return frame


def look_at_output(
    looks: Looks, policy: Policy, output: str | None, check: Callable[[Policy, str], ResultPlace]
) -> None:
    """Look at where findings would be written, if it is given.

    Parameters
    ----------
    looks : Looks
    policy : Policy
    output : str or None
    check : callable
        Returns the place, or raises.
    """
    if output is not None:
        with looks.at("--output"):
            check(policy, output).check_writable()
            looks.saw("--output", "can be written")
