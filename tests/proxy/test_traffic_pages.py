from __future__ import annotations

import asyncio
import html
import json
import re
from contextlib import closing
from urllib.parse import urlencode

import pytest
from starlette.requests import Request

from proxy.dashboard.traffic import ONE, ROOT, TrafficPages
from proxy.dashboard.trajectory import SENT_SHOWN
from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.proxy.browser import Browser, text
from tests.proxy.traffic_rows import HOSTILE, asked, record, said
from tests.upstreams import chat
from tfgrpo.store import Store
from tfgrpo.types import Label


@pytest.fixture
def proxy(start_proxy: StartProxy) -> RunningProxy:
    return start_proxy()


@pytest.fixture
def person(proxy: RunningProxy) -> Browser:
    return Browser(proxy)


def trajectory(person: Browser, name: str = "t", **more: str) -> str:
    return text(person.get(f"{ONE}?{urlencode({'app': 'default', 'id': name, **more})}"))


def labels(proxy: RunningProxy) -> list[Label]:
    with closing(Store.open(proxy.settings.store.url)) as store:
        return store.labels.of_trajectory("default", "t")


def test_trajectories_are_listed_the_newest_first_with_what_was_asked(proxy: RunningProxy, person: Browser) -> None:
    record(proxy, (asked("older question"), said("a")), trajectory="t1", started_at=10.0)
    record(proxy, (asked("newer question"), said("a")), trajectory="t2", started_at=20.0)
    shown = text(person.get(ROOT))
    assert shown.index("newer question") < shown.index("older question")
    assert "older question" not in text(person.get(f"{ROOT}?since=1970-01-01T00:00:15"))
    assert "newer question" not in text(person.get(f"{ROOT}?until=1970-01-01T00:00:15"))


@pytest.mark.parametrize("view", ["trajectories", "exchanges"])
def test_a_list_is_filtered_by_every_field(proxy: RunningProxy, person: Browser, view: str) -> None:
    record(
        proxy, (asked("the one"), said("forty-two")), trajectory="a", app="shop", set="math", model="big", arm="live"
    )
    record(proxy, (asked("another"), said("no")), trajectory="b")
    for field, value in {"app": "shop", "set": "math", "model": "big", "arm": "live", "text": "Forty-Two"}.items():
        shown = text(person.get(f"{ROOT}?view={view}&{field}={value}"))
        assert "the one" in shown, field
        assert "another" not in shown, field
    assert "Nothing that fits is recorded." in text(person.get(f"{ROOT}?view={view}&app=shop&model=m"))


def test_pages_follow_each_other_without_a_gap(proxy: RunningProxy, person: Browser) -> None:
    for number in range(53):
        record(proxy, (asked(f"question {number:02}."), said("a")), trajectory=f"t{number}", started_at=number // 3)
    first = person.get(ROOT).body.decode()
    older = html.unescape(first.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0])
    second = person.get(older).body.decode()
    found = [
        number
        for number in range(53)
        if (f"question {number:02}." in first) + (f"question {number:02}." in second) == 1
    ]
    assert found == list(range(53))
    assert 'rel="next"' not in second


def test_a_text_is_found_in_a_stream_that_tears_it_apart(proxy: RunningProxy, person: Browser) -> None:
    pieces = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in ("zeb", "ra")]
    stream = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in pieces) + b"data: [DONE]\n\n"
    record(proxy, (asked("which animal"), stream), response_type="text/event-stream")
    assert "which animal" in text(person.get(f"{ROOT}?text=ZEBRA"))
    assert "which animal" not in text(person.get(f"{ROOT}?text=lion"))


def test_a_text_is_found_as_json_spells_it(proxy: RunningProxy, person: Browser) -> None:
    record(proxy, (asked('say "größe"\nnow'), said("a")))
    for needle in ('"größe"', "SAY", "größe"):
        assert "größe" in text(person.get(f"{ROOT}?{urlencode({'text': needle})}"))


@pytest.mark.parametrize("view", ["trajectories", "exchanges"])
def test_a_page_whose_time_is_up_says_how_far_it_came_and_goes_on_by_itself(proxy: RunningProxy, view: str) -> None:
    for number, question in enumerate(("needle", "hay", "hay")):
        record(proxy, (asked(question), said("a")), trajectory=f"t{number}", started_at=number * 100.0)
    with closing(Store.open(proxy.settings.store.url)) as store:
        shown = [show(store, f"view={view}&text=needle")]
        while (
            more := re.search(r'href="/admin/traffic\?([^"]*keep=yes)"|hx-get="[^"?]*\?([^"]*)"', shown[-1])
        ) is not None:
            shown.append(show(store, html.unescape(more[1] or more[2])))
    assert "Nothing that fits yet: looked back to 1970-01-01 00:03:20 UTC, which is" in shown[0]
    assert "Nothing that fits yet: looked back to 1970-01-01 00:01:40 UTC, looking on…" in shown[1]
    assert 'hx-trigger="load"' in shown[1]
    assert ">needle</a>" in shown[2]
    assert 'hx-trigger="load"' not in shown[0] + shown[2]


def show(store: Store, query: str) -> str:
    """The list as it is when each page looks at one row."""
    scope = {"type": "http", "method": "GET", "path": ROOT, "headers": [], "query_string": query.encode()}
    request = Request(scope)
    request.state.token = "t"
    return " ".join(bytes(asyncio.run(TrafficPages(store, 0.0).all(request)).body).decode().split())


def test_a_trajectory_is_one_conversation_with_times_and_tokens(proxy: RunningProxy, person: Browser) -> None:
    record(
        proxy,
        (asked("first question"), said("first answer")),
        (asked("first question", "first answer", "second question"), said("second answer")),
        prompt_tokens=11,
        completion_tokens=7,
    )
    shown = trajectory(person)
    order = ["first question", "first answer", "second question", "second answer"]
    assert [shown.count(one) for one in order] == [1, 1, 1, 1]
    assert sorted(order, key=shown.index) == order
    assert "Sends the 2 messages before again, then:" in shown
    assert "first byte 250 ms, took 1.5 s" in shown
    assert "11 tokens in, 7 out" in shown


def test_a_tool_call_is_shown_with_its_arguments_and_result(proxy: RunningProxy, person: Browser) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"city":"Bern"}'}}
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}
    messages = [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
    ]
    result = json.dumps({"model": "m", "messages": messages}).encode()
    record(proxy, (asked("weather?"), json.dumps(answer).encode()), (result, said("It is sunny.")))
    shown = trajectory(person)
    assert "<code>look_up</code>" in shown
    assert "&#34;city&#34;: &#34;Bern&#34;" in shown
    assert "<code>call_1</code>" in shown
    assert shown.index("look_up") < shown.index(">sunny<") < shown.index("It is sunny.")


def test_what_was_injected_is_marked_and_the_bytes_are_those_that_went_upstream(
    start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(chat)
    proxy = start_proxy(upstream.base_url)
    proxy.deploy("math", "Show every step.")
    sent = proxy.chat("what is it?", {"x-tfgrpo-set": "math"}, messages=[
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "what is it?"},
    ])  # fmt: skip
    name, exchange = sent.headers["x-tfgrpo-trajectory"], sent.headers["x-tfgrpo-exchange"]
    person = Browser(proxy)
    while person.get(f"{ROOT}/sent?id={exchange}").status != 200:
        continue
    shown = trajectory(person, name)
    assert "Be brief. <mark><span" in shown
    assert shown.partition("injected by the proxy")[2].partition("</mark>")[0].count("Show every step.") == 1
    marked = text(person.get(f"{ROOT}/sent?id={exchange}")).partition("<mark>")[2].partition("</mark>")[0]
    assert marked.count("Show every step.") == 1
    assert "Be brief." not in marked
    whole = person.get(f"{ROOT}/body?id={exchange}&part=request")
    assert whole.body == upstream.seen[-1].body
    assert whole.headers["content-disposition"] == f'attachment; filename="{exchange}.request"'


@pytest.mark.parametrize(
    ("record_", "why"),
    [
        ("metadata", "only its metadata were recorded, no bodies (record: metadata)"),
        ("expired", "its bodies were deleted when they reached their age (retention)"),
    ],
)
def test_what_is_not_kept_is_said(proxy: RunningProxy, person: Browser, record_: str, why: str) -> None:
    (name,) = record(proxy, (asked("gone"), said("gone")), record=record_)
    assert f"Nothing to read: {why}." in trajectory(person)
    answer = person.get(f"{ROOT}/sent?id={name}")
    assert (answer.status, why in text(answer)) == (404, True)
    assert "(no text kept)" in text(person.get(ROOT))


def test_no_recorded_text_becomes_markup(proxy: RunningProxy, person: Browser) -> None:
    call = {"id": HOSTILE, "type": "function", "function": {"name": HOSTILE, "arguments": HOSTILE}}
    message = {"role": HOSTILE, "content": HOSTILE, "tool_calls": [call], "tool_call_id": HOSTILE}
    body = json.dumps({"model": HOSTILE, "messages": [message], HOSTILE: 1}).encode()
    (name,) = record(
        proxy, (body, said(HOSTILE)), model=HOSTILE, note=HOSTILE, path=HOSTILE, upstream=HOSTILE, app=HOSTILE,
        finish_reason=HOSTILE, set=HOSTILE, group=HOSTILE,
    )  # fmt: skip
    with closing(Store.open(proxy.settings.store.url)) as store:
        told = Label("f", HOSTILE, None, "t", 0, HOSTILE, 1.0, HOSTILE, "", 5.0, HOSTILE)
        store.labels.add([told])
    one = f"{ONE}?{urlencode({'app': HOSTILE, 'id': 't', 'list': urlencode({'text': HOSTILE})})}"
    paths = [ROOT, f"{ROOT}?view=exchanges", f"{ROOT}?{urlencode({'model': HOSTILE, 'app': HOSTILE})}", one]
    for path in (*paths, f"{ROOT}/sent?id={name}"):
        answer = person.get(path)
        assert answer.status == 200, path
        assert "alert(1)" in answer.body.decode(), path
        assert not any(bad in answer.body for bad in (b"<script>", b"<img src=x")), path
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    plain = person.get(f"{ROOT}/text?id={name}&message=0")
    assert plain.headers["content-type"] == "text/plain; charset=utf-8"
    assert plain.headers["x-content-type-options"] == "nosniff"


def test_a_message_of_five_megabytes_leaves_the_page_small_and_can_be_read_whole(
    proxy: RunningProxy, person: Browser
) -> None:
    huge = "<b>" * 1_700_000 + "the end"
    (name,) = record(proxy, (asked(huge), said("ok")))
    page = person.get(f"{ONE}?app=default&id=t")
    assert len(page.body) < 200_000
    assert f"… {len(huge) - 8_000:,} more characters" in text(page)
    assert person.get(f"{ROOT}/text?id={name}&message=0").body.decode() == huge
    shown = person.get(f"{ROOT}/sent?id={name}")
    assert len(shown.body) < 8 * SENT_SHOWN
    assert person.get(f"{ROOT}/body?id={name}&part=request").body == asked(huge)
    assert len(person.get(ROOT).body) < 10_000


def test_a_hundred_thousand_messages_leave_the_page_small(proxy: RunningProxy, person: Browser) -> None:
    record(proxy, (asked(*["x"] * 100_001), said("the answer")))
    page = person.get(f"{ONE}?app=default&id=t")
    assert len(page.body) < 400_000
    assert "the answer" in text(page)
    assert "more messages that this page has no room for" in text(page)


def test_a_long_trajectory_is_read_in_parts_that_join(proxy: RunningProxy, person: Browser) -> None:
    talk = [f"said {number}." for number in range(50)]
    record(proxy, *((asked(*talk[: 2 * at + 1]), said(talk[2 * at + 1])) for at in range(25)))
    first = person.get(f"{ONE}?app=default&id=t").body.decode()
    later = html.unescape(first.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0])
    second = text(person.get(later))
    assert "said 39." in first
    assert "said 40." not in first
    assert "Sends the 40 messages before again" in second
    assert "said 39." not in second
    assert "said 49." in second


def test_bytes_that_are_no_text_are_shown_as_far_as_they_are(proxy: RunningProxy, person: Browser) -> None:
    body = b'{"messages":[{"role":"user","content":"before \xff\xfe\\ud800 after"}]}'
    (name,) = record(proxy, (body, b"\x00\xff\x1b[31m"))
    for path in (ROOT, f"{ONE}?app=default&id=t", f"{ROOT}/sent?id={name}", f"{ROOT}/text?id={name}&message=0"):
        assert person.get(path).status in (200, 404), path
    shown = text(person.get(f"{ROOT}/sent?id={name}"))
    assert "before" in shown
    assert "U+0000" in shown
    assert "U+001B" in shown
    assert person.get(f"{ROOT}/body?id={name}&part=request").body == body


def test_characters_that_nobody_sees_are_spelled_out(proxy: RunningProxy, person: Browser) -> None:
    record(proxy, (asked("pay \u202e001 \u200bEUR" + "\u2060" * 50_000), said("ok")))
    page = person.get(f"{ONE}?app=default&id=t")
    assert "U+202E" in text(page)
    assert "more unseen" in text(page)
    assert len(page.body) < 20_000


def test_an_image_is_named_and_not_shown(proxy: RunningProxy, person: Browser) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 500_000}}
    content = [{"type": "text", "text": "what is this?"}, image]
    record(proxy, (json.dumps({"messages": [{"role": "user", "content": content}]}).encode(), said("a cat")))
    page = person.get(f"{ONE}?app=default&id=t")
    assert "what is this?[image_url " in text(page)
    assert "AAAA" not in text(page)


def test_a_body_in_an_encoding_that_we_cannot_undo_is_shown_as_it_came(proxy: RunningProxy, person: Browser) -> None:
    (name,) = record(proxy, (b"\x01packed", said("a")), request_encoding="br-of-the-future")
    assert "see it as sent" in trajectory(person)
    assert "its content-encoding is &#39;br-of-the-future&#39;" in text(person.get(f"{ROOT}/sent?id={name}"))


@pytest.mark.parametrize("value", ["1", "0", "0.7"])
def test_a_label_is_stored_as_the_administrators_and_counts(proxy: RunningProxy, person: Browser, value: str) -> None:
    record(proxy, (asked("q"), said("a")))
    stored = person.send(f"{ROOT}/label", app="default", id="t", value=value, comment="because", list="set=math")
    assert stored.status == 303
    assert stored.headers["location"] == f"{ONE}?app=default&id=t&list=set%3Dmath"
    (made,) = labels(proxy)
    assert (made.value, made.source, made.credential, made.comment) == (float(value), "dashboard", "admin", "because")
    assert f"reward {float(value):g}" in trajectory(person)
    assert "by dashboard, an administrator" in trajectory(person)


def test_each_of_several_answers_is_labelled_by_itself(proxy: RunningProxy, person: Browser) -> None:
    choices = [{"index": at, "message": {"role": "assistant", "content": f"answer {at}."}} for at in range(2)]
    record(proxy, (asked("q"), json.dumps({"choices": choices}).encode()), choices=2)
    assert '<option value="1">1</option>' in trajectory(person)
    for choice, value in (("0", "1"), ("1", "0.3")):
        assert person.send(f"{ROOT}/label", app="default", id="t", value=value, choice=choice).status == 303
    assert "reward of answer 0: 1 of answer 1: 0.3" in trajectory(person)
    assert person.send(f"{ROOT}/label", app="default", id="t", value="1", choice="2").status == 400


def test_the_newest_label_of_the_page_counts(proxy: RunningProxy, person: Browser) -> None:
    record(proxy, (asked("q"), said("a")))
    for value in ("1", "0"):
        person.send(f"{ROOT}/label", app="default", id="t", value=value)
    assert len(labels(proxy)) == 2
    assert '<span class="quiet">reward 0 </span>' in trajectory(person)


def test_a_label_needs_the_token_of_its_session(proxy: RunningProxy, person: Browser) -> None:
    record(proxy, (asked("q"), said("a")))
    person.get(ROOT)
    for token in ("", "0" * 64):
        fields = {"token": token, "app": "default", "id": "t", "value": "1"}
        assert person.post(f"{ROOT}/label", fields).status == 403
    assert labels(proxy) == []


def test_next_is_the_next_older_trajectory_of_the_list(proxy: RunningProxy, person: Browser) -> None:
    for number, arm in enumerate(("live", "control", "live")):
        record(proxy, (asked("q"), said("a")), trajectory=f"t{number}", started_at=float(number), arm=arm)
    on = {"app": "default", "id": "t2", "list": "arm=live"}
    there = person.get(f"{ROOT}/next?{urlencode(on)}").headers["location"]
    assert there == f"{ONE}?app=default&id=t0&list=arm%3Dlive"
    end = person.get(f"{ROOT}/next?{urlencode(on | {'id': 't0'})}").headers["location"]
    assert "Nothing older that fits." in text(person.get(end))


@pytest.mark.parametrize(
    "path",
    ["trajectory?app=no&id=t", "next?app=no&id=t", "sent?id=no", "body?id=no&part=answer", "text?id=no&message=0"],
)
def test_what_is_not_there_is_a_page_that_says_so(person: Browser, path: str) -> None:
    assert person.get(f"{ROOT}/{path}").status == 404


def test_traffic_is_shown_to_administrators_alone(start_proxy: StartProxy) -> None:
    proxy = start_proxy(server={"admin_key": "root"})
    (name,) = record(proxy, (asked("secret"), said("secret")))
    paths = (ROOT, f"{ONE}?app=default&id=t", f"{ROOT}/sent?id={name}", f"{ROOT}/body?id={name}&part=answer")
    for path in (*paths, f"{ROOT}/text?id={name}&message=0", f"{ROOT}/next?app=default&id=t"):
        answer = Browser(proxy).get(path)
        assert (answer.status, answer.headers["location"], answer.body) == (303, "/admin/login", b""), path
