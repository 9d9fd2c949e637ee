"""The pages of groups: what runs learned from, rollouts side by side, and the lessons that came of it.

A group is shown as its run recorded it: forming the groups of a million exchanges takes seconds, reading one run does
not. What rollouts of traffic said is read from the traffic, as far as it is still there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from proxy.dashboard import pages
from proxy.dashboard.forms import Form
from tfgrpo.errors import NotFound
from tfgrpo.report import words
from tfgrpo.report.record import Contrast, Edit, Record
from tfgrpo.store import Store
from tfgrpo.traffic import turns_of
from tfgrpo.trajectories import conversation, opening

GROUPS: Final = "/admin/groups"
RUNS_SHOWN: Final = 50
MOST_GROUPS: Final = 500
MOST_WORDS: Final = 600
"""Of each text that is compared: the time grows with the square."""

MOST_TEXT: Final = 20_000
"""Characters of a rollout on the page."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One rollout; `text` None: what it said is not kept any more."""

    name: str
    reward: float | None
    text: str | None


class GroupPages:
    """The pages under `/admin/groups`. `apps` are those whose traffic is looked at."""

    def __init__(self, store: Store, apps: Sequence[str]) -> None:
        self._store = store
        self._apps = tuple(apps)

    async def all(self, request: Request) -> Response:
        """Show the groups that contrasted in one run: the newest that ended, or `run` of the query."""
        wanted = Form.query(request).text("run")

        def work() -> dict[str, Any]:
            runs = [one for one in self._store.glances.runs(RUNS_SHOWN) if one.status != "running"]
            chosen = wanted or next((one.id for one in runs), None)
            record = None if chosen is None else Record.of(self._store.runs.run(chosen))
            steps = () if record is None else record.result.steps
            found = [(step, place, group) for step in steps for place, group in enumerate(step.contrasts)]
            return {"runs": runs, "record": record, "groups": found[:MOST_GROUPS], "count": len(found)}

        return pages.page("groups.html", token=request.state.token, words=words, **await asyncio.to_thread(work))

    async def one(self, request: Request) -> Response:
        """Show one group: its rollouts, how the best differs from the worst, what was made of it."""
        run, step, place = (request.path_params[name] for name in ("run", "step", "place"))

        def work() -> dict[str, Any]:
            record = Record.of(self._store.runs.run(run))
            group, edits = _found(record, step, place)
            rollouts = sorted(self._rollouts(group), key=lambda one: -1.0 if one.reward is None else one.reward)[::-1]
            told = [one for one in rollouts if one.text is not None and one.reward is not None]
            apart = differences(told[-1].text or "", told[0].text or "") if len(told) > 1 else []
            lessons = [entry for entry in record.result.experiences if group.key in entry.sources]
            values = {"record": record, "group": group, "rollouts": rollouts, "apart": apart}
            return {**values, "edits": edits, "lessons": lessons}

        found = await asyncio.to_thread(work)
        return pages.page("group.html", token=request.state.token, words=words, step=step, **found)

    def _rollouts(self, group: Contrast) -> list[Shown]:
        if group.answers:
            pairs = zip(group.rewards, group.answers, strict=False)
            return [Shown(f"rollout {number}", *pair) for number, pair in enumerate(pairs, 1)]
        names = group.trajectories or tuple(f"rollout {number + 1}" for number in range(len(group.rewards)))
        said = self._said(group.trajectories)
        return [Shown(name, reward, said.get(name)) for name, reward in zip(names, group.rewards, strict=False)]

    def _said(self, names: Sequence[str]) -> dict[str, str]:
        """Return what recorded rollouts said, `ID` or choice `ID.k`, as far as it is kept."""
        meant = [(name, *pair) for name in names for pair in _choice(name)]
        said: dict[str, str] = {}
        for app in self._apps:
            exchanges = self._store.traffic.of_trajectories(app, sorted({trajectory for _, trajectory, _ in meant}))
            bodies = self._store.traffic.bodies([one.id for some in exchanges.values() for one in some])
            for name, trajectory, choice in meant:
                turns = turns_of(exchanges.get(trajectory, []), bodies, choice)
                messages = conversation(turns)[len(opening(turns)) :]
                told = "\n\n".join(f"{one.role}: {one.text}" for one in messages)
                said |= {name: told[:MOST_TEXT]} if told else {}
        return said


def differences(before: str, after: str) -> list[tuple[str, str]]:
    """Return how two texts differ, word by word: pieces marked "same", "removed" or "added", in order."""
    old, new = _words(before), _words(after)
    found: list[tuple[str, str]] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append(("same", "".join(old[a:b])))
            continue
        found += [("removed", "".join(old[a:b]))] if a < b else []
        found += [("added", "".join(new[c:d]))] if c < d else []
    return found


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*", text)[:MOST_WORDS]


def _choice(name: str) -> list[tuple[str, int]]:
    """Return what a rollout's name may mean: a trajectory of that name, or a choice of another."""
    whole, _, number = name.rpartition(".")
    meant = [(name, 0)]
    return [*meant, (whole, int(number))] if whole and number.isascii() and number.isdigit() else meant


def _found(record: Record, number: int, place: int) -> tuple[Contrast, list[Edit]]:
    """Return a group and the edits of its step that rest on it; NotFound where there is none."""
    for step in record.result.steps:
        if step.step == number and place < len(step.contrasts):
            group = step.contrasts[place]
            return group, [one for one in step.applied if group.key and group.key in one.sources]
    raise NotFound(f"run {record.id} has no group {place} in step {number}; its page lists those there are")
