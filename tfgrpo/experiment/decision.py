"""What an experiment's books say should be done with its candidate. It does nothing itself."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from tfgrpo.experiment.account import Account, Pair

Action = Literal["promote", "roll back", "none"]

LATE: Final = 0.2
"""The part of the level for harm that settled trajectories take; the rest is that of first labels, which see it
sooner."""


class Levels(msgspec.Struct, frozen=True):
    """How much may be due to chance. `candidate`: the how manieth candidate of its set this is, from 1.

    `labelled` is higher than the others: it errs on the side of no promotion.
    `errors`: by how much more often than live a candidate's trajectories may fail.
    """

    candidate: int = 1
    better: float = 0.025
    worse: float = 0.05
    labelled: float = 0.5
    alert: float = 0.05
    errors: float = 0.05

    @property
    def promotion(self) -> float:
        """The level for this candidate: those of all candidates that a set ever has add up to `better`.

        A set that is trained often has many, so the first take no more than a third and a sixth.
        """
        return self.better * 2 / ((self.candidate + 1) * (self.candidate + 2))


class Decision(msgspec.Struct, frozen=True):
    """What should be done, and why. `blocked`: what stands against a promotion; `alerts` change nothing."""

    action: Action
    reason: str
    blocked: str | None = None
    alerts: tuple[str, ...] = ()


def decide(account: Account, levels: Levels) -> Decision:
    """Return what should be done with the candidate.

    Without any effect it is rolled back with probability `worse` at most and promoted with `promotion` at most,
    however often this is asked.
    """
    pair = account.against_live()
    if pair is None:
        return Decision("none", "nothing is drawn for both the candidate and live")
    alerts = _alerts(pair, levels)
    harm = _harm(account, pair, levels)
    if harm is not None:
        return Decision("roll back", harm, alerts=alerts)
    blocked = _blocked(pair, levels)
    level = levels.promotion
    as_0, as_1 = pair.missing_as_0.sequence, pair.missing_as_1.sequence
    if as_0.above(level) and as_1.above(level):
        if blocked is not None:
            return Decision("none", f"more are judged good and fewer bad, but {blocked}", blocked, alerts)
        reason = f"better than live: more trajectories are judged good and fewer bad, beyond chance (level {level:.4f})"
        return Decision("promote", reason, alerts=alerts)
    return Decision("none", "undecided: neither better nor worse beyond chance", blocked, alerts)


def _harm(account: Account, pair: Pair, levels: Levels) -> str | None:
    early, failed = account.early, account.failed
    if early is not None and early.sequence.below((1 - LATE) * levels.worse):
        return "worse than live by the first labels of trajectories, beyond chance"
    if pair.reward.sequence.below(LATE * levels.worse):
        return "worse than live by the labels of settled trajectories, beyond chance"
    if failed is not None and failed.sequence.above(LATE * levels.worse, levels.errors):
        return f"its trajectories fail more often than live ones, by more than {levels.errors:g}, beyond chance"
    return None


def _blocked(pair: Pair, levels: Levels) -> str | None:
    if pair.labelled.sequence.differs(levels.labelled):
        return "label rates differ from live beyond chance: who labels has changed"
    return None


def _alerts(pair: Pair, levels: Levels) -> tuple[str, ...]:
    said = (
        (pair.longer, "its answers are longer or shorter than live ones"),
        (pair.slower, "its answers come slower or faster than live ones"),
        (pair.unusual, "its answers end for other reasons than live ones (finish_reason)"),
    )
    return tuple(text for effect, text in said if effect.sequence.differs(levels.alert))
