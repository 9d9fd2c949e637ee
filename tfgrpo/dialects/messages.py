"""Messages, Anthropic's API: blocks of content become the normal form that all APIs share.

An assistant's message is one message, whatever its blocks; of a user's message each tool result is a message of its
own, as the other APIs have it. Thoughts and the results of the provider's own tools are passed over: clients trim them.
A stream is put together into the blocks that it carries, which are then read like any other, so that an answer reads
as it will when a client sends it back. A lens and no model of the API, like the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tfgrpo.dialects import json_reading as read
from tfgrpo.dialects import parts, sse
from tfgrpo.types import Choice, Message, Request, Response, ToolCall

_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_PROMPT_TOKENS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""The API counts apart what it had in a cache or put there; together they are the prompt."""


class Messages:
    """`POST /v1/messages`."""

    name: Final = "messages"
    turn = True

    def read_request(self, body: bytes) -> Request | None:
        """Return what we read of a request; None when it is no JSON object with a list of messages."""
        fields = read.mapping(body)
        if fields is None or not isinstance(fields.get("messages"), list):
            return None
        system = parts.text(fields.get("system"))
        turns = [turn for one in read.mappings(fields["messages"]) for turn in _turns(one)]
        return Request(
            model=read.text_or_none(fields.get("model")),
            messages=(Message("system", system), *turns) if system else tuple(turns),
            stream=fields.get("stream") is True,
            session_id=read.session(fields),
        )

    def read_response(self, body: bytes, content_type: str) -> Response | None:
        """Return what we read of a response; None when it is neither JSON nor a stream of events."""
        if sse.is_stream(body, content_type):
            return _assembled(body)
        fields = read.mapping(body)
        return None if fields is None else _response(fields, complete=isinstance(fields.get("content"), list))


class CountTokens(Messages):
    """`POST /v1/messages/count_tokens`: the request of a message that is not sent yet, and an answer that is none."""

    turn = False

    def read_response(self, body: bytes, content_type: str) -> Response | None:  # noqa: ARG002 - the protocol's form
        """Return None: a count is no answer."""
        return None


def _turns(fields: Mapping[str, Any]) -> Iterator[Message]:
    role, content = read.text(fields.get("role")), fields.get("content")
    if isinstance(content, str):
        yield Message(role, content)
    elif role == "assistant":
        yield _answer(content)
    else:
        yield from _asked(role, read.mappings(content))


def _asked(role: str, blocks: list[dict[str, Any]]) -> Iterator[Message]:
    """Yield what a user's message holds: each tool result, and what stands before, between and after them."""
    texts: list[str] = []
    for block in blocks:
        if block.get("type") != "tool_result":
            texts.append(parts.part(block))
            continue
        if texts:
            yield Message(role, "".join(texts))
            texts = []
        call = read.text_or_none(block.get("tool_use_id"))
        yield Message("tool", parts.text(block.get("content")), tool_call_id=call)
    if texts or not blocks:
        yield Message(role, "".join(texts))


def _answer(content: Any) -> Message:
    blocks = read.mappings(content)
    calls = tuple(_call(block) for block in blocks if _kind(block) in _CALLS)
    said = (block for block in blocks if _kind(block) not in _CALLS and not _kind(block).endswith("tool_result"))
    return Message("assistant", parts.paired("".join(map(parts.part, said))), calls)


def _kind(block: Mapping[str, Any]) -> str:
    return read.text(block.get("type"))


def _call(block: Mapping[str, Any]) -> ToolCall:
    given = block.get("input")
    arguments = given if isinstance(given, str) else parts.compact({} if given is None else given)
    return ToolCall(read.text(block.get("id")), read.text(block.get("name")), arguments)


def _response(fields: Mapping[str, Any], *, complete: bool) -> Response:
    usage = fields.get("usage")
    tokens = usage if isinstance(usage, dict) else {}
    counts = [count for name in _PROMPT_TOKENS if (count := read.count(tokens.get(name))) is not None]
    stop = read.text_or_none(fields.get("stop_reason"))
    answered = isinstance(fields.get("content"), list)
    return Response(
        id=read.text_or_none(fields.get("id")),
        choices=(Choice(0, _answer(fields["content"]), stop),) if answered else (),
        prompt_tokens=sum(counts) if counts else None,
        completion_tokens=read.count(tokens.get("output_tokens")),
        complete=complete,
    )


class _Growing:
    """A message as its events come in."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[int, list[str]] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """Add what one event says."""
        kind, place = event.get("type"), read.count(event.get("index")) or 0
        if kind == "content_block_delta":
            self._take_piece(place, _mapping(event.get("delta")))
        elif kind == "content_block_start":
            self._blocks[place] = _mapping(event.get("content_block"))
            self._pieces[place] = []
        elif kind == "message_start":
            self._head = _mapping(event.get("message"))
            self._take_usage(self._head.get("usage"))
        elif kind == "message_delta":
            self._head = {**self._head, **_mapping(event.get("delta"))}
            self._take_usage(event.get("usage"))

    def response(self, *, complete: bool) -> Response:
        """Return the answer that the events make."""
        content = [self._block(place) for place in sorted(self._blocks)]
        said = {**self._head, "usage": self._usage, "content": content}
        return _response(said if content or complete else {**said, "content": None}, complete=complete)

    def _take_piece(self, place: int, delta: dict[str, Any]) -> None:
        piece = read.text(delta.get("text")) or read.text(delta.get("partial_json"))
        self._blocks.setdefault(place, {"type": "text"})
        self._pieces.setdefault(place, []).append(piece)

    def _take_usage(self, usage: Any) -> None:
        """Later counts are of the whole answer so far and stand for earlier ones."""
        self._usage |= {name: count for name, count in _mapping(usage).items() if count is not None}

    def _block(self, place: int) -> dict[str, Any]:
        block, pieces = self._blocks[place], parts.paired("".join(self._pieces.get(place, ())))
        if not pieces:
            return block
        if _kind(block) in _CALLS:
            given = read.value(pieces.encode())
            return {**block, "input": pieces if given is None else given}
        return {**block, "text": read.text(block.get("text")) + pieces}


def _assembled(body: bytes) -> Response:
    growing = _Growing()
    for data in sse.data(body):
        event = read.mapping(data) if data else {}
        if event is None or event.get("type") == "error":
            break
        if event.get("type") == "message_stop":
            return growing.response(complete=True)
        growing.take(event)
    return growing.response(complete=False)


def _mapping(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}
