"""What ``privrisk ledger …`` prints for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privrisk_spark.ledger.budget import Forecast
    from privrisk_spark.ledger.ledger import Balance
    from privrisk_spark.ledger.reconciliation import Lost


def totals(balance: Balance) -> str:
    """Return what is spent, the cap, and what is left, as a table."""
    from privrisk_spark.ledger.budget import balance_document, table

    document = balance_document(balance)
    rows = [["", "epsilon", "delta"]]
    rows += [[name, *(document[kind][name] or "none yet" for kind in ("epsilon", "delta"))] for name in
             ("spent", "cap", "left")]  # fmt: skip
    return table(rows)


def closer(tighter: dict[str, Any] | None) -> list[str]:
    """The tighter figure as a line."""
    if tighter is None:
        return []
    runs = "1 release" if tighter["runs"] == 1 else f"{tighter['runs']} releases"
    return [
        f"  by privacy-loss distributions {runs} cost epsilon {tighter['epsilon']:g} at delta {tighter['delta']} "
        f"(tested; {'this binds' if tighter['binds'] else 'the sums bind'})",
        *([f"    it rests on {tighter['rests_on']}"] if tighter["binds"] else []),
    ]


def statement(balance: Balance, tighter: dict[str, Any] | None) -> str:
    """Return a lineage with all its runs."""
    from privrisk_spark.ledger.budget import table

    lines = [f"Lineage {balance.lineage}", totals(balance), *closer(tighter)]
    lines += [f"  {one.state} {one.stated_at[:10]}, {one.about}: {one.reason}" for one in balance.statements]
    if not balance.runs:
        return "\n".join([*lines, "No run was ever reserved."])
    rows = [["run id", "state", "charged", "epsilon", "delta", "reserved (UTC)", "closed (UTC)", "reason"]]
    for run in balance.runs:
        times = [(moment or "")[:19].replace("T", " ") for moment in (run.reserved_at, run.closed_at)]
        charged = "yes" if run.counted else "no"
        rows.append([run.run_id, run.state, charged, str(run.epsilon), str(run.delta), *times, run.reason or ""])
    return "\n".join([*lines, "", table(rows)])


def accepted(lost: Sequence[Lost], lineage: str) -> list[str]:
    """Return what was charged again, run by run."""
    from privrisk_spark.ledger.amounts import decimal_of

    lines = [f"Accepted {len(lost)} runs of lineage {lineage} whose events are lost."]
    for one in lost:
        epsilon, delta = map(decimal_of, one.cost)
        what = f"charged epsilon {epsilon} and delta {delta}"
        if not any(one.cost):
            what = (
                "charged already" if one.known else "nothing published and its cost not known; lower ledger.cap by it"
            )
        lines.append(f"  run id {one.run_id} ('{one.place}'): {what}")
    return lines


def prospect(found: Forecast) -> str:
    """Return what a run would cost, and how many like it fit."""
    from privrisk_spark.ledger.budget import table

    document = found.document
    rows = [["", "epsilon", "delta"]]
    for label, name in (("this run", "cost"), ("spent", "spent"), ("cap", "cap"), ("left", "left"),
                        ("left after", "left_after")):  # fmt: skip
        rows.append([label, *(document[kind][name] or "refused" for kind in ("epsilon", "delta"))])
    fits, state = found.releases_that_fit, document["state"]
    included = ", this one included" if state == "new" else ""
    lines = [f"Lineage {found.balance.lineage}, run id {found.request.run_id}", table(rows)]
    lines += closer(found.tighter)
    if state not in ("new", "refused"):
        lines.append(f"This run id is {state} already: running it costs nothing more.")
    what = "1 release like this one fits" if fits == 1 else f"{fits} releases like this one fit"
    return "\n".join([*lines, f"{what} in what is left{included}."])


def overview(balances: Sequence[Balance]) -> str:
    """Return all lineages, one a line."""
    from privrisk_spark.ledger.budget import balance_document, table

    if not balances:
        return "No run was ever reserved."
    rows = [["lineage", "runs", "epsilon spent", "cap", "left", "delta spent", "cap", "left"]]
    for balance in balances:
        document = balance_document(balance)
        amounts = [str(document[kind][name]) for kind in ("epsilon", "delta") for name in ("spent", "cap", "left")]
        rows.append([balance.lineage, str(len(balance.runs)), *amounts])
    return table(rows)
