"""Rules of an attack that take several keys together; each fault names the key to mend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from privrisk_spark.errors import Fault, listing, nearest
from privrisk_spark.extensions.attack.kernels.fellegi_sunter import LEAST_COLUMNS
from privrisk_spark.extensions.attack.kernels.learned.choquet import MOST_ATTRIBUTES
from privrisk_spark.extensions.attack.policy import (
    AS_THEY_ARE,
    OF_CERTAINTY,
    OF_LINKS,
    OF_VALUES,
    WITHOUT_ROWS,
    AttackPolicy,
    Errors,
    ProtectedTable,
    attack_of,
)
from privrisk_spark.policy.assessment import MaskedTable
from privrisk_spark.policy.masking import NUMERIC
from privrisk_spark.policy.policy import Insensitive, Policy, Sensitive
from privrisk_spark.policy.rules.lakes import find_table_faults


def find_faults(policy: Policy) -> Iterable[Fault]:
    """Yield the faults of ``attack`` that only show when several keys are seen together."""
    asked = attack_of(policy)
    yield from _known(policy)
    if isinstance(asked.protected, MaskedTable):
        yield from _source(policy, asked.protected, "attack.protected")
    elif policy.output is None:
        yield Fault("attack.protected", "is 'published', and there is no output.path to find a release at")
    for i, other in enumerate(asked.also):
        yield from _source(policy, other, f"attack.also.{i}")
    yield from _methods(policy)
    his = asked.intruder.table
    if his is not None:
        yield from _source(policy, his, "attack.intruder.table")
        for key, given in (("levels", asked.intruder.levels), ("errors", asked.intruder.errors != Errors())):
            if given:
                yield Fault(
                    f"attack.intruder.{key}",
                    "is of what he knows of the original table; leave it out with attack.intruder.table",
                )
    yield from _persons(policy)
    if asked.truth != "rows":
        yield from _untold(asked)
    elif policy.table.record_id is None and (his or asked.also or isinstance(asked.protected, MaskedTable)):
        yield Fault("table.record_id", "is needed to tell right links from wrong ones; name the column of the ids")


def _untold(asked: AttackPolicy) -> Iterator[Fault]:
    """Yield the faults of what needs to know whose each row of the protected table is, where nothing tells it."""
    need = "needs to know of which record each row is; name the column of the ids in attack.protected.record_id"
    for i, name in enumerate(asked.methods):
        if name != "all" and name not in WITHOUT_ROWS:
            yield Fault(f"attack.methods.{i}", f"'{name}' {need}")
    limits = ("values_certain_at_most",) if asked.truth else ("correct_links_at_most", "values_certain_at_most")
    for key in limits:
        if getattr(asked, key) is not None:
            yield Fault(f"attack.{key}", f"{need}, or leave it out")


def _persons(policy: Policy) -> Iterator[Fault]:
    """Yield the faults of columns of persons."""
    asked = attack_of(policy)
    assert asked is not None
    named = (("protected", asked.protected), ("intruder.table", asked.intruder.table))
    for key, one in named:
        if isinstance(one, ProtectedTable) and one.entity_id is not None and policy.table.entity_id is None:
            yield Fault(
                f"attack.{key}.entity_id",
                "holds the persons of table.entity_id, and there is none; name the column there, or leave it out",
            )
    for i, other in enumerate(asked.also):
        if other.entity_id is not None:
            yield Fault(f"attack.also.{i}.entity_id", "is not used, as records are compared; leave it out")


def _methods(policy: Policy) -> Iterator[Fault]:
    """Yield the faults of methods that are asked for by name, and of what only some methods read."""
    asked = attack_of(policy)
    assert asked is not None
    for i, name in enumerate(asked.methods):
        at = f"attack.methods.{i}"
        if name in asked.methods[:i]:
            yield Fault(at, f"'{name}' is there already; name it once")
        if name in OF_VALUES and not policy.sensitive_as_they_are:
            yield Fault(
                at, f"'{name}' needs a column with the role 'sensitive' that is released as it is; there is none"
            )
        elif name in OF_VALUES and not set(policy.sensitive_as_they_are) - set(asked.intruder.columns):
            yield Fault(at, f"'{name}' infers sensitive values, and the intruder knows them (attack.intruder.columns)")
        if name == "composition" and not asked.also:
            yield Fault(at, "'composition' needs other releases of the same people; name them in attack.also")
        if name in AS_THEY_ARE and (asked.intruder.levels or asked.intruder.table):
            yield Fault(at, f"'{name}' takes what he knows as it is; leave attack.intruder.levels and table out")
        if name == "similarity" and not any(
            column in policy.assess.sensitive and policy.assess.sensitive[column].hierarchy is not None
            for column in policy.sensitive_as_they_are
        ):
            yield Fault(at, "'similarity' needs a hierarchy of sensitive values; give it in assess.sensitive")
    for key, asked_for, methods in (
        ("correct_links_at_most", asked.correct_links_at_most, OF_LINKS),
        ("values_certain_at_most", asked.values_certain_at_most, OF_CERTAINTY),
    ):
        if asked_for is not None and not methods & set(asked.tried):
            yield Fault(f"attack.{key}", f"needs one of {listing(sorted(methods))} in attack.methods; none is there")
    known = list(asked.intruder.columns) or list(policy.quasi_identifiers)
    for i, kind in enumerate(asked.learned.distances):
        if kind in asked.learned.distances[:i]:
            yield Fault(f"attack.learned.distances.{i}", f"'{kind}' is there already; name it once")
        if kind == "choquet" and len(known) > MOST_ATTRIBUTES:
            rule = f"'choquet' is of at most {MOST_ATTRIBUTES} columns, and the intruder knows {len(known)}"
            yield Fault(f"attack.learned.distances.{i}", rule)
    lacking = set(known) & set(policy.quasi_identifiers) - set(asked.levels)
    if asked.levels and lacking:
        yield Fault("attack.levels", f"must have a level for each known column; missing: {listing(sorted(lacking))}")


def _not_comparable(policy: Policy, name: str) -> str | None:
    """Why a column the intruder may know can be compared with nothing; None if it can."""
    column, comparable = policy.columns.get(name), [*policy.quasi_identifiers, *policy.kept_as_they_are]
    if name in comparable:
        return None
    if column is None:
        there = listing(comparable) if comparable else "none"
        return f"'{name}' is no column that is released{nearest(name, comparable)}; there are {there}"
    if isinstance(column, Sensitive | Insensitive) and column.action == "keep":
        return (
            f"'{name}' is released recoded (columns.{name}.release), and can be compared as it is alone; leave it out, "
            "or make it a quasi-identifier"
        )
    return f"'{name}' is never released, so that it can be compared with nothing; leave it out"


def _absent(path: str, name: str, there: list[str], what: str) -> Fault:
    return Fault(path, f"'{name}' is no {what}{nearest(name, there)}; there are {listing(there) if there else 'none'}")


def _known(policy: Policy) -> Iterator[Fault]:
    asked = attack_of(policy)
    assert asked is not None
    quasi = list(policy.quasi_identifiers)
    for i, name in enumerate(asked.intruder.columns):
        at = f"attack.intruder.columns.{i}"
        refused = _not_comparable(policy, name)
        if refused is not None:
            yield Fault(at, refused)
        elif name in asked.intruder.columns[:i]:
            yield Fault(at, f"'{name}' is there already; name it once")
    known = list(asked.intruder.columns) or quasi
    # Of a column that is misspelt it is not known which one is meant.
    meant = [*known, *(policy.columns if any(_not_comparable(policy, name) for name in known) else ())]
    named = [(f"attack.weights.{name}", name) for name in asked.weights]
    named += [(f"attack.intruder.levels.{name}", name) for name in asked.intruder.levels]
    named += [(f"attack.levels.{name}", name) for name in asked.levels]
    named += [(f"attack.numbers.{i}", name) for i, name in enumerate(asked.numbers)]
    named += [(f"attack.texts.{i}", name) for i, name in enumerate(asked.texts)]
    for at, name in named:
        if name not in meant:
            yield _absent(at, name, known, "column the intruder knows")
    terms = asked.probabilistic.term_frequencies
    named = [(f"attack.probabilistic.term_frequencies.{i}", name) for i, name in enumerate(terms)]
    for at, name in named:
        if name not in meant:
            yield _absent(at, name, known, "column the intruder knows")
        elif name in asked.numbers or isinstance(policy.masks.get(name), NUMERIC):
            yield Fault(at, f"'{name}' is compared as a number, and numbers have no terms; leave it out")
    for i, name in enumerate(asked.probabilistic.estimated):
        at = f"attack.probabilistic.estimated.{i}"
        if name in asked.probabilistic.estimated[:i]:
            yield Fault(at, f"'{name}' is there already; name it once")
        elif name == "u" and len(known) < LEAST_COLUMNS:
            rule = f"'u' can be estimated from {LEAST_COLUMNS} known columns on, and the intruder knows {len(known)}"
            yield Fault(at, f"{rule}; leave it out")
    for i, name in enumerate(asked.texts):
        if name in asked.numbers:
            yield Fault(f"attack.texts.{i}", f"'{name}' is in attack.numbers, too; compare it in one way")
    errors = asked.intruder.errors
    if errors.missing + errors.wrong > 1:
        yield Fault("attack.intruder.errors", "missing and wrong must add up to 1 at most")
    for i, reading in enumerate(asked.cells):
        if reading in asked.cells[:i]:
            yield Fault(f"attack.cells.{i}", f"'{reading}' is there already; name it once")
        if reading == "midpoint" and set(known) - set(asked.numbers):
            yield Fault(
                f"attack.cells.{i}", "'midpoint' needs all known columns in attack.numbers: levels have no middle"
            )
    for i, one in enumerate(asked.standardization):
        if one in asked.standardization[:i]:
            yield Fault(f"attack.standardization.{i}", f"'{one}' is there already; name it once")
    if asked.blocking == "principal_axis" and not any(
        name in asked.numbers or isinstance(policy.masks.get(name), NUMERIC) for name in known
    ):
        yield Fault(
            "attack.blocking", "'principal_axis' needs a known column that is compared as a number (attack.numbers)"
        )
    if known and all(asked.weights.get(name, 1.0) == 0 for name in known):
        yield Fault("attack.weights", "must leave one known column with a weight above 0")


def _source(policy: Policy, source: MaskedTable, key: str) -> Iterator[Fault]:
    yield from find_table_faults(key, source)
    for name in source.columns:
        if name not in policy.columns:
            yield _absent(f"{key}.columns.{name}", name, list(policy.columns), "column of the table")
