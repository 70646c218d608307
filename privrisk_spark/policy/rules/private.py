"""Rules of a differentially private policy that take several keys together; each fault names the key to mend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path

from privrisk_spark.errors import Fault, listing, nearest
from privrisk_spark.policy.dictionaries import SelfDictionary, Table, TableDictionary
from privrisk_spark.policy.policy import DpGuarantee, Policy, RowCount


def impossible_dp(policy: Policy, dp: DpGuarantee) -> Iterable[Fault]:
    """Yield the faults of a differentially private release that only show when several keys are seen together."""
    if policy.decision is not None:
        yield Fault("decision", "is not used when guarantee.kind is 'dp': guarantee.objective decides; leave it out")
    if policy.ledger is None:
        yield Fault("ledger", "is required when guarantee.kind is 'dp'; write ledger: {url: …, lineage: …, cap: …}")
    quasi = policy.quasi_identifiers
    yield from _impossible_vectors("guarantee.schemes", dp.schemes, len(quasi))
    yield from _impossible_vectors("guarantee.candidates", dp.candidates, len(quasi))
    limit = min(Decimal("1e-6"), Decimal(1) / (100 * dp.public_rows))
    if dp.delta > limit:
        yield Fault(
            "guarantee.delta", f"must be at most min(1e-6, 1/(100 · public_rows)) = {limit:.3g}. Got {dp.delta}"
        )
    for name in policy.kept_columns:
        yield Fault(
            f"columns.{name}",
            "would be released untouched, which no differentially private release allows: "
            "drop it (action: drop) or make it a quasi-identifier with a hierarchy",
        )
    for name, column in quasi.items():
        if column.nulls == "forbid":
            yield Fault(
                f"columns.{name}.nulls",
                "'forbid' is refused under dp, as failing on a rare value tells about it; "
                "choose 'suppress', 'own-value' or 'wildcard'",
            )
        if column.unknown == "error":
            yield Fault(
                f"columns.{name}.unknown",
                "'error' is refused under dp, as failing on a rare value tells about it; choose 'suppress'",
            )
    yield from _inferred_schemas(policy)
    if policy.weight_columns:
        yield Fault("risk.sensitivity", "personal and record weights are not available under dp in this version")
    if policy.risk.model == "III":
        yield Fault("risk.model", "must be 'I' or 'II' under dp: objective (5.4) takes 1/risk = ρ/Φ or ρ. Got 'III'")
    checks = policy.checks
    exact = {
        "row_count": checks.row_count != RowCount(),
        "max_mean_risk": checks.max_mean_risk is not None,
        "max_risk": checks.max_risk is not None,
        "forbid_verbatim": checks.forbid_verbatim,
    }
    for name, asked in exact.items():
        if asked:
            yield Fault(f"checks.{name}", "would read exact data, and under dp no gate may; leave it out")
    for name in dp.public_shares:
        if name not in quasi:
            at = f"guarantee.public_shares.{name}"
            yield Fault(at, f"is not a quasi-identifier{nearest(name, list(quasi))}; there are {listing(list(quasi))}")
    yield from _impossible_mode(policy, dp)


def _impossible_vectors(key: str, vectors: Sequence[Sequence[int]] | None, length: int) -> Iterable[Fault]:
    first_at: dict[tuple[int, ...], int] = {}
    for position, scheme in enumerate(vectors or ()):
        at = f"{key}.{position}"
        if len(scheme) != length:
            yield Fault(
                at,
                f"must give one level for each of the {length} quasi-identifiers, in the order of columns. "
                f"Got {len(scheme)}",
            )
        first = first_at.setdefault(tuple(scheme), position)
        if first != position:
            yield Fault(at, f"repeats {key}.{first}; give each level vector once")


def _impossible_mode(policy: Policy, dp: DpGuarantee) -> Iterable[Fault]:
    mode = f"mode '{dp.mode}'"
    if dp.mode == "global":
        yield from _impossible_global(policy, dp)
        return
    if dp.objective is None:
        yield Fault("guarantee.objective", f"is required in {mode}; write objective: {{phi_min: …}}")
    if dp.reuse is not None:
        yield from _impossible_reuse(policy, dp)
        return
    yield from _impossible_choice(dp, mode)
    if dp.mode == "public-dictionary":
        if not isinstance(policy.dictionary, TableDictionary):
            yield Fault(
                "dictionary.kind", f"must be 'table' in mode 'public-dictionary'. Got '{policy.dictionary.kind}'"
            )
        elif not policy.dictionary.public:
            yield Fault("dictionary.public", "must be true in mode 'public-dictionary': state that the table is public")
        elif _source(policy.dictionary) == _source(policy.table):
            yield Fault("dictionary.path", "must be another table than the one released, which is not public")
        if dp.epsilon.admit != 0:
            yield Fault(
                "guarantee.epsilon.admit",
                f"must be 0 in mode 'public-dictionary', as admission costs nothing there. Got {dp.epsilon.admit}",
            )
        if dp.noise != "auto":
            yield Fault("guarantee.noise", "is not used in mode 'public-dictionary', which adds none; leave it out")
        if dp.frequent is None:
            yield Fault("guarantee.frequent", "is required in mode 'public-dictionary': there is no noise to derive it")
    else:
        if policy.dictionary != SelfDictionary():
            yield Fault("dictionary", "must be left out in mode 'local': counts come from the noisy admission")
        if dp.epsilon.admit == 0:
            yield Fault("guarantee.epsilon.admit", "must be greater than 0 in mode 'local'. Got 0")
        if policy.counting.plan != "auto":
            yield Fault("counting.plan", "is not used in mode 'local', which counts cells of schemes; leave it out")


def _impossible_global(policy: Policy, dp: DpGuarantee) -> Iterable[Fault]:
    """One scheme for all records: chosen, and then only sampling and threshold."""
    if dp.epsilon.choose == 0:
        yield Fault("guarantee.epsilon.choose", "must be greater than 0 in mode 'global'. Got 0")
    if dp.epsilon.admit != 0:
        yield Fault(
            "guarantee.epsilon.admit", f"must be 0 in mode 'global', which admits no cells. Got {dp.epsilon.admit}"
        )
    unused = {
        "guarantee.schemes": (dp.schemes is not None, "which draws its scheme from guarantee.candidates"),
        "guarantee.peel": (dp.peel is not None, "which draws one scheme"),
        "guarantee.reuse": (dp.reuse is not None, "which admits no cells"),
        "guarantee.objective": (dp.objective is not None, "where all records take the drawn scheme"),
        "guarantee.noise": (dp.noise != "auto", "which adds none"),
        "dictionary": (policy.dictionary != SelfDictionary(), "which looks nothing up"),
        "counting.plan": (policy.counting.plan != "auto", "which counts cells of candidates"),
    }
    for key, (given, why) in unused.items():
        if given:
            yield Fault(key, f"is not used in mode 'global', {why}; leave it out")


def _impossible_reuse(policy: Policy, dp: DpGuarantee) -> Iterable[Fault]:
    """Cells that are admitted already: nothing is chosen, counted or noised."""
    if dp.mode != "local":
        yield Fault("guarantee.reuse", f"is only used in mode 'local', and the mode is '{dp.mode}'; leave it out")
    for name, epsilon in (("admit", dp.epsilon.admit), ("choose", dp.epsilon.choose)):
        if epsilon != 0:
            yield Fault(f"guarantee.epsilon.{name}", f"must be 0 with reuse, which costs nothing. Got {epsilon}")
    unused = {
        "guarantee.candidates": dp.candidates is not None,
        "guarantee.peel": dp.peel is not None,
        "guarantee.noise": dp.noise != "auto",
        "guarantee.frequent": dp.frequent is not None,
        "dictionary": policy.dictionary != SelfDictionary(),
        "counting.plan": policy.counting.plan != "auto",
    }
    for key, given in unused.items():
        if given:
            yield Fault(key, "is not used with reuse, which takes cells that are admitted already; leave it out")


def _impossible_choice(dp: DpGuarantee, mode: str) -> Iterable[Fault]:
    """Schemes as given, or peeled from candidates."""
    if dp.mode == "public-dictionary" or dp.peel is None:
        if dp.epsilon.choose != 0:
            yield Fault(
                "guarantee.epsilon.choose",
                f"must be 0 where no scheme is chosen from candidates. Got {dp.epsilon.choose}",
            )
        if dp.candidates is not None:
            wants = "; add peel: the number to draw" if dp.mode == "local" else ""
            yield Fault("guarantee.candidates", f"is not used in {mode} without peel{wants}, or leave it out")
        if dp.peel is not None:
            yield Fault("guarantee.peel", f"is not used in {mode}; leave it out")
        return
    if dp.schemes is not None:
        yield Fault("guarantee.schemes", "are drawn from guarantee.candidates with peel; leave them out")
    if dp.candidates is not None and dp.peel > len(dp.candidates):
        yield Fault("guarantee.peel", f"must be at most the {len(dp.candidates)} candidates. Got {dp.peel}")
    if dp.epsilon.choose == 0:
        yield Fault("guarantee.epsilon.choose", "must be greater than 0 with peel. Got 0")


def _inferred_schemas(policy: Policy) -> Iterable[Fault]:
    """A type inferred from all rows changes the text of every row with one of them."""
    table = policy.table
    if table.catalog is None and table.format.lower() not in ("parquet", "orc", "csv"):
        yield Fault(
            "table.format",
            f"'{table.format}' is refused under dp, where a schema must not come from the rows; convert it to parquet",
        )
    for name, value in table.options.items():
        if name.lower() == "inferschema" and str(value).lower() == "true":
            yield Fault(
                f"table.options.{name}", "must be false under dp, as a type inferred from all rows tells about one"
            )


def _source(table: Table) -> str:
    if table.catalog is not None:
        return f"catalog {table.catalog}"
    return str(Path(table.path or "").resolve()) if "://" not in (table.path or "") else str(table.path)
