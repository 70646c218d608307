"""Rules of an assessment that take several keys together; each fault names the key to mend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from privrisk_spark.errors import Fault, listing, nearest
from privrisk_spark.policy.assessment import MaskedTable
from privrisk_spark.policy.dictionaries import DictionaryColumn, Table
from privrisk_spark.policy.masking import NUMERIC
from privrisk_spark.policy.policy import Insensitive, Policy, Sensitive
from privrisk_spark.policy.rules.lakes import find_table_faults
from privrisk_spark.results.measures import read_measures


def impossible_assessment(policy: Policy) -> Iterable[Fault]:
    """Yield the faults of ``assess`` that only show when several keys are seen together."""
    yield from _columns(policy)
    yield from _sources(policy)
    yield from _thresholds(policy)


def _absent(path: str, name: str, there: list[str], what: str) -> Fault:
    return Fault(path, f"'{name}' is no {what}{nearest(name, there)}; there are {listing(there) if there else 'none'}")


def _columns(policy: Policy) -> Iterator[Fault]:
    asked, quasi = policy.assess, list(policy.quasi_identifiers)
    sensitive = [name for name, column in policy.columns.items() if isinstance(column, Sensitive)]
    carried = [name for name, column in policy.columns.items() if isinstance(column, Sensitive | Insensitive)]
    for name, attributes in asked.sets.items():
        at = f"assess.sets.{name}"
        if not attributes:
            yield Fault(at, "must name at least one quasi-identifier; leave the set out for all of them")
        for i, attribute in enumerate(attributes):
            if attribute not in quasi:
                yield _absent(f"{at}.{i}", attribute, quasi, "quasi-identifier")
            elif attribute in attributes[:i]:
                yield Fault(f"{at}.{i}", f"'{attribute}' is in the set already; name it once")
    for name, model in asked.sensitive.items():
        if name not in sensitive:
            yield _absent(f"assess.sensitive.{name}", name, sensitive, "column with the role 'sensitive'")
        if (model.distance == "hierarchical") != (model.hierarchy is not None):
            yield Fault(
                f"assess.sensitive.{name}.hierarchy", "goes with distance: hierarchical; give both or none of them"
            )
    masked = [name for name, mask in policy.masks.items() if isinstance(mask, NUMERIC)]
    compared, what = carried, "column with the role 'sensitive' or 'insensitive'"
    if _of_masked(policy):
        compared, what = masked, "column that is masked as numbers"
    for name in asked.intervals:
        if name not in compared:
            yield _absent(f"assess.intervals.{name}", name, compared, what)
    if asked.household is not None:
        others = [name for name in policy.columns if name not in quasi]
        if asked.household not in others:
            rule = "column with the role 'identifier', 'insensitive' or 'sensitive'"
            yield _absent("assess.household", asked.household, others, rule)
        if policy.table.entity_id is not None:
            yield Fault(
                "assess.household", "counts each row as a member; leave it out where table.entity_id names persons"
            )
    if asked.classifiers is not None and asked.label is None:
        yield Fault("assess.classifiers", "predicts assess.label; name the column to predict, or leave it out")
    if asked.label is not None and asked.label not in carried:
        yield _absent("assess.label", asked.label, carried, "column with the role 'sensitive' or 'insensitive'")


def _sources(policy: Policy) -> Iterator[Fault]:
    asked = policy.assess
    tables: list[tuple[str, Table]] = []
    if isinstance(asked.release, MaskedTable):
        tables.append(("assess.release", asked.release))
        known = list(policy.columns)
        for name in asked.release.columns:
            if name not in policy.columns:
                yield _absent(f"assess.release.columns.{name}", name, known, "column of the table")
    if asked.population is not None:
        tables.append(("assess.population", asked.population))
        quasi = list(policy.quasi_identifiers)
        for name, entry in asked.population.columns.items():
            at = f"assess.population.columns.{name}"
            if name not in quasi:
                yield _absent(at, name, quasi, "quasi-identifier")
            if isinstance(entry, DictionaryColumn) and entry.age_in is not None and entry.level is None:
                yield Fault(f"{at}.level", "is required with age_in: the level whose labels are birth years")
        if asked.sampling_fraction is not None:
            yield Fault("assess.sampling_fraction", "is only used where no population table is given; leave one out")
    for key, source in tables:
        yield from find_table_faults(key, source)
    if asked.release == "published" and policy.output is None:
        yield Fault("assess.release", "is 'published', and there is no output.path to find a release at")
    paired = isinstance(asked.release, MaskedTable) and asked.release.record_id is not None
    paired = paired and policy.table.record_id is not None
    # Whose the rows of a masked release are, the vault knows.
    told = {"intervals": paired or (_of_masked(policy) and asked.release == "published"), "concealment": paired}
    for key, wanted in (("intervals", bool(asked.intervals)), ("concealment", asked.concealment)):
        if wanted and not told[key]:
            yield Fault(
                f"assess.{key}", "compares record by record: it needs assess.release.record_id and table.record_id"
            )


def _of_masked(policy: Policy) -> bool:
    """Whether a release that is masked is held against its table."""
    return not policy.guarantee.generalizes and policy.assess.release is not None


def _thresholds(policy: Policy) -> Iterator[Fault]:
    if not policy.assess.thresholds:
        return
    bounded = [name for name, entry in read_measures().items() if entry.safe is not None]
    for name in policy.assess.thresholds:
        if name not in bounded:
            yield _absent(f"assess.thresholds.{name}", name, bounded, "measure with a safe side")
