"""What is true in one simulated world, drawn from a seed: rules, families, tasks, right answers.

Only the policy and the grader look at it. It knows nothing of prompts, of how rules are said, or of HTTP.
"""

from __future__ import annotations

import hashlib
import random
import re
from dataclasses import dataclass, replace
from typing import Literal, TypedDict

from tfgrpo.errors import UsageError
from tfgrpo.simulation.dials import Dials
from tfgrpo.simulation.families import THEMES, Theme, question, right_answer
from tfgrpo.simulation.vocabulary import FEATURES

SPLITS = ("train", "held-out", "test")
"""The splits of the endless tasks; they never share a task."""

Fate = Literal["ordinary", "always right", "always wrong"]

_REFERENCE = re.compile(r"\b([A-Z]{2})-(\d{5,9})\b")
_FIRST = 10_000
_EASIEST, _HARDEST = 0.68, 0.25
_HOW_MANY = (1, 1, 2, 2, 3)
_UNDECIDED = (0.35, 0.65)
_RARE = (0.05, 0.3)


class Row(TypedDict):
    """One task as a row of a dataset."""

    question: str
    answer: str
    family: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A behaviour that counts. `polarity` +1: it must be shown; -1: it must be left out."""

    feature: int
    polarity: int


@dataclass(frozen=True, slots=True)
class Habit:
    """A behaviour that is natural in a family, and how often the policy shows it when nothing is said."""

    feature: int
    probability: float


@dataclass(frozen=True, slots=True)
class Family:
    """Tasks of one kind. Success needs every rule of `needs`; `habits` hold the needed features and the decoys."""

    theme: Theme
    needs: tuple[Rule, ...]
    habits: tuple[Habit, ...]

    def expected(self, dials: Dials) -> float:
        """Success on its ordinary tasks when nothing is said."""
        shown = {habit.feature: habit.probability for habit in self.habits}
        success = dials.best
        for rule in self.needs:
            kept = shown[rule.feature] if rule.polarity > 0 else 1 - shown[rule.feature]
            success *= kept + (1 - kept) * dials.broken
        return success


@dataclass(frozen=True, slots=True)
class SimulatedTask:
    """One task: its family, its question, the right answer, and whether what one does matters at all."""

    family: Family
    question: str
    answer: str
    fate: Fate


@dataclass(frozen=True, slots=True)
class World:
    """The rules and families of one seed. Draw one with `World.draw`."""

    seed: int
    dials: Dials
    rules: tuple[Rule, ...]
    families: tuple[Family, ...]

    @classmethod
    def draw(cls, seed: int, dials: Dials | None = None) -> World:
        """The world of this seed: 5 to 8 rules, 4 to 6 families that need 1 to 3 of them each.

        Drawn again until the expected success on ordinary tasks, and that of the flipped world, is well inside 20
        to 80 percent.
        """
        rates = dials or Dials()
        rng = random.Random(f"world {seed}")  # noqa: S311 - a simulation, not a secret
        while True:
            world = cls._draw(seed, rates, rng)
            if all(_HARDEST <= one.expected_success() <= _EASIEST for one in (world, world.flipped())):
                return world

    @classmethod
    def _draw(cls, seed: int, dials: Dials, rng: random.Random) -> World:
        features = rng.sample(range(len(FEATURES)), rng.randint(5, 8))
        rules = tuple(Rule(feature, rng.choice((1, -1))) for feature in features)
        themes = rng.sample(THEMES, rng.randint(4, 6))
        needs = _needs(rules, len(themes), rng)
        families = tuple(
            Family(theme, needed, _habits(needed, dials, rng)) for theme, needed in zip(themes, needs, strict=True)
        )
        return cls(seed, dials, rules, families)

    def flipped(self) -> World:
        """The same world with every polarity turned; nothing else differs."""
        return replace(
            self,
            rules=tuple(map(_turned, self.rules)),
            families=tuple(replace(one, needs=tuple(map(_turned, one.needs))) for one in self.families),
        )

    def idle(self) -> World:
        """The same world with nothing to learn: whatever is done, a task succeeds as often as this world's do."""
        return replace(
            self,
            dials=replace(self.dials, best=self.expected_success()),
            rules=(),
            families=tuple(replace(one, needs=()) for one in self.families),
        )

    def expected_success(self) -> float:
        """Mean success over the families' ordinary tasks when nothing is said."""
        return sum(family.expected(self.dials) for family in self.families) / len(self.families)

    def task(self, family: Family, number: int) -> SimulatedTask:
        """Task `number` of a family: there are endless ones, each drawn from (seed, family, number)."""
        ref = f"{family.theme.prefix}-{number}"
        digest = hashlib.sha256(f"{self.seed} {ref}".encode()).digest()
        rng = random.Random(digest)  # noqa: S311 - a simulation
        draw = rng.random()
        right, wrong = self.dials.always_right, self.dials.always_wrong
        fate: Fate = "always right" if draw < right else "always wrong" if draw < right + wrong else "ordinary"
        answer = right_answer(family.theme, rng)
        return SimulatedTask(family, question(family.theme, ref, rng), answer, fate)

    def find(self, text: str) -> SimulatedTask | None:
        """The task that a text speaks of, by the last reference in it; None when it names none of this world."""
        families = {family.theme.prefix: family for family in self.families}
        for prefix, digits in reversed(_REFERENCE.findall(text)):
            if prefix in families:
                return self.task(families[prefix], int(digits))
        return None

    def tasks(self, n: int, *, split: str) -> list[Row]:
        """The first `n` tasks of a split, the families in turn.

        Raises:
            UsageError: `split` is none of `SPLITS`.
        """
        if split not in SPLITS:
            raise UsageError(f"there is no split {split!r}: name one of {', '.join(SPLITS)}", field="split")
        rows: list[Row] = []
        for index in range(n):
            family = self.families[index % len(self.families)]
            number = _FIRST + len(SPLITS) * (index // len(self.families)) + SPLITS.index(split)
            task = self.task(family, number)
            rows.append({"question": task.question, "answer": task.answer, "family": family.theme.name})
        return rows


def _turned(rule: Rule) -> Rule:
    return replace(rule, polarity=-rule.polarity)


def _needs(rules: tuple[Rule, ...], families: int, rng: random.Random) -> list[tuple[Rule, ...]]:
    """1 to 3 rules for each family, all different subsets, every rule needed somewhere."""
    while True:
        drawn = [tuple(rng.sample(rules, rng.choice(_HOW_MANY))) for _ in range(families)]
        used = {rule for needed in drawn for rule in needed}
        if len(used) == len(rules) and len({frozenset(needed) for needed in drawn}) == families:
            return drawn


def _habits(needs: tuple[Rule, ...], dials: Dials, rng: random.Random) -> tuple[Habit, ...]:
    """The needed features, done about as often as not, and decoys that are seldom or nearly always done."""
    needed = [rule.feature for rule in needs]
    others = rng.sample([one for one in range(len(FEATURES)) if one not in needed], dials.decoys)
    habits = [Habit(one, rng.uniform(*_UNDECIDED)) for one in needed]
    habits += [Habit(one, rng.choice((rng.uniform(*_RARE), 1 - rng.uniform(*_RARE)))) for one in others]
    rng.shuffle(habits)
    return tuple(habits)
