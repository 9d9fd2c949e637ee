"""Every rate of the simulation in one value. What a rate means stands here; what uses it stands elsewhere."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dials:
    """The rates of the world, the policy and the optimizer. All are probabilities unless the comment differs."""

    always_right: float = 0.08
    """Share of tasks that succeed whatever is done."""
    always_wrong: float = 0.08
    """Share of tasks that fail whatever is done."""
    decoys: int = 11
    """How many behaviours that change nothing are natural in each family."""

    best: float = 0.95
    """Success when every needed rule was kept."""
    broken: float = 0.12
    """Each broken rule multiplies success by this."""
    worst: float = 0.04
    """Success never falls below this on an ordinary task."""

    certain: float = 0.93
    """The highest probability to which a text can move a behaviour; its complement is the lowest."""
    words: float = 4000.0
    """So many words in the prompt halve how strongly a text is followed."""
    mentions: float = 150.0
    """So many mentions in the prompt halve it too."""
    irrelevant: float = 0.99
    """Each mention of a behaviour that is not natural for the task multiplies attention by this."""
    silent_done: float = 0.05
    """How often an answer does not mention a behaviour that it showed."""
    silent_omitted: float = 0.15
    """How often an answer does not mention that it left a behaviour out."""

    dropped: float = 0.08
    """How often a summary leaves a behaviour out."""
    misread: float = 0.03
    """How often a summary says the opposite of what the transcript says."""
    unsaid: float = 0.5
    """How much a behaviour that a rollout does not speak of weighs as one it did not show (0 to 1, no probability)."""
    sharpness: float = 5.0
    """How strongly the optimizer prefers the most telling difference (an exponent, no probability)."""
    covered: float = 0.5
    """Weight of a difference that the library states already, against a new one."""
    second: float = 0.7
    """How often a contrast reports a second lesson."""
    contrary: float = 0.0
    """How often a lesson says the opposite of what the rewards tell. One half is an optimizer whose every second lesson
    does harm where it matters at all."""
    spurious: float = 0.06
    """How often a lesson is about any behaviour at all, whatever the rewards."""
    reword: float = 0.2
    """How often a lesson that the library holds already becomes a new wording of its entry."""
    careless: float = 0.03
    """How often the consolidation lets an edit without enough support pass."""
    agreement: float = 0.22
    """This times the root of the number of proposals must agree on an edit, and at least two (no probability)."""
    operations: int = 10
    """The consolidation returns at most so many operations."""
    broken_json: float = 0.05
    """How often an answer that should be JSON is not quite."""
