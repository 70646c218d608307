"""What a network's members show each other, as figures for a program and for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from privrisk_spark.claims import Status
from privrisk_spark.json_values import as_json
from privrisk_spark.results.page import html_table


@dataclass(frozen=True)
class Network:
    """The network as it was read.

    Attributes
    ----------
    users, edges : int
        Distinct edges between different users.
    directed : bool
        Whether an edge goes one way; else it makes two friends.
    rows, duplicates, loops, unknown, nulls : int
        Rows of the table of edges, and of them those that name an edge again, one user twice, somebody without a
        profile, or lack an end.
    most_friends, alone : int
        Friends of whoever has the most, and users without any.
    pairs_read, pairs_again, pairs_left_out : int
        Rows of the table of pairs, or pairs drawn; of them those that were there already, and those that are none.
    """

    users: int
    edges: int
    directed: bool
    rows: int
    duplicates: int
    loops: int
    unknown: int
    nulls: int
    most_friends: int
    alone: int
    pairs_read: int = 0
    pairs_again: int = 0
    pairs_left_out: int = 0

    @property
    def mean_friends(self) -> float:
        """Friends of a user, on average."""
        return (1 if self.directed else 2) * self.edges / self.users if self.users else 0.0


@dataclass(frozen=True)
class AttributeShown:
    """How much of an attribute is shown.

    Attributes
    ----------
    present : int
        Pairs in which the one who shows has a value.
    shown : int
        Pairs in which something of it is shown.
    levels, levels_shown : int
        Levels of the values of all pairs, and of them those shown.
    """

    name: str
    present: int
    shown: int
    levels: int
    levels_shown: int

    @property
    def share(self) -> float:
        """Share of the levels that is shown."""
        return self.levels_shown / self.levels if self.levels else 0.0


@dataclass(frozen=True)
class Relation:
    """Decisions for pairs of one relation.

    Attributes
    ----------
    name : {"friend", "friend of a friend", "stranger", "all"}
    outcomes : dict of reason to int
        Pairs, by how they came out.
    loss, utility : float
        Sums.
    heuristic : int
        Pairs whose decision is not proved to be the best.
    """

    name: str
    outcomes: Mapping[str, int]
    loss: float
    utility: float
    heuristic: int
    attributes: tuple[AttributeShown, ...]

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return sum(self.outcomes.values())

    @property
    def share(self) -> float:
        """Share of all levels that is shown."""
        levels = sum(one.levels for one in self.attributes)
        return sum(one.levels_shown for one in self.attributes) / levels if levels else 0.0


@dataclass(frozen=True)
class CurvePoint:
    """Loss and utility of a sample of the pairs at a trade-off.

    Attributes
    ----------
    loss, utility : float
        Means of a pair.
    share : float
        Of all levels that is shown.
    """

    trade_off: float
    pairs: int
    loss: float
    utility: float
    share: float


@dataclass(frozen=True)
class Exposed:
    """A user and what showing costs him in all pairs.

    Attributes
    ----------
    user : str
        His id: never to be published.
    """

    user: str
    loss: float


@dataclass(frozen=True)
class PairShown:
    """What one user shows another.

    Attributes
    ----------
    u, v : str
        Ids of the one who shows and the one who sees: never to be published.
    values : dict of attribute to str or None
        What is shown; the root's label if nothing, None if the user has no value.
    """

    u: str
    v: str
    relation: str
    reason: str
    status: str
    values: Mapping[str, str | None]


@dataclass(frozen=True)
class Connection:
    """The graph of who sees enough of whom.

    Attributes
    ----------
    at : int
        Levels of each attribute that are enough.
    links : int
        Pairs that see enough.
    connected : int
        Users with a link.
    largest : int
        Users of the largest connected part, links taken in both directions.
    diameter : int
        At least the greatest number of steps between two users of it.
    """

    at: int
    links: int
    connected: int
    largest: int
    diameter: int


@dataclass(frozen=True)
class Spread:
    """How diffusion was computed.

    Attributes
    ----------
    computation : {"whole", "ego", "series"}
    error : float
        Greatest error of ``Σ_j K_vj f(T_uj)`` of a pair.
    radius : int or None
        Of ``ego``.
    """

    computation: str
    error: float
    radius: int | None = None


@dataclass(frozen=True)
class SharingResult:
    """What the members of a network show each other.

    Attributes
    ----------
    model : str
        Kind of the model.
    question : str
        What was asked, in words.
    relations : tuple of Relation
        Those that occur, the closest first.
    whole : Relation
        All pairs together.
    gap : float
        Greatest gap of a pair, or that of the network's problem; 0 where all is proved.
    axis : str
        What the curve goes along, in words.
    exposed : tuple of Exposed
        The greatest losses first.
    examples : tuple of PairShown
        The first pairs in the order of the ids.
    spread : Spread or None
        Of the model ``diffusion``.
    """

    title: str
    run_id: str
    created: str
    version: str
    model: str
    question: str
    network: Network
    relations: tuple[Relation, ...]
    whole: Relation
    gap: float
    curve: tuple[CurvePoint, ...]
    axis: str
    exposed: tuple[Exposed, ...]
    connection: Connection | None
    examples: tuple[PairShown, ...] = ()
    spread: Spread | None = None
    notes: tuple[str, ...] = ()

    json_keys = (
        "run_id", "name:title", "date:created", "version", "model", "question", "status", "paragraph",
        "exposed", "notes", "measures",
    )  # fmt: skip

    @property
    def status(self) -> Status:
        """Whether every decision is proved to be the best one."""
        return "proved" if self.whole.heuristic == 0 and self.gap == 0 else "heuristic"

    @property
    def paragraph(self) -> str:
        """What was decided."""
        shown = self.whole.outcomes.get("shown whole", 0) + self.whole.outcomes.get("shown in part", 0)
        told = (
            f"Of {self.whole.pairs:,} pairs of {self.network.users:,} users, {shown:,} see something: "
            f"{100 * self.whole.share:.3g} % of all levels, at a loss of {self.whole.loss:.6g} and a utility of "
            f"{self.whole.utility:.6g}."
        )
        if self.status == "proved":
            return f"{told} Every decision is proved to be the best one."
        return f"{told} The decisions are within {self.gap:.3g} of the best ones."

    def measures(self) -> list[dict[str, Any]]:
        """Every figure as ``{name, value, unit, parameters, status}``, JSON-safe."""
        return [
            as_json({"name": name, "value": value, "unit": unit, "parameters": of, "status": status})
            for name, value, unit, of, status in _figures(self)
        ]

    def summary(self) -> dict[str, Any]:
        """The figures of all pairs, JSON-safe, for ``summary.json``."""
        document = {
            "users": self.network.users,
            "edges": self.network.edges,
            "directed": self.network.directed,
            "pairs": self.whole.pairs,
            "outcomes": dict(self.whole.outcomes),
            "loss": self.whole.loss,
            "utility": self.whole.utility,
            "levels_shown": self.whole.share,
            "gap": self.gap,
            "status": self.status,
            "model": self.model,
        }
        found: dict[str, Any] = as_json(document)
        return found

    def _repr_html_(self) -> str:
        head = ("who sees", "pairs", "shown whole", "in part", "nothing", "share of levels", "loss", "utility")
        rows = [
            (
                one.name,
                one.pairs,
                one.outcomes.get("shown whole", 0),
                one.outcomes.get("shown in part", 0),
                one.pairs - one.outcomes.get("shown whole", 0) - one.outcomes.get("shown in part", 0),
                one.share,
                one.loss,
                one.utility,
            )
            for one in (*self.relations, self.whole)
        ]
        return html_table(f"Sharing in {self.title}", head, rows, notes=(self.paragraph, *self.notes))


Figure = tuple[str, float | int | None, str, dict[str, Any], Status]


def _figures(result: SharingResult) -> Iterator[Figure]:
    network = result.network
    for name in ("users", "edges", "duplicates", "loops", "unknown", "nulls", "most_friends", "alone"):
        unit = {"users": "users", "most_friends": "users", "alone": "users"}.get(name, "edges")
        yield f"network_{name}", getattr(network, name), unit, {}, "tested"
    for one in (*result.relations, result.whole):
        of: dict[str, Any] = {"relation": one.name}
        status: Status = "heuristic" if one.heuristic else result.status
        yield "pairs", one.pairs, "pairs", of, "tested"
        for reason, count in one.outcomes.items():
            yield "outcome", count, "pairs", {**of, "reason": reason}, status
        yield "loss", one.loss, "loss", of, status
        yield "utility", one.utility, "utility", of, status
        yield "levels_shown", one.share, "share", of, status
        yield "heuristic_pairs", one.heuristic, "pairs", of, "tested"
        for attribute in one.attributes:
            yield "levels_shown", attribute.share, "share", {**of, "attribute": attribute.name}, status
            yield "pairs_shown", attribute.shown, "pairs", {**of, "attribute": attribute.name}, status
    yield "gap", result.gap, "objective", {}, result.status
    for point in result.curve:
        at = {"trade_off": point.trade_off, "pairs": point.pairs}
        yield "curve_mean_loss", point.loss, "loss", at, result.status
        yield "curve_mean_utility", point.utility, "utility", at, result.status
        yield "curve_levels_shown", point.share, "share", at, result.status
    if result.spread is not None:
        yield "diffusion_error", result.spread.error, "loss", {"computation": result.spread.computation}, "proved"
    if result.connection is not None:
        at = {"levels": result.connection.at}
        yield "links", result.connection.links, "pairs", at, "tested"
        yield "connected_users", result.connection.connected, "users", at, "tested"
        yield "largest_part", result.connection.largest, "users", at, "tested"
        yield "diameter_at_least", result.connection.diameter, "steps", at, "proved"
