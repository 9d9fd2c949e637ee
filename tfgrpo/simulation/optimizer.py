"""The optimizer model: it summarises, contrasts and edits from what its prompt really contains. A pure function.

It knows the vocabulary, so that it can read and name behaviours. It knows neither the rules nor their polarity: what
it believes comes from the rewards in its prompt alone, chance and spurious differences included. It shares nothing
with the policy.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from tfgrpo.simulation.dials import Dials
from tfgrpo.simulation.editing import consolidate, propose
from tfgrpo.simulation.frame import Entry, Frame, Section, read_frame, write_json
from tfgrpo.simulation.language import lesson, observation
from tfgrpo.simulation.parsing import parse
from tfgrpo.simulation.vocabulary import FEATURES
from tfgrpo.types import Message

_NO_STAGE = "Name a stage on the first line of the system message: summarise, contrast, propose or consolidate."
_NOTHING = "The transcript shows no particular behaviour."
_NOTHING_TO_STUDY = "There is no attempt to study, so this is only what seems sensible."
_NO_DIFFERENCE = "The rewards do not differ, so nothing can be told from them."


def answer(messages: Sequence[Message], rng: random.Random, dials: Dials) -> str:
    """What the optimizer writes to these messages with this luck: text for `summarise`, else JSON."""
    frame = read_frame(messages)
    if frame.stage == "summarise":
        return summarise(frame, rng, dials)
    if frame.stage == "contrast":
        return write_json(contrast(frame, rng, dials), rng, broken=dials.broken_json)
    if frame.stage == "propose":
        return write_json(propose(frame, rng, dials), rng, broken=dials.broken_json)
    if frame.stage == "consolidate":
        return write_json(consolidate(frame, rng, dials), rng, broken=dials.broken_json)
    return _NO_STAGE


def summarise(frame: Frame, rng: random.Random, dials: Dials) -> str:
    """The behaviours that the rollout showed or left out, in words of its own, sometimes wrongly."""
    lines = []
    for feature, done in behaviours(frame.content("rollout")).items():
        if rng.random() < dials.dropped:
            continue
        misread = rng.random() < dials.misread
        lines.append(observation(feature, rng, done=done != misread))
    return " ".join(lines) or _NOTHING


def contrast(frame: Frame, rng: random.Random, dials: Dials) -> dict[str, object]:
    """Why the better rollouts did better: one lesson, sometimes two, from the most telling differences.

    With no rollout to study it guesses one, out of all that could be said.
    """
    rollouts = frame.all("rollout")
    if not rollouts:
        return {"analysis": _NOTHING_TO_STUDY, "lessons": [lesson(*_guess(range(len(FEATURES)), rng), rng)]}
    strengths = differences(rollouts, dials)
    if not strengths:
        seen = sorted({feature for one in rollouts for feature in behaviours(one.content)})
        guessed = [_guess(seen, rng)] if seen and rng.random() < dials.spurious else []
        return {"analysis": _NO_DIFFERENCE, "lessons": [lesson(*one, rng) for one in guessed]}
    picks = [_said(pick, rng, dials) for pick in _picks(strengths, _covered(frame.library()), rng, dials)]
    told = " ".join(
        f"The {'better' if polarity > 0 else 'weaker'} rollouts did this: " + observation(feature, rng, done=True)
        for feature, polarity in picks
    )
    return {"analysis": told, "lessons": [lesson(feature, polarity, rng) for feature, polarity in picks]}


def behaviours(text: str) -> dict[int, bool]:
    """What a transcript or a summary says was done (true) or left out (false); the last word on a feature counts."""
    return {one.feature: one.polarity > 0 for one in parse(text) if one.reported}


def differences(rollouts: Iterable[Section], dials: Dials) -> dict[int, float]:
    """How each behaviour goes with reward: above 0 when the rollouts that showed it did better.

    The difference of the mean rewards with and without it, weighted by how evenly it splits the rollouts. A rollout
    that does not speak of it counts in part as one without. Empty when the rewards do not differ.
    """
    rated = [(reward, behaviours(one.content)) for one in rollouts if (reward := one.number("reward")) is not None]
    rewards = [reward for reward, _ in rated]
    if not rated or max(rewards) - min(rewards) <= 0:
        return {}
    features = sorted({feature for _, seen in rated for feature in seen})
    found = {feature: _association(feature, rated, dials.unsaid) for feature in features}
    return {feature: strength for feature, strength in found.items() if strength != 0.0}


def _association(feature: int, rated: Sequence[tuple[float, Mapping[int, bool]]], unsaid: float) -> float:
    weights = {True: 0.0, False: 0.0}
    sums = {True: 0.0, False: 0.0}
    for reward, seen in rated:
        weight = 1.0 if feature in seen else unsaid
        done = seen.get(feature, False)
        weights[done] += weight
        sums[done] += weight * reward
    if not weights[True] or not weights[False]:
        return 0.0
    difference = sums[True] / weights[True] - sums[False] / weights[False]
    return difference * weights[True] * weights[False] / (weights[True] + weights[False])


def _picks(
    strengths: Mapping[int, float], covered: set[tuple[int, int]], rng: random.Random, dials: Dials
) -> list[tuple[int, int]]:
    """One or two (feature, polarity), the telling ones more often, a known one less, and now and then any at all."""
    top = max(abs(strength) for strength in strengths.values())
    left = {
        (feature, 1 if strength > 0 else -1): (abs(strength) / top) ** dials.sharpness
        for feature, strength in strengths.items()
    }
    weights = {pick: weight * (dials.covered if pick in covered else 1.0) for pick, weight in left.items()}
    picks = []
    for _ in range(2 if len(weights) > 1 and rng.random() < dials.second else 1):
        pick = rng.choices(list(weights), list(weights.values()))[0]
        weights.pop(pick)
        picks.append(_guess(sorted(strengths), rng) if rng.random() < dials.spurious else pick)
    return picks


def _said(pick: tuple[int, int], rng: random.Random, dials: Dials) -> tuple[int, int]:
    """The lesson that becomes of a pick: that of a weak optimizer is now and then the opposite."""
    feature, polarity = pick
    # No luck is drawn where there is nothing to draw: other rates keep theirs.
    return (feature, -polarity) if dials.contrary and rng.random() < dials.contrary else pick


def _guess(features: Sequence[int], rng: random.Random) -> tuple[int, int]:
    return rng.choice(features), rng.choice((1, -1))


def _covered(entries: Iterable[Entry]) -> set[tuple[int, int]]:
    return {(one.feature, one.polarity) for entry in entries for one in parse(entry.text)}
