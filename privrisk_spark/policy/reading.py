"""Reading a policy: what a person writes, checked once.

A policy is one YAML document. Layers are merged in this order, later ones win: defaults, files, environment variables
(``PRIVRISK__OUTPUT__PATH=...``), ``--set output.path=...``. ``${NAME}`` and ``${NAME:-default}`` in a text are replaced
from the environment, ``{ds}`` by the run's date. Everything wrong is reported at once, each fault with its key path.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.hierarchies.yaml_texts import load_yaml
from privrisk_spark.policy.dictionaries import GIVEN
from privrisk_spark.policy.faults import faults_of
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.rules.release import impossible
from privrisk_spark.policy.secrets import FromEnvironment
from privrisk_spark.storage.locations import AbsolutePath
from privrisk_spark.storage.whole_files import contents

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}")
_PREFIX = "PRIVRISK__"
_KEY_PATH = tuple[str, ...]


def load(
    files: Sequence[str | Path],
    *,
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    date: dt.date | None = None,
    releasing: bool = True,
    frames: bool = False,
) -> Policy:
    """Read, merge and check a policy.

    Mappings are merged key by key, anything else is replaced as a whole; so is a column, dictionary or guarantee whose
    ``role`` or ``kind`` a later layer changes. Environment variables find existing keys whatever their case.

    Parameters
    ----------
    files : sequence of path
        YAML files, or URIs of some in object stores; later ones are merged over earlier ones.
    overrides : sequence of str
        ``dotted.key=value``, the value read as YAML.
    environment : mapping, optional
        Defaults to the process environment.
    date : date, optional
        What ``{ds}`` stands for; today (UTC) by default.
    releasing : bool
        Demand what a release needs, an output and a decision.
    frames : bool
        Whether a frame may be given for a table that the policy does not name.

    Returns
    -------
    Policy

    Raises
    ------
    ConfigError
        With all faults at once: those of malformed layers, of the document's keys and references, and of rules of
        several keys that read no wrong key. If a file cannot be read, only those of files and layers.
    """
    policy, faults = load_with_faults(
        files, overrides=overrides, environment=environment, date=date, releasing=releasing, frames=frames
    )
    if policy is None or faults:
        raise ConfigError(faults)
    return policy


def load_with_faults(
    files: Sequence[str | Path],
    *,
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    date: dt.date | None = None,
    releasing: bool = True,
    frames: bool = False,
) -> tuple[Policy | None, list[Fault]]:
    """Read, merge and check a policy, and return its faults beside it.

    Parameters
    ----------
    files, overrides, environment, date, releasing, frames
        As :func:`load` takes them.

    Returns
    -------
    Policy or None
        None where a key is missing, unknown or has a value that is not allowed; where only rules that take several keys
        together are broken, what the policy names can be looked at all the same.
    list of Fault
        None of them for a policy that can be used.
    """
    env = os.environ if environment is None else environment
    faults: list[Fault] = []
    merged: dict[str, Any] = {}
    for file in files:
        try:
            merged = _merge(merged, _read(file))
        except _UnreadableError as error:
            faults.append(error.fault)
    origin: dict[_KEY_PATH, str] = {}
    for source, keys, value in [*_from_environment(env, faults), *_from_overrides(overrides, faults)]:
        path = _existing(keys, merged) if source.startswith(_PREFIX) else keys
        inside = next((n for n in range(1, len(path)) if isinstance(_at(merged, path[:n]), list)), None)
        if inside is not None:
            rule = f"goes into the list {'.'.join(path[:inside])}; set a list as a whole, such as …=[1, 2]"
            faults.append(Fault(source, rule))
            continue
        # A key that is new on the way comes from this layer too.
        origin.update({path[:n]: source for n in range(1, len(path)) if _at(merged, path[:n]) is None})
        origin[path] = source
        merged = _merge(merged, _nest(path, value))
    if not all(fault.path for fault in faults):  # of a file that cannot be read
        return None, faults

    policy, others = _resolved(merged, env, date, releasing=releasing, frames=frames)
    if faults:  # a layer that is malformed may be what sets a missing key
        policy, others = None, [fault for fault in others if not fault.rule.startswith("is required")]
    return policy, [*faults, *(_with_origin(fault, origin) for fault in others)]


def parse_given(document: Mapping[str, Any], *, date: dt.date | None = None) -> Policy:
    """Check a policy given as a mapping, with references as in a file, for any job and any frames; see :func:`load`."""
    policy, faults = _resolved(document, os.environ, date, releasing=False, frames=True)
    if policy is None or faults:
        raise ConfigError(faults)
    return policy


def _resolved(
    written: Mapping[str, Any], env: Mapping[str, str], date: dt.date | None, *, releasing: bool, frames: bool
) -> tuple[Policy | None, list[Fault]]:
    """Replace the references of a document, and check it."""
    faults: list[Fault] = []
    document = cast("dict[str, Any]", _interpolate(written, env, date or dt.datetime.now(dt.UTC).date(), "", faults))
    unresolved = {fault.path for fault in faults}
    policy, others = _check(_for_frames(document) if frames else document, releasing=releasing)
    faults += [fault for fault in others if fault.path not in unresolved]
    given = () if policy is None else tuple(_from_variables(written, document, env, ()))
    return policy.given_by_environment(given) if policy is not None and given else policy, faults


def parse(document: Mapping[str, Any], *, releasing: bool = True, frames: bool = False) -> Policy:
    """Check a policy given as a mapping, without layers and references; see :func:`load`."""
    policy, faults = _check(_for_frames(document) if frames else document, releasing=releasing)
    if policy is None or faults:
        raise ConfigError(faults)
    return policy


def _for_frames(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document in which a frame stands for each table that it does not name."""
    found = {**document, "table": _or_frame(document.get("table"))}
    sharing = document.get("sharing")
    if isinstance(sharing, Mapping):
        found["sharing"] = {**sharing, "edges": _or_frame(sharing.get("edges"))}
    return found


def _or_frame(table: Any) -> Any:
    """Return what a document says of a table, with a frame in its place if it names none."""
    said = {} if table is None else table
    if isinstance(said, Mapping) and not {"path", "catalog"}.intersection(said):
        return {**said, "catalog": GIVEN}
    return said


def _check(document: Mapping[str, Any], *, releasing: bool) -> tuple[Policy | None, list[Fault]]:
    from privrisk_spark.policy.partial import impossible_without

    try:
        policy = Policy.model_validate(document)
    except ValidationError as error:
        return None, [*faults_of(error, document), *impossible_without(error, document, releasing=releasing)]
    return policy, list(impossible(policy, releasing=releasing))


def json_schema() -> dict[str, Any]:
    """JSON Schema of a policy, for editors."""
    schema = Policy.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "privrisk policy"}


def check_run_id(run_id: str) -> str:
    """Return a run id that is safe as a directory name, or raise ConfigError."""
    if not _RUN_ID.fullmatch(run_id):
        rule = "must be 1 to 128 letters, digits, '.', '_' or '-', starting with a letter or digit"
        raise ConfigError([Fault("--run-id", f"{rule}. Got {run_id[:140]!r}")])
    return run_id


# ----------------------------------------------------------------------------------------------- files


class _UnreadableError(Exception):
    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.fault = Fault("", rule)


def _read(file: str | Path) -> dict[str, Any]:
    try:
        text = contents(file).decode("utf-8")
    except FileNotFoundError:
        raise _UnreadableError(f"there is no policy file '{AbsolutePath.of(str(file))}'") from None
    except UnicodeDecodeError:
        raise _UnreadableError(f"the policy file '{file}' is not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise _UnreadableError(f"the policy file '{file}' cannot be read ({error.strerror})") from None
    try:
        document = load_yaml(text)
    except ValueError as error:
        raise _UnreadableError(f"'{file}' is not valid YAML: {error}") from None
    if not isinstance(document, dict):
        raise _UnreadableError(f"'{file}' must hold a mapping of keys, starting with 'version: 1'")
    return document


# ---------------------------------------------------------------------------------------------- layers


def _from_environment(env: Mapping[str, str], faults: list[Fault]) -> list[tuple[str, _KEY_PATH, Any]]:
    found = []
    for name in sorted(env):
        if name.startswith(_PREFIX):
            keys = tuple(part.lower() for part in name.removeprefix(_PREFIX).split("__"))
            if not all(keys):
                rule = f"must name keys joined by two underscores, such as {_PREFIX}OUTPUT__PATH"
                faults.append(Fault(name, rule))
                continue
            try:
                found.append((name, keys, load_yaml(env[name])))
            except ValueError as error:
                faults.append(Fault(name, f"the value is not valid YAML: {error}"))
    return found


def _from_overrides(overrides: Sequence[str], faults: list[Fault]) -> list[tuple[str, _KEY_PATH, Any]]:
    found = []
    for number, override in enumerate(overrides, start=1):
        key, sign, text = override.partition("=")
        keys = tuple(key.strip().split("."))
        if not sign or not all(keys):
            # The text is not repeated: it may hold a secret.
            which = f"--set number {number}" if len(overrides) > 1 else "--set"
            faults.append(Fault(which, "must be written key=value with a dotted key, such as --set output.path=out"))
            continue
        try:
            found.append((f"--set {'.'.join(keys)}", keys, load_yaml(text)))
        except ValueError as error:
            faults.append(Fault(f"--set {'.'.join(keys)}", f"the value is not valid YAML: {error}"))
    return found


def _existing(keys: _KEY_PATH, document: Mapping[str, Any]) -> _KEY_PATH:
    """Return a key path in the letter case the document uses, as environment variables are upper case."""
    here: Any = document
    path = []
    for key in keys:
        known = list(here) if isinstance(here, Mapping) else []
        path.append(key if key in known else next((name for name in known if name.lower() == key), key))
        here = _at(here, (path[-1],))
    return tuple(path)


def _at(document: Any, path: _KEY_PATH) -> Any:
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def _nest(path: Sequence[str], value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    return cast("dict[str, Any]", value)


def _merge(below: Mapping[str, Any], above: Mapping[str, Any], path: _KEY_PATH = ()) -> dict[str, Any]:
    tag = (
        "role"
        if len(path) == 2 and path[0] == "columns"
        else "kind"
        if path in (("dictionary",), ("guarantee",))
        else "problem"
        if path == ("decision",)
        else "method"
        if len(path) == 3 and path[0] == "columns" and path[2] == "mask"
        else ""
    )
    usual = "min-risk" if tag == "problem" else None
    if tag in above and below.get(tag, usual) not in (None, above[tag]):
        return dict(above)
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = _merge(cast("Mapping[str, Any]", old), value, (*path, key)) if both else value
    return result


def _interpolate(value: Any, env: Mapping[str, str], day: dt.date, path: str, faults: list[Fault]) -> Any:
    """Replace references in every text; one that cannot be replaced is left, and a fault."""
    if isinstance(value, Mapping):
        return {key: _interpolate(v, env, day, f"{path}.{key}" if path else key, faults) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_interpolate(v, env, day, f"{path}.{i}", faults) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def referenced(match: re.Match[str]) -> str:
        name, default = match.group(1), match.group(2)
        if name not in env and default is None:
            rule = f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
            faults.append(Fault(path, rule))
            return match.group()
        return env.get(name) or default or ""

    text = value.replace("{ds}", day.isoformat())
    if "${" in _REFERENCE.sub("", text):
        faults.append(Fault(path, "a reference must be written ${NAME} or ${NAME:-default}, without braces in it"))
        return value
    return _REFERENCE.sub(referenced, text).replace("{ds}", day.isoformat())


def _from_variables(written: Any, resolved: Any, env: Mapping[str, str], keys: _KEY_PATH) -> Iterator[FromEnvironment]:
    """Find the texts that a variable has filled in; a reference whose default was taken is text of the policy."""
    if isinstance(written, Mapping):
        for key, below in written.items():
            yield from _from_variables(below, resolved[key], env, (*keys, str(key)))
    elif isinstance(written, list | tuple):
        for i, below in enumerate(written):
            yield from _from_variables(below, resolved[i], env, (*keys, str(i)))
    elif isinstance(written, str) and any(env.get(match.group(1)) for match in _REFERENCE.finditer(written)):
        without = _REFERENCE.sub(lambda match: match.group() if match.group(2) is None else match.group(2), written)
        yield FromEnvironment(keys, resolved, without)


def _with_origin(fault: Fault, origin: Mapping[_KEY_PATH, str]) -> Fault:
    """Name the layer a faulty key comes from, where it is not a file."""
    keys = tuple(fault.path.split("."))
    source = next((origin[keys[:n]] for n in range(len(keys), 0, -1) if keys[:n] in origin), None)
    return fault if source is None else replace(fault, rule=f"{fault.rule} (set by {source})")
