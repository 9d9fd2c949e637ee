"""What an optimizer may see of how rollouts were judged: the three modes of ground truth.

A group is changed before the optimizer gets it, so that no prompt has to know a mode. Rewards stay in the group that
training and the gate count with.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec.structs import replace

from tfgrpo.types import Group

Mode: TypeAlias = Literal["reward and reference", "reward only", "neither"]
"""With rewards and right answers; without what may quote a right answer; with answers alone."""


def shown(group: Group, mode: Mode) -> Group:
    """Return the group as an optimizer may see it.

    Comments and critiques go with the reference: a label or a grader may quote it there. In mode `neither` no rollout
    has a reward.
    """
    if mode == "reward and reference":
        return group
    blind = mode == "neither"
    rollouts = [replace(one, comments=(), reward=None if blind else one.reward) for one in group.rollouts]
    return replace(group, task=replace(group.task, reference=None), rollouts=tuple(rollouts))


def differs(group: Group) -> bool:
    """Whether the rollouts of a group answer differently, white space aside; a failed one answers nothing."""
    return len({" ".join(rollout.answer.split()) for rollout in group.rollouts}) > 1
