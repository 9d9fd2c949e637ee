"""What a person asks of the traffic: the fields of a query to checked values, or a refusal that names the field.

It knows no page, but how the fields go into the address of one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, cast, get_args
from urllib.parse import parse_qsl, urlencode

from proxy.dashboard.forms import Form, refused
from proxy.places import checked
from tfgrpo.store.browsing import Judged, Place, Wanted
from tfgrpo.types import Arm

View = Literal["trajectories", "exchanges"]

FIELDS: Final = ("view", "app", "set", "model", "arm", "judged", "text", "since", "until")
LONGEST_TEXT: Final = 400
_LONGEST_LIST: Final = 8_000
_PLACES: Final[Mapping[View, int]] = {"trajectories": 3, "exchanges": 2}


@dataclass(frozen=True, slots=True)
class Asked:
    """What is looked for. `fields` are those of the query, as they were sent."""

    view: View
    wanted: Wanted
    text: str
    fields: Mapping[str, str]

    def address(self, path: str, **more: str) -> str:
        """Return the address of a page with these fields and others."""
        return address(path, **{**self.fields, **more})


def asked(query: Form) -> Asked:
    """Read what is looked for."""
    fields = {name: query.text(name, longest=LONGEST_TEXT) for name in FIELDS}
    view = _one_of("view", fields["view"], get_args(View)) or "trajectories"
    since, until = (_time(name, fields[name]) for name in ("since", "until"))
    if since is not None and until is not None and until < since:
        raise refused("until", "is before since; it takes a later time")
    wanted = Wanted(
        app=fields["app"] or None,
        set=fields["set"] or None,
        model=fields["model"] or None,
        arm=_one_of("arm", fields["arm"], get_args(Arm)),
        judged=cast("Judged | None", _one_of("judged", fields["judged"], get_args(Judged))),
        since=since,
        until=until,
    )
    return Asked(cast("View", view), wanted, fields["text"], fields)


def within(query: Form, name: str) -> Asked:
    """Read the list that a trajectory was opened from, which one field carries whole."""
    try:
        pairs = parse_qsl(query.text(name, longest=_LONGEST_LIST), errors="strict", max_num_fields=len(FIELDS) + 1)
        inner = Form([(field, value) for field, value in pairs if "\0" not in value])
    except ValueError as error:
        raise refused(name, "takes what a link of this page says") from error
    return asked(inner)


def place(query: Form, name: str, parts: int) -> Place | None:
    """Read a place: a number, and then texts, `parts` in all."""
    text = query.text(name, longest=2 * LONGEST_TEXT)
    if not text:
        return None
    try:
        found = json.loads(text)
        return checked(found, parts)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise refused(name, f"is {text[:40]!r}; it takes what a link of this page says") from error


def place_in(query: Form, view: View) -> Place | None:
    """Read the place that a page of a list goes on behind."""
    return place(query, "behind", _PLACES[view])


def address(path: str, **fields: str) -> str:
    """Return an address with those fields that say something."""
    said = {name: value for name, value in fields.items() if value}
    return f"{path}?{urlencode(said, errors='replace')}" if said else path


def _one_of(name: str, value: str, known: tuple[str, ...]) -> Any:
    if value and value not in known:
        raise refused(name, f"is {value[:40]!r}; it takes {', '.join(known)}")
    return value or None


def _time(name: str, text: str) -> float | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise refused(name, f"is {text[:40]!r}; it takes a date and a time, as 2026-12-31T23:59") from error
