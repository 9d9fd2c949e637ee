from __future__ import annotations

import calendar
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfgrpo import library, trajectories
from tfgrpo.trajectories import Turn
from tfgrpo.types import Choice, Message, Request, Response, ToolCall

SCOPE = trajectories.scope("default", "math")
IGNORE = tuple(re.compile(pattern) for pattern in trajectories.IGNORED_BY_DEFAULT)


def sought(within: str, request: Request, ignore: trajectories.Patterns = ()) -> tuple[trajectories.Sought, ...]:
    return trajectories.request_keys(within, request, trajectories.chain(within, request, ignore))


def request_keys(within: str, request: Request, ignore: trajectories.Patterns = ()) -> tuple[str, ...]:
    return tuple(one.key for one in sought(within, request, ignore))


def answer_keys(
    within: str, request: Request, response: Response, ignore: trajectories.Patterns = ()
) -> tuple[str, ...]:
    return trajectories.answer_keys(within, trajectories.chain(within, request, ignore), response)


def user(text: str) -> Message:
    return Message("user", text)


def said(text: str) -> Message:
    return Message("assistant", text)


def ask(*messages: Message, model: str = "m") -> Request:
    return Request(model, messages)


def answered(message: Message) -> Response:
    return Response("c1", (Choice(0, message),))


def group(*messages: Message, model: str | None = "m", system: bool = True, set_name: str = "math") -> str:
    return trajectories.group_key(
        app="default", set_name=set_name, model=model, request=ask(*messages), ignore=IGNORE, system=system
    )


def test_the_next_turn_finds_the_exchange_it_continues() -> None:
    left = answer_keys(SCOPE, ask(user("a")), answered(said("b")))
    found = request_keys(SCOPE, ask(user("a"), said("b"), user("c")))
    assert set(found) & set(left)


def test_a_turn_with_another_answer_does_not_find_it() -> None:
    left = answer_keys(SCOPE, ask(user("a")), answered(said("b")))
    found = request_keys(SCOPE, ask(user("a"), said("other"), user("c")))
    assert not set(found) & set(left)


def test_chains_stay_within_their_app_and_set() -> None:
    left = answer_keys(SCOPE, ask(user("a")), answered(said("b")))
    other = trajectories.scope("other", "math")
    assert not set(request_keys(other, ask(user("a"), said("b")))) & set(left)


def test_a_tool_result_finds_the_exchange_that_asked_for_it_even_when_the_history_was_rewritten() -> None:
    call = Message("assistant", tool_calls=(ToolCall("call_1", "f", "{}"),))
    left = answer_keys(SCOPE, ask(user("a")), answered(call))
    rewritten = ask(user("shorter"), Message("tool", "42", tool_call_id="call_1"))
    assert request_keys(SCOPE, rewritten)[0] in left


def test_an_answer_has_one_key_whatever_the_system_text_before_it() -> None:
    briefed = answer_keys(SCOPE, ask(Message("system", "Be brief."), user("hi")), answered(said("hello")))
    assert briefed == answer_keys(SCOPE, ask(user("hi")), answered(said("hello")))
    assert len(briefed) == 1


def test_a_previous_response_id_is_the_first_key() -> None:
    response = Response("resp_1", (Choice(0, said("b")),), resumable=True)
    left = answer_keys(SCOPE, ask(user("a")), response)
    request = Request("m", (user("c"),), previous_response_id="resp_1")
    assert request_keys(SCOPE, request)[0] in left


def test_white_space_around_an_echoed_answer_does_not_break_the_chain() -> None:
    left = answer_keys(SCOPE, ask(user("a")), answered(said(" b\n")))
    assert set(request_keys(SCOPE, ask(user("a"), said("b")))) & set(left)


def test_a_first_request_continues_nothing() -> None:
    assert not trajectories.continues(ask(user("a")))
    assert request_keys(SCOPE, ask(user("a"))) == ()


def test_two_requests_that_differ_in_a_date_and_a_uuid_are_one_task() -> None:
    one = user("Today is 2026-12-02 10:11. Ticket 6f1e2d3c-1111-2222-3333-444455556666: refund?")
    two = user("Today is 2027-01-09 08:00. Ticket 00000000-1111-2222-3333-444455556666: refund?")
    assert group(one) == group(two)


def test_order_12_and_order_13_are_different_tasks() -> None:
    assert group(user("Where is order 12?")) != group(user("Where is order 13?"))


def test_groups_differ_by_model_and_by_set() -> None:
    assert len({group(user("a")), group(user("a"), model="n"), group(user("a"), set_name="other")}) == 3


def test_the_same_examples_before_another_question_are_another_task() -> None:
    examples = (user("2 + 2"), said("4"))
    assert group(*examples, user("3 + 3")) != group(*examples, user("5 + 5"))


def test_a_clock_in_the_system_text_does_not_break_the_chain() -> None:
    before, after = (Message("system", f"It is 2026-12-02 10:1{minute}.") for minute in (1, 2))
    left = answer_keys(SCOPE, ask(before, user("a")), answered(said("b")), IGNORE)
    assert set(request_keys(SCOPE, ask(after, user("a"), said("b")), IGNORE)) & set(left)


def test_a_system_text_that_changed_does_not_break_the_chain() -> None:
    left = answer_keys(SCOPE, ask(Message("system", "s1"), user("a")), answered(said("b")))
    assert request_keys(SCOPE, ask(Message("system", "s2"), user("a"), said("b")))[-1] in left


def test_the_mark_of_an_exchange_is_the_one_its_next_turn_looks_for() -> None:
    one, two = (ask(Message("system", text), user("a")) for text in ("s1", "s2"))
    other, own = (trajectories.chain(SCOPE, first).system for first in (one, two))
    found = sought(SCOPE, ask(*two.messages, said("b"), user("c")))[0]
    assert (found.system == own, found.system == other) == (True, False)


def test_what_was_answered_last_is_found_before_an_older_tool_call() -> None:
    call = Message("assistant", tool_calls=(ToolCall("call_1", "f", "{}"),))
    so_far = (user("a"), call, Message("tool", "42", tool_call_id="call_1"))
    left = answer_keys(SCOPE, ask(*so_far), answered(said("b")))
    assert request_keys(SCOPE, ask(*so_far, said("b"), user("c")))[0] in left


def test_a_system_text_that_changed_does_not_repeat_the_conversation() -> None:
    one, two, notice = (Message("system", text) for text in ("s1", "s2", "You may read only."))
    turns = [
        trajectories.Turn((one, user("a")), said("b")),
        trajectories.Turn((two, user("a"), said("b"), notice, user("c")), said("d")),
    ]
    assert trajectories.conversation(turns) == (one, user("a"), said("b"), notice, user("c"), said("d"))


def test_the_system_text_can_be_left_out_of_the_group() -> None:
    assert group(Message("system", "s1"), user("a")) != group(user("a"))
    assert group(Message("system", "s1"), user("a"), system=False) == group(user("a"), system=False)


def test_an_echoed_block_changes_neither_group_nor_chain() -> None:
    block = library.render(library.from_texts(["x"]), name="math", version=1)
    plain, echoed = Message("system", "s"), Message("system", f"s\n\n{block}")
    assert group(plain, user("a")) == group(echoed, user("a"))
    left = answer_keys(SCOPE, ask(plain, user("a")), answered(said("b")))
    assert set(request_keys(SCOPE, ask(echoed, user("a"), said("b")))) & set(left)


def test_a_conversation_takes_each_message_once() -> None:
    turns = [
        Turn((user("a"),), said("b")),
        Turn((user("a"), said("b"), user("c")), said("d")),
    ]
    assert [message.text for message in trajectories.conversation(turns)] == ["a", "b", "c", "d"]


def test_a_conversation_whose_history_the_provider_keeps_is_joined() -> None:
    turns = [Turn((user("a"),), said("b")), Turn((user("c"),), said("d"))]
    assert [message.text for message in trajectories.conversation(turns)] == ["a", "b", "c", "d"]


_messages = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["system", "user", "assistant", "tool"]),
        text=st.text(st.characters(exclude_categories=()), max_size=8),
    ),
    max_size=6,
)


@given(_messages, st.text(max_size=8), _messages)
def test_any_conversation_is_found_again_by_its_next_turn(
    before: list[Message], text: str, after: list[Message]
) -> None:
    left = answer_keys(SCOPE, ask(*before), answered(said(text)))
    request = ask(*before, said(text), *[message for message in after if message.role != "assistant"])
    assert set(request_keys(SCOPE, request)) & set(left)


@pytest.mark.parametrize(
    "text",
    [
        "6f1e2d3c-1111-2222-3333-444455556666",
        "2026-12-02",
        "2026-12-02T10:11:12.5Z",
        "2026-12-02 10:11 +0100",
        "Monday, December 2nd, 2026",
        "Mon, 02 Dec 2026",
        "2 Dec. 2026",
        "May 5, 2020",
        "1/2/2026",
        "31.12.2026",
        "12:30",
        "10:11:12 p.m.",
        "1796202596",
        "1796202596123.25",
    ],
)
def test_what_changes_from_day_to_day_does_not_make_another_task(text: str) -> None:
    assert group(user(f"Answer ({text}) please")) == group(user("Answer (\N{WHITE SQUARE}) please"))


@pytest.mark.parametrize("month", calendar.month_name[1:])
def test_a_date_in_any_month_is_the_same_task(month: str) -> None:
    assert group(user(f"Answer ({month} 5, 2026) please")) == group(user("Answer (\N{WHITE SQUARE}) please"))


@pytest.mark.parametrize("text", ["12", "3.14", "v1.2.2026", "order 17962025961", "x2026-12-02y", "1:2", "May 5"])
def test_other_numbers_make_another_task(text: str) -> None:
    assert group(user(text)) != group(user(text.replace("2", "7").replace("1", "8").replace("5", "9")))


DATES = ["2026-01-05", "T12:30", "12:30 PM", "5/1/2026", "31.12.2026", "Mon, ", "January ", "Jan 5, 2026", "3rd March"]
STAMPS = [" 2026", "1767600000", "1767600000.25", "8f14e45f-ceea-467f-a9c1-2b0c3d4e5f60"]
OTHERS = ["order 12", "é", "\n", "\N{ARABIC-INDIC DIGIT THREE}", "-"]


@given(st.lists(st.sampled_from([*DATES, *STAMPS, *OTHERS]), max_size=8))
def test_what_is_ignored_is_found_however_it_is_searched(pieces: list[str]) -> None:
    text = "".join(pieces)
    # In another spelling a pattern is not known, and searched without looking for a sign of it before.
    unknown = tuple(re.compile(f"{pattern}|(?!)") for pattern in trajectories.IGNORED_BY_DEFAULT)

    def key(ignore: trajectories.Patterns) -> str:
        request = ask(Message("system", text), user(text))
        return trajectories.group_key(app="a", set_name=None, model="m", request=request, ignore=ignore)

    assert key(IGNORE) == key(unknown)
