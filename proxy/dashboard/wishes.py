"""What the form of training says: its fields as a wish, or a refusal that names the field; and filled in like a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, get_args

from proxy.dashboard.forms import Form, refused
from proxy.settings import SET_NAME
from proxy.trainings import Datasets, Source, Wish
from tfgrpo.errors import NotFound
from tfgrpo.store import Run

SOURCES: Final = {
    "traffic": "recorded traffic with its labels",
    "replay": "tasks of the recorded traffic, answered afresh",
    "dataset": "a data set",
}
GRADERS: Final = ("exact", "number", "math", "judge")
"""Those that need no arguments. Others stand in the configuration: nobody names code to run by a form."""

MOST_LINES: Final = 4 << 20
"""Characters of a data set."""

_MOST_TOKENS: Final = 10**12


@dataclass(frozen=True, slots=True)
class Asked:
    """A wish, and the fields that say it again in a form."""

    wish: Wish
    fields: dict[str, str]


class Wishes:
    """Reads wishes out of forms."""

    def __init__(self, datasets: Datasets) -> None:
        self._datasets = datasets

    def read(self, form: Form) -> Asked:
        """Return what a form asks for. A data set that came with it is kept."""
        source = _source(form)
        data = self._data(form) if source == "dataset" else None
        grader = None if source == "traffic" else _grader(form)
        wish = Wish(
            set=_set(form),
            source=source,
            data=None if data is None else self._datasets.path(data),
            grader=grader,
            max_usd=_money(form),
            max_tokens=_tokens(form),
        )
        said = {"set": wish.set, "from": source, "data": data, "grader": grader}
        said |= {"max_usd": form.text("max_usd"), "max_tokens": form.text("max_tokens")}
        return Asked(wish, {name: value for name, value in said.items() if value})

    def like(self, run: Run) -> dict[str, Any]:
        """Return the fields that ask for a run like this one."""
        asked = run.arguments
        said = {"set": run.set, "from": asked.get("from"), "data": self._datasets.name_of(asked.get("data"))}
        said |= {name: asked.get(name) for name in ("grader", "max_usd", "max_tokens")}
        return {name: value for name, value in said.items() if value is not None}

    def _data(self, form: Form) -> str:
        lines = form.text("lines", longest=MOST_LINES)
        if lines:
            return self._datasets.keep(f"{lines}\n")
        name = form.text("data")
        if not name:
            raise refused("lines", "is empty; a data set has one JSON object a line")
        try:
            self._datasets.path(name)
        except NotFound as error:
            raise refused("data", f"is {name[:40]!r}: {error}") from error
        return name


def _set(form: Form) -> str:
    name = form.text("set")
    if not SET_NAME.fullmatch(name):
        raise refused("set", f"is {name[:80]!r}; it takes lower-case letters, digits, '.', '_' and '-', at most 64")
    return name


def _source(form: Form) -> Source:
    value = form.text("from") or "traffic"
    for one in get_args(Source):
        if value == one:
            found: Source = one
            return found
    raise refused("from", f"is {value[:40]!r}; it takes {', '.join(SOURCES)}")


def _grader(form: Form) -> str | None:
    value = form.text("grader")
    if value and value not in GRADERS:
        raise refused("grader", f"is {value[:40]!r}; it takes {', '.join(GRADERS)}, or nothing for the configured one")
    return value or None


def _money(form: Form) -> float | None:
    value = form.text("max_usd")
    try:
        usd = float(value) if value else None
    except ValueError:
        usd = math.nan
    if usd is not None and not 0 < usd < math.inf:
        raise refused("max_usd", f"is {value[:40]!r}; it takes a number of US dollars above 0")
    return usd


def _tokens(form: Form) -> int | None:
    value = form.text("max_tokens")
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and 0 < int(value[:20]) <= _MOST_TOKENS):
        raise refused("max_tokens", f"is {value[:40]!r}; it takes a whole number above 0")
    return int(value)
