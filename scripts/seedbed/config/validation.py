"""Check values against the blocks of `settings`, fill in defaults, and explain errors."""

import math
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic import Tag, ValidationError
from pydantic.fields import FieldInfo

from seedbed.config.settings import Block
from seedbed.config.values import WrongValue
from seedbed.core import spelling
from seedbed.core.errors import SeedbedError

NAME_OF_KEY = "[key]"  # how pydantic marks errors in a mapping's names
KINDS = {  # types of pydantic's errors, and the expected kind of value
    "bool_type": "true or false",
    "dict_type": "a block of keys",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "a block of keys",
    "string_type": "text",
}
LIMITS = {
    "greater_than": "less than or equal to the minimum of {gt}",
    "greater_than_equal": "less than the minimum of {ge}",
    "less_than": "greater than or equal to the maximum of {lt}",
    "less_than_equal": "greater than the maximum of {le}",
}


def plain(value: Any) -> Any:
    """A copy in ordinary dicts and lists instead of Snakemake's types; keys become text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def complete(
    block: type[Block],
    values: Mapping[str, Any],
    *,
    where: str = "config, ",
    what: str = "configuration",
) -> dict[str, Any]:
    """The checked values of a block: the given ones in their order, then defaults.

    Args:
        block: the class of the block.
        values: the given values, from `plain`.
        where: the place of the block, for errors.
        what: the name of the block, for errors.

    Raises:
        SeedbedError: a key is unknown or missing, or a value has the wrong type or exceeds its limits.
    """
    try:
        return as_written(block.model_validate(values), values)
    except ValidationError as error:
        raise _explained(error, block, where, what) from None


def as_written(value: Any, written: Any = None) -> Any:
    """A checked value as plain data, with the keys of blocks in the user's order."""
    if isinstance(value, Block):
        given = written if isinstance(written, Mapping) else {}
        names = [*given, *(name for name in type(value).model_fields if name not in given)]
        return {name: as_written(getattr(value, name), given.get(name)) for name in names}
    if isinstance(value, dict):
        return {name: as_written(item, (written or {}).get(name)) for name, item in value.items()}
    if isinstance(value, list):
        items = written if isinstance(written, list) else [None] * len(value)
        return [as_written(item, given) for item, given in zip(value, items, strict=True)]
    return value


# --- errors ---------------------------------------------------------------------------------------------


def _explained(error: ValidationError, block: type[Block], where: str, what: str) -> SeedbedError:
    """The first error from the top; among several an unknown key, which may be a misspelt missing one."""
    errors = error.errors(include_url=False)
    first = min(errors, key=lambda each: (len(_place(each)), each["type"] != "extra_forbidden"))
    place, own = _place(first), first.get("ctx", {}).get("error")
    if isinstance(own, WrongValue):
        place += filter(None, [own.key])
        return SeedbedError(str(own), where=_where(where, place), found=own.found, hint=own.hint)
    if isinstance(first["input"], float) and not math.isfinite(first["input"]):
        return SeedbedError(
            "a number that is not finite",
            where=_where(where, place),
            found=first["input"],
            hint="give a finite number",
        )
    if first["type"] == "extra_forbidden":
        name, around = str(first["loc"][-1]), type_at(block, first["loc"][:-1])[0]
        return SeedbedError(
            f"unknown configuration key {name!r}",
            where=_where(where, [*place, name]),
            found=first["input"],
            hint=nearest(name, list(around.model_fields), "key"),
        )
    kind, about = type_at(block, _location(first))
    if first["type"] == "missing":
        return SeedbedError(
            f"{what}: {first['loc'][-1]!r} is a required property",
            where=_where(where, place),
            hint=f"add the key: {about}",
        )
    return SeedbedError(
        f"{what}: {first['input']!r} {_what_is_wrong(first, kind)}",
        where=_where(where, place),
        found=first["input"],
        hint=_how_to_write(first, kind, place) + about,
    )


def _location(error: dict[str, Any]) -> tuple[int | str, ...]:
    """Keys, positions and alternatives leading to the value, without a bad name in a mapping."""
    location = error["loc"]
    return (*location[:-2], NAME_OF_KEY) if location[-1:] == (NAME_OF_KEY,) else location


def _place(error: dict[str, Any]) -> list[str]:
    """The user's keys and positions of a location; for a missing or unknown key, those of its block."""
    parts = [str(part) for part in _location(error)]
    if error["type"] in ("missing", "extra_forbidden"):
        parts = parts[:-1]
    # "<...>" are alternatives of `values.either`
    return [part for part in parts if part != NAME_OF_KEY and not part.startswith("<")]


def _where(prefix: str, place: Sequence[str]) -> str:
    return f"{prefix}{'.'.join(place)}" if place else prefix.rstrip(" .,")


def nearest(name: str, known: Sequence[str], what: str) -> str:
    """The nearest name as a question, and all known names."""
    return f"{spelling.nearest(name, known)}valid {what}s: {', '.join(known) or 'none is defined'}"


def _what_is_wrong(error: dict[str, Any], kind: Any) -> str:
    """The fault of a value, as the predicate of a sentence about it."""
    name, context = error["type"], error.get("ctx", {})
    if name in LIMITS:
        return f"is {LIMITS[name].format(**{limit: f'{value:.10g}' for limit, value in context.items()})}"
    if name in KINDS:
        return f"is not {KINDS[name]}"
    if name == "literal_error":
        choices = list(get_args(kind))
        return (
            f"is not one of {choices}" if len(choices) > 1 else f"is not allowed: {choices[0]!r} was expected"
        )
    if name in ("too_short", "string_too_short"):
        return "should be non-empty" if context["min_length"] == 1 else "is too short"
    if name in ("too_long", "string_too_long"):
        return "is too long"
    if name == "string_pattern_mismatch":
        return f"does not match {context['pattern']!r}"
    return str(context["error"]) if "error" in context else error["msg"]


def _how_to_write(error: dict[str, Any], kind: Any, place: Sequence[str]) -> str:
    """The correct form of a value of the wrong kind, if its intention is clear; else empty."""
    value = error["input"]
    key = next((part for part in reversed(place) if not part.isdecimal()), "")
    if error["type"] == "literal_error":
        return spelling.nearest(str(value), get_args(kind), cutoff=0.75)
    if error["type"] == "list_type" and isinstance(value, dict):
        names = ", ".join(map(str, value.values()))
        listed = ", ".join(f'"{name}"' for name in value)
        labels = f", and label_names: [{names}]" if key == "labels" else ""
        return f"give a list: {key}: [{listed}]{labels}. "
    if error["type"] == "list_type" and value is not None:
        return f"give a list: {key}: [{value}]. "
    if error["type"] == "model_type":
        return f"give a block of keys: {key}: {{{', '.join(kind.model_fields)}}}. "
    return ""


# --- types of keys --------------------------------------------------------------------------------------


def type_at(block: type[Block], place: Sequence[int | str]) -> tuple[Any, str]:
    """The type of the value at a place in a block, and the last description on the way there.

    Args:
        place: keys, positions in lists, and alternatives, as in pydantic's errors.
    """
    kind: Any = block
    about = ""
    for part in place:
        if _is_block(kind):
            field = kind.model_fields[str(part)]
            inside, found = field.annotation, field.description
        else:
            inside = _inside(kind, part)
            fields = (each for each in _metadata(inside) if isinstance(each, FieldInfo))
            found = next(filter(None, (each.description for each in fields)), None)
        kind = _bare(inside)
        about = found or (description(kind) if _is_block(kind) else about)
    return kind, about


def description(block: type[Block]) -> str:
    """The purpose of a block, in one line."""
    return " ".join((block.__doc__ or "").split())


def _is_block(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Block)


def _inside(kind: Any, part: int | str) -> Any:
    """The type of a mapping's names or values, of a list's items, or of an alternative."""
    arguments = get_args(kind)
    if get_origin(kind) is dict:
        return arguments[0 if part == NAME_OF_KEY else 1]
    if get_origin(kind) is list:
        return arguments[0]
    return next(each for each in arguments if Tag(str(part)) in _metadata(each))


def _metadata(kind: Any) -> Sequence[Any]:
    return getattr(kind, "__metadata__", ())


def _bare(kind: Any) -> Any:
    """A type without metadata and without None as an alternative."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    others = [each for each in get_args(kind) if each is not NoneType]
    return _bare(others[0]) if NoneType in get_args(kind) and len(others) == 1 else kind
