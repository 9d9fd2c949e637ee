"""What pydantic says about a configuration, for the person who wrote it: where it stands, what is wrong, what to do.

Never a value: it may be a secret. It knows neither the settings nor how they were read.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias, get_args

from pydantic import BaseModel, ValidationError

from tfgrpo.errors import UsageError

MOST: Final = 3
"""How many complaints one line holds."""

Place: TypeAlias = tuple[int | str, ...]

_PLAIN: Final = {
    "missing": "is missing; add it",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be a text; put it in quotes",
    "list_type": "must be a list: [one, two]",
    "tuple_type": "must be a list: [one, two]",
    "dict_type": "must hold keys and their values, not one value",
    "model_type": "must hold keys and their values, not one value",
    "path_not_file": "names no file that is there",
    "literal_error": "must be {expected}",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must name at least {min_length}",
    "too_long": "may name at most {max_length}",
    "string_too_short": "must not be empty",
    "string_too_long": "may have at most {max_length} characters",
}
"""By pydantic's type of an error; what is not here is said in pydantic's words."""


def explain(
    error: ValidationError, model: type[BaseModel] | None = None, whence: Callable[[str], str] = lambda _: ""
) -> UsageError:
    """Return pydantic's complaints as one error of ours; its `field` is the path of the first.

    `model` is what was validated, to suggest a key for one that is unknown; `whence` says where a path stands.
    """
    found = error.errors(include_url=False, include_input=False)
    said = [_said(one, model, whence) for one in found[:MOST]]
    more = [f"and {len(found) - MOST} more"] if len(found) > MOST else []
    return UsageError("; ".join(said + more), field=path(found[0]["loc"]) or None)


def path(place: Place) -> str:
    """Return a place as it is written everywhere: `apps[0].keys`."""
    written = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return written.removeprefix(".")


def _said(one: Any, model: type[BaseModel] | None, whence: Callable[[str], str]) -> str:
    place: Place = one["loc"]
    told = one["msg"].removeprefix("Value error, ")
    if one["type"] == "extra_forbidden":
        return f"{path(place)}{whence(path(place))} is not a known setting; {_nearest(model, place)}"
    if one["type"] in _PLAIN:
        told = _PLAIN[one["type"]].format(**one.get("ctx", {}))
    return f"{path(place)}{whence(path(place))}: {told}" if place else told


def _nearest(model: type[BaseModel] | None, place: Place) -> str:
    *above, last = place
    known = [name for one in _below(model, above) for name in one.model_fields]
    close = difflib.get_close_matches(str(last), known, n=1)
    return f"did you mean {path((*above, close[0]))}?" if close else "correct or remove it"


def _below(model: type[BaseModel] | None, place: list[int | str]) -> Iterator[type[BaseModel]]:
    """Yield the classes that may stand at a place of `model`."""
    if model is None:
        return
    if not place:
        yield model
        return
    field = model.model_fields.get(str(place[0]))
    for inner in _classes(None if field is None else field.annotation):
        yield from _below(inner, [part for part in place[1:] if isinstance(part, str)])


def _classes(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _classes(inner)
