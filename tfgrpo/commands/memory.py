"""What earlier runs of a set found to do harm, as a new run is told it.

A run keeps its harmful edits in its result. They are shown to the optimizer with the reason and where it was found, and
are not barred: other tasks or another policy model may show something else, and what is tried again is on trial again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tfgrpo.commands.output import of_operation
from tfgrpo.store import Store
from tfgrpo.trainer import Learned
from tfgrpo.types import Library, Operation, Refusal

MOST: Final = 20
"""Refusals that a run inherits: the newest. Each one costs tokens in every proposal."""
RUNS: Final = 20
"""Runs of the set that are looked at: the newest."""


def inherited(store: Store, set_name: str, library: Library) -> tuple[Refusal, ...]:
    """Return what did harm in earlier runs of a set, each text once, the newest first.

    Edits that took an entry away are left out, since their ids mean nothing to a library that grew otherwise; so are
    texts that `library` holds: whoever deployed them since knows better.
    """
    held = {_plain(one.text) for one in library.experiences}
    found: dict[str, Refusal] = {}
    for run in store.runs.list(set_name, most=RUNS):
        for one in run.result.get("harmful", ()):
            text = one["text"]
            if text and _plain(text) not in held:
                model = run.result.get("policy_model") or "an unknown model"
                reason = f"in run {run.id} with {model}, {one['reason']}"
                found.setdefault(_plain(text), Refusal(Operation("add", text=text), reason))
    return tuple(found.values())[:MOST]


def kept(learned: Learned) -> list[Mapping[str, Any]]:
    """Return the harmful edits of a run as its result keeps them."""
    found = (refusal for step in learned.steps for refusal in step.harmful)
    return [{**of_operation(one.operation), "reason": one.reason} for one in found]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
