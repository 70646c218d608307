"""Experiments on sharing, in the order they are run."""

from __future__ import annotations

from privrisk_spark.runs.progress import Progress
from reproduce.result import Findings
from reproduce.run import Experiment, Source, no_policy
from reproduce.sharing.aggregate import CONSISTENCIES, Run, Sizes, drawn_evenly, runs, sizes_of, stopped, traded_off
from reproduce.sharing.claims import Shared
from reproduce.sharing.diffusing import diffusing
from reproduce.sharing.limits import access_control
from reproduce.sharing.proposition import Squares, smallest_counterexample, squares_of
from reproduce.sharing.results import SharingSizes, findings
from reproduce.sharing.sample import Sample, befriended, evenly, mixed, samples
from reproduce.sharing.trusting import sensitivity_to_trust

TRADE_OFFS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Values of λ of Modified-Aggregate."""

TRADED_ATTRIBUTES = 30
"""At these λ profiles have so many attributes at most."""

DECIDED_USERS, DECIDED_ATTRIBUTES = 5_000, 20
"""Of the network in which trust is propagated: on all of it, from every user."""

LINKED_USERS, LINKED_ATTRIBUTES = 2_000, 10
"""Of the network whose friendships are all decided."""


def find(sizes: SharingSizes, source: Source | None, progress: Progress) -> Findings:
    """Run the experiments on generated networks.

    Parameters
    ----------
    source : Source or None
        None: nothing is asked of a table.
    """
    del source
    ks = sizes.ks
    traded_k = max((k for k in ks if k <= TRADED_ATTRIBUTES), default=ks[0])
    with progress.stage("Modified-Aggregate") as stage:
        of_sizes, of_runs, squares = list[Sizes](), list[Run](), list[Squares]()
        for k, sample in samples(sizes.users, ks, sizes.pairs, sizes.seed):
            of_sizes.append(sizes_of(k, sample))
            of_runs += runs(k, sample)
            squares += squares_of(k, sample)
            if k == traded_k:
                traded, ended = tuple(traded_off(sample, TRADE_OFFS)), tuple(stopped(sample))
                u, v = evenly(sample.graph, sizes.pairs, sizes.seed)
                even = drawn_evenly(Sample(sample.graph, sample.profiles, sizes.seed, u, v))
        stage.sentence = f"Decided {of_sizes[0].pairs:,} pairs of a network of {sizes.users:,} users, {len(ks)} times."
    users, k = min(sizes.users, DECIDED_USERS), min(sizes.attributes, DECIDED_ATTRIBUTES)
    decided = mixed(users, k, sizes.pairs, sizes.seed)
    linked = min(sizes.users, LINKED_USERS)
    with progress.stage("access control") as stage:
        access = access_control(decided, befriended(linked, min(k, LINKED_ATTRIBUTES), sizes.seed))
        stage.sentence = f"Solved three problems over {access.entries:,} values."
    with progress.stage("trust") as stage:
        trust = sensitivity_to_trust(decided)
        stage.sentence = f"Decided {trust.pairs:,} pairs under {len(trust.decided)} kinds of trust and f(T)."
    with progress.stage("diffusion") as stage:
        diffused = diffusing(sizes.seed)
        stage.sentence = f"Computed what leaks in networks of up to {diffused.users} users in three ways."
    found = Shared(
        tuple(of_sizes),
        tuple(of_runs),
        tuple(squares),
        {consistency: smallest_counterexample(consistency) for consistency in CONSISTENCIES},
        traded,
        ended,
        traded_k,
        even,
        access,
        trust,
        diffused,
    )
    return findings(found, sizes, decided_users=users, linked_users=linked, decided_k=k)


EXPERIMENT = Experiment(
    name="sharing",
    title="Experiments on sharing",
    heading="Sharing in a network",
    find=find,
    stages=4,
    stages_of_policy=0,
    usual=SharingSizes(),
    quick=SharingSizes.quick(),
    check=no_policy,
)
