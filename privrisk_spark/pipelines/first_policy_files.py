"""A first policy as the directory it is released from: the commented policy, its hierarchies and the page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.hierarchies.files import arx_text
from privrisk_spark.planning.first_policy.draft import Proposed
from privrisk_spark.policy.reading import load
from privrisk_spark.policy.writing import policy_text
from privrisk_spark.reporting.profile_page import render_first_policy
from privrisk_spark.storage.directories import is_there, resolved
from privrisk_spark.storage.documents import write_text
from privrisk_spark.storage.locations import Location, is_remote
from privrisk_spark.storage.ownership import claim, refuse_foreign
from privrisk_spark.storage.permissions import make_private

FILES = ("policy.yaml", "profile.html", "hierarchies")
"""What a directory of a first policy holds."""

_KIND = "first policy"


def first_policy_text(
    proposed: Proposed,
    table: Mapping[str, Any],
    *,
    files: Mapping[str, str],
    output: Mapping[str, str] | None,
    command: str,
) -> str:
    """Return what is proposed as a commented policy.

    Parameters
    ----------
    table : mapping
        Where the table is.
    files : mapping of column to path
        Of hierarchies that are written to files; those of other columns stand in the policy.
    output : mapping, optional
        Places of the release and its vault.
    command : str
        What makes a release by it.
    """
    told, floors = proposed.told, proposed.told.floors
    floor = 0.0 if floors is None else floors.chosen.floor
    document = proposed.draft.document(table, told.title, files, floor=floor, output=output)
    count = len(told.to_decide)
    head = (
        f"A first policy for {told.title}: {told.profile.rows:,} rows. Every line is a guess, its reason above it. "
        "Made from the data: for a differentially private release, write domains that do not depend on them.",
        f"{count} column{'s' if count > 1 else ''} may be ids: see the key 'undecided' and the lines with DECIDE."
        if count
        else "No column is undecided.",
        "Lines with CHECK are unsure, but a release uses them.",
        f"Then: {command}",
    )
    return policy_text(document, proposed.draft.remarks(floors), head=head)


def write_first_policy(proposed: Proposed, table: Mapping[str, Any], directory: Path, *, overwrite: bool) -> Path:
    """Write a directory to release by: ``policy.yaml``, ``hierarchies/`` and ``profile.html``, for its owner alone.

    Parameters
    ----------
    table : mapping
        Where the table is.
    directory : Path
        Absolute.
    overwrite : bool
        Whether files of an earlier call may be replaced.

    Returns
    -------
    Path
        Of the policy.

    Raises
    ------
    ConfigError
        If there are such files and they must not be replaced.
    """
    refuse_existing(directory, table.get("path"), overwrite=overwrite)
    claim(_place(directory), "--out", _KIND)
    files: dict[str, str] = {}
    for name, one in proposed.draft.proposals.items():
        if one.paths:
            place = directory / "hierarchies" / f"{_file_name(name, len(files), files)}.csv"
            make_private(place.parent, "--out")
            write_text(place, arx_text(one.paths))
            files[name] = str(place)
    policy = directory / "policy.yaml"
    output = {"path": str(directory / "release"), "vault": str(directory / "vault")}
    text = first_policy_text(proposed, table, files=files, output=output, command=f"privrisk release {policy}")
    write_text(directory / "profile.html", render_first_policy(proposed.told))
    write_text(policy, text)
    load([policy], overrides=["undecided=[]"], environment={})
    return policy


def refuse_existing(directory: Path, table: str | None, *, overwrite: bool) -> None:
    """Refuse a directory in the table's, a foreign one, and one that holds a policy, unless it may be replaced.

    Parameters
    ----------
    directory : Path
        Absolute.
    table : str or None
        Path of the table.

    Raises
    ------
    ConfigError
        Naming a file.
    """
    if table is not None and not is_remote(table):
        of_table = resolved(Path(table).expanduser())
        if resolved(directory).is_relative_to(of_table):
            rule = f"must not lie in the table's own directory '{table}', which is read whole. Got '{directory}'"
            raise ConfigError([Fault("--out", rule)])
    refuse_foreign(_place(directory), "--out", _KIND)
    there = [name for name in FILES if is_there(directory / name)]
    if there and not overwrite:
        rule = f"'{directory}' holds {there[0]} already; name another directory, or give --overwrite to replace it"
        raise ConfigError([Fault("--out", rule)])


def _place(directory: Path) -> Location:
    return Location("file", "", str(directory))


def _file_name(column: str, number: int, files: Mapping[str, str]) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", column).strip("-") or "column"
    taken = {Path(path).stem.casefold() for path in files.values()}
    return f"{name}-{number}" if name.casefold() in taken else name
