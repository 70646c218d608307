"""Which decider a policy asks for."""

from __future__ import annotations

from privrisk_spark.planning.sharing import sensitivity_weights, sharing_of, utility_weights
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.sharing import DiversityUtility, ModifiedAggregate
from privrisk_spark.stages.sharing.deciding import Decider
from privrisk_spark.stages.sharing.modified_aggregate import ByCommonFriends
from privrisk_spark.stages.sharing.network import StoredNetwork
from privrisk_spark.stages.sharing.worth import Sensitivity, Utility


def decider_of(
    policy: Policy, *, sensitivity: StoredNetwork | None = None, utility: StoredNetwork | None = None
) -> Decider:
    """Return how it is decided what is shown.

    Parameters
    ----------
    policy : Policy
    sensitivity, utility : StoredNetwork, optional
        What tables say of users and attributes.
    """
    asked = sharing_of(policy)
    costs = Sensitivity(*sensitivity_weights(policy), sensitivity)
    worth = Utility(utility_weights(policy), utility, isinstance(asked.utility, DiversityUtility))
    model = asked.model
    if isinstance(model, ModifiedAggregate):
        return ByCommonFriends(
            costs,
            worth,
            model.lambda_,
            model.kappa,
            model.consistency,
            model.zero_phi,
            model.no_common_friend == "reject",
            "infinite" if model.no_common_friend == "as-published" else "owner",
            model.most_boxes,
        )
    raise NotImplementedError
