"""Rewarded trajectories as training data: the chat format of OpenAI's supervised fine-tuning, one example a line.

Of each task the rollouts with its highest reward, where that is high enough, each conversation once. Our own block is
not in them: what it brought about is what is to be learned. What the format cannot say is left out and counted,
never bent: it has no place for the note that stands for an image, and refuses tool calls without their results.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tfgrpo import dialects
from tfgrpo.dialects import json_reading as read
from tfgrpo.dialects.parts import holds_note
from tfgrpo.rewards import EPSILON
from tfgrpo.safety import outgoing
from tfgrpo.store import Store
from tfgrpo.traffic import labelled_groups
from tfgrpo.types import Bodies, Group, Message, Rollout

JSON: TypeAlias = dict[str, Any]

ROLES: Final[Mapping[str, str]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
"""The format's word for each role."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Lines of training data, and how many rollouts are not among them, by reason. `redacted` lines hold a placeholder
    for a secret or a personal datum.
    """

    lines: tuple[str, ...]
    left_out: Mapping[str, int]
    redacted: int = 0


class _Inexpressible(Exception):  # noqa: N818 - control flow of this module only
    """A rollout that the format cannot say; the text is the reason."""


def examples(
    store: Store, *, set_name: str | None, unnamed: bool, min_reward: float, ours: tuple[str, ...] = ()
) -> Examples:
    """Return the best rollouts of each task of one set's traffic, of that under no set (`unnamed`), or of all.

    `ours` are values of our own configuration, which no form gives away.
    """
    apps = {
        (attempt.group, attempt.trajectory): attempt.app
        for attempt in store.learnable.attempts(set_name=set_name, unnamed=unnamed)
    }
    lines: dict[str, None] = {}
    redacted: set[str] = set()
    left_out: Counter[str] = Counter()
    for group in labelled_groups(store, set_name=set_name, unnamed=unnamed, alike=True):
        for rollout in group.rollouts:
            try:
                whole = _line(store, apps, group, rollout, min_reward)
            except _Inexpressible as reason:
                left_out[str(reason)] += 1
                continue
            line = json.dumps(outgoing.value(json.loads(whole), ours), ensure_ascii=False)
            redacted |= {line} if line != whole else set()
            if line in lines:
                left_out["the same conversation again"] += 1
            lines[line] = None
    return Examples(tuple(lines), dict(left_out), len(redacted))


def example(messages: Sequence[Message], tools: Sequence[JSON]) -> str:
    """Return one line; `tools` as requests of any API carry them."""
    said: JSON = {"messages": _messages(messages)}
    if tools:
        said["tools"] = list({tool["function"]["name"]: tool for tool in map(_tool, tools)}.values())
    line = json.dumps(said, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError as error:
        raise _Inexpressible("half of a surrogate pair") from error
    return line


def _line(store: Store, apps: Mapping[tuple[str, str], str], group: Group, rollout: Rollout, min_reward: float) -> str:
    best = max(one.reward or 0.0 for one in group.rollouts)
    reward = rollout.reward or 0.0
    if reward < min_reward:
        raise _Inexpressible(f"a reward below {min_reward:g}")
    if reward < best - EPSILON:
        raise _Inexpressible("another rollout of the task was better")
    trajectory, hashed = rollout.trajectory, group.key.rpartition("@")[0]
    if (hashed, trajectory) not in apps:
        # A choice k > 0 of several is rollout ID.k of trajectory ID.
        trajectory = trajectory.rpartition(".")[0]
    exchanges = store.traffic.trajectory(apps[hashed, trajectory], trajectory)
    bodies = store.traffic.bodies([one.id for one in exchanges])
    return example([*group.task.messages, *rollout.messages], _tools(bodies.values()))


def _tools(bodies: Iterable[Bodies]) -> list[JSON]:
    found: list[JSON] = []
    for kept in bodies:
        asked = read.mapping(dialects.decoded(kept.request, kept.request_encoding) or b"") or {}
        found += read.mappings(asked.get("tools"))
        found += [{"type": "function", "function": one} for one in read.mappings(asked.get("functions"))]
    return found


def _tool(tool: JSON) -> JSON:
    """Return a tool as chat completions has it, of the form of any of the APIs."""
    function = tool.get("function", tool)
    parameters = function.get("parameters", function.get("input_schema")) if isinstance(function, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if tool.get("type", "function") not in ("function", "custom") or not isinstance(name, str):
        raise _Inexpressible("a tool that is no function")
    if not isinstance(parameters, dict | None):
        raise _Inexpressible("a tool that is no function")
    made = {"name": name, "description": function.get("description"), "parameters": parameters}
    return {"type": "function", "function": {key: value for key, value in made.items() if value is not None}}


def _messages(messages: Sequence[Message]) -> list[JSON]:
    made: list[JSON] = []
    open_calls: set[str] = set()
    for message in messages:
        if holds_note(message.text):
            raise _Inexpressible("an image, a sound or a file")
        if message.role not in ROLES:
            raise _Inexpressible(f"a message of the role {message.role!r}")
        if message.role == "tool":
            if message.tool_call_id not in open_calls:
                raise _Inexpressible("a tool result without its call")
            open_calls.discard(message.tool_call_id or "")
        elif open_calls:
            raise _Inexpressible("a tool call without its result")
        open_calls |= {call.id for call in message.tool_calls}
        made.append(_message(message))
    return made


def _message(message: Message) -> JSON:
    said: JSON = {"role": ROLES[message.role]}
    if message.text or not message.tool_calls:
        said["content"] = message.text
    if message.role == "tool":
        said["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        if not all(call.id and call.name for call in message.tool_calls):
            raise _Inexpressible("a tool call without an id or a name")
        said["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    return said
