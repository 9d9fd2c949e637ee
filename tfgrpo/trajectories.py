"""Exchanges to links, to trajectories, to groups. Pure: no store, no HTTP, no model.

A *link key* is a hash that a recorded exchange leaves behind and a later request finds it by. A chain of messages is
hashed message by message over their normal form, so that the keys of all its prefixes cost one pass.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import structs

from tfgrpo import library
from tfgrpo.types import Message, Request, Response

if TYPE_CHECKING:
    from _hashlib import HASH

Patterns: TypeAlias = tuple[re.Pattern[str], ...]

SYSTEM_ROLES: Final = frozenset({"system", "developer"})

REMEMBERED: Final = range(512, 16_384)
"""Shorter texts are blanked sooner than they are found again; remembering longer ones would cost more memory than it
saves time."""

MOST_KEYS = 64
"""How many link keys of one request are looked up; a conversation of more turns is found by its newest."""

KEY_DIGITS: Final = slice(8, 32)
"""Which hexadecimal digits of a hash are a link key. Earlier stores' keys begin with the same."""

SYSTEM_DIGITS: Final = 8
"""How many tell system texts apart."""

# Each pattern starts with a set of characters and looks behind it for the border of the word: so the engine skips what
# cannot match. `\b` in front would be tried at each place of a text that may be long, on the live path.
_MONTHS = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?<!\w...)[a-z]*\.?,? "
_DAY_YEAR = r"[a-z]*\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}\b"
_MONTH_YEAR = rf"(?:st|nd|rd|th)?\.? {_MONTHS}[a-z]*\.?,? \d{{4}}\b"
# What most texts lack, found out in one pass: all that `_SOONER` finds begins with this.
_SOONEST: Final = re.compile(
    r"[0-9JFMASOND](?:[-:][0-9]|[./][0-9][0-9]?[./][0-9]|[0-9]{9}|(?<=-[0-9])"
    r"|an|eb|ar|pr|ay|un|ul|ug|ep|ct|ov|ec)"
)
_NUMBERED, _NAMED = 0, 1
_SOONER: Final = (
    re.compile(r"(?a)\d(?:[-:]\d|[./]\d\d?[./]\d|\d{9}|(?<=-\d))"),
    re.compile(_MONTHS),
)
_DEFAULTS: Final = (
    (r"(?a)[0-9a-fA-F](?<!\w.)[0-9a-fA-F]{7}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", _NUMBERED),
    (
        r"(?a)\d(?<!\w.)\d{3}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?Z| ?[+-]\d\d:?\d\d)?)?\b",
        _NUMBERED,
    ),
    (r"(?a)\d(?<!\w.)\d?[./]\d{1,2}[./]\d{4}\b", _NUMBERED),
    (r"(?a)\d(?<!\w.)\d?:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AaPp]\.?[Mm]\b\.?)?", _NUMBERED),
    (r"(?a)1(?<!\w.)\d{9}(?:\d{3})?(?:\.\d+)?\b", _NUMBERED),
    (rf"(?a){_WEEKDAY}(?:{_MONTHS}{_DAY_YEAR}|\d{{1,2}}{_MONTH_YEAR})", _NAMED),
    (rf"(?a){_MONTHS}(?<!\w...){_DAY_YEAR}", _NAMED),
    (rf"(?a)\d(?<!\w.)\d?{_MONTH_YEAR}", _NAMED),
)
"""Patterns, each with one of `_SOONER` that is found in all it matches: a text without that is not searched.

A UUID has a version, which is a digit behind a hyphen (RFC 9562).
"""

IGNORED_BY_DEFAULT: Final = tuple(pattern for pattern, _ in _DEFAULTS)
"""UUIDs, dates, times and epoch stamps: what changes though the task is the same. Not all numbers: "order 12" is not
"order 13"."""

_NEEDED: Final = dict(_DEFAULTS)
_USUAL: Final = tuple(re.compile(pattern) for pattern in IGNORED_BY_DEFAULT)


class Sought(msgspec.Struct, frozen=True):
    """A key under which a parent is looked for. Of several, those with the same `system` texts are stronger evidence.

    `system` is a mark of those before the answer that is looked for, empty where there are none or they say nothing.
    """

    key: str
    system: str = ""


class Chain(msgspec.Struct, frozen=True):
    """The hashes of a conversation: what each answer of it is found by, in order, and the state at its end.

    `system`: the mark of the system texts in it, empty without any.
    """

    answers: tuple[Sought, ...]
    end: HASH
    system: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange as a conversation sees it: what was asked and what was answered."""

    request: tuple[Message, ...]
    answer: Message


def scope(app: str, set_name: str | None) -> str:
    """Return the scope that chains stay within."""
    return f"{app}\0{set_name or ''}"


def continues(request: Request) -> bool:
    """Say whether the request carries something that only an earlier exchange can have given it."""
    refers = request.previous_response_id is not None or bool(request.references)
    return refers or any(message.role in ("assistant", "tool") for message in request.messages)


def chain(within: str, request: Request, ignore: Patterns = ()) -> Chain:
    """Return the hashes of a conversation, in one pass.

    System texts are no part of an answer's key, so that a conversation is found whose system text changed: agents write
    there what changes from turn to turn. Their mark beside the key tells conversations apart that differ in nothing
    else. `ignore` is blanked in system texts, so that a clock does not make another of them.
    """
    state, system, mark = _seed("chain", within), hashlib.sha256(), ""
    answers: list[Sought] = []
    # Many by one call: each call with more than 2 KB lets go of the interpreter, and may wait to get it back.
    said: list[bytes] = []
    for message in request.messages:
        if message.role not in SYSTEM_ROLES:
            said.append(_encoded(message))
        # A client may send our block back where it has no system text of its own.
        elif library.strip(message.text).strip():
            system.update(_encoded(message, ignore))
            mark = _hex(system)[:SYSTEM_DIGITS]
        if message.role == "assistant":
            state.update(b"".join(said))
            said.clear()
            answers.append(Sought(_link_key(state), mark))
    state.update(b"".join(said))
    return Chain(tuple(answers), state, mark)


def request_keys(within: str, request: Request, said: Chain) -> tuple[Sought, ...]:
    """Return the keys under which a parent may be found, the strongest evidence first. `said`: the request's chain.

    The previous response's id, ids that refer to answers (newest first), then what each answer in it is found by, the
    newest answer first: the ids of its tool calls, then the chain of messages up to it. A tool call that others
    followed says less than what was answered since.
    """
    keys = [Sought(_key(within, "id", request.previous_response_id))] if request.previous_response_id else []
    keys += [Sought(_key(within, "refers", reference)) for reference in reversed(request.references)]
    keys += islice(_answered(within, request, said), max(0, MOST_KEYS - len(keys)))
    return tuple(dict.fromkeys(keys[:MOST_KEYS]))


def answer_keys(within: str, said: Chain, response: Response) -> tuple[str, ...]:
    """Return the keys under which a later request finds this exchange: its ids, its tool calls, its chain.

    `said`: the chain of its request, whose mark of system texts counts for all of them.
    """
    keys = [_key(within, "id", response.id)] if response.id and response.resumable else []
    keys += [_key(within, "refers", reference) for reference in response.references]
    for choice in response.choices:
        keys += [_key(within, "tool", call.id) for call in choice.message.tool_calls if call.id]
        state = said.end.copy()
        state.update(_normal("assistant", choice.message, choice.message.text))
        keys.append(_link_key(state))
    return tuple(dict.fromkeys(keys))


def session_key(within: str, session: str) -> str:
    """Return the key under which a session's tasks are found."""
    return _key(within, "session", session)


def retry_key(within: str, body: bytes) -> str:
    """Return the key under which a request finds a failed one with the same body."""
    return _key(within, "failed", hashlib.blake2b(body, digest_size=16).hexdigest())


def group_key(
    *,
    app: str,
    set_name: str | None,
    model: str | None,
    request: Request,
    ignore: Patterns,
    system: bool = True,
) -> str:
    """Return the group of a trajectory that starts with `request`: the same task asked of the same model.

    All of the first request counts, example answers too, after `ignore` is blanked: prompts with the same examples and
    another question are other tasks. `system` False leaves the system text out.
    """
    state = _seed("group", f"{scope(app, set_name)}\0{model or ''}")
    for message in request.messages:
        if message.role not in SYSTEM_ROLES:
            state.update(_normal(message.role, message, _blanked(message.text, ignore)))
        elif system and library.strip(message.text):
            state.update(_encoded(message, ignore))
    return _hex(state)


def opening(turns: Sequence[Turn]) -> tuple[Message, ...]:
    """Return what was asked: the first request, without any block of ours."""
    return _said(turns[0].request) if turns else ()


def conversation(turns: Iterable[Turn]) -> tuple[Message, ...]:
    """Return one run of messages made of exchanges in order, without any block of ours.

    A turn that repeats the conversation so far adds what is new; one that does not (another prompt of the same
    trajectory, or an API that keeps the history itself) adds all it holds. A system text that changed in the meantime
    does not make it another conversation: the one it began with stays.
    """
    so_far: list[Message] = []
    for turn in turns:
        asked = _said(turn.request)
        so_far += [*asked[_shared(asked, so_far) :], *_said((turn.answer,))]
    return tuple(so_far)


def _answered(within: str, request: Request, said: Chain) -> Iterator[Sought]:
    answers = reversed(said.answers)
    for message in reversed(request.messages):
        if message.tool_call_id:
            yield Sought(_key(within, "tool", message.tool_call_id))
        if message.role == "assistant":
            yield next(answers)


def _said(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages without any block of ours, those that then say something."""
    own = (structs.replace(message, text=library.strip(message.text)) for message in messages)
    return tuple(message for message in own if message.text or message.tool_calls or message.tool_call_id)


def _shared(asked: Sequence[Message], so_far: Sequence[Message]) -> int:
    """How many messages in front of `asked` repeat the conversation so far; 0 when they are another one."""
    known = [message for message in so_far if message.role not in SYSTEM_ROLES]
    places = [place for place, message in enumerate(asked) if message.role not in SYSTEM_ROLES][: len(known)]
    repeats = bool(known) and _same([asked[place] for place in places], known)
    return places[-1] + 1 if repeats else 0


def _same(left: Sequence[Message], right: Sequence[Message]) -> bool:
    return len(left) == len(right) and all(_encoded(a) == _encoded(b) for a, b in zip(left, right, strict=True))


def _blank(text: str, ignore: Patterns) -> str:
    return _remembered(text, ignore) if len(text) in REMEMBERED else _blanked(text, ignore)


def _blanked(text: str, ignore: Patterns) -> str:
    if ignore == _USUAL and _SOONEST.search(text) is None:
        return text
    # Nothing that is searched sooner is found in what an earlier pattern put there.
    found = [pattern.search(text) is not None for pattern in _SOONER]
    for pattern in ignore:
        needed = _NEEDED.get(pattern.pattern)
        if needed is None or found[needed]:
            text = pattern.sub("\N{WHITE SQUARE}", text)
    return text


# System texts come again with each request, and a conversation's with each of its turns.
_remembered = lru_cache(maxsize=256)(_blanked)


def _seed(kind: str, text: str) -> HASH:
    # On large texts twice as fast as BLAKE2b, for the processor knows it.
    return hashlib.sha256(f"{kind}\0{text}\0".encode("utf-8", "surrogatepass"))


def _encoded(message: Message, ignore: Patterns = ()) -> bytes:
    """The normal form as bytes. White space at the ends of a text is not kept by every client, so it does not count.

    In a system text neither does a block of ours, nor what `ignore` matches.
    """
    role, text = message.role, message.text
    return _normal(role, message, _blank(library.strip(text), ignore) if role in SYSTEM_ROLES else text)


def _normal(role: str, message: Message, text: str) -> bytes:
    said = f"{role}\0{text.strip()}\0{message.tool_call_id or ''}"
    for call in message.tool_calls:
        said += f"\0{call.id}\0{call.name}\0{call.arguments}"
    # The last byte is none that UTF-8 has: where a message ends is not for its texts to say.
    return said.encode("utf-8", "surrogatepass") + b"\xff"


def _hex(state: HASH) -> str:
    return state.hexdigest()[:32]


def _key(within: str, kind: str, value: str) -> str:
    state = _seed(kind, within)
    state.update(value.encode("utf-8", "surrogatepass"))
    return _link_key(state)


def _link_key(state: HASH) -> str:
    return state.hexdigest()[KEY_DIGITS]
