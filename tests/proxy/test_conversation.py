from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.dashboard import conversation, pages
from proxy.dashboard.conversation import Segment
from proxy.dashboard.fitting import ROOM, Room
from tests.tfgrpo.store.examples import assignment, exchange
from tfgrpo import library
from tfgrpo.library import from_texts
from tfgrpo.types import Bodies

BLOCK = library.render(from_texts(["Show every step."]), name="math", version=1)
OLDER = library.render(from_texts(["Guess."]), name="math", version=7)

_KEYS = (
    "messages",
    "input",
    "prompt",
    "role",
    "content",
    "text",
    "type",
    "tool_calls",
    "function",
    "arguments",
    "choices",
)
_LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(("user", BLOCK))
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=25,
)
_BODIES = st.binary(max_size=60) | _JSON.map(lambda value: json.dumps(value).encode())


def chat(*messages: tuple[str, Any]) -> bytes:
    return json.dumps({"messages": [{"role": role, "content": content} for role, content in messages]}).encode()


@settings(max_examples=60, deadline=None)
@given(
    request=_BODIES,
    answer=_BODIES,
    dialect=st.sampled_from(("chat", "responses", "messages", "completions", "gone", None)),
    media_type=st.sampled_from(("application/json", "text/event-stream", "")),
    encoding=st.sampled_from(("", "gzip", "zstd", "none such")),
)
def test_a_page_is_made_of_any_bytes(
    request: bytes, answer: bytes, dialect: str | None, media_type: str, encoding: str
) -> None:
    one = exchange(1, dialect=dialect, version=1)
    kept = Bodies(request, answer, encoding, encoding, media_type)
    found = conversation.turns([one, one], {one.id: kept}, lambda _: BLOCK, known=conversation.said_by(one, kept))
    values: dict[str, Any] = {
        "rewards": [],
        "labels": [],
        "more_labels": 0,
        "choices": 1,
        "stored": None,
        "scale": [],
        "list": "",
        "back": "",
    }
    page = pages.page(
        "trajectory.html", token="t", given=assignment(1), turns=Room().turns(found), later=None, beginning=None,
        following="", **values,
    )  # fmt: skip
    assert page.status_code == 200
    assert conversation.sent(one, kept, BLOCK).body is not None


def test_what_a_block_took_the_place_of_is_counted_and_the_new_one_marked() -> None:
    body = chat(("system", f"Be brief.\n\n{OLDER}"), ("user", "q"))
    went = conversation.sent(exchange(1, version=1), Bodies(body), BLOCK)
    assert went.taken_out == 1
    assert [piece for piece, ours in went.segments if ours] == [json.dumps(f"\n\n{BLOCK}")[1:-1].encode()]
    assert OLDER.splitlines()[0].encode() not in went.body
    (turn,) = conversation.turns([exchange(1, version=1)], {"ex-1": Bodies(body)}, lambda _: BLOCK)
    assert turn.asked[0].segments == (Segment("Be brief.\n\n"), Segment(BLOCK, ours=True))


def test_what_only_looks_like_the_block_is_the_clients_text() -> None:
    body = chat(("user", f"what is {OLDER}?"))
    not_injected = exchange(1, version=1, note="not injected: the body is odd")
    (turn,) = conversation.turns([not_injected], {"ex-1": Bodies(body)}, lambda _: BLOCK)
    assert all(not segment.ours for said in turn.asked for segment in said.segments)
    assert conversation.sent(not_injected, Bodies(body), BLOCK).body == body


def test_a_conversation_that_starts_anew_is_shown_whole() -> None:
    first, other = chat(("user", "one"), ("assistant", "a"), ("user", "two")), chat(("user", "elsewhere"))
    bodies = {"ex-1": Bodies(first), "ex-2": Bodies(other)}
    found = conversation.turns([exchange(1, set=None), exchange(2, set=None)], bodies, lambda _: "")
    assert [(turn.repeats, len(turn.asked)) for turn in found] == [(0, 3), (0, 1)]


def test_a_page_has_room_for_so_much_and_counts_the_rest() -> None:
    texts = ["x" * 7_000] * 40
    body = chat(*(("user", one) for one in texts))
    (shown,) = Room().turns(conversation.turns([exchange(1, set=None)], {"ex-1": Bodies(body)}, lambda _: ""))
    said = sum(len(segment.text) for one in shown.messages for segment in one.segments)
    assert ROOM / 2 < said <= ROOM
    left = sum(one.rest for one in shown.messages) + 7_000 * shown.left_out
    assert said + left == 7_000 * len(texts)
