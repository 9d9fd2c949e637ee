"""What a recorded request asks for besides its messages, as a chat completion is asked for it.

It reads the four APIs and speaks one. Left out: what a single completion has no use for (streaming, `n`, tools, ids,
metadata) and the temperature, which is a dial of whoever makes rollouts. No bytes make it raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tfgrpo.dialects import json_reading as read

_KEPT: Final = (
    "max_tokens",
    "max_completion_tokens",
    "top_p",
    "stop",
    "response_format",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "reasoning_effort",
    "verbosity",
)
_SPELLED: Final[Mapping[str, Mapping[str, str]]] = {
    "chat": {name: name for name in _KEPT},
    "completions": {
        name: name for name in ("max_tokens", "top_p", "stop", "frequency_penalty", "presence_penalty", "logit_bias")
    },
    "messages": {"max_tokens": "max_tokens", "top_p": "top_p", "stop_sequences": "stop"},
    "responses": {"max_output_tokens": "max_completion_tokens", "top_p": "top_p"},
}
"""By dialect: the member of a request, and what chat completions call it."""


def of_request(dialect: str, body: bytes) -> dict[str, Any]:
    """Return the members of a chat completion that ask for the same as `body` does; nothing where it is no request."""
    fields = read.mapping(body) or {}
    spelled = _SPELLED.get(dialect, {})
    found = {spelled[name]: value for name, value in fields.items() if name in spelled and value is not None}
    if dialect == "responses":
        found |= _of_text(_mapping(fields.get("text"))) | _of_reasoning(_mapping(fields.get("reasoning")))
    return found


def _of_text(text: Mapping[str, Any]) -> dict[str, Any]:
    """Responses keep the schema beside its name; chat completions keep both one level further down."""
    form, found = _mapping(text.get("format")), {}
    kind = form.get("type")
    if kind == "json_schema":
        schema = {name: value for name, value in form.items() if name != "type"}
        found["response_format"] = {"type": kind, "json_schema": schema}
    elif kind == "json_object":
        found["response_format"] = {"type": kind}
    return found | ({"verbosity": text["verbosity"]} if text.get("verbosity") else {})


def _of_reasoning(reasoning: Mapping[str, Any]) -> dict[str, Any]:
    effort = reasoning.get("effort")
    return {"reasoning_effort": effort} if effort else {}


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}
