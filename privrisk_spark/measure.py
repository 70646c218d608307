"""What a run reports about its decisions and its release, each from one pass over a frame.

Sums are taken over integers, so that a mean does not depend on the order in which the engine adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark import schemas
from privrisk_spark.hierarchy import Hierarchy
from privrisk_spark.results import AttributeLevels, Histogram, Summary

# A value up to _FINE is cut into integers of so many bits after the point, which add up exactly in any order; what is
# left beyond 2^-100 is dropped. Up to the limits of _COARSE decimals do the same, slowly; what exceeds them is
# summed as it is. No sum over 2^33 rows overflows.
_LIMBS = (10, 30, 30, 30)
_FINE, _COARSE = 2.0**20, ((1e15, 9), (1e24, 0))
_LOWEST, _HIGHEST, _PER_DECADE = -9, 3, 2


@dataclass(frozen=True)
class InputFacts:
    """Facts of the encoded table.

    Attributes
    ----------
    rows, null_ids, duplicate_ids : int
    nulls, unknown : dict of attribute to rows
    bad_weights : dict of weight column to rows that are missing, NaN or negative
    snapshot : str
        Identity of the content: independent of order and partitioning; private.
    """

    rows: int
    null_ids: int
    duplicate_ids: int
    nulls: dict[str, int]
    unknown: dict[str, int]
    bad_weights: dict[str, int]
    snapshot: str


def measure_input(encoded: DataFrame, attributes: Sequence[str], weight_columns: Sequence[str]) -> InputFacts:
    """Measure ENCODED, before missing and unknown values are resolved: sums in one pass, distinct ids in another."""
    codes = schemas.codes(len(attributes))
    weights = schemas.weights(len(weight_columns))
    identity = F.col(schemas.RECORD_ID)
    content = [F.col(name) for name in encoded.columns if name != schemas.BLOCK]
    row = encoded.agg(
        F.count("*").alias("rows"),
        _count(identity.isNull()).alias("null_ids"),
        F.bit_xor(F.xxhash64(*content)).alias("xor0"),
        F.bit_xor(F.xxhash64(F.lit(1), *content)).alias("xor1"),
        *[_count(F.col(name) == schemas.NULL).alias(f"null_{name}") for name in codes],
        *[_count(F.col(name) == schemas.UNKNOWN).alias(f"unknown_{name}") for name in codes],
        *[_count(F.col(name).isNull() | F.isnan(name) | (F.col(name) < 0)).alias(name) for name in weights],
    ).first()
    assert row is not None
    # Apart from the sums above: beside them every distinct id would carry all their buffers through the shuffle.
    ids = encoded.where(identity.isNotNull()).select(F.xxhash64(identity).alias("id"))
    distinct = ids.distinct().count()
    if distinct < row["rows"] - row["null_ids"]:
        # Equal 64-bit hashes are almost surely equal ids; make sure before saying so.
        distinct = encoded.where(identity.isNotNull()).select(identity).distinct().count()
    return InputFacts(
        rows=row["rows"],
        null_ids=row["null_ids"],
        duplicate_ids=row["rows"] - row["null_ids"] - distinct,
        nulls={a: row[f"null_{c}"] for a, c in zip(attributes, codes, strict=True)},
        unknown={a: row[f"unknown_{c}"] for a, c in zip(attributes, codes, strict=True)},
        bad_weights={a: row[c] for a, c in zip(weight_columns, weights, strict=True)},
        snapshot=f"{row['rows']}-{(row['xor0'] or 0) % 2**64:016x}{(row['xor1'] or 0) % 2**64:016x}",
    )


def _count(condition: Column) -> Column:
    return F.coalesce(F.sum(F.when(condition, 1).otherwise(0)), F.lit(0))


@dataclass(frozen=True)
class DecisionFacts:
    """Facts of DECIDED; exact, for the vault.

    Attributes
    ----------
    rows, infeasible, verbatim : int
        Records; those that could not reach the floor; those released with every original value.
    risk_before, risk_after, utility : Summary
    levels : tuple of AttributeLevels
    before, after : Histogram
        Records by risk.
    """

    rows: int
    infeasible: int
    verbatim: int
    risk_before: Summary
    risk_after: Summary
    utility: Summary
    levels: tuple[AttributeLevels, ...]
    before: Histogram
    after: Histogram


def measure_decisions(decided: DataFrame, hierarchies: Mapping[str, Hierarchy]) -> DecisionFacts:
    """Measure DECIDED in two passes: sums and level counts, then the histograms."""
    k = len(hierarchies)
    level_counts = [
        _count(F.col(name) == level).alias(f"{name}_{level}")
        for name, hierarchy in zip(schemas.levels(k), hierarchies.values(), strict=True)
        for level in range(hierarchy.height)
    ]
    suppressed = [
        _count(F.col(name) == hierarchy.root).alias(f"{name}_root")
        for name, hierarchy in zip(schemas.nodes(k), hierarchies.values(), strict=True)
    ]
    shallow = [
        _count((F.col(level) == j) & (F.col(node) == hierarchy.root)).alias(f"{level}_{j}_root")
        for level, node, hierarchy in zip(schemas.levels(k), schemas.nodes(k), hierarchies.values(), strict=True)
        for j in range(hierarchy.height)
    ]
    total_level = reduce(lambda a, b: a + b, [F.col(name).cast("int") for name in schemas.levels(k)])
    any_value = reduce(
        lambda a, b: a | b,
        [F.col(n) != h.root for n, h in zip(schemas.nodes(k), hierarchies.values(), strict=True)],
    )
    row = decided.agg(
        F.count("*").alias("rows"),
        _count(~F.col(schemas.FEASIBLE)).alias("infeasible"),
        _count((total_level == 0) & any_value).alias("verbatim"),
        *_moments(schemas.RISK_BEFORE),
        *_moments(schemas.RISK),
        *_moments(schemas.UTILITY),
        *level_counts,
        *suppressed,
        *shallow,
    ).first()
    assert row is not None
    levels = []
    for i, (attribute, hierarchy) in enumerate(hierarchies.items()):
        name, node = schemas.levels(k)[i], schemas.nodes(k)[i]
        counts = [row[f"{name}_{level}"] - row[f"{name}_{level}_root"] for level in range(hierarchy.height)]
        levels.append(
            AttributeLevels(attribute, hierarchy.height, level_names(hierarchy.height), (*counts, row[f"{node}_root"]))
        )
    before, after = _measure_histograms(decided)
    return DecisionFacts(
        rows=row["rows"],
        infeasible=row["infeasible"],
        verbatim=row["verbatim"],
        risk_before=_summary(row, schemas.RISK_BEFORE),
        risk_after=_summary(row, schemas.RISK),
        utility=_summary(row, schemas.UTILITY),
        levels=tuple(levels),
        before=before,
        after=after,
    )


def level_names(height: int) -> tuple[str, ...]:
    """Return names of the levels 0 to ``height`` for a person."""
    if height == 0:
        return ("suppressed",)
    return ("as it is", *[f"level {level}" for level in range(1, height)], "suppressed")


def _moments(name: str) -> list[Column]:
    """Sum, exact for finite values, and extremes of a non-negative column."""
    value = F.col(name)
    rest = F.when(value <= _FINE, value)
    sums = []
    for i, bits in enumerate(_LIMBS):
        scaled = rest * F.lit(2.0**bits)
        limb = F.floor(scaled)
        sums.append(F.sum(limb).alias(f"{name}_sum{i}"))
        rest = scaled - limb
    above = _FINE
    for i, (limit, places) in enumerate(_COARSE):
        coarse = (value > above) & (value <= limit)
        sums.append(F.sum(F.when(coarse, value.cast(f"decimal(38,{places})"))).alias(f"{name}_coarse{i}"))
        above = limit
    sums.append(F.sum(F.when(value > above, value)).alias(f"{name}_large"))
    return [*sums, F.min(name).alias(f"{name}_min"), F.max(name).alias(f"{name}_max")]


def _summary(row: Row, name: str) -> Summary:
    rows = row["rows"]
    if rows == 0:
        return Summary(0.0, 0.0, 0.0)
    total = sum((Fraction(row[f"{name}_coarse{i}"] or 0) for i in range(len(_COARSE))), Fraction(0))
    place = 0
    for i, bits in enumerate(_LIMBS):
        place += bits
        total += Fraction(row[f"{name}_sum{i}"] or 0, 2**place)
    mean = float(total / rows) + float(row[f"{name}_large"] or 0) / rows
    return Summary(mean, float(row[f"{name}_max"]), float(row[f"{name}_min"]))


def _measure_histograms(decided: DataFrame) -> tuple[Histogram, Histogram]:
    """Records by risk before and after on the same logarithmic bins; the first bin holds everything below."""
    lowest, highest = _LOWEST * _PER_DECADE, _HIGHEST * _PER_DECADE

    def bin_of(name: str) -> Column:
        value = F.col(name)
        position = F.floor(F.log10(F.when(value > 0, value)) * _PER_DECADE)
        return F.greatest(F.lit(lowest - 1), F.least(F.lit(highest), F.coalesce(position, F.lit(lowest - 1))))

    infinite = F.lit(highest)
    columns = [
        F.when(F.col(name) == float("inf"), infinite).otherwise(bin_of(name)).alias(name)
        for name in (schemas.RISK_BEFORE, schemas.RISK)
    ]
    pairs = decided.select(*columns).groupBy(schemas.RISK_BEFORE, schemas.RISK).count().toArrow().to_pylist()
    bins = range(lowest - 1, highest + 1)
    edges = (0.0, *[10.0 ** (b / _PER_DECADE) for b in range(lowest, highest + 1)], float("inf"))

    def counts(name: str) -> tuple[int, ...]:
        found = dict.fromkeys(bins, 0)
        for pair in pairs:
            found[int(pair[name])] += pair["count"]
        return tuple(found.values())

    return Histogram(edges, counts(schemas.RISK_BEFORE)), Histogram(edges, counts(schemas.RISK))


@dataclass(frozen=True)
class ReleaseFacts:
    """Facts read back from the staged files.

    Attributes
    ----------
    rows, classes : int
        Released rows and distinct combinations of released quasi-identifiers.
    min_class_size : int
        0 for an empty release.
    off_hierarchy : dict of attribute to rows whose text is no node of the hierarchy
    """

    rows: int
    classes: int
    min_class_size: int
    off_hierarchy: dict[str, int]


def measure_release(release: DataFrame, labels: Mapping[str, DataFrame], columns: Mapping[str, Column]) -> ReleaseFacts:
    """Measure a staged release from its files alone.

    Parameters
    ----------
    release : DataFrame
        As read back.
    labels : mapping of attribute to DataFrame with one column ``label``, distinct texts of the hierarchy
    columns : mapping of attribute to Column of the release
    """
    aliases = {attribute: f"a{i}" for i, attribute in enumerate(columns)}
    grouped = release.groupBy(*[c.alias(aliases[a]) for a, c in columns.items()]).agg(F.count("*").alias("size"))
    for attribute, alias in aliases.items():
        known = labels[attribute].select(F.col("label").alias(f"{alias}_label"), F.lit(True).alias(f"{alias}_known"))
        grouped = grouped.join(F.broadcast(known), F.col(alias).eqNullSafe(F.col(f"{alias}_label")), "left")
    row = grouped.agg(
        F.coalesce(F.sum("size"), F.lit(0)).alias("rows"),
        F.count("*").alias("classes"),
        F.coalesce(F.min("size"), F.lit(0)).alias("least"),
        *[
            F.coalesce(F.sum(F.when(F.col(f"{alias}_known").isNull(), F.col("size"))), F.lit(0)).alias(alias)
            for alias in aliases.values()
        ],
    ).first()
    assert row is not None
    return ReleaseFacts(
        rows=row["rows"],
        classes=row["classes"],
        min_class_size=row["least"],
        off_hierarchy={attribute: row[alias] for attribute, alias in aliases.items()},
    )
