"""Verdicts follow from figures: each claim is turned round by planting other ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reproduce.result import Claim
from reproduce.run import Experiment
from reproduce.sharing import diffusing, experiment
from reproduce.sharing.aggregate import EXACT, LAYERS, LEFT_OUT, LETTER
from reproduce.sharing.claims import Shared, claims
from reproduce.sharing.diffusing import WHOLE
from reproduce.sharing.plots import plots
from reproduce.sharing.proposition import Counterexample
from reproduce.sharing.results import SharingSizes, findings
from reproduce.sharing.trusting import ONE_CLASS

SIZES = SharingSizes(users=200, pairs=30, attributes=4, seed=5)


@pytest.fixture(scope="module")
def shared() -> Shared:
    """What a run on a small network finds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diffusing, "NETWORKS", (12, 24))
        caught: list[Shared] = []
        patch.setattr(experiment, "findings", lambda found, *_, **__: caught.append(found))
        experiment.find(SIZES, None, NoProgress())
        return caught[0]


class NoProgress:
    """Stages that nobody is told of."""

    def stage(self, name: str) -> NoProgress:
        self.name = name
        return self

    def __enter__(self) -> NoProgress:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def claim(found: Shared, claimed: str, of: str = "") -> Claim:
    """The one claim that begins so, judged of this."""
    (one,) = [one for one in claims(found) if one.claim.startswith(claimed) and of in one.data]
    return one


def with_runs(found: Shared, method: str, **changes: Any) -> Shared:
    runs = [replace(one, **changes) if one.method == method else one for one in found.runs]
    return replace(found, runs=tuple(runs))


def every(items: tuple[Any, ...], **changes: Any) -> tuple[Any, ...]:
    return tuple(replace(one, **changes) for one in items)


ANY, ALL = "in any", "in all"


def test_supermodularity_is_judged_by_squares(shared: Shared) -> None:
    any_of = claim(shared, "ξ, the number of common friends with at least one")
    assert any_of.verdict != "holds"
    assert "one friend who agrees from levels (1, 1) on, heights 1, 1: ξ = 0, 1, 1, 1" in any_of.evidence
    assert claim(shared, "ξ, the number of common friends with all").verdict == "holds"
    assert claim(shared, "ξ is monotonically").verdict == "holds"
    assert claim(shared, "λξ + Φu", ANY).verdict == "does not hold"
    assert claim(shared, "λξ + Φu", ALL).verdict == "holds"
    straight = replace(
        shared,
        squares=every(shared.squares, violated=0, bent=0, below=0, numerator=0, falls=3),
        counterexamples={"any": None, "all": Counterexample((2,), ((1,), (2,)), (1, 0, 0))},
    )
    assert claim(straight, "ξ, the number of common friends with at least one").verdict == "holds"
    assert "no small lattice" in claim(straight, "ξ, the number of common friends with at least one").evidence
    assert "2 friends" in claim(straight, "ξ, the number of common friends with all").evidence
    assert claim(straight, "Φ, u and ξ are modular", ANY).verdict == "holds"
    assert claim(straight, "λξ + Φu", ANY).verdict == "holds"
    assert claim(straight, "ξ is monotonically").verdict == "does not hold"


def test_speed_is_judged_by_times(shared: Shared) -> None:
    claimed = "Modified-Aggregate significantly outperforms"
    fast = with_runs(with_runs(shared, LEFT_OUT, seconds=1e-6), EXACT, seconds=1.0)
    slow = with_runs(with_runs(shared, LEFT_OUT, seconds=1.0), EXACT, seconds=1e-3)
    for of in (ANY, ALL):
        assert claim(fast, claimed, of).verdict == "holds"
        assert claim(slow, claimed, of).verdict == "does not hold"
        assert "takes 1,000 times" in claim(slow, claimed, of).evidence
    still = with_runs(shared, EXACT, seconds=0.0)
    assert claim(still, claimed, ANY).verdict == "not decided: nothing to compare"


@pytest.mark.parametrize("method", [LETTER, LAYERS, LEFT_OUT])
def test_what_the_published_one_finds_is_counted(shared: Shared, method: str) -> None:
    of = method.partition(", ")[2]
    claimed = "The output approximately maximizes"
    none = with_runs(shared, method, near=0, optimal=0, value=0.25, least=0.0)
    assert claim(none, claimed, f"{of}, any").verdict == "does not hold"
    assert "25 %" in claim(none, claimed, f"{of}, any").evidence
    pairs = next(one.pairs for one in shared.runs if one.method == method)
    assert claim(with_runs(shared, method, near=pairs), claimed, f"{of}, all").verdict == "holds"


def test_layers_risks_and_levels_are_counted(shared: Shared) -> None:
    assert claim(shared, "Each layer", ANY).verdict.startswith("in ")
    letter = next(one for one in shared.runs if one.method == LETTER)
    assert claim(with_runs(shared, LETTER, visited=letter.layers), "Each layer", ANY).verdict == "holds"
    pairs = next(one.pairs for one in shared.runs if one.method == LEFT_OUT)
    alike, unlike = (with_runs(shared, LEFT_OUT, comparable=number) for number in (pairs, 0))
    assert claim(alike, "Both algorithms have", ANY).verdict == "holds"
    assert claim(unlike, "Both algorithms have", ANY).verdict == "does not hold"
    exact = next(one.pairs for one in shared.runs if one.method == EXACT)
    between, none = (with_runs(shared, EXACT, whole=number, nothing=0) for number in (0, exact))
    assert claim(between, "Sharing is no all-or-none", ALL).verdict == "holds"
    assert claim(none, "Sharing is no all-or-none", ALL).verdict == "does not hold"
    assert claim(shared, "A user decides by it").verdict == "does not hold"
    assert claim(with_runs(shared, EXACT, nothing=3), "A user decides by it").verdict == "holds"


def test_risk_alone_and_the_user_study(shared: Shared) -> None:
    alone = "Risk as the sole factor"
    assert claim(shared, alone, "access control").verdict == "holds"
    first = replace(shared.access.traded[0], utility=0.1)
    shown = replace(shared, access=replace(shared.access, traded=(first, *shared.access.traded[1:])))
    assert claim(shown, alone, "access control").verdict == "does not hold"
    assert claim(shared, alone, "Modified").verdict == "does not hold"
    rejected = replace(shared, traded=every(shared.traded, nothing=shared.traded[0].pairs))
    assert claim(rejected, alone, "Modified").verdict == "holds"
    more = "The number of common friends is the first"
    for of, found in (
        ("Modified", replace(shared, traded=every(shared.traded, few=0.2, many=0.7))),
        (
            "access",
            replace(shared, access=replace(shared.access, traded=every(shared.access.traded, few=0.2, many=0.7))),
        ),
    ):
        assert claim(found, more, of).verdict == "holds"
        assert "50 percentage points" in claim(found, more, of).evidence
    fewer = replace(shared, traded=every(shared.traded, few=0.7, many=0.2))
    assert claim(fewer, more, "Modified").verdict == "does not hold"
    everybody = replace(shared, evenly=replace(shared.evenly, alone=0, whole=0))
    assert claim(everybody, "Random pairs").verdict == "holds"
    nobody = replace(shared, evenly=replace(shared.evenly, alone=shared.evenly.pairs))
    assert claim(nobody, "Random pairs").verdict == "does not hold"


def test_diffusion_is_judged_by_matrices_and_kernels(shared: Shared) -> None:
    def with_(**changes: Any) -> Shared:
        return replace(shared, diffusing=replace(shared.diffusing, **changes))

    found = shared.diffusing
    assert claim(shared, "L is stochastic").verdict == "does not hold"
    assert claim(with_(matrices=every(found.matrices, rows=1.0)), "L is stochastic").verdict == "holds"
    assert claim(shared, "L is positive").verdict == "does not hold"
    assert claim(with_(matrices=every(found.matrices, smallest=0.5)), "L is positive").verdict == "holds"
    assert claim(shared, "K = Σ").verdict == "in 1 of 3 cases"
    assert claim(with_(matrices=every(found.matrices, eigen=0.0)), "K = Σ").verdict == "holds"
    assert claim(shared, "The diffusion kernel is stochastic").verdict == "holds"
    leaking = with_(kernels=every(found.kernels, rows=0.1))
    assert claim(leaking, "The diffusion kernel is stochastic").verdict == "does not hold"
    assert claim(with_(reached=(0.1, 0.2, 0.9, 1.0)), "The kernel is better").verdict == "holds"
    assert claim(with_(reached=(0.1, 0.2, 1.0, 1.0)), "The kernel is better").verdict == "does not hold"
    assert claim(shared, "R(u, x, v)").verdict == "does not hold"
    assert claim(with_(rises=(9, 0, 9)), "R(u, x, v)").verdict == "holds"
    assert claim(shared, "t is the diffusion time").verdict == "holds"
    assert claim(with_(kernels=every(found.kernels, left=0.5)), "t is the diffusion time").verdict == "does not hold"
    assert claim(shared, "There is no need").verdict == "holds"
    broken = tuple(replace(one, held=one.method != WHOLE) for one in found.computed)
    assert claim(with_(computed=broken), "There is no need").verdict.startswith("in ")


def test_access_control_and_trust(shared: Shared) -> None:
    def access(**changes: Any) -> Shared:
        return replace(shared, access=replace(shared.access, **changes))

    assert claim(shared, "max U with a limit").verdict == "holds"
    worse = access(traded=every(shared.access.traded, repeated=0))
    assert claim(worse, "max U with a limit").verdict == "does not hold"
    assert claim(shared, "The limited problems").verdict == "holds"
    beyond = access(small=every(shared.access.small, gap=0.0, short=0.1))
    assert claim(beyond, "The limited problems").verdict == "does not hold"
    stuck = access(linked=every(shared.access.linked, largest=7, diameter=2))
    assert claim(stuck, "The utility of a network").verdict == "does not hold"
    growing = tuple(replace(one, largest=i + 1) for i, one in enumerate(shared.access.linked))
    assert claim(access(linked=growing), "The utility of a network").verdict == "holds"

    def trust(**changes: Any) -> Shared:
        return replace(shared, trust=replace(shared.trust, **changes))

    assert claim(shared, "T = n").verdict == "does not hold"
    alike = trust(decided=every(shared.trust.decided, changed=0.0, changed_pairs=0.0))
    assert claim(alike, "T = n").verdict == "holds"
    assert claim(alike, "f may be any").verdict == "holds"
    judged = tuple(
        replace(one, friends=-0.5, others=0.5) if one.trust == ONE_CLASS else one for one in shared.trust.trusted
    )
    assert claim(trust(trusted=judged), "One-class").verdict == "does not hold"
    without = tuple(one for one in shared.trust.trusted if one.trust != ONE_CLASS)
    assert not [one for one in claims(trust(trusted=without)) if one.claim.startswith("One-class")]


def test_every_claim_names_its_place_and_every_plot_its_finding(shared: Shared) -> None:
    told = findings(shared, SIZES, decided_users=200, linked_users=200, decided_k=4)
    judged = claims(shared)
    assert len({(one.claim, one.data) for one in judged}) == len(judged)
    assert all(one.source.startswith("Fouad (2012), ") and one.evidence.endswith(".") for one in judged)
    assert all("nan" not in one.evidence and "undefined" not in one.evidence for one in judged)
    keys = [plot.key for plot in plots(shared)]
    assert len(set(keys)) == len(keys)
    assert all(plot.found.endswith(".") for plot in plots(shared))
    assert [one.key for one in told.listings] == ["decisions", "runs"]
    assert told.figures["measured"] == ["seconds"]
    assert not told.notes


def test_what_is_left_out_is_told(shared: Shared) -> None:
    without = tuple(one for one in shared.trust.trusted if one.trust != ONE_CLASS)
    found = replace(shared, trust=replace(shared.trust, trusted=without), access=replace(shared.access, refused=2))
    notes = findings(found, SIZES, decided_users=200, linked_users=200, decided_k=4).notes
    assert "scikit-learn" in notes[0]
    assert "2 small instances" in notes[1]


def test_a_search_that_proves_less_says_so(shared: Shared) -> None:
    early = replace(shared, stopped=every(shared.stopped, proved=1, worst=0.25))
    (plot,) = [plot for plot in plots(early) if plot.key == "sharing-gap"]
    assert f"leave {shared.stopped[0].pairs - 1} for 'any', with gaps of up to 25 %" in plot.found
    unproved = with_runs(shared, EXACT, proved=0, gap=0.5)
    (plot,) = [plot for plot in plots(unproved) if plot.key == "sharing-nodes"]
    assert "the gap is at most 50 %" in plot.found


def test_sizes() -> None:
    assert SharingSizes().ks == (10, 20, 30, 40, 50, 60, 70)
    assert SharingSizes(attributes=25).ks == (10, 20)
    assert SharingSizes(attributes=4).ks == (4,)
    assert SharingSizes.quick(9).seed == 9
    assert isinstance(experiment.EXPERIMENT, Experiment)
