"""The vault filled, the release moved to its place, and the ledger and the key settled."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from privrisk_spark.engine.fingerprints import collect_frame_digest
from privrisk_spark.errors import ReleasedError, WithdrawnError
from privrisk_spark.json_values import as_json
from privrisk_spark.pipelines.release.lake_output import check_staged
from privrisk_spark.pipelines.release.opened import Opened, list_files
from privrisk_spark.pipelines.release.written import Written
from privrisk_spark.pipelines.run import ReleaseRun
from privrisk_spark.planning.history import remembered_as
from privrisk_spark.planning.request import FRAME, differing, request_of
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.private import DpGuarantee
from privrisk_spark.reporting.manifest import data_dictionary, manifest, summary
from privrisk_spark.reporting.release_reports import RunRecord
from privrisk_spark.results.release import Check, Guarantee, Report
from privrisk_spark.runs.keystore import VaultKey, destroy_key
from privrisk_spark.runs.sealing import release_digest, sealed
from privrisk_spark.runs.witnesses import Witness, look, record_witness
from privrisk_spark.runs.workplace import Workplace
from privrisk_spark.storage.documents import write_json, write_text

if TYPE_CHECKING:
    from privrisk_spark.ledger.charge import Charge
    from privrisk_spark.ledger.records import Reservation
    from privrisk_spark.ledger.request import Request

# The ledger's database is imported only for policies that name a ledger.


def fill_vault(run: ReleaseRun, sentence: str) -> None:
    """Stage: move the decisions, and the classes where there are any, to the vault."""
    with run.progress.stage("vault") as stage:
        run.place.swap_into_vault(run.place.scratch / "decisions", "decisions")
        run.place.swap_into_vault(run.place.scratch / "classes", "classes")
        stage.sentence = sentence


def record_of(run: ReleaseRun, opened: Opened, guarantee: Guarantee, checks: Sequence[Check]) -> RunRecord:
    """Return what the reports say of the run, with the stages so far."""
    return RunRecord(
        run.policy,
        opened.hierarchies,
        run.place.run_id,
        run.date.isoformat(),
        guarantee,
        tuple(run.progress.records),
        tuple(checks),
        opened.sources.values,
    )


def write_vault_report(run: ReleaseRun, report: Report, *, plan: str, snapshot: str, read: Mapping[str, Any]) -> None:
    """Write the vault's edition of the report, its checks and its summary.

    Parameters
    ----------
    plan : str
        How was counted.
    snapshot : str
        Identity of the table's content.
    read : mapping
        Files and rows of the table, expected and processed, and rows without an id of their own.
    """
    vault = run.place.private
    write_json(vault / "checks.json", as_json(report.checks))
    write_text(vault / "report.html", render(report))
    figures = summary(run.policy, report, plan=plan, snapshot=snapshot, seconds=run.progress.seconds, read=read)
    write_json(vault / "summary.json", {**figures, "output.path": str(run.place.output)})


def stage_documents(
    run: ReleaseRun, opened: Opened, record: RunRecord, public: Report, written: Written, more: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the public documents beside the staged data; nobody sees either yet.

    Parameters
    ----------
    public : Report
        The public edition.
    more : mapping
        What the guarantee allows the manifest to state besides.

    Returns
    -------
    dict
        The manifest, which names every file by its SHA-256.

    Raises
    ------
    SchemaError
        If the policy has releases committed to a table, and it has other columns.
    """
    check_staged(run.policy, run.place)
    staging = run.place.staging
    write_json(staging / "checks.json", as_json(public.checks))
    write_json(staging / "dictionary.json", {"columns": data_dictionary(run.policy, opened.hierarchies)})
    write_text(staging / "report.html", render(public))
    types = written.partitions.types
    made = manifest(record, public, written.facts, files=written.files, more=more, partition_types=types)
    return sealed(made, staging)


def publish(
    run: ReleaseRun, opened: Opened, record: RunRecord, public: Report, written: Written, more: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the public documents beside the staged data, and publish both at once; returns the manifest.

    For a guarantee that no budget covers: the vault keeps what was asked for, and the lineage is told if it is named.
    """
    run.place.record_request(request_of(run.policy, given=run.table is not None, frame=run.frame_digest))
    staged = stage_documents(run, opened, record, public, written, more)
    if run.policy.ledger is not None:
        _note(run.policy, run.place, list_files(run.policy, opened.sources))
    if run.policy.history is not None:
        # Before anybody can see it: no later release may miss it.
        known = remembered_as(run.policy, opened.hierarchies, run_id=run.place.run_id, date=run.date.isoformat())
        run.place.remember(run.place.scratch / "remembered", {**known, "manifest": release_digest(staged)})
    return run.place.commit(staged)


def refuse_withdrawn(place: Workplace) -> None:
    """Refuse a run id whose release was withdrawn: readers are told that it is gone.

    Raises
    ------
    WithdrawnError
    """
    stone = place.output.withdrawn(place.run_id)
    if stone is not None:
        raise WithdrawnError(
            f"the release of run id {place.run_id} was withdrawn on {stone['withdrawn']}. Use a new run id for another "
            "release."
        )


def refuse_note(policy: Policy, place: Workplace, files: Iterable[str] | None = None) -> None:
    """Refuse a release that is not private and that its lineage will not take, before it costs any work.

    Raises
    ------
    BudgetError
        As `Ledger.note`.
    """
    if policy.ledger is not None and not policy.guarantee.private:
        from privrisk_spark.ledger.administration import seen_of
        from privrisk_spark.ledger.ledger import Ledger

        asked = _noted(policy, place, files)
        Ledger(policy.ledger.url).would_note(**asked, seen=seen_of(policy))


def _note(policy: Policy, place: Workplace, files: Iterable[str] | None = None) -> None:
    """Have the lineage know of a release that is not private, if the policy names it: before anybody can see it."""
    if policy.ledger is not None:
        from privrisk_spark.ledger.administration import seen_of
        from privrisk_spark.ledger.ledger import Ledger

        asked = _noted(policy, place, files)
        _keep_witness(place, Ledger(policy.ledger.url).note(**asked, seen=seen_of(policy)))


def _noted(policy: Policy, place: Workplace, files: Iterable[str] | None) -> dict[str, Any]:
    from privrisk_spark.ledger.identity import table_identity

    assert policy.ledger is not None
    table = table_identity(policy, files)
    return {
        "lineage": policy.ledger.lineage,
        "run_id": place.run_id,
        "what": policy.guarantee.kind,
        "place": str(place.output),
        "table": table.table,
        "files": table.files,
    }


def _keep_witness(place: Workplace, made: Reservation) -> None:
    """Keep in the vault what the ledger ended in, and what the run costs."""
    cost = str(made.epsilon), str(made.delta)
    record_witness(place.vault, Witness(made.lineage, made.run_id, str(place.output), made.events, made.head, *cost))


def render(report: Report) -> str:
    """Page of a report; the packages that draw its charts are not imported before, so that tasks start sooner."""
    from privrisk_spark.reporting.report import render as page

    return page(report)


def charge_of(policy: Policy, place: Workplace, request: Request) -> Charge:
    """Return the charge of a run.

    Parameters
    ----------
    policy : Policy
        Of kind ``dp``.
    """
    from privrisk_spark.ledger.charge import Charge
    from privrisk_spark.ledger.ledger import Ledger
    from privrisk_spark.ledger.request import lineage_name

    assert policy.ledger is not None
    assert isinstance(policy.guarantee, DpGuarantee)
    keys = VaultKey(place.vault.keys, place.run_id, policy.guarantee.key, lineage_name(policy.ledger.lineage))
    return Charge(
        Ledger(policy.ledger.url),
        request,
        str(place.output),
        keys,
        seen=look(place.output, place.vault),
        witness=lambda made: _keep_witness(place, made),
    )


def confirm(
    policy: Policy, place: Workplace, manifest: Mapping[str, Any], *, date: dt.date, table: DataFrame | None
) -> None:
    """Hold a release that is there already against what is asked for, and against the ledger if there is one.

    Parameters
    ----------
    manifest : mapping
        Of the release.
    date : date
        Business date.
    table : DataFrame or None
        What the caller gave instead of the policy's table.

    Raises
    ------
    RefusedError
        If it is not the release of this run.
    """
    recorded = place.recorded_request()
    frame = None if table is None else collect_frame_digest(table)
    if frame is not None and (recorded is None or recorded.get(FRAME) != frame):
        known = "this vault does not know of which frame" if recorded is None else "of other rows than the given frame"
        cost = "; under dp this charges the budget again" if policy.guarantee.private else ""
        raise ReleasedError(
            f"run id {place.run_id} is released already, {known}. Fix: give another run_id to release this frame{cost}."
        )
    if policy.ledger is not None and policy.guarantee.private:
        from privrisk_spark.planning.cost import run_cost

        request = run_cost(policy, place.run_id, date)
        charge_of(policy, place, request).confirm(release_digest(manifest))
        return
    if recorded is not None:
        others = differing(recorded, request_of(policy, given=table is not None, frame=frame))
    else:  # another vault: the manifest knows the policy as a whole, with the places it names
        same = manifest["policy_digest"] == policy.digest()
        others = [] if same else ["the policy, or a place it names (another digest than the manifest's)"]
        # The digest is published, so it does not know them; and the place of the release is the one it was found at.
        unknown = [".".join(one.keys) for one in policy.from_environment if one.keys[0] != "output"]
        if same and unknown:
            raise ReleasedError(
                f"run id {place.run_id} is released already, and this vault does not know what it was asked for. The "
                f"manifest does not tell what the environment gave for: {', '.join(unknown)}. Use the vault of the "
                "release, or a new run id."
            )
    if others:
        raise ReleasedError(
            f"run id {place.run_id} is released already, and was asked for with another content of: "
            f"{', '.join(others)}. Use a new run id."
        )
    _note(policy, place)
    if policy.guarantee.keyed:
        destroy_key(place.vault.keys, place.run_id)
