"""The policy model: how a simulated agent works on a task, given what its prompt really says. A pure function.

It reads the system and user messages, moves its habits towards what they ask for, shows in its answer what it did,
and succeeds or fails by whether the needed rules were kept in this very rollout. Who wrote a text, and how lessons
reach a prompt, is nothing to it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tfgrpo.simulation.dials import Dials
from tfgrpo.simulation.families import wrong_answer
from tfgrpo.simulation.language import report
from tfgrpo.simulation.parsing import read
from tfgrpo.simulation.world import Family, SimulatedTask, World
from tfgrpo.types import Message

INSTRUCTING = frozenset({"system", "developer", "user"})
"""The roles whose texts are followed."""

_OPENINGS = (
    "I worked through this one as follows.",
    "Here is how I went about it.",
    "My way to the answer:",
    "This is what I did.",
    "Notes on my work:",
)
_NO_TASK = (
    "I can only work on tasks of this simulated world; this message names none of them, so there is no answer to give."
)


@dataclass(frozen=True, slots=True)
class Guidance:
    """What the prompt says: how much each feature is wanted, how often it is mentioned, and how long the text is.

    A feature is wanted above 0 when the texts ask for it, and below 0 when they ask to leave it out.
    """

    wanted: Mapping[int, float]
    counts: Mapping[int, int]
    words: int


def answer(world: World, messages: Sequence[Message], rng: random.Random) -> str:
    """One rollout: what the policy writes to these messages with this luck."""
    task = _task(world, messages)
    if task is None:
        return _NO_TASK
    shown = _behave(task.family, guidance(messages), world.dials, rng)
    right = rng.random() < chance(task, shown, world.dials)
    final = task.answer if right else wrong_answer(task.answer, rng)
    return "\n".join((rng.choice(_OPENINGS), *_lines(shown, world.dials, rng), f"Answer: {final}"))


def guidance(messages: Sequence[Message]) -> Guidance:
    """What the texts of the system and user messages ask for; opposites cancel."""
    wanted: defaultdict[int, float] = defaultdict(float)
    counts: defaultdict[int, int] = defaultdict(int)
    words = 0
    for message in messages:
        if message.role not in INSTRUCTING:
            continue
        reading = read(message.text)
        words += reading.length
        for mention in reading.mentions:
            wanted[mention.feature] += mention.polarity * mention.strength
            counts[mention.feature] += 1
    return Guidance(wanted, counts, words)


def attention(family: Family, given: Guidance, dials: Dials) -> float:
    """How strongly each mention is followed, in (0, 1].

    The less, the longer the text is, the more it asks for, and the more of that is beside the point.
    """
    natural = {habit.feature for habit in family.habits}
    mentions = sum(given.counts.values())
    beside = sum(count for feature, count in given.counts.items() if feature not in natural)
    length = 1 / (1 + given.words / dials.words)
    return float(length / (1 + mentions / dials.mentions) * dials.irrelevant**beside)


def chance(task: SimulatedTask, shown: Mapping[int, bool], dials: Dials) -> float:
    """The probability of a right answer, given what was done."""
    if task.fate != "ordinary":
        return 1.0 if task.fate == "always right" else 0.0
    broken = sum(shown[rule.feature] != (rule.polarity > 0) for rule in task.family.needs)
    return max(dials.worst, float(dials.best * dials.broken**broken))


def _task(world: World, messages: Sequence[Message]) -> SimulatedTask | None:
    """The task of the last message by the user that names one."""
    asked = (world.find(message.text) for message in reversed(messages) if message.role == "user")
    return next((task for task in asked if task is not None), None)


def _behave(family: Family, given: Guidance, dials: Dials, rng: random.Random) -> dict[int, bool]:
    focus = attention(family, given, dials)
    shown = {}
    for habit in family.habits:
        wanted = max(-1.0, min(1.0, given.wanted.get(habit.feature, 0.0)))
        target = dials.certain if wanted > 0 else 1 - dials.certain
        moved = habit.probability + (target - habit.probability) * abs(wanted) * focus
        shown[habit.feature] = rng.random() < moved
    return shown


def _lines(shown: Mapping[int, bool], dials: Dials, rng: random.Random) -> list[str]:
    lines = []
    for feature, done in shown.items():
        silent = dials.silent_done if done else dials.silent_omitted
        if rng.random() >= silent:
            lines.append(report(feature, rng, done=done))
    rng.shuffle(lines)
    return lines
