"""What is wrong with a policy, said to the person who wrote it.

The models find what is wrong; here each finding becomes one line that names the key path, the rule, the value given
and what would do. Values of keys that may hold a secret are never repeated.
"""

from __future__ import annotations

import datetime as dt
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic.fields import FieldInfo

from privrisk_spark.errors import Fault, listing, nearest
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.sections import SectionOf, type_of
from privrisk_spark.policy.variants import Variant

_SECRET_KEYS = frozenset({"key", "url"})
_LONGEST_SHOWN = 60

# What the specification holds and this version does not, by key path or key: refused by name, not as a typing error.
_NOT_YET: dict[str, tuple[str, ...]] = {
    "output.format": ("orc", "json", "delta", "iceberg"),
    "action": ("pseudonym",),
}
_KEYS_NOT_YET = frozenset(
    {
        "columns.*.key",
        "risk.aggregation",
        "risk.loss_if_not_identified",
    }
)

_RULES = {
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "finite_number": "must be a finite number",
    "string_type": "must be a text",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number in digits",
    "int_parsing_size": "must be a smaller number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "decimal_type": "must be a number",
    "decimal_parsing": "must be a number",
    "decimal_max_places": "must have at most {decimal_places} decimals",
}
_PATTERNS = {
    "name": "must be 1 to 64 letters, digits, '.', '_' or '-', starting with a letter or digit",
    "key": "must say where the key is, 'env:NAME' or 'file:PATH', and never be the key itself",
    "separator": "must be one character, not a quote or line end",
}


def faults_of(error: ValidationError, document: Mapping[str, Any]) -> list[Fault]:
    """Return what the models found in a document, each fault once, in the order of the models.

    Parameters
    ----------
    error : ValidationError
        Raised by the model of a policy.
    document : mapping
        What was validated.
    """
    items = error.errors(include_url=False, include_context=True)
    # A list is not too short if only its items are wrong: pydantic leaves these out.
    inside = {item["loc"][:n] for item in items for n in range(len(item["loc"]))}
    items = [item for item in items if item["type"] != "too_short" or item["loc"] not in inside]
    return list(dict.fromkeys(_fault(item, document) for item in items))


def faulty_keys(error: ValidationError, document: Mapping[str, Any]) -> set[tuple[int | str, ...]]:
    """Return the key paths at which the models found something."""
    return {_place(item["loc"], document).keys for item in error.errors(include_url=False, include_context=False)}


@dataclass(frozen=True)
class _Place:
    """Where a finding is: keys as a person wrote them, and what the models say about the last one."""

    keys: tuple[int | str, ...]
    above: tuple[type[BaseModel], ...]
    """Models the last key may be a field of; several where the choice is open."""
    others: dict[str, tuple[type[BaseModel], ...]]
    """Models that another ``kind``, ``role``, ``form`` … there would have chosen, by ``kind 'dp'``."""
    holder: Any
    """Type of what holds the last key."""
    field: FieldInfo | None
    annotation: Any

    @property
    def path(self) -> str:
        return ".".join(str(key) for key in self.keys)

    @property
    def variants(self) -> tuple[type[Variant], ...]:
        """Of the models around the last key those that are variants; of the value's own, where a tag is wrong."""
        models = self.above if not _models(self.annotation) else (*self.above, *_models(self.annotation))
        return tuple(model for model in models if issubclass(model, Variant))


def _fault(item: Mapping[str, Any], document: Mapping[str, Any]) -> Fault:
    place = _place(item["loc"], document)
    fault = _fault_at(place, item)
    guides = [model.guide for model in place.variants if model.guide is not None]
    return replace(fault, guide=guides[0]) if guides else fault


def _fault_at(place: _Place, item: Mapping[str, Any]) -> Fault:
    kind, context, given = item["type"], item.get("ctx", {}), item.get("input")
    path = place.path
    last = place.keys[-1] if place.keys else ""
    if kind in ("union_tag_not_found", "union_tag_invalid") and isinstance(given, Mapping):
        return _tag_fault(place, given)
    if kind == "missing":
        return _missing_fault(place, given)
    if kind == "none_required" or (kind == "extra_forbidden" and _not_yet(place.keys)):
        return Fault(path, "is not available in this version; leave it out")
    if kind == "extra_forbidden":
        return Fault(path, _refused_key(str(last), place, given) or _unknown_key(str(last), place))
    if kind == "literal_error":
        return Fault(path, _choice(path, str(last), given, _choices(place.annotation)) + _goes_with(place, given))
    if kind in ("model_type", "model_attributes_type", "dict_type", "union_tag_not_found", "union_tag_invalid"):
        # The value is not repeated: a secret may be among the keys that belong here.
        fields = [name for model in _models(place.annotation) for name in _written_names(model, place.keys)]
        about = place.field.description if place.field is not None and place.field.description else ""
        keys = f" with keys among {listing(list(dict.fromkeys(fields)))}" if fields else ""
        keys = keys or (f": {_decapitalized(about)}" if about else " of keys to values")
        return Fault(path, f"must be a mapping{keys}. Got {_form(given)}")
    if kind in ("list_type", "tuple_type"):
        return Fault(path, f"must be a list, such as {_list_example(place)}. Got {_shown(given)}")
    if kind in ("too_short", "too_long", "string_too_short"):
        return Fault(path, _size_rule(kind, context, place.annotation))
    if kind == "value_error":
        rule = str(item["msg"]).removeprefix("Value error, ").rstrip(".")
        shown = rule.startswith("must be") and "got" not in rule.lower()
        given = _as_number(given)
    else:
        rule = _PATTERNS.get(str(last), "") if kind == "string_pattern_mismatch" or last == "key" else ""
        bounds = {name: f"{bound:.12g}" if isinstance(bound, float) else bound for name, bound in context.items()}
        rule = rule or (_RULES.get(kind, "").format(**bounds) or _plain(str(item["msg"]))) + _quotes_hint(kind, given)
        rule += _asked(str(last), place) if kind == "greater_than" else ""
        shown = True
    secret = _SECRET_KEYS.intersection(map(str, place.keys))
    return Fault(path, f"{rule}. Got {_shown(given)}" if shown and not secret else rule)


def _missing_fault(place: _Place, given: Any) -> Fault:
    if isinstance(place.keys[-1], int):  # a list that is too short lacks its items by number
        path = ".".join(str(key) for key in place.keys[:-1])
        got = f". Got {len(given)}" if isinstance(given, Sequence) else ""
        return Fault(path, f"must hold {len(get_args(_variants(place.holder)[0]))} items{got}")
    about = f": {_decapitalized(place.field.description)}" if place.field and place.field.description else ""
    return Fault(place.path, f"is required{_asked(str(place.keys[-1]), place)}{about}")


def _asked(key: str, place: _Place) -> str:
    """Where or by what a key of a variant is asked for."""
    return "".join(f" {model.asks[key]}" for model in place.variants[:1] if key in model.asks)


def _tag_fault(place: _Place, given: Mapping[str, Any]) -> Fault:
    """Fault of a mapping whose ``kind`` or ``role`` is absent or none of those there are."""
    key, _ = _tags(place.annotation)
    path = f"{place.path}.{key}"
    choices = list(dict.fromkeys(tag for model in _models(place.annotation) for tag in _choices_of(model, key)))
    if key in given:
        return Fault(path, _choice(path, key, given[key], choices))
    dropped = key == "role" and given.get("action") == "drop"
    hint = "; a column that is dropped has one too, such as {role: insensitive, action: drop}" if dropped else ""
    return Fault(path, f"is required; choose {_or(choices)}{hint}")


def _choice(path: str, key: str, given: Any, choices: Sequence[str]) -> str:
    if isinstance(given, str) and given in (*_NOT_YET.get(path, ()), *_NOT_YET.get(key, ())):
        return f"'{given}' is not available in this version; choose {_or(choices)}"
    hint = ""
    if isinstance(given, str):
        hint = "; write it without quotes" if given in choices else nearest(given, choices) if len(given) > 2 else ""
    return f"must be {_or(choices)}. Got {_shown(given)}{hint}"


def _goes_with(place: _Place, given: Any) -> str:
    """Where the value is a choice of the same key under another tag."""
    key = str(place.keys[-1])
    there = [tag for tag, models in place.others.items() for model in models if given in _choices_of(model, key)]
    there = list(dict.fromkeys(there))
    return f" (it goes with {' or '.join(there)})" if there else ""


def _refused_key(key: str, place: _Place, given: Any) -> str | None:
    """Why a key of another variant is not for this one; None if it is of none."""
    if len(place.variants) != 1:
        return None
    (model,) = place.variants
    if key in model.refusals:
        rule = model.refusals[key]
        return f"{rule}. Got {_shown(given)}" if rule.startswith("must be") else rule
    if not model.told_by or key not in model.silent:
        return None
    users = [tag for tag, models in place.others.items() for other in models if key in _names(other)]
    mine = _choices_of(model, model.told_by)[0]
    told_by = f"{'.'.join(map(str, place.keys[:-1]))}.{model.told_by}"
    # "form 'linear'" and "form 'constant'" share their first word.
    used_by = " or ".join([users[0], *(tag.removeprefix(f"{model.told_by} ") for tag in users[1:])])
    return f"is only used by the {used_by}, and {told_by} is '{mine}'; leave it out"


def _unknown_key(key: str, place: _Place) -> str:
    allowed = list(dict.fromkeys(name for model in place.above for name in _written_names(model, place.keys[:-1])))
    allowed += [name for model in place.variants for name in model.switches if name not in allowed]
    choosers = [tag for tag, models in place.others.items() if any(key in _names(model) for model in models)]
    elsewhere = [path for path in _all_paths() if path.rpartition(".")[2] == key]
    if choosers:
        hint = f" (it goes with {' or '.join(choosers)})"
    else:
        meant = [f"'{name}'" for name in [*get_close_matches(key, allowed, n=1), *elsewhere[:2]]]
        hint = f" (did you mean {' or '.join(meant)}?)" if meant else ""
    return f"there is no such key{hint}; allowed here: {listing(allowed, most=20)}"


def _size_rule(kind: str, context: Mapping[str, Any], annotation: Any) -> str:
    if kind == "string_too_short":
        return "must not be empty"
    arguments = get_args(_variants(annotation)[0])
    if get_origin(_variants(annotation)[0]) is tuple and Ellipsis not in arguments:
        rule, number = "must hold", len(arguments)
    elif kind == "too_short":
        rule, number = "must hold at least", context["min_length"]
    else:
        rule, number = "must hold at most", context["max_length"]
    length = context.get("actual_length")
    return f"{rule} {number} {'item' if number == 1 else 'items'}" + ("" if length is None else f". Got {length}")


def _list_example(place: _Place) -> str:
    """Return a list as it may be written: the one the models give, or one of the right kind of items."""
    about = place.field.description if place.field is not None and place.field.description else ""
    if "such as [" in about:
        return about.partition("such as ")[2].rstrip(".")
    items = _variants(_item(place.annotation, 0))
    if str in items:
        return "[age, city]"
    return "[[1, 2], [0, 3]]" if any(get_origin(item) is list for item in items) else "[1, 2]"


def _as_number(given: Any) -> Any:
    """What was compared where a number was written as a text, as YAML reads 1e-27; all else as it is."""
    if not isinstance(given, str):
        return given
    try:
        return float(given)
    except ValueError:
        return given


def _quotes_hint(kind: str, given: Any) -> str:
    if kind == "string_type" and isinstance(given, int | float | dt.date) and not isinstance(given, bool):
        return "; write it in quotes"
    if kind in ("int_type", "float_type", "decimal_type") and isinstance(given, str):
        return "; write it without quotes"
    return ""


def _plain(message: str) -> str:
    """Return a message of the validation library as a rule; for kinds of finding without words of ours."""
    message = message.rstrip(".")
    return re.sub(r"^Input should be ", "must be ", message)


def _decapitalized(sentence: str) -> str:
    sentence = sentence.rstrip(".")
    second = sentence[1:2]
    return sentence if second.isupper() else sentence[:1].lower() + sentence[1:]


def _or(choices: Sequence[str]) -> str:
    quoted = [f"'{choice}'" if not choice.isdigit() else choice for choice in choices]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _shown(value: Any) -> str:
    """Return a given value as a person would write it."""
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]!r}… ({len(value)} characters)"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float | dt.date) else _form(value)


def _form(value: Any) -> str:
    """Return what a given value is, without repeating it."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, Sequence) else "a single value"


# ------------------------------------------------------------------------------- the models, from outside


def _place(loc: Sequence[int | str], document: Any) -> _Place:
    """Walk models and document together: locations also hold tags of variants, which nobody wrote as keys."""
    here: Any = Policy
    at: Any = document
    keys: list[int | str] = []
    above: tuple[type[BaseModel], ...] = ()
    others: dict[str, tuple[type[BaseModel], ...]] = {}
    holder: Any = None
    field: FieldInfo | None = None
    chosen = False
    for element in loc:
        tag_key, variants = _tags(here)
        if element in variants:
            more = {_label(tag_key, tag): _models(of_tag) for tag, of_tag in variants.items() if tag != element}
            others = {**(others if chosen else {}), **more}
            here, chosen = variants[str(element)], True
            continue
        if element == "[key]":
            break
        if not chosen:
            others = {}
        chosen = False
        holder = here
        shorthand = isinstance(at, list) and isinstance(element, str)  # the list stands for a mapping with this key
        if not shorthand:
            keys.append(element)
        above = _fitting(_models(here), at)
        field = next(
            (f for model in above for name, f in model.model_fields.items() if element in (name, f.alias)), None
        )
        here = field.annotation if field is not None else None if above else _item(here, element)
        at = at if shorthand else at.get(element) if isinstance(at, Mapping) else None
    return _Place(tuple(keys), above, others, holder, field, here)


def _variants(annotation: Any) -> list[Any]:
    """Return what a type may be, apart from null."""
    while get_origin(annotation) is Annotated:
        annotation, *metadata = get_args(annotation)
        annotation = next((type_of(one.key) for one in metadata if isinstance(one, SectionOf)), annotation)
    if get_origin(annotation) in (Union, types.UnionType):
        found = [bare for arg in get_args(annotation) if arg is not type(None) for bare in _variants(arg)]
        return list(dict.fromkeys(found)) if all(isinstance(bare, type) for bare in found) else found
    return [annotation]


def _models(annotation: Any) -> tuple[type[BaseModel], ...]:
    return tuple(bare for bare in _variants(annotation) if isinstance(bare, type) and issubclass(bare, BaseModel))


def _tags(annotation: Any) -> tuple[str, dict[str, Any]]:
    """Return the key whose value chooses among models, and the type of each tag; nothing if there is none."""
    alternatives = _alternatives(annotation)
    if len(alternatives) > 1:
        tagged = {tag: alternative for alternative in alternatives for tag in _tag_of(alternative)}
        if len(tagged) == len(alternatives):
            told_by = {model.told_by for model in _models(annotation) if issubclass(model, Variant)}
            return next(iter(told_by), ""), tagged
        for key in ("kind", "role", "problem", "method"):
            if all(key in model.model_fields for model in _models(annotation)):
                return key, {
                    tag: alternative
                    for alternative in alternatives
                    for model in _models(alternative)
                    for tag in _choices_of(model, key)
                }
    return "", {}


def _label(key: str, tag: str) -> str:
    """Return how a person would name what a tag stands for; those of variants are such names."""
    return tag if " " in tag or key not in ("kind", "role", "problem", "method") else f"{key} '{tag}'"


def _tag_of(annotation: Any) -> list[str]:
    return [extra.tag for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, Tag)]


def _alternatives(annotation: Any) -> list[Any]:
    """Return the types a union is made of, with what they are annotated with; null is none of them."""
    while get_origin(annotation) is Annotated and not _tag_of(annotation):
        annotation = get_args(annotation)[0]
    if get_origin(annotation) not in (Union, types.UnionType):
        return [annotation]
    found = [one for one in get_args(annotation) if one is not type(None)]
    return _alternatives(found[0]) if len(found) == 1 else found


def _item(annotation: Any, element: int | str) -> Any:
    """Return the type of an item of a mapping, list or tuple."""
    for bare in _variants(annotation):
        origin, arguments = get_origin(bare), get_args(bare)
        if origin is dict:
            return arguments[1]
        if origin is list or (origin is tuple and arguments[-1] is Ellipsis):
            return arguments[0]
        if origin is tuple and isinstance(element, int) and element < len(arguments):
            return arguments[element]
    return None


def _fitting(models: tuple[type[BaseModel], ...], given: Any) -> tuple[type[BaseModel], ...]:
    """Return the models that have most of the keys given: a mapping without a tag is told by its keys."""
    if len(models) < 2 or not isinstance(given, Mapping):
        return models
    shared = [sum(name in given for name in _names(model)) for model in models]
    return tuple(model for model, count in zip(models, shared, strict=True) if count == max(shared))


def _names(model: type[BaseModel]) -> list[str]:
    """Return the keys of a model as they are written."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _written_names(model: type[BaseModel], keys: Sequence[int | str]) -> list[str]:
    return [name for name in _names(model) if not _not_yet((*keys, name))]


def _not_yet(keys: Sequence[int | str]) -> bool:
    if len(keys) == 3 and keys[0] == "columns":
        keys = ("columns", "*", keys[2])
    return ".".join(map(str, keys)) in _KEYS_NOT_YET


def _choices_of(model: type[BaseModel], key: str) -> list[str]:
    return _choices(model.model_fields[key].annotation) if key in model.model_fields else []


def _choices(annotation: Any) -> list[str]:
    literals = [bare for bare in _variants(annotation) if get_origin(bare) is Literal]
    return [str(choice) for literal in literals for choice in get_args(literal)]


@cache
def _all_paths() -> tuple[str, ...]:
    """Return every key path of a policy, ``*`` standing for names, to say where a misplaced key belongs."""
    return tuple(dict.fromkeys(_paths_below(Policy, ())))


def _paths_below(annotation: Any, keys: tuple[str, ...]) -> Iterator[str]:
    for model in _models(annotation):
        for name, field in model.model_fields.items():
            path = (*keys, field.alias or name)
            if not _not_yet(path):
                yield ".".join(path)
                yield from _paths_below(field.annotation, path)
    for bare in _variants(annotation):
        if get_origin(bare) is dict:
            yield from _paths_below(get_args(bare)[1], (*keys, "*"))
