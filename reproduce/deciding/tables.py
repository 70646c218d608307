"""The table of a policy as experiments search it: distinct records over hierarchies, of few enough attributes."""

from __future__ import annotations

from collections.abc import Iterator

from privrisk_spark.engine import schemas
from privrisk_spark.engine.vectors import collect_vectors, vectors_of_table
from privrisk_spark.errors import SchemaError
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.disclosure.utility import node_utility
from privrisk_spark.planning.disclosure import sensitivity
from privrisk_spark.policy.policy import Policy
from privrisk_spark.tables.materialize import collect_codes
from privrisk_spark.tables.opening import collect_hierarchies
from reproduce.deciding.subject import Subject
from reproduce.run import Source

MOST_NODES = 20_000
"""Largest lattice of a table; of more attributes, the first are taken."""


def collect_subject(source: Source) -> Subject:
    """Collect a policy's table as distinct records over its hierarchies.

    Raises
    ------
    InputError
        If the table cannot be used, or has too many distinct records for the driver.
    """
    policy, scratch = source.policy, source.scratch
    table = source.read()
    if table.isEmpty():
        raise SchemaError("table: it has no rows.")
    hierarchies = collect_hierarchies(policy, table, [], given=False)
    encoded, _ = collect_codes(scratch, table, policy, hierarchies, source.place)
    k = len(hierarchies)
    records = scratch.write_frame(vectors_of_table(encoded, k, 0), "records")
    vectors, counts = collect_vectors(records, schemas.codes(k), most=policy.counting.sorted_vectors)
    return Subject(
        policy.run.name,
        tuple(hierarchies),
        tuple(Axis(hierarchy.at_depth, hierarchy.ancestor) for hierarchy in hierarchies.values()),
        sensitivity(policy.risk.sensitivity, hierarchies).weights,
        tuple(node_utility("depth", hierarchy.depth, hierarchy.n_under) for hierarchy in hierarchies.values()),
        vectors,
        counts,
    )


def narrowed(whole: Subject, most: int) -> tuple[Subject, list[str]]:
    """Return a table over its first attributes, and say so if some were left out.

    Parameters
    ----------
    most : int
        Nodes.

    Returns
    -------
    Subject
        Whose lattice has at most so many nodes.
    list of str
        A note, or none.
    """
    used = whole.within(most)
    if used.k == whole.k:
        return used, []
    return used, [
        f"{used.name}: the first {used.k} of {whole.k} attributes, so that a record's lattice has at most "
        f"{most:,} nodes."
    ]


def unused(policy: Policy) -> Iterator[str]:
    """Say what of a policy the experiments do not use."""
    name = policy.run.name
    if policy.risk.sensitivity.form != "linear":
        yield (
            f"{name}: the policy's sensitivity is of the form '{policy.risk.sensitivity.form}'; here its weights "
            "are added, as in Fouad (2012), section 4.6, and as minimum cuts need it."
        )
    if policy.utility.measure != "depth":
        yield f"{name}: the policy's utility is '{policy.utility.measure}'; here it is depth."
    if policy.dictionary.kind != "self" or policy.dictionary.consistency != "subsumes":
        yield f"{name}: the policy's dictionary is not used; the attacker knows the table, and values subsume."
