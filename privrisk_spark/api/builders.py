"""What a policy says of its columns, written in Python: roles, and hierarchies of values.

Each function returns the mapping that a policy file holds under the same key, so that what is wrong with it is reported
with the rest of the policy, by its key.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

Number = int | float | Decimal
Hierarchy = dict[str, Any]
"""What a policy file holds under ``hierarchy:``."""
Column = dict[str, Any]
"""What a policy file holds under the name of a column."""
Reading = Mapping[str, Any]
"""How values are tidied when they are read: what a policy file holds under ``read:``."""
Coarser = Mapping[str, Any]
"""How numbers are made coarser before they are released: what a policy file holds under ``release:``."""
Masking = Mapping[str, Any]
"""How values are masked: what a policy file holds under ``mask:``."""


def intervals(
    *widths: Number,
    cuts: Sequence[Sequence[Number]] | None = None,
    domain: tuple[Number, Number] | None = None,
    unit: Number | None = None,
    origin: Number | None = None,
    bottom: Number | None = None,
    top: Number | None = None,
) -> Hierarchy:
    """Put numbers in intervals, closed on the left, by widths or by cut points.

    Parameters
    ----------
    *widths : number
        Width of the intervals at level 1, 2, …, in the column's unit; each a larger multiple of the one before.
    cuts : sequence of sequences of number, optional
        Instead of widths: ascending cut points of each level, each list some of those of the list before.
    domain : (number, number), optional
        Least and greatest value, both included; declares the leaves, one per unit. Without it they come from the data.
    unit : number, optional
        Step between declared values; default 1.
    origin : number, optional
        Where an interval of every level starts, with widths; default 0.
    bottom, top : number, optional
        With widths: values below, and from here up, are one open interval at every level.

    Returns
    -------
    dict
        ``{"intervals": {...}}``.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> pr.intervals(5, 10, domain=(0, 99))
    {'intervals': {'widths': [5, 10], 'domain': [0, 99]}}
    """
    given: dict[str, Any] = {"widths": list(widths)} if widths else {}
    given |= {} if cuts is None else {"cuts": [list(points) for points in cuts]}
    ends = None if domain is None else list(domain)
    return {"intervals": given | _given(domain=ends, unit=unit, origin=origin, bottom=bottom, top=top)}


def mask(
    steps: int,
    *,
    side: Literal["right", "left"] = "right",
    character: str = "*",
    length: int | None = None,
    domain: Sequence[str] | None = None,
) -> Hierarchy:
    """Mask text one character per level, such as 47906, 4790*, 479**.

    Parameters
    ----------
    steps : int
        Levels of masking, one character each.
    side : {"right", "left"}
        The end that is masked first.
    character : str
        What stands for a masked character.
    length : int, optional
        Characters every value must have.
    domain : sequence of str, optional
        All values there may be; without it they come from the data.

    Returns
    -------
    dict
        ``{"mask": {...}}``.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> pr.mask(5)
    {'mask': {'steps': 5}}
    """
    given: dict[str, Any] = {"steps": steps}
    given |= {} if side == "right" else {"from": side}
    given |= {} if character == "*" else {"character": character}
    return {"mask": given | _given(length=length, domain=None if domain is None else list(domain))}


def dates(
    *steps: Literal["day", "month", "quarter", "year", "decade"],
    domain: tuple[str | dt.date, str | dt.date] | None = None,
) -> Hierarchy:
    """Generalize dates along the calendar.

    Parameters
    ----------
    *steps : {"day", "month", "quarter", "year", "decade"}
        Form of the values (ISO 8601), then of each level; steps may be left out, not reordered.
    domain : (date, date), optional
        First and last value, in the form of the first step; without it the leaves come from the data.

    Returns
    -------
    dict
        ``{"dates": {...}}``.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> pr.dates("day", "month", "year", domain=("1906-01-01", "2006-12-31"))
    {'dates': {'steps': ['day', 'month', 'year'], 'domain': ['1906-01-01', '2006-12-31']}}
    """
    ends = None if domain is None else [str(end) for end in domain]
    return {"dates": {"steps": list(steps)} | _given(domain=ends)}


def order(values: Sequence[str], fanouts: Sequence[int]) -> Hierarchy:
    """Group ordinal values with their neighbours.

    Parameters
    ----------
    values : sequence of str
        All values, from least to greatest.
    fanouts : sequence of int
        How many neighbours are grouped at level 1, 2, …; the last group may be smaller.

    Returns
    -------
    dict
        ``{"order": {...}}``.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> pr.order(["primary", "secondary", "bachelor", "master"], [2])
    {'order': {'values': ['primary', 'secondary', 'bachelor', 'master'], 'fanouts': [2]}}
    """
    return {"order": {"values": list(values), "fanouts": list(fanouts)}}


def flat(*values: str) -> Hierarchy:
    """Disclose a value or suppress it, with nothing between.

    Parameters
    ----------
    *values : str
        All values there may be; without any they come from the data.

    Returns
    -------
    dict
        ``{"flat": {...}}``.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> pr.flat("F", "M")
    {'flat': {'values': ['F', 'M']}}
    """
    return {"flat": {"values": list(values)} if values else {}}


def tree(content: Mapping[str, Any] | str | Path) -> Hierarchy:
    """Generalize along a tree written out, or in a YAML or JSON file.

    Parameters
    ----------
    content : mapping, str or Path
        Nested mapping, in which a key is an inner node and a list holds leaves or further mappings; or a file with one.

    Returns
    -------
    dict
        ``{"tree": {...}}`` or ``{"tree_file": path}``.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> pr.tree({"*": {"north": ["Bonn", "Kiel"], "south": ["Ulm"]}})
    {'tree': {'*': {'north': ['Bonn', 'Kiel'], 'south': ['Ulm']}}}
    """
    return {"tree": dict(content)} if isinstance(content, Mapping) else {"tree_file": str(content)}


def file(path: str | Path, *, separator: str = ";") -> Hierarchy:
    """Generalize by a file of ARX: one row ``leaf;level 1;…;root`` per value, in UTF-8.

    Parameters
    ----------
    path : str or Path
        Read when the policy is used.
    separator : str
        The character between cells.

    Returns
    -------
    dict
        ``{"file": path}``.

    References
    ----------
    Prasser, Kohlmayer, Lautenschläger and Kuhn, "ARX", AMIA Annual Symposium 2014, pages 984-993.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> pr.file("hierarchies/age.csv")
    {'file': 'hierarchies/age.csv'}
    """
    return {"file": str(path)} | ({} if separator == ";" else {"separator": separator})


def quasi_identifier(
    hierarchy: Hierarchy | None = None,
    *,
    mask: Masking | None = None,
    nulls: Literal["own-value", "wildcard", "forbid", "suppress"] | None = None,
    unknown: Literal["error", "suppress"] | None = None,
    no_id: bool | None = None,
    read: Reading | None = None,
) -> Column:
    """Declare a column an attacker may know; it is generalized, or masked.

    Parameters
    ----------
    hierarchy : dict, optional
        As :func:`intervals` and the like return it; needed unless there is a mask.
    mask : mapping, optional
        How its values are masked, in a policy of the kind ``masked``, such as ``{"method": "noise", "share": 0.1}``.
    nulls : {"suppress", "own-value", "wildcard", "forbid"}, optional
        What a missing value is: ⊥ from the start (default), a value like any other, ⊥ that is consistent with every
        value, or an error.
    unknown : {"error", "suppress"}, optional
        What a value outside the hierarchy is; default an error, and ⊥ under differential privacy.
    no_id : bool, optional
        Whether you state that the values name no individuals, for example shops; a release then does not check it.
    read : mapping, optional
        How values are tidied when they are read: ``trim``, ``case``, ``null_if``, ``map`` and ``cast``, in this order.

    Returns
    -------
    dict
        A column of a policy.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> pr.quasi_identifier(pr.mask(5))
    {'role': 'quasi-identifier', 'hierarchy': {'mask': {'steps': 5}}}
    >>> pr.quasi_identifier(pr.flat("F", "M"), read={"trim": True, "null_if": ["", "?"], "map": {"m": "M"}})["read"]
    {'trim': True, 'null_if': ['', '?'], 'map': {'m': 'M'}}
    """
    column = {"role": "quasi-identifier"} | _given(hierarchy=hierarchy, nulls=nulls, unknown=unknown, no_id=no_id)
    return column | _parts(mask=mask, read=read)


def sensitive(
    action: Literal["keep", "drop"] = "keep",
    *,
    release: Coarser | None = None,
    mask: Masking | None = None,
    read: Reading | None = None,
) -> Column:
    """Declare a column worth protecting: what an attacker wants to learn.

    Parameters
    ----------
    action : {"keep", "drop"}
        Whether it is released, as it is or as `release` says, or dropped.
    release : mapping, optional
        How its numbers are made coarser before they are released: ``bottom_code``, ``top_code``, ``round`` and
        ``intervals``.
    mask : mapping, optional
        How its values are masked, as for :func:`quasi_identifier`.
    read : mapping, optional
        How its values are tidied when they are read, as for :func:`quasi_identifier`.

    Returns
    -------
    dict
        A column of a policy.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> pr.sensitive()
    {'role': 'sensitive', 'action': 'keep'}
    >>> pr.sensitive(release={"round": 100, "top_code": 5000})
    {'role': 'sensitive', 'action': 'keep', 'release': {'round': 100, 'top_code': 5000}}
    """
    return {"role": "sensitive", "action": action} | _parts(release=release, mask=mask, read=read)


def insensitive(
    action: Literal["keep", "drop"] = "keep",
    *,
    release: Coarser | None = None,
    mask: Masking | None = None,
    read: Reading | None = None,
) -> Column:
    """Declare a column no attacker knows and nobody minds.

    Parameters
    ----------
    action : {"keep", "drop"}
        Whether it is released, as it is or as `release` says, or dropped.
    release, mask, read : mapping, optional
        As for :func:`sensitive`.

    Returns
    -------
    dict
        A column of a policy.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> pr.insensitive("drop")
    {'role': 'insensitive', 'action': 'drop'}
    """
    return {"role": "insensitive", "action": action} | _parts(release=release, mask=mask, read=read)


def identifier(*, read: Reading | None = None) -> Column:
    """Declare a direct identifier, such as a name; it is never released.

    Parameters
    ----------
    read : mapping, optional
        As for :func:`quasi_identifier`.

    Returns
    -------
    dict
        A column of a policy.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> pr.identifier()
    {'role': 'identifier'}
    """
    return {"role": "identifier"} | _parts(read=read)


def weight(*, release: bool = False, read: Reading | None = None) -> Column:
    """Declare a column of personal or sampling weights.

    Parameters
    ----------
    release : bool
        Whether it is released as it is, as analyses of a sample need its weights. A weight that few records have
        points them out: the release warns of it as of any kept column.
    read : mapping, optional
        As for :func:`quasi_identifier`.

    Returns
    -------
    dict
        A column of a policy.

    Examples
    --------
    >>> import privrisk_spark as pr
    >>> pr.weight()
    {'role': 'weight'}
    """
    return {"role": "weight"} | ({"release": True} if release else {}) | _parts(read=read)


def _parts(**parts: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: dict(part) for name, part in parts.items() if part is not None}


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
