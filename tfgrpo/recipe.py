"""Where our training departs from the paper: one switch each, and the two recipes that set them all.

`docs/method.md` has a row for each switch; a test holds the table to this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Name: TypeAlias = Literal["ours", "paper"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The departures, each one on or off."""

    trial: bool = True
    """Changes are left out for half of the next tasks, and taken back where that shows harm."""
    voting: bool = True
    """What later lessons say of an entry counts: one that they do not confirm is taken back."""
    bounds: bool = True
    """The library and the edits of a step are bounded."""
    memory: bool = True
    """Refused edits are shown to the optimizer, and the same text is not taken again."""
    repair: bool = True
    """An answer that cannot be used is sent back once, with what is wrong."""
    economy: bool = True
    """A short answer is its own summary, and a long transcript is cut to what a prompt has room for."""
    selection: bool = True
    """The best epoch-end library is the result, not the last one."""
    batches: bool = True
    """Where no size is set, batches are half as large as the paper's, so that a run makes more steps."""
    gate: bool = True
    """The result is compared with the deployed version on tasks that were held out of training."""


RECIPES: Final[dict[Name, Recipe]] = {
    "ours": Recipe(),
    "paper": Recipe(
        trial=False,
        voting=False,
        bounds=False,
        memory=False,
        repair=False,
        economy=False,
        selection=False,
        batches=False,
        gate=False,
    ),
}
