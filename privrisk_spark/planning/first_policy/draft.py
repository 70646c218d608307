"""A whole policy from the guesses: columns, weights by information, and a floor, each with its reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.numeric.information import joint_information
from privrisk_spark.planning.first_policy.hierarchies import Proposal, propose, thinner, tidied_rows
from privrisk_spark.planning.first_policy.roles import Guess, Ids, guess_ids, guess_roles, may_be_ids
from privrisk_spark.planning.first_policy.tidying import reading
from privrisk_spark.policy.writing import CHECK, DECIDE, Remark
from privrisk_spark.results.first_policy import ColumnGuess, FirstPolicy, FloorTable
from privrisk_spark.results.profile import ColumnProfile, TableProfile

MOST_NODES = 4_096
"""Generalizations of a row beyond which levels are left out: a search looks at every row against each."""

MOST_NODES_OF_ALL = 12_000
"""Generalizations of a row beyond which columns are left out."""

_TELLING = ("birth_date", "birth_year", "age", "sex", "postcode", "place")
"""Concepts that are left out last: what most people know of others (Sweeney 2002)."""

_POINTS_OUT = 0.01
"""Share of different numbers among the rows from which on a kept column is made coarser."""


@dataclass(frozen=True)
class Kept:
    """What is done to a column that is released as values.

    Attributes
    ----------
    read, release : mapping
        As the policy takes them; empty where nothing is done.
    reason : str
        Without its full stop; empty where nothing is done.
    """

    read: Mapping[str, Any]
    release: Mapping[str, Any]
    reason: str


@dataclass(frozen=True)
class Draft:
    """A policy without its places and its floor.

    Attributes
    ----------
    guesses : tuple of Guess
        In the order of the table.
    proposals : dict of quasi-identifier to Proposal
        In the order of the table.
    kept : dict of column to Kept
    weights : dict of quasi-identifier to float
        Utility of a step, in bits.
    """

    profile: TableProfile
    guesses: tuple[Guess, ...]
    ids: Ids
    proposals: Mapping[str, Proposal]
    kept: Mapping[str, Kept]
    weights: Mapping[str, float]

    @property
    def nodes(self) -> int:
        """Most generalizations of a row."""
        return math.prod(one.height + 1 for one in self.proposals.values())

    def guess(self, column: str) -> Guess:
        """Return the guess of a column."""
        return next(one for one in self.guesses if one.column == column)

    def columns(self, files: Mapping[str, str]) -> dict[str, Any]:
        """Return the policy's ``columns``.

        Parameters
        ----------
        files : mapping of column to path
            Of hierarchies that are written to files; those of other columns stand in the policy as trees.
        """
        return {one.column: self._column(one, files) for one in self.guesses}

    def _column(self, guess: Guess, files: Mapping[str, str]) -> dict[str, Any]:
        if guess.role == "identifier":
            return {"role": "identifier"}
        if guess.role != "quasi-identifier":
            kept = self.kept.get(guess.column)
            found: dict[str, Any] = {"role": guess.role} | ({} if guess.kept else {"action": "drop"})
            if kept is not None:
                found |= {key: dict(said) for key, said in (("read", kept.read), ("release", kept.release)) if said}
            return found
        one = self.proposals[guess.column]
        rule = dict(one.rule)
        if one.paths:
            rule = {"file": files[one.column]} if one.column in files else {"tree": {"*": tree_of(one.paths)}}
        found = {"role": "quasi-identifier", "hierarchy": rule}
        if one.suppress_unknown:
            found["unknown"] = "suppress"
        return found | ({"read": dict(one.read)} if one.read else {})

    def document(
        self,
        table: Mapping[str, Any],
        run: str,
        files: Mapping[str, str],
        *,
        floor: float,
        output: Mapping[str, str] | None,
    ) -> dict[str, Any]:
        """Return the whole policy.

        Parameters
        ----------
        table : mapping
            Where the table is, as ``table`` of the policy.
        run : str
            Name of the run.
        files : mapping of column to path
            See :meth:`columns`.
        floor : float
            Least utility, in bits.
        output : mapping, optional
            Places of the release and its vault.
        """
        place = dict(table) | {"record_id": self.ids.record}
        if self.ids.entity is not None:
            place["entity_id"] = self.ids.entity
        found = {"version": 1, "run": {"name": run}, "table": place}
        if self.undecided:
            found["undecided"] = list(self.undecided)
        found["columns"] = self.columns(files)
        if self.proposals:
            found |= {
                "risk": {"sensitivity": {"form": "constant", "constant": 1}},
                "utility": {"measure": "depth", "weights": dict(self.weights)},
                "decision": {"utility_at_least": floor, "infeasible": "suppress"},
            }
        return found | ({} if output is None else {"output": dict(output)})

    def told(self) -> tuple[ColumnGuess, ...]:
        """Return the guesses as results."""
        found, undecided = [], self.undecided
        for guess in self.guesses:
            one = self.proposals.get(guess.column)
            found.append(
                ColumnGuess(
                    guess.column, guess.role, guess.concept, guess.confidence, self.reason(guess),
                    guess.column in undecided, guess.column not in undecided and self._is_unsure(guess),
                    None if one is None else one.form, 0 if one is None else one.height,
                    self.weights.get(guess.column, 0.0),
                )
            )  # fmt: skip
        return tuple(found)

    def reason(self, guess: Guess) -> str:
        """Return why a column is proposed as it is: sentences."""
        one, kept = self.proposals.get(guess.column), self.kept.get(guess.column)
        said = [guess.reason]
        if one is not None:
            said.append(one.reason)
            if one.read_reason:
                said.append(one.read_reason)
            if one.suppress_unknown:
                said.append("what is none of them is suppressed")
        elif kept is not None and kept.reason:
            said.append(kept.reason)
        return " ".join(f"{text[:1].upper()}{text[1:]}." for text in said)

    @property
    def undecided(self) -> tuple[str, ...]:
        """Columns that may be ids of individuals, in the order of the table: you must confirm them before a release."""
        ids = may_be_ids(self.guesses, self.profile) | ({self.ids.entity} if self.ids.unsure else set())
        return tuple(guess.column for guess in self.guesses if guess.column in ids)

    def _is_unsure(self, guess: Guess) -> bool:
        one = self.proposals.get(guess.column)
        doubtful = bool(self.profile[guess.column].doubt) and guess.role != "identifier"
        return guess.unsure or doubtful or (one is not None and one.unsure) or self._is_unsure_id(guess)

    def _is_unsure_id(self, guess: Guess) -> bool:
        return self.ids.unsure and guess.column in (self.ids.record, self.ids.entity)

    def remarks(self, floors: FloorTable | None) -> dict[tuple[str, ...], Remark]:
        """Return what is said of each key.

        Parameters
        ----------
        floors : FloorTable, optional
            What three floors would give.
        """
        found: dict[tuple[str, ...], Remark] = {
            ("table",): Remark((f"{self.ids.reason[:1].upper()}{self.ids.reason[1:]}.",)),
            ("undecided",): Remark(
                (
                    "A release refuses these columns. Answer the question at the line of each, change the line if it "
                    "is wrong, and remove the column from this list.",
                )
            ),
            ("columns",): Remark(
                ("Every column has a role; a wrong one is the one thing this file cannot mend. Read each line.",)
            ),
            ("risk",): Remark(
                ("Risk is the probability that who knows a row's quasi-identifiers finds it: 1 over the rows it fits.",)
            ),
            ("utility",): Remark(
                (
                    "Every bit of information weighs the same. A column kept whole is worth its part of what the "
                    "quasi-identifiers tell together (Shapley's value of their joint entropy), and each step of "
                    "generalization an equal part of that: what two columns both tell is divided between them, and a "
                    "constant column is worth nothing. To keep a column longer, raise its weight.",
                )
            ),
            ("output",): Remark(("The vault holds exact risks and is never published.",)),
        }
        undecided = self.undecided
        for guess in self.guesses:
            mark = DECIDE if guess.column in undecided else CHECK
            found[("columns", guess.column)] = Remark((self.reason(guess),), self._question(guess), mark)
        if floors is not None:
            found[("decision",)] = Remark((*floor_lines(floors), _INFEASIBLE))
        return found

    def _question(self, guess: Guess) -> str | None:
        if not self._is_unsure(guess):
            return None
        if self.profile[guess.column].doubt and guess.role != "identifier":
            return "are its numbers read as they are meant?"
        if self._is_unsure_id(guess):
            which = "a row" if guess.column == self.ids.record else "an individual"
            key = "table.record_id" if guess.column == self.ids.record else "table.entity_id"
            return f"never released now; is it the id of {which}? If not, take {key} out, too"
        if guess.unsure:
            now = {"identifier": "never released", "quasi-identifier": "generalized"}
            if not guess.kept and guess.role != "identifier":
                return "left out now; does anybody need it?"
            weighed = " If not, take its line out of utility.weights, too" if guess.role == "quasi-identifier" else ""
            return f"{now[guess.role]} now; is it {_with_article(guess.role)}?{weighed}"
        return "is the hierarchy right?"


@dataclass(frozen=True, eq=False)
class Proposed:
    """What is proposed for a table."""

    told: FirstPolicy
    draft: Draft


_INFEASIBLE = "A row with too many missing values to reach the floor is suppressed whole, and counted."


def _with_article(role: str) -> str:
    return f"an {role}" if role == "identifier" else f"a {role}" if role == "quasi-identifier" else role


def floor_lines(floors: FloorTable) -> list[str]:
    """Return what floors would give, as lines of a comment."""
    lines = [
        f"Least utility of a row, of {floors.greatest:.4g} bits. {floors.reason}",
        f"As it is, the mean risk is {floors.before:.3g}. {floors.basis}",
    ]
    for one in floors.figures:
        mark = "proposed: " if one is floors.chosen else ""
        lines.append(
            f"  {mark}{one.floor:.4g} ({100 * one.share:.0f} %): mean risk {one.mean_risk:.2g}, "
            f"{100 * one.few_alike:.1f} % of the rows fit fewer than {floors.alike}, "
            f"{100 * one.kept:.0f} % of the information is kept"
        )
    gone = [f"{name} ({100 * share:.0f} %)" for name, share in floors.chosen.suppressed.items() if share > 0.5]
    if gone:
        lines.append(f"Suppressed in more than half of the rows then: {', '.join(gone)}.")
    return lines


def tree_of(paths: Sequence[tuple[str, ...]]) -> dict[str, Any] | list[str]:
    """Return paths of leaves as the nested mapping that a policy's ``tree`` takes.

    Parameters
    ----------
    paths : sequence of tuple of str
        ``(leaf, parent, grandparent, …)`` without the root.
    """
    below: dict[str, list[tuple[str, ...]]] = {}
    alone = []
    for path in paths:
        if len(path) == 1:
            alone.append(path[0])
        else:
            below.setdefault(path[-1], []).append(path[:-1])
    if not below:
        return alone
    found: dict[str, Any] = {label: tree_of(inside) for label, inside in below.items()}
    return found


Sample = Mapping[str, Sequence[str | None]]
"""Texts of sampled rows, by column."""


def draft(profile: TableProfile, sample: Sample) -> Draft:
    """Return the policy that is proposed for a table, but for its places and its floor.

    Parameters
    ----------
    sample : mapping of column to texts
        Of equally many rows.
    """
    guesses = guess_roles(profile)
    proposals = {
        guess.column: propose(profile[guess.column], guess) for guess in guesses if guess.role == "quasi-identifier"
    }
    guesses, proposals = _within(guesses, proposals, profile)
    kept = {
        guess.column: _kept(profile[guess.column], guess)
        for guess in guesses
        if guess.role in ("sensitive", "insensitive") and guess.kept
    }
    ids = guess_ids(guesses, profile)
    return Draft(profile, guesses, ids, proposals, kept, _weights(proposals, sample))


def _within(
    guesses: tuple[Guess, ...], proposals: dict[str, Proposal], profile: TableProfile
) -> tuple[tuple[Guess, ...], dict[str, Proposal]]:
    """Leave levels out, then columns, until a row has no more generalizations than a search takes.

    Levels go from the highest hierarchies first; columns that are not sure, before those that are.
    """
    left = dict(proposals)
    out: set[str] = set()
    while math.prod(one.height + 1 for one in left.values()) > MOST_NODES:
        able = {name: thin for name, one in left.items() if (thin := thinner(one)) is not None}
        if not able:
            break
        name = max(able, key=lambda name: (left[name].height, name))
        left[name] = able[name]
    while math.prod(one.height + 1 for one in left.values()) > MOST_NODES_OF_ALL and len(left) > 1:
        by_name = {guess.column: guess for guess in guesses}
        worst = min(
            left,
            key=lambda name: (
                not by_name[name].unsure,
                by_name[name].concept in _TELLING,
                profile[name].information,
                name,
            ),
        )
        out.add(worst)
        del left[worst]
    reason = (
        f"left out: with it a row would have more than {MOST_NODES_OF_ALL:,} generalizations; to keep it, leave out "
        "another quasi-identifier or levels of hierarchies"
    )
    return tuple(
        replace(
            guess,
            role="insensitive",
            kept=False,
            confidence=min(guess.confidence, 0.5),
            reason=f"{guess.reason}; {reason}",
        )
        if guess.column in out
        else guess
        for guess in guesses
    ), left


def _weights(proposals: Mapping[str, Proposal], sample: Sample) -> dict[str, float]:
    """Utility of a step of each quasi-identifier: its part of what all tell together, in bits, over its steps."""
    if not proposals:
        return {}
    codes = np.column_stack([_numbers(tidied_rows(sample[name], one.read)) for name, one in proposals.items()])
    information = joint_information(codes)
    return {
        name: float(f"{share / one.height:.3g}")
        for (name, one), share in zip(proposals.items(), information.tolist(), strict=True)
    }


def _numbers(values: Sequence[str | None]) -> npt.NDArray[np.int64]:
    place = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return np.array([place[value] for value in values], dtype=np.int64)


def _kept(column: ColumnProfile, guess: Guess) -> Kept:
    read, why = reading(column, guess.concept)
    if guess.role == "insensitive" and column.constant:
        return Kept({}, {}, "")
    if column.kind == "number" and column.distinction > _POINTS_OUT and column.values.quantiles:
        release = _coarser(column)
        if release:
            reason = "made coarser, since a number that few rows have points them out"
            if column.type == "string" or column.read:
                read = {**read, "cast": "number"}
            return Kept(read, release, "; ".join(filter(None, (why, reason))))
    return Kept(read, {}, why)


def _coarser(column: ColumnProfile) -> dict[str, Any]:
    """Round to two digits of the greatest usual number; greater and smaller ones are released as the usual ends."""
    low, high = column.values.quantiles[0], column.values.quantiles[-1]
    span = high - min(low, 0.0)
    if not (math.isfinite(span) and span > 0):
        return {}
    step = 10.0 ** math.floor(math.log10(span) - 1)
    top = math.ceil(high / step) * step
    whole = not any("." in shape for shape in column.shapes)
    if whole and step < 1:
        return {}
    digits = max(0, -math.floor(math.log10(step)))
    bottom = math.floor(low / step) * step
    ends = {"bottom_code": bottom, "top_code": top} if _is_below(column, bottom) else {"top_code": top}
    if step >= 1:
        return {key: int(end) for key, end in ends.items()} | {"round": int(step)}
    return {key: round(end, digits) for key, end in ends.items()} | {"round": round(step, digits)}


def _is_below(column: ColumnProfile, bottom: float) -> bool:
    """Return whether the least number of a column may be below a bound; of texts the least number is not known."""
    try:
        return column.type == "string" or float(column.values.least or 0) < bottom
    except ValueError:
        return True
