"""May a request be changed, and where does the block of experiences go? Pure: bytes in, bytes out.

The block goes after the client's own text of the system prompt, wherever the API has it; where there is none, one is
made. Only a plain prompt, which has no system part, gets it in front. Roles, order and every byte around stay as they
are. A block that the client echoes, in whatever spelling, is taken out before the current one is put in, so that
blocks are never stacked. What the upstream would refuse anyway (no messages, a first message without text) is left
alone: the client gets the upstream's own answer to its mistake.

It does not know which block a request gets, nor why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

import msgspec

from proxy import own_text, splice
from proxy.own_text import Text

_SYSTEM = ("system", "developer")

# A chat as SDKs write it, its first message a system text. Each blank here stands for white space there.
_USUAL_START = rb' { (?:"model" : "[^"\\]*+" , )?"messages" : \[ { "role" : "(?:system|developer)" , "content" : '
_USUAL_CHAT = re.compile(
    _USUAL_START.replace(b" ", rb"[ \t\r\n]*+") + rb'"((?:[^"\\]++|\\.)*+)"[ \t\r\n]*+}', re.DOTALL
)


class Spot(msgspec.Struct, frozen=True):
    """Where the block goes in a body that can be changed: one reading serves any block.

    `echoes` are the spans of blocks that the client sent back, `at` those that the new one takes the place of (most
    are empty: it is put in between), with `before` and `after` around it.
    """

    body: bytes
    echoes: tuple[splice.Span, ...]
    at: tuple[splice.Span, ...]
    before: bytes
    after: bytes

    def inject(self, block: str) -> bytes:
        """Return the body with `block` in it.

        With "" only echoes are taken out; a body without any is returned as it is.
        """
        return splice.edit(self.body, self.edits(block))

    def edits(self, block: str) -> list[splice.Edit]:
        """Return what `inject` changes: spans of the body, and what takes their place."""
        edits = [(start, stop, b"") for start, stop in self.echoes]
        if block:
            new = self.before + _escaped(block) + self.after
            edits += [(start, stop, new) for start, stop in self.at]
        return edits


def find(body: bytes, dialect: str, content_encoding: str = "") -> Spot | str:
    """Return where the block goes, or in a few words why this request cannot be changed."""
    finder = _FINDERS.get(dialect)
    if finder is None:
        return f"nothing is injected into requests of the API {dialect!r}"
    if content_encoding.strip().lower() not in ("", "identity"):
        return f"the body has the content-encoding {content_encoding.strip()!r}"
    reason = splice.unreadable(body)
    return finder(body) if reason is None else reason


def inject(body: bytes, dialect: str, block: str) -> bytes | None:
    """Return the body with `block` in it, None when it cannot be changed; see `Spot.inject`."""
    spot = find(body, dialect)
    return None if isinstance(spot, str) else spot.inject(block)


def injectable(body: bytes, dialect: str, content_encoding: str) -> str | None:
    """Return None when the request can be changed, else why not."""
    spot = find(body, dialect, content_encoding)
    return spot if isinstance(spot, str) else None


def replace_model(body: bytes, model: str) -> bytes | None:
    """Return the body with another value of `model`, None when it has none that is a string."""
    if splice.unreadable(body) is not None:
        return None
    value = splice.top(body, b"model")
    if value is None or not splice.is_string(body, value):
        return None
    return splice.edit(body, [(value, splice.end(body, value), splice.quoted(model))])


def _in_chat(body: bytes) -> Spot | str:
    echo = own_text.may_echo(body)
    if not echo and (usual := _in_usual_chat(body)) is not None:
        return usual
    messages = splice.top(body, b"messages", plain=not echo)
    if messages is None or not splice.is_array(body, messages):
        return "the body has no array of messages"
    first = next(splice.elements(body, messages), None)
    if first is None or not splice.is_object(body, first):
        return "the body has no first message"
    echoes = _echoes(body, messages) if echo else ()
    head = dict(splice.members(body, first))
    if not _is_system(body, head):
        return Spot(body, echoes, ((first, first),), b'{"role":"system","content":"', b'"},')
    text = _content(body, head, echo=echo)
    return "the first message has no text to add to" if text is None else _after(body, text, echoes)


def _in_usual_chat(body: bytes) -> Spot | None:
    """Find the place in one look, in a body that spells nothing with escapes; None: it must be searched for.

    Another member `messages` behind the first would be the one that counts.
    """
    usual = _USUAL_CHAT.match(body)
    if usual is None or splice.holds(body, b'"messages"', usual.end()):
        return None
    start, stop = usual.span(1)
    return Spot(body, (), ((stop, stop),), b"\\n\\n" if start < stop else b"", b"")


def _echoes(body: bytes, messages: int) -> tuple[splice.Span, ...]:
    found: list[splice.Span] = []
    for message in splice.elements(body, messages):
        if not splice.is_object(body, message):
            continue
        fields = dict(splice.members(body, message))
        text = _content(body, fields, echo=True) if _is_system(body, fields) else None
        found += text.echoes if text is not None else ()
    return tuple(found)


def _is_system(body: bytes, fields: Mapping[bytes, int]) -> bool:
    role = fields.get(b"role")
    return role is not None and splice.is_string(body, role) and splice.text(body, role) in _SYSTEM


def _content(body: bytes, fields: Mapping[bytes, int], *, echo: bool) -> Text | None:
    value = fields.get(b"content")
    return None if value is None else own_text.find(body, value, echo=echo)


def _after(body: bytes, text: Text, echoes: tuple[splice.Span, ...]) -> Spot:
    """The spot behind a text of the client's."""
    at = ((text.at, text.at),)
    if text.is_array:
        return Spot(body, echoes, at, b"," * text.filled + b'{"type":"text","text":"', b'"}')
    return Spot(body, echoes, at, b"\\n\\n" if text.filled else b"", b"")


def _in_responses(body: bytes) -> Spot | str:
    asked = splice.top(body, b"input")
    if asked is not None and not (splice.is_string(body, asked) or splice.is_array(body, asked)):
        return "the input is neither a text nor an array"
    return _in_member(body, b"instructions", arrays=False)


def _in_messages(body: bytes) -> Spot | str:
    messages = splice.top(body, b"messages")
    if messages is None or not splice.is_array(body, messages):
        return "the body has no array of messages"
    return _in_member(body, b"system", arrays=True)


def _in_member(body: bytes, name: bytes, *, arrays: bool) -> Spot | str:
    """Find the place behind the text of a member of the body; one that is null or absent is made."""
    echo = own_text.may_echo(body)
    value = splice.top(body, name, plain=not echo) if splice.mentions(body, name) else None
    if value is None:
        return _new_member(body, name)
    if splice.is_null(body, value):
        return Spot(body, (), ((value, splice.end(body, value)),), b'"', b'"')
    text = own_text.find(body, value, echo=echo)
    if text is None or (text.is_array and not arrays):
        return f"the member {name.decode()!r} is no text to add to"
    return _after(body, text, text.echoes)


def _new_member(body: bytes, name: bytes) -> Spot | str:
    """Find the place in front of all members: no other one is touched, and none is looked for further than needed."""
    start = splice.start(body)
    if next(splice.members(body, start), None) is None:
        return "the body is empty"
    return Spot(body, (), ((start + 1, start + 1),), b'"' + name + b'":"', b'",')


def _in_completions(body: bytes) -> Spot | str:
    value = splice.top(body, b"prompt")
    if value is None:
        return "the body has no prompt"
    prompts = list(splice.elements(body, value)) if splice.is_array(body, value) else [value]
    if not prompts or not all(splice.is_string(body, prompt) for prompt in prompts):
        return "the prompt is no text"
    echo = own_text.may_echo(body)
    echoes = tuple(span for prompt in prompts for span in own_text.prompt_blocks(body, prompt)) if echo else ()
    return Spot(body, echoes, tuple((prompt + 1, prompt + 1) for prompt in prompts), b"", b"\\n\\n")


_FINDERS: Mapping[str, Callable[[bytes], Spot | str]] = {
    "chat": _in_chat,
    "responses": _in_responses,
    "messages": _in_messages,
    "completions": _in_completions,
}


# A handful of blocks serve all traffic, and spelling one out costs more than all else for a small body.
@lru_cache(maxsize=64)
def _escaped(block: str) -> bytes:
    return splice.quoted(block)[1:-1]
