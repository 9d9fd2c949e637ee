"""Values that the tests of the proxy share: an exchange, an assignment, a store."""

from __future__ import annotations

import time
from pathlib import Path

from tfgrpo.store import Store
from tfgrpo.types import Assignment, Exchange, Label, Message, Outcome, Request


def store(folder: Path) -> Store:
    return Store.open(f"sqlite:///{folder / 'store.db'}", migrate=True)


def exchange(
    id_: str,
    *,
    app: str = "default",
    trajectory: str = "t-1",
    completion_id: str | None = None,
    credential: str = "",
    set_name: str | None = "math",
    outcome: Outcome = "complete",
    choices: int = 1,
) -> Exchange:
    now = time.time()
    return Exchange(
        id=id_,
        app=app,
        set=set_name,
        version=0,
        arm="none",
        trajectory=trajectory,
        group="g-1",
        dialect="chat",
        method="POST",
        path="/v1/chat/completions",
        model="m",
        upstream="openai",
        credential=credential,
        outcome=outcome,
        status=200,
        started_at=now,
        first_byte_at=now,
        ended_at=now,
        completion_id=completion_id,
        choices=choices,
    )


def assignment(trajectory: str, *, app: str = "default", set_name: str | None = "math") -> Assignment:
    return Assignment(
        trajectory=trajectory,
        app=app,
        set=set_name,
        version=0,
        arm="none",
        probability=None,
        revision=0,
        group="g-1",
        model="m",
        started_at=time.time(),
    )


def request(*texts: str, system: str | None = None, n: int = 1) -> Request:
    """A chat of these texts, said by the user and the assistant in turn."""
    roles = ("user", "assistant")
    messages = [Message("system", system)] if system is not None else []
    messages += [Message(roles[number % 2], text) for number, text in enumerate(texts)]
    return Request("m", tuple(messages), n=n)


def label(feedback_id: str, value: float = 1.0) -> Label:
    return Label(
        feedback_id=feedback_id,
        app="default",
        exchange="ex-1",
        trajectory=None,
        choice=0,
        metric="reward",
        value=value,
        source="user",
        credential="",
        created_at=time.time(),
    )
