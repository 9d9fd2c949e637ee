"""Rows for the store's tests: each function gives a valid value and takes what should differ."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tfgrpo.types import Assignment, Exchange, Label


def exchange(number: int = 1, **changes: Any) -> Exchange:
    made = Exchange(
        id=f"ex-{number}",
        app="default",
        set="math",
        version=0,
        arm="none",
        trajectory=f"t-{number}",
        group="g",
        dialect="chat",
        method="POST",
        path="/v1/chat/completions",
        model="m",
        upstream="openai",
        credential="",
        outcome="complete",
        status=200,
        started_at=float(number),
        first_byte_at=None,
        ended_at=number + 0.5,
        completion_id=f"c-{number}",
    )
    return replace(made, **changes)


def assignment(number: int = 1, **changes: Any) -> Assignment:
    made = Assignment(
        trajectory=f"t-{number}",
        app="default",
        set="math",
        version=0,
        arm="none",
        probability=None,
        revision=0,
        group="g",
        model="m",
        started_at=float(number),
    )
    return replace(made, **changes)


def label(number: int = 1, **changes: Any) -> Label:
    made = Label(
        feedback_id=f"f-{number}",
        app="default",
        exchange=f"ex-{number}",
        trajectory=None,
        choice=0,
        metric="reward",
        value=1.0,
        source="user",
        credential="",
        created_at=float(number),
    )
    return replace(made, **changes)
