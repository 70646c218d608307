"""One charge, one draw: what a run is held to after it was charged, and what is refused (docs/charge.md).

No database here: a run as the ledger knows it comes in, and out comes whether an event is to be written. An attempt
that agrees with what was recorded writes nothing and goes on; one that differs is refused by name.
"""

from __future__ import annotations

from privrisk_spark.errors import BudgetError, InternalError, ReleasedError
from privrisk_spark.ledger.decision import differences, refuse_withdrawn
from privrisk_spark.ledger.records import Run
from privrisk_spark.ledger.request import Request

__all__ = ["binds", "commits", "confirm", "pins", "refuse_other_place"]


def binds(run: Run, *, key: str, place: str) -> bool:
    """Tell whether a run is to be bound to a key and a place now.

    Parameters
    ----------
    run : Run
        As the ledger knows it.
    key : str
        Commitment to the release key of the attempt.
    place : str
        Where the attempt publishes, resolved.

    Returns
    -------
    bool
        False if it is bound to them already.

    Raises
    ------
    BudgetError
        If it is bound to others, or was voided.
    """
    _refuse_void(run, "begun")
    refuse_other_place(run.run_id, run.place, place)
    if run.key is not None and run.key != key:
        raise BudgetError(
            f"run id {run.run_id} was begun with another release key than that of output.vault or guarantee.key, and "
            "its budget covers one draw. Run it with the vault or key it was begun with, or use a new run id."
        )
    return run.key is None


def pins(run: Run, *, snapshot: str) -> bool:
    """Tell whether what a run read is to be recorded now.

    Parameters
    ----------
    snapshot : str
        Identity of the content the attempt read.

    Returns
    -------
    bool
        False if it is recorded already.

    Raises
    ------
    BudgetError
        If the run first read other content, or was voided.
    InternalError
        If the run is not bound.
    """
    _refuse_void(run, "gone on with")
    if run.key is None:
        raise InternalError(f"run id {run.run_id} read its table before the ledger held its key and its place.")
    if run.snapshot is not None and run.snapshot != snapshot:
        raise BudgetError(
            f"The table changed since the run id '{run.run_id}' first read it; its budget covers one release of what "
            "it was then. Use a new run id."
        )
    return run.snapshot is None


def commits(run: Run, *, release: str) -> bool:
    """Tell whether what a run publishes is to be recorded now.

    Parameters
    ----------
    release : str
        Digest of all that would be published.

    Returns
    -------
    bool
        False if it is recorded already.

    Raises
    ------
    BudgetError
        If something else is recorded, or the run was voided.
    InternalError
        If what it read is not recorded.
    """
    _refuse_void(run, "committed")
    if run.state == "committed":
        if run.release != release:
            raise BudgetError(
                f"run id {run.run_id} is committed to another release than was made now, and its budget covers one. A "
                "public table it reads, or the program, is no longer what it was; use a new run id."
            )
        return False
    if run.state != "pinned":
        raise InternalError(f"run id {run.run_id} would publish before the ledger held what it read.")
    return True


def confirm(run: Run, request: Request, *, place: str, release: str) -> None:
    """Hold a release that is published against the ledger.

    Parameters
    ----------
    request : Request
        What is asked for now.
    place : str
        Where the release lies, resolved.
    release : str
        Its digest.

    Raises
    ------
    BudgetError
        If it is not the one release of the run, or another one is asked for now.
    """
    refuse_withdrawn(run)
    # A release stays the release of its run when the program is replaced; what was asked for it may be lost.
    lost = run.state == "accepted"
    found = [] if lost else [name for name in differences(run, request) if name != "mechanism.version"]
    if found:
        raise ReleasedError(
            f"run id {run.run_id} is released already, with other parameters; use a new run id. What differs: "
            f"{', '.join(found)}."
        )
    if run.state == "void":
        raise BudgetError(
            f"output.path holds a release of run id {run.run_id}, which was voided; withdraw it, and use a new run id."
        )
    if run.state not in ("committed", "accepted"):
        raise BudgetError(
            f"output.path holds a release of run id {run.run_id}, which the ledger has as {run.state}, though it is "
            "always committed first: the ledger lacks what happened since. Restore it from its latest backup."
        )
    if run.place is not None and run.place != place:
        raise BudgetError(
            f"the release of run id {run.run_id} that the ledger knows is at '{run.place}'; that at '{place}' is "
            "another. Use a new run id."
        )
    if run.release is not None and run.release != release:
        raise BudgetError(
            f"the release of run id {run.run_id} at '{place}' is not the one the ledger knows: it was changed after "
            "publication. Restore it from a copy, or use a new run id."
        )


def refuse_other_place(run_id: str, held: str | None, place: str) -> None:
    """Refuse a place that is not the one a run is held to, if it is held to one.

    Raises
    ------
    BudgetError
        Naming both.
    """
    if held is not None and held != place:
        raise BudgetError(
            f"run id {run_id} was begun for output.path '{held}', and its budget covers one release there. Got "
            f"'{place}'. Run it there, or use a new run id."
        )


def _refuse_void(run: Run, done: str) -> None:
    if run.state == "void":
        raise BudgetError(f"run id {run.run_id} was voided and cannot be {done}; use a new run id.")
    refuse_withdrawn(run)
