"""The planned attack as linear programs: the two forms of Xia et al., CIKM 2015 (X15 §5.1), solved by HiGHS.

They share no code with the product: states are enumerated from the paper's eight variables, and what follows from each
action is written from its §4. Gain and fine are earned in a state, one step after the exploit which leads to it;
``X_p`` counts a fine when it is paid, on leaving the state in which the detection shows.

The value of a state is the least number that no action beats (``V(x) >= R(x, a) + γ Σ P(x' | x, a) V(x')``), so the
least sum of values over all states is the solution. Terminating is worth 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from privrisk_spark.kernels.adversary.process import Attack

_NEGLIGIBLE = 1e-18
"""Group sizes less probable than this share of the sum are left out of a belief: less than rounding of the value."""

_STRETCH = 2.0**24
"""HiGHS drops entries below 1e-9: rows with small probabilities are multiplied by this."""


class State(NamedTuple):
    """The paper's variables but ``X_t``: a terminated state is worth 0 and has no other action (X15 Table 1)."""

    detected: bool
    fines: int
    succeeded: bool
    accessed: bool
    linked: bool
    group: int
    remaining: int


START = State(False, 0, False, False, False, 0, 0)

Action = tuple[float, dict[State, float]]
"""Reward of a state with an action, and the probabilities of the states it leads to."""


@dataclass
class Program:
    """One linear program: a variable for every state, a row for every action.

    Attributes
    ----------
    belief : mapping of int to float
        Probability of every group size, for the action access; positive ones only.
    known : mapping of State to float
        States whose value is given; nothing is followed from them.
    """

    attack: Attack
    belief: Mapping[int, float]
    known: Mapping[State, float] = field(default_factory=dict)

    def actions(self, state: State) -> Iterator[Action]:
        """Every action of a state, terminate included (X15 §4.2 to §4.4)."""
        attack = self.attack
        fines = attack.fines_paid
        unlimited = fines is None
        fined = state.detected and (unlimited or state.fines < (fines or 0))
        reward = (attack.gain if state.succeeded else 0.0) - (attack.penalty if fined else 0.0)
        yield reward, {}
        if state.succeeded or (state.linked and state.remaining == 0):
            return
        if not state.accessed:
            groups = {State(False, 0, False, True, False, g, g): p for g, p in self.belief.items()}
            yield reward - attack.cost_access, groups
        elif not state.linked:
            yield reward - attack.cost_link, {state._replace(linked=True): 1.0}
        else:
            left = state.remaining
            outside = state.group * (1 - attack.prior) / attack.prior
            succeeds = 1 / (outside + left)
            logit = attack.h0 + attack.h1 * (state.group - left)
            caught = 1 / (1 + math.exp(-logit)) if logit > 0 else math.exp(logit) / (1 + math.exp(logit))
            paid = state.fines + (fined and not unlimited)  # without a limit the number paid changes nothing
            after: dict[State, float] = {}
            for detected, p in ((False, 1 - caught), (True, caught)):
                for success, q in ((False, 1 - succeeds), (True, succeeds)):
                    if p * q > 0:
                        after[State(detected, paid, success, True, True, state.group, left - 1)] = p * q
            yield reward - attack.cost_exploit, after

    def solve(self, roots: Iterable[State]) -> dict[State, float]:
        """Enumerate all states that can be reached from some, and return the value of each.

        Raises
        ------
        RuntimeError
            If HiGHS does not find an optimum.
        """
        number = {state: i for i, state in enumerate(dict.fromkeys(roots))}
        states = list(number)
        scale = max(self.attack.gain, 1.0)
        rows, columns, entries, right = [], [], [], []
        row = 0
        at = 0
        while at < len(states):
            state = states[at]
            if state in self.known:
                at += 1
                continue
            for reward, after in self.actions(state):
                # V(x) - γ Σ P V(x') >= R(x, a), as an upper bound of the negative
                stretch = _STRETCH if after and min(after.values()) < 1e-6 else 1.0
                rows.append(row)
                columns.append(at)
                entries.append(-stretch)
                for following, p in after.items():
                    if following not in number:
                        number[following] = len(states)
                        states.append(following)
                    rows.append(row)
                    columns.append(number[following])
                    entries.append(stretch * self.attack.gamma * p)
                right.append(-stretch * reward / scale)
                row += 1
            at += 1
        free = (-np.inf, np.inf)
        bounds = [(self.known[s] / scale, self.known[s] / scale) if s in self.known else free for s in states]
        matrix: Any = coo_array(
            (entries, (rows, columns)), shape=(row, len(states))
        ).tocsr()  # no stub takes sparse ones
        found = linprog(
            np.ones(len(states)),
            A_ub=matrix,
            b_ub=np.array(right),
            bounds=bounds,
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.status:
            raise RuntimeError(f"HiGHS ended without an optimum: {found.message}")
        return dict(zip(states, (np.asarray(found.x) * scale).tolist(), strict=True))


def binomial_belief(rows: int, density: float) -> dict[int, float]:
    """Return the probabilities of group sizes that are not negligible, by ratios from the mode outwards (X15 eq 6)."""
    if density in (0.0, 1.0):
        return {rows if density else 0: 1.0}
    mode = min(int((rows + 1) * density), rows)
    weights = {mode: 1.0}
    odds = density / (1 - density)
    k, weight = mode, 1.0
    while k < rows and weight > _NEGLIGIBLE:
        weight *= (rows - k) / (k + 1) * odds
        k += 1
        weights[k] = weight
    k, weight = mode, 1.0
    while k > 0 and weight > _NEGLIGIBLE:
        weight *= k / (rows - k + 1) / odds
        k -= 1
        weights[k] = weight
    total = math.fsum(weights.values())
    return {k: weight / total for k, weight in sorted(weights.items()) if weight > _NEGLIGIBLE * total}


def flat(attack: Attack, belief: Mapping[int, float]) -> dict[State, float]:
    """Solve all states of one record by one program; the payoff of the whole attack is the value of ``START``."""
    return Program(attack, belief).solve([START])


@dataclass
class TwoLevel:
    """The two-level program: one for every group after its link, kept, and one above for every record.

    Attributes
    ----------
    values : dict of int to float
        Value of every group solved so far.
    states : int
        States of all of these.
    end : int or None
        Least group size found to be worth nothing: all larger ones are not solved (the paper's pruning).
    """

    attack: Attack
    values: dict[int, float] = field(default_factory=lambda: {0: 0.0})
    states: int = 0
    end: int | None = None

    def value(self, group: int) -> float:
        """Value of a linked group before the first exploit; solves the smaller ones first."""
        while self.end is None and max(self.values) < group:
            size = max(self.values) + 1
            start = State(False, 0, False, True, True, size, size)
            found = Program(self.attack, {}).solve([start])
            self.states += len(found)
            self.values[size] = found[start]
            if found[start] <= 1e-12 * max(self.attack.gain, 1.0):
                self.end = size
        return self.values.get(group, 0.0)

    def payoff(self, belief: Mapping[int, float]) -> float:
        """Value of the whole attack under a belief, 0 if it is not started."""
        worth = {
            State(False, 0, False, True, True, g, g): 0.0 if self.end is not None and g >= self.end else self.value(g)
            for g in sorted(belief)
        }
        return Program(self.attack, belief, worth).solve([START])[START]
