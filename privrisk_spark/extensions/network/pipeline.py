"""What the members of a network show each other: the order of stages, and every Spark action of it.

read → encode → connect → decide → report

Profiles, edges and decisions stay in files that tasks write and map: nothing that grows with the network comes to the
driver but the few users of the greatest loss. All of it is for the trusted zone alone.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.engine.value_codes import ids_are_numbers
from privrisk_spark.errors import SchemaError
from privrisk_spark.extensions.network.kernels.connection import parts_of
from privrisk_spark.extensions.network.page import explain_sharing, render_sharing
from privrisk_spark.extensions.network.planning import (
    EDGES,
    PAIRS,
    curve_of,
    examples_of,
    in_words,
    notes_of,
    read_policy,
    relations_of,
    spread_in_words,
)
from privrisk_spark.extensions.network.policy import (
    FriendOfFriendPairs,
    FriendPairs,
    GivenPairs,
    SampledPairs,
    SharingPolicy,
    UserAttributes,
    sharing_of,
)
from privrisk_spark.extensions.network.results import Connection, Exposed, Network, SharingResult
from privrisk_spark.extensions.network.rules import tables_of
from privrisk_spark.extensions.network.stages.deciders import SENSITIVITY, TRUST, UTILITY, collect_decider
from privrisk_spark.extensions.network.stages.deciding import (
    REASONS,
    RELATIONS,
    DecidedSlices,
    Ground,
    collect_curve,
    collect_decisions,
    read_first,
    write_decisions,
)
from privrisk_spark.extensions.network.stages.diffusing import ByDiffusion
from privrisk_spark.extensions.network.stages.network import StoredNetwork
from privrisk_spark.extensions.network.stages.pairs import collect_friends_of_friends, collect_sample, friendliness
from privrisk_spark.extensions.network.stages.profiles import store_trees
from privrisk_spark.extensions.network.stages.user_pairs import (
    StoredPairs,
    check_columns,
    collect_buckets,
    collect_pieces,
    columns_of,
)
from privrisk_spark.extensions.network.stages.users import StoredUsers, collect_users
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.json_values import as_json
from privrisk_spark.pipelines.opening import (
    FIRST_ERROR,
    Inspection,
    Sources,
    open_hierarchies,
    open_source,
    open_sources,
)
from privrisk_spark.pipelines.run import Announce, ResultRun, start_run
from privrisk_spark.planning.places import check_private_place
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.places import ResultPlace
from privrisk_spark.runs.progress import warn_of_one_row, write_status
from privrisk_spark.tables.materialize import collect_codes
from privrisk_spark.tables.sources import files_only_spark_knows
from privrisk_spark.version import __version__

STAGES = 5

READ = ("table", "sharing")
"""Parts of a policy that name the tables that are read."""


def check_output(policy: Policy, output: str) -> ResultPlace:
    """Return the directory the decisions go to, resolved.

    Raises
    ------
    ConfigError
        If the policy does not say what to share, or it is no place for what stays private.
    """
    more = list(tables_of(sharing_of(policy)).items())
    return check_private_place(policy, output, what="decisions", more=more)


@dataclass(frozen=True, eq=False)
class Opened:
    """The tables, as Spark opened them.

    Attributes
    ----------
    sources : Sources
        The profiles.
    given : bool
        Whether the caller gave the edges, so that they are read by Spark only.
    hierarchies : dict of quasi-identifier to Hierarchy
    tables : dict of key to DataFrame
        What sharing reads besides the profiles.
    """

    sources: Sources
    given: bool
    hierarchies: dict[str, Hierarchy]
    tables: dict[str, DataFrame]


def share(
    spark: SparkSession,
    policy: Policy,
    *,
    place: ResultPlace,
    run_id: str,
    date: dt.date,
    profiles: DataFrame | None = None,
    edges: DataFrame | None = None,
    announce: Announce | None = None,
) -> SharingResult:
    """Decide what is shown, and write decisions, figures and report.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
        Its table, quasi-identifiers and ``sharing``.
    place : ResultPlace
        As :func:`check_output` returns it; every worker must see it.
    run_id : str
    date : date
        Business date.
    profiles, edges : DataFrame, optional
        Of the same session; read instead of the policy's tables.
    announce : callable, optional
        Called with what will be decided (``--explain``).

    Raises
    ------
    InputError
        Exit code 2: the policy or the data must be mended.
    EngineError
        Exit code 3: running again may help.
    """
    others = {key: one for key, one in tables_of(sharing_of(policy)).items() if key != EDGES or edges is None}
    files = files_only_spark_knows(spark, edges, others)
    with start_run(
        spark,
        policy,
        place,
        run_id=run_id,
        date=date,
        reads=READ,
        stages=STAGES,
        table=profiles,
        announce=announce,
        files=files,
    ) as run:
        opened = read(run, edges)
        if announce is not None:
            announce(explain_sharing(run.policy, opened.hierarchies))
        users = encode(run, opened)
        ground, network = connect(run, opened, users)
        decided, result = decide(run, opened, ground, network)
        write(run, opened, decided, result)
        write_status(place.status, run_id, phase="shared", code=0, message=result.paragraph)
    return result


def read(run: ResultRun, edges: DataFrame | None) -> Opened:
    """Stage: open the profiles, and every other table that the policy names."""
    with run.progress.stage("read") as stage:
        opened = open_network(run.spark, run.policy, run.table, edges)
        stage.sentence = (
            f"Opened the profiles, of {len(opened.hierarchies)} attributes, and {len(opened.tables)} other tables."
        )
    return opened


def open_network(
    spark: SparkSession,
    policy: Policy,
    profiles: DataFrame | None,
    edges: DataFrame | None,
    inspection: Inspection = FIRST_ERROR,
) -> Opened:
    """Open the profiles, and every other table that the policy names.

    Parameters
    ----------
    profiles, edges : DataFrame or None
        Read instead of the policy's tables.
    inspection : Inspection, optional
        Collects errors, and checks the columns of the other tables.
    """
    reading, tables = read_policy(policy), {}
    sources = open_sources(spark, reading, profiles, inspection=inspection)
    hierarchies = open_hierarchies(reading, sources, inspection=inspection)
    for key, table in tables_of(sharing_of(policy)).items():
        named, frame = columns_of(table), edges if key == EDGES else None
        if frame is None:
            frame = open_source(spark, table, key=key, used=named.values(), inspection=inspection)
        if frame is not None:
            with inspection.at(key):
                check_columns(frame, named, key=key)
            tables[key] = frame
    return Opened(sources, edges is not None, hierarchies, tables)


def inspect(spark: SparkSession, policy: Policy, table: DataFrame | None, inspection: Inspection) -> str | None:
    """Open everything that sharing needs, and return what it would decide; None if there is an error.

    Parameters
    ----------
    policy : Policy
        With the versions of the lake tables that are read.
    table : DataFrame or None
        Read instead of the policy's table.
    inspection : Inspection
        Collects errors.
    """
    with inspection.at("sharing"):
        sharing_of(policy)
        opened = open_network(spark, policy, table, None, inspection)
        return None if inspection.errors else explain_sharing(policy, opened.hierarchies)
    return None


def encode(run: ResultRun, opened: Opened) -> StoredUsers:
    """Stage: the profiles as codes, and the users as numbers."""
    with run.progress.stage("encode") as stage:
        reading = read_policy(run.policy)
        rows, n_rows = collect_codes(
            run.scratch,
            opened.sources.table,
            reading,
            opened.hierarchies,
            run.place,
            given=opened.sources.given,
            unique=True,
        )
        if not n_rows:
            raise SchemaError("table: it has no rows, and so the network no users.")
        warn_of_one_row(n_rows)
        n_weights = len(reading.weight_columns)
        users = collect_users(run.scratch, rows, n_rows, k=len(opened.hierarchies), n_weights=n_weights)
        users = replace(users, numbers=ids_are_numbers((opened.sources.table, reading.table.record_id)))
        stage.sentence = f"Numbered {n_rows:,} users, and encoded every value as an integer code."
        stage.rows = n_rows
    return users


def connect(run: ResultRun, opened: Opened, users: StoredUsers) -> tuple[Ground, Network]:
    """Stage: who is whose friend, and whom to decide for."""
    with run.progress.stage("connect") as stage:
        asked = sharing_of(run.policy)
        pieces = collect_pieces(
            run.scratch,
            users,
            opened.tables[EDGES],
            asked.edges,
            key=EDGES,
            both=not asked.edges.directed,
            given=opened.given,
        )
        edges = collect_buckets(run.scratch, pieces, users, "edges", key=EDGES, measure=friendliness)
        network = StoredNetwork(edges, tuple(users.offsets.tolist()), directed=asked.edges.directed)
        named = edges.n if asked.edges.directed else edges.n // 2
        pairs, pairs_read, left_out = pairs_of(run, opened, users, network)
        there = pieces.read - pieces.nulls - pieces.unknown - pieces.loops
        told = Network(
            users=users.n,
            edges=named,
            directed=asked.edges.directed,
            rows=pieces.read,
            duplicates=there - named,
            loops=pieces.loops,
            unknown=pieces.unknown,
            nulls=pieces.nulls,
            most_friends=edges.facts["most_friends"],
            alone=edges.facts["alone"],
            pairs_read=pairs_read,
            pairs_again=max(pairs_read - left_out - pairs.n, 0),
            pairs_left_out=left_out,
        )
        trees = store_trees(run.scratch.directory("trees"), opened.hierarchies)
        stage.sentence = (
            f"Connected {told.users:,} users by {told.edges:,} edges ({told.duplicates:,} named again, {told.loops:,} "
            f"loops, {told.unknown + told.nulls:,} left out); {pairs.n:,} pairs are decided."
        )
    return Ground(users, network, trees, pairs), told


def pairs_of(
    run: ResultRun, opened: Opened, users: StoredUsers, network: StoredNetwork
) -> tuple[StoredPairs, int, int]:
    """Return whom to decide for, the rows read or drawn for it, and those of them that are no pairs."""
    asked = sharing_of(run.policy).pairs
    if isinstance(asked, FriendPairs):
        return network.edges, 0, 0
    if isinstance(asked, FriendOfFriendPairs):
        return collect_friends_of_friends(run.scratch, users, network, most_walks=asked.most_walks), 0, 0
    if isinstance(asked, SampledPairs):
        return collect_sample(run.scratch, users, pairs=asked.pairs, seed=asked.seed), asked.pairs, 0
    assert isinstance(asked, GivenPairs)
    pieces = collect_pieces(run.scratch, users, opened.tables[PAIRS], asked, key=PAIRS)
    found = collect_buckets(run.scratch, pieces, users, "pairs", key=PAIRS)
    return found, pieces.read, pieces.nulls + pieces.unknown + pieces.loops


def said_of(run: ResultRun, opened: Opened, ground: Ground) -> dict[str, StoredNetwork]:
    """Return what tables say of users: whom they trust, what an attribute costs them or is worth to them."""
    asked, names = sharing_of(run.policy), list(opened.hierarchies)
    found = {}
    for key, table in tables_of(asked).items():
        if key not in (SENSITIVITY, TRUST, UTILITY):
            continue
        attributes = names if isinstance(table, UserAttributes) else []
        pieces = collect_pieces(run.scratch, ground.users, opened.tables[key], table, key=key, attributes=attributes)
        stored = collect_buckets(run.scratch, pieces, ground.users, key.rpartition(".")[2], key=key)
        found[key] = StoredNetwork(stored, ground.network.offsets, pieces.valued)
    return found


def decide(run: ResultRun, opened: Opened, ground: Ground, network: Network) -> tuple[DecidedSlices, SharingResult]:
    """Stage: decide every pair, and put together what the decisions add up to."""
    with run.progress.stage("decide") as stage:
        policy, asked, names = run.policy, sharing_of(run.policy), list(opened.hierarchies)
        tables = said_of(run, opened, ground)
        decider = collect_decider(run.scratch, policy, ground, tables)
        decided = collect_decisions(
            run.scratch, ground, decider, names, exposed=asked.listed, connected_at=asked.connected_at
        )
        points = collect_curve(run.scratch, ground, decider, asked.curve.lambdas, pairs=asked.curve.pairs)
        spread = decider.reach.computation if isinstance(decider, ByDiffusion) else None
        relations, whole = relations_of(decided.facts, RELATIONS, REASONS, names)
        result = SharingResult(
            title=policy.run.name,
            run_id=run.run_id,
            created=run.date.isoformat(),
            version=__version__,
            model=asked.model.kind,
            question=in_words(asked),
            network=network,
            relations=relations,
            whole=whole,
            gap=max((float(fact["gap"]) for fact in decided.facts), default=0.0),
            curve=curve_of(points),
            axis="limit of the risk" if asked.model.kind == "diffusion" else "λ",
            exposed=exposed_of(ground, decided, asked.listed),
            connection=connection_of(decided, network.users, asked),
            examples=examples_of(read_first(decided, asked.listed), names),
            spread=spread,
            notes=notes_of(asked) + (() if spread is None else (spread_in_words(spread),)),
        )
        stage.sentence = result.paragraph
        stage.status = result.status
        stage.parameters = {"model": asked.model.kind, "pairs": whole.pairs}
    return decided, result


def connection_of(decided: DecidedSlices, users: int, asked: SharingPolicy) -> Connection | None:
    """Say how users are connected by what they see; None where the links do not fit one machine."""
    if decided.n_links > asked.adjacency_on_machine:
        return None
    parts = parts_of(users, *decided.linked())
    return Connection(asked.connected_at, decided.n_links, parts.connected, parts.largest, parts.diameter)


def exposed_of(ground: Ground, decided: DecidedSlices, most: int) -> tuple[Exposed, ...]:
    """Name the users of the greatest loss; all pairs of a user are in one slice."""
    users = [(int(user), float(loss)) for fact in decided.facts for user, loss in fact["exposed"]]
    worst = sorted(users, key=lambda one: (-one[1], one[0]))[:most]
    return tuple(
        Exposed(name, loss) for name, (_, loss) in zip(ground.names([u for u, _ in worst]), worst, strict=True)
    )


def write(run: ResultRun, opened: Opened, decided: DecidedSlices, result: SharingResult) -> None:
    """Stage: put decisions and documents in their place."""
    with run.progress.stage("report") as stage:
        decisions = run.scratch.path / "decisions-in-order"
        write_decisions(decided, decisions, list(opened.hierarchies))
        run.place.put_directory(decisions, "decisions")
        run.place.put_json("summary.json", result.summary() | {"seconds": dict(run.progress.seconds)})
        run.place.put_json("measures.json", result.measures())
        run.place.put_json("sharing.json", as_json(result))
        run.place.put_text("report.html", render_sharing(result))
        stage.sentence = "Wrote decisions, figures and the report."
