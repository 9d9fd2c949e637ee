"""What of the recorded traffic goes by its age: bodies, labels and metadata apart.

Ages are settings; what they come to at a moment are bounds, and what is older goes a few hundred rows a transaction.
A trajectory that a live experiment has drawn and not yet counted keeps its labels and its metadata, whatever their age.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nextafter

import msgspec
from pydantic import BaseModel, ConfigDict, model_validator

from tfgrpo import experiment
from tfgrpo.durations import Age
from tfgrpo.store import Deleted, Store

START = (-1.0, "")


class RetentionSettings(BaseModel):
    """How old what was recorded may become; without an age it stays."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bodies: Age | None = None
    """What was asked and answered, word by word. Without it nothing can be learned from a trajectory."""
    labels: Age | None = None
    """Labels, with their comments and references."""
    metadata: Age | None = None
    """Exchanges, trajectories and links: times, models, tokens, ids. Bodies go with them."""

    @model_validator(mode="after")
    def _bodies_go_first(self) -> RetentionSettings:
        if self.bodies is not None and self.metadata is not None and self.bodies > self.metadata:
            raise ValueError("bodies cannot be kept for longer than metadata: they belong to it")
        return self

    @property
    def any(self) -> bool:
        """Whether anything goes by its age."""
        return (self.bodies, self.labels, self.metadata) != (None, None, None)


class Bounds(msgspec.Struct, frozen=True):
    """What is older than these times (seconds since the epoch) goes; 0: nothing.

    `held`: since when labels and metadata stay because a live experiment has yet to count them; None where none has.
    """

    bodies: float = 0.0
    labels: float = 0.0
    metadata: float = 0.0
    held: float | None = None


def bounds(store: Store, ages: RetentionSettings, now: float) -> Bounds:
    """Return what the ages come to now."""
    first = min((_uncounted_since(store, span) for span in _spans(store)), default=inf)
    due = {name: now - age for name in ("labels", "metadata") if (age := getattr(ages, name)) is not None}
    held = first if any(first < moment for moment in due.values()) else None
    kept = {name: min(moment, first) for name, moment in due.items()}
    return Bounds(bodies=0.0 if ages.bodies is None else now - ages.bodies, held=held, **kept)


def older(store: Store, beyond: Bounds) -> Deleted:
    """Return how many exchanges, bodies and labels `sweep` would delete."""
    return store.retention.older(bodies=beyond.bodies, labels=beyond.labels, metadata=beyond.metadata)


def sweep(store: Store, beyond: Bounds) -> Iterator[Deleted]:
    """Delete what is older, and yield after each transaction what it deleted: the caller may pause there, or stop."""
    while some := store.retention.page(START, before=beyond.metadata):
        yield store.retention.erase(some, labels=False)
    while count := store.retention.drop_bodies(beyond.bodies):
        yield Deleted(bodies=count)
    while count := store.retention.drop_labels(beyond.labels):
        yield Deleted(labels=count)


def _spans(store: Store) -> Iterator[experiment.Span]:
    for name in store.sets.names():
        yield from experiment.spans(store.sets.history(name))


def _uncounted_since(store: Store, span: experiment.Span) -> float:
    """When the oldest trajectory began that the experiment has not settled; infinite for none."""
    one = span.deployment
    reached = store.frozen.reached(one.set, one.effective).get("settled", 0.0)
    # Behind every trajectory that began at the same time: those are settled.
    after = (nextafter(reached, inf), "", "")
    found = store.experiments.begun(one.set, span.revisions, after=after, until=span.until)
    return found[0].started_at if found else inf
