"""Which decider a policy asks for."""

from __future__ import annotations

from collections.abc import Mapping

from privrisk_spark.engine.batches import Scratch
from privrisk_spark.errors import InputError
from privrisk_spark.extensions.network.kernels.trust import Exposure
from privrisk_spark.extensions.network.planning import (
    check_steps,
    computation_of,
    exposure_of,
    refuse_radius,
    sensitivity_weights,
    spreading_of,
    trust_series,
    utility_weights,
)
from privrisk_spark.extensions.network.policy import (
    Diffusion,
    DiversityUtility,
    LeastLoss,
    ModifiedAggregate,
    MostUtility,
    OneClassTrust,
    PropagatedTrust,
    RuledTrust,
    SharingPolicy,
    StatedTrust,
    TradeOff,
    sharing_of,
)
from privrisk_spark.extensions.network.stages.access_control import ByTradeOff, ByUser, Costs, collect_by_network
from privrisk_spark.extensions.network.stages.deciding import Decider, Ground
from privrisk_spark.extensions.network.stages.diffusing import ByDiffusion
from privrisk_spark.extensions.network.stages.modified_aggregate import ByCommonFriends, Layers
from privrisk_spark.extensions.network.stages.network import StoredNetwork
from privrisk_spark.extensions.network.stages.reaching import (
    OnEgoNetworks,
    OnWholeGraph,
    Reach,
    StoredReach,
    collect_reach,
)
from privrisk_spark.extensions.network.stages.spreading import collect_spread
from privrisk_spark.extensions.network.stages.trusting import CommonFriends, OneClass, Propagated, Ruled, Stated, Trust
from privrisk_spark.extensions.network.stages.worth import Sensitivity, Utility
from privrisk_spark.extras import require
from privrisk_spark.policy.policy import Policy

SENSITIVITY, TRUST, UTILITY = "sharing.sensitivity", "sharing.trust", "sharing.utility"
"""Keys of the tables that say something of users."""


def collect_decider(scratch: Scratch, policy: Policy, ground: Ground, tables: Mapping[str, StoredNetwork]) -> Decider:
    """Return how it is decided what is shown; what all pairs have in common is found before any is decided.

    Parameters
    ----------
    tables : mapping of key to StoredNetwork
        What tables say of users.

    Raises
    ------
    InputError
        If nothing meets what is asked, or the graph does not fit where it is needed whole.
    """
    asked = sharing_of(policy)
    model = asked.model
    sensitivity = Sensitivity(*sensitivity_weights(policy), tables.get(SENSITIVITY))
    diverse = isinstance(asked.utility, DiversityUtility)
    utility = Utility(utility_weights(policy), tables.get(UTILITY), diverse)
    if isinstance(model, ModifiedAggregate):
        return ByCommonFriends(
            sensitivity,
            utility,
            model.lambda_,
            model.kappa,
            model.consistency,
            model.zero_phi,
            model.no_common_friend,
            model.most_boxes,
            None if model.as_published is None else Layers(model.as_published.epsilon, model.as_published.reading),
        )
    costs = Costs(sensitivity, utility, trust_of(policy, ground, tables), Exposure(**exposure_of(asked)))
    if isinstance(model, TradeOff):
        return ByTradeOff(costs, model.lambda_)
    if isinstance(model, Diffusion):
        reach = reach_of(scratch, asked, model, ground, tables[TRUST], costs.exposure)
        return ByDiffusion(sensitivity, utility, costs.exposure, tables[TRUST], reach, model.risk_at_most)
    assert isinstance(model, MostUtility | LeastLoss)
    limit = model.loss_at_most if isinstance(model, MostUtility) else model.utility_at_least
    if model.scope == "user" or limit == 0:
        # With a limit of 0, what is best of each user is best of all.
        return ByUser(costs, model.kind, limit)
    return collect_by_network(scratch, ground, costs, model.kind, limit)


def reach_of(
    scratch: Scratch, asked: SharingPolicy, model: Diffusion, ground: Ground, table: StoredNetwork, exposure: Exposure
) -> StoredReach:
    """Find what information reaches in every pair, where the policy says or the graph fits.

    Raises
    ------
    InputError
        If the whole graph is asked for, and is too large for one machine.
    """
    edges, spreading = ground.network.edges, spreading_of(model)
    how, radius = computation_of(
        model, edges=edges.n, most_edges=asked.adjacency_on_machine, most_friends=edges.facts.get("most_friends", 0)
    )
    check_steps(spreading, how, users=ground.users.n, most_friends=edges.facts.get("most_friends", 0))
    reach: Reach
    if how == "series":
        reach = collect_spread(scratch, ground, table, exposure, spreading)
    elif radius is not None:
        reach = OnEgoNetworks(ground.network, spreading, radius)
    else:
        refuse_whole(ground, asked.adjacency_on_machine, "sharing.model.computation: 'whole'")
        reach = OnWholeGraph(ground.network, spreading)
    found = collect_reach(scratch, ground, table, exposure, reach, computation=how, radius=radius)
    if radius is not None and model.radius is None and found.share_open > model.error:
        refuse_radius(model, edges.facts.get("most_friends", 0))
    return found


def trust_of(policy: Policy, ground: Ground, tables: Mapping[str, StoredNetwork]) -> Trust:
    """Return how much users trust each other; common friends where the policy does not say.

    Raises
    ------
    InputError
        If the whole graph is needed, and is too large for one machine.
    """
    asked = sharing_of(policy)
    trust = asked.trust
    if isinstance(trust, StatedTrust):
        return Stated(tables[TRUST])
    if isinstance(trust, RuledTrust):
        names = list(policy.quasi_identifiers)
        rules = tuple((tuple(str(names.index(name)) for name in rule.same), rule.then) for rule in trust.rules)
        return Ruled(rules, trust.otherwise)
    if isinstance(trust, PropagatedTrust):
        refuse_whole(ground, asked.adjacency_on_machine, "sharing.trust: 'propagated'")
        return Propagated(tables[TRUST], ground.network, trust_series(trust))
    if isinstance(trust, OneClassTrust):
        require("sklearn", "sharing.trust")
        return OneClass(tables[TRUST], trust.outliers, trust.otherwise)
    return CommonFriends()


def refuse_whole(ground: Ground, most: int, what: str) -> None:
    """Refuse to hold a graph on one machine that is larger than the policy allows."""
    there = ground.network.edges.n
    if there > most:
        raise InputError(
            f"{what} needs the whole graph on each machine, and it has {there:,} directed edges, more than "
            f"sharing.adjacency_on_machine = {most:,}. Raise it, or choose another kind."
        )
