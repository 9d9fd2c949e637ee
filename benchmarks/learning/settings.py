"""The settings in which learners are compared: what the world, the labels and the models are like.

A setting says nothing of learners. Labels are what a learner is told of a rollout; what it is really worth is for the
final measurement only.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from tfgrpo.simulation.dials import Dials
from tfgrpo.simulation.world import World

Labels: TypeAlias = Callable[[int, str, str, float], float]
"""From a seed, a question, the luck of a rollout and its true reward to the label that the learner sees."""


def clean(_seed: int, _question: str, _luck: str, reward: float) -> float:
    """Every label is right."""
    return reward


def noisy(seed: int, question: str, luck: str, reward: float) -> float:
    """One label in five is wrong, whichever rollout it is."""
    return 1 - reward if _chance(f"noise {seed} {luck} {question}") < WRONG_LABELS else reward


def hostile(seed: int, question: str, _luck: str, reward: float) -> float:
    """One principal in twenty labels everything as its opposite; each task comes from one principal."""
    return 1 - reward if _chance(f"adversary {seed} {question}") < ADVERSARY else reward


WRONG_LABELS: Final = 0.2
ADVERSARY: Final = 0.05


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `bad` ones count for the comparison with the paper's recipe."""

    name: str
    dials: Dials = field(default_factory=Dials)
    labels: Labels = clean
    idle: bool = False
    bad: bool = False

    def world(self, seed: int) -> World:
        """Return the world of a seed."""
        world = World.draw(seed, self.dials)
        return world.idle() if self.idle else world


SETTINGS: Final = (
    Setting("clean labels"),
    Setting("20 percent wrong labels", labels=noisy, bad=True),
    Setting("an adversary in 5 percent", labels=hostile, bad=True),
    Setting("a weak optimizer", Dials(contrary=0.5), bad=True),
    Setting("a distracted policy", Dials(words=400.0, mentions=40.0, irrelevant=0.95), bad=True),
    Setting("nothing to learn", idle=True),
)


def _chance(name: str) -> float:
    return random.Random(name).random()  # noqa: S311 - a simulation
