"""What is said of curves of the risk over the attacker's knowledge: which dictionary grows, the plan, the notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.counting import PlanChoice, explained
from privrisk_spark.policy.dictionaries import OneDictionary, SeveralDictionaries
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.explanation import leaves_and_levels


def dictionary_in_words(policy: Policy, grown: OneDictionary) -> str:
    """Which dictionary grows, in words."""
    if grown.table is None:
        return "the table itself"
    if isinstance(policy.dictionary, SeveralDictionaries):
        return f"the dictionary '{grown.name}'"
    names = {"dictionary": "the policy's dictionary", "estimate": "the policy's estimate"}
    names |= {"true": "the policy's true dictionary"}
    return names[grown.name]


def curves_explanation(
    hierarchies: Mapping[str, Hierarchy], choice: PlanChoice, *, dictionary: str, shares: int, floors: Sequence[float]
) -> str:
    """What will be computed, as text.

    Parameters
    ----------
    hierarchies : mapping of quasi-identifier to Hierarchy
    choice : PlanChoice
        Of the dictionary that grows.
    dictionary : str
        Which it is, in words.
    shares : int
        Nested samples of it.
    floors : sequence of float
        Least utilities.
    """
    lines = [leaves_and_levels(name, hierarchy) for name, hierarchy in hierarchies.items()]
    lines += explained(choice, name=dictionary)
    lines.append(f"curves: {shares} nested samples of {dictionary}")
    lines.append("utility at least " + ", ".join(f"{floor:g}" for floor in floors))
    return "\n".join(lines)


def curve_notes(policy: Policy, grown: OneDictionary, *, bounded: bool) -> Iterator[str]:
    """What a reader must know besides.

    Parameters
    ----------
    grown : OneDictionary
        The dictionary that grows.
    bounded : bool
        Whether it is the true one of an estimate.
    """
    if isinstance(policy.dictionary, SeveralDictionaries):
        yield (
            f"The policy names several dictionaries; here the attacker holds '{grown.name}' for certain, whatever its "
            "prior."
        )
    if bounded:
        yield (
            "The rows of the estimate's people are in every sample; whether the bound is proved is said in the vault's "
            "report of a release."
        )
    elif policy.risk.model != "III" and policy.dictionary.consistency != "similar":
        yield (
            "Samples are nested, so that no record is easier to identify in a larger one: a line never rises, and no "
            "point lies below the line of equal risks."
        )
    if policy.risk.model == "III":
        yield "Risk model III grows with the number of dictionary rows; it need not fall, and the estimate is no bound."
    yield "A record that a sample has no row for is counted as a row of its own there."
    if policy.linkage is not None:
        yield "Record linkage is left out here."
