"""`POST .../feedback`: labels from applications, their users and graders.

A post is one label or a list of them, stored durably and all or nothing before it is answered. It finds out whom a
label speaks of and whether the caller may say it; it does not know what labels come to (`tfgrpo.trajectories`).
"""

from __future__ import annotations

import json
import math
import re
import time
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from pydantic import field_validator

from proxy import json_bodies
from proxy.auth import Keys
from proxy.errors import ProxyError, envelope, from_tfgrpo
from proxy.json_bodies import Body, Receive
from proxy.label_targets import Target, TargetField, Targets, Wanted
from proxy.label_writer import LabelWriter
from tfgrpo.errors import TfgrpoError
from tfgrpo.store import OtherContent
from tfgrpo.types import Label

BODY_BYTES = 1 << 20
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
ID = re.compile(r"[!-~]{1,200}")
COMPLETION_ID = re.compile(r"[!-~]{1,1000}")
"""LiteLLM's proxy gives a response an id of 425 characters."""

LONGEST_SOURCE = 200
TARGETS: tuple[TargetField, ...] = ("completion_id", "exchange_id", "trajectory_id")

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Feedback(Body):
    """One label as it is posted. A field that is null is one that is absent."""

    value: float
    completion_id: str | None = None
    exchange_id: str | None = None
    trajectory_id: str | None = None
    metric: str | None = None
    choice: int | None = None
    comment: str | None = None
    reference: str | None = None
    source: str | None = None
    feedback_id: str | None = None

    @field_validator("value", mode="before")
    @classmethod
    def _number(cls, value: Any) -> float:
        if not isinstance(value, bool | int | float):
            raise ValueError("must be true, false or a number")  # noqa: TRY004 - pydantic collects ValueErrors
        try:
            number = float(value)
        except OverflowError as error:
            raise ValueError("must be a finite number") from error
        if not math.isfinite(number):
            raise ValueError("must be a finite number")
        return number

    @field_validator("metric")
    @classmethod
    def _metric(cls, value: str | None) -> str | None:
        if value is not None and not NAME.fullmatch(value):
            raise ValueError("must be a letter, then letters, digits, '_', '-' and '.', at most 64 in all")
        # Two spellings of one name would be two metrics, and one opinion counted twice.
        return None if value is None else value.lower().replace("-", "_")

    @field_validator("choice")
    @classmethod
    def _choice(cls, value: int | None) -> int | None:
        if value is not None and not 0 <= value < 2**31:
            raise ValueError("must be 0 or more")
        return value

    @field_validator("source")
    @classmethod
    def _source(cls, value: str | None) -> str | None:
        if value is not None and not (0 < len(value) <= LONGEST_SOURCE and value.isprintable()):
            raise ValueError("must be 1 to 200 printable characters")
        return value

    @field_validator("completion_id")
    @classmethod
    def _completion_id(cls, value: str | None) -> str | None:
        if value is not None and not COMPLETION_ID.fullmatch(value):
            raise ValueError("must be 1 to 1000 visible ASCII characters")
        return value

    @field_validator("feedback_id", "exchange_id", "trajectory_id")
    @classmethod
    def _id(cls, value: str | None) -> str | None:
        if value is not None and not ID.fullmatch(value):
            raise ValueError("must be 1 to 200 visible ASCII characters")
        return value


class FeedbackEndpoint:
    """The ASGI endpoint, under every prefix alike. Its writer is started and stopped by whoever made it."""

    def __init__(self, keys: Keys, targets: Targets, writer: LabelWriter) -> None:
        self._keys = keys
        self._targets = targets
        self._writer = writer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            answer = await self._answer(scope, receive)
        except ProxyError as error:
            status, headers, body = envelope(error)
        else:
            status, body = 200, json.dumps(answer).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> Any:
        if scope["method"] != "POST":
            raise ProxyError(405, "labels are sent by POST", code="method_not_allowed", headers=((b"allow", b"POST"),))
        headers = scope["headers"]
        self._keys.labels_for(headers)
        sent = json_bodies.parsed(await json_bodies.read(receive, limit=BODY_BYTES))
        one = not isinstance(sent, list)
        posts = [_checked(item, "" if one else f"[{number}]") for number, item in enumerate([sent] if one else sent)]
        wanted = [_wanted(post, "" if one else f"[{number}]") for number, post in enumerate(posts)]
        try:
            targets = await self._targets.find(wanted, headers)
            labels = [_label(post, target) for post, target in zip(posts, targets, strict=True)]
            statuses = await self._writer.add(labels) if labels else []
        except OtherContent as error:
            where = "" if one else f"[{error.index}]"
            raise ProxyError(409, str(error), code="conflict", param=json_bodies.path(where, "feedback_id")) from error
        except TfgrpoError as error:
            raise from_tfgrpo(error) from error
        answers = [
            {"feedback_id": label.feedback_id, "status": status} for label, status in zip(labels, statuses, strict=True)
        ]
        return answers[0] if one else answers


def _checked(item: Any, where: str) -> Feedback:
    post = json_bodies.checked(Feedback, item, where=where)
    if (post.metric or "reward") == "reward" and not 0 <= post.value <= 1:
        param = json_bodies.path(where, "value")
        raise ProxyError(400, f"{param} is {post.value}; a reward lies in [0, 1]", code="invalid_value", param=param)
    return post


def _wanted(post: Feedback, where: str) -> Wanted:
    named = {name: value for name in TARGETS if (value := getattr(post, name)) is not None}
    if len(named) != 1:
        param = json_bodies.path(where, list(named)[1] if named else TARGETS[0])
        said = f"exactly one of {', '.join(TARGETS)} says what is judged; {len(named)} are there"
        raise ProxyError(400, f"{param}: {said}", code="invalid_value", param=param)
    ((field, value),) = named.items()
    return Wanted(field, value, post.choice or 0, where)


def _label(post: Feedback, target: Target) -> Label:
    return Label(
        feedback_id=post.feedback_id or f"fb-{uuid.uuid4().hex}",
        app=target.app,
        exchange=target.exchange,
        trajectory=target.trajectory,
        choice=post.choice or 0,
        metric=post.metric or "reward",
        value=post.value,
        source=post.source or "user",
        credential=target.credential,
        created_at=time.time(),
        comment=post.comment,
        reference=post.reference,
    )
