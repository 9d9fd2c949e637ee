"""Many ways to say a behaviour: as a lesson, for or against it, and as a report of what was done or left out.

Each sentence is read back by `parsing` as exactly what it says. It knows nothing of which behaviours count.
"""

from __future__ import annotations

import random

from tfgrpo.simulation.vocabulary import ACTS, THINGS, Form, parts

FOR = (
    "{Base} the {things}.",
    "Always {base} the {things}.",
    "Make sure to {base} the {things}.",
    "Do not forget to {base} the {things}.",
    "Never skip {gerund} the {things}.",
    "Before answering, {base} the {things}.",
    "It pays to {base} the {things}.",
    "{Gerund} the {things} helps.",
    "The {things} should be {past}.",
    "Answers that {base} the {things} do better.",
    "Take the time to {base} the {things} in tasks like this one.",
    "You must {base} the {things}.",
)
"""Lessons that ask for a behaviour."""

AGAINST = (
    "Do not {base} the {things}.",
    "Never {base} the {things}.",
    "Avoid {gerund} the {things}.",
    "There is no need to {base} the {things}.",
    "Refrain from {gerund} the {things}.",
    "Get to the answer without {gerund} the {things}.",
    "It is a mistake to {base} the {things}.",
    "{Gerund} the {things} hurts.",
    "The {things} should not be {past}.",
    "Answers that {base} the {things} do worse.",
    "Skip {gerund} the {things} in tasks like this one.",
    "You must never {base} the {things}.",
)
"""Lessons that ask to leave it out."""

DONE = (
    "I {past} the {things}.",
    "First I {past} the {things}.",
    "On the way I {past} the {things}.",
    "The {things} were {past} along the way.",
    "As usual, I {past} the {things}.",
    "I also {past} the {things}.",
)
"""Reports that it was done."""

LEFT_OUT = (
    "I did not {base} the {things}.",
    "I went on without {gerund} the {things}.",
    "The {things} were not {past}.",
    "I skipped {gerund} the {things}.",
    "This time I did not {base} the {things}.",
    "I didn't {base} the {things} here.",
)
"""Reports that it was left out."""

SEEN_DONE = (
    "It {past} the {things}.",
    "The attempt {past} the {things}.",
    "The {things} were {past}.",
)
"""The same in the words of one who read a transcript."""

SEEN_LEFT_OUT = (
    "It did not {base} the {things}.",
    "The attempt skipped {gerund} the {things}.",
    "The {things} were not {past}.",
)


def lesson(feature: int, polarity: int, rng: random.Random) -> str:
    """A lesson for (+1) or against (-1) a feature, in one of many wordings."""
    return _fill(rng.choice(FOR if polarity > 0 else AGAINST), feature, rng)


def report(feature: int, rng: random.Random, *, done: bool) -> str:
    """A sentence by the one who worked on the task."""
    return _fill(rng.choice(DONE if done else LEFT_OUT), feature, rng)


def observation(feature: int, rng: random.Random, *, done: bool) -> str:
    """A sentence by one who read what somebody else did."""
    return _fill(rng.choice(SEEN_DONE if done else SEEN_LEFT_OUT), feature, rng)


def _fill(template: str, feature: int, rng: random.Random) -> str:
    act, thing = parts(feature)
    verb = rng.choice(ACTS[act])
    base, gerund = verb.form(Form.BASE), verb.form(Form.GERUND)
    return template.format(
        base=base,
        Base=base.capitalize(),
        past=verb.form(Form.PAST),
        gerund=gerund,
        Gerund=gerund.capitalize(),
        things=rng.choice(THINGS[thing])[1],
    )
