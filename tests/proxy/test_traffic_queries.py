"""What the pages of traffic refuse: each field of their queries and forms with a wrong type, size or encoding."""

from __future__ import annotations

from contextlib import closing
from urllib.parse import urlencode

import pytest

from proxy.dashboard.traffic import ONE, ROOT
from tests.conftest import Answered, RunningProxy, StartProxy
from tests.proxy.browser import Browser, text
from tests.proxy.traffic_rows import asked, record, said
from tfgrpo.store import Store


@pytest.fixture
def proxy(start_proxy: StartProxy) -> RunningProxy:
    return start_proxy()


@pytest.fixture
def person(proxy: RunningProxy) -> Browser:
    return Browser(proxy)


BAD = {
    "view": ["rows", "x" * 401],
    "arm": ["best", "LIVE"],
    "judged": ["maybe"],
    "since": ["yesterday", "2026-13-01", "9" * 300, "١"],
    "until": ["tomorrow", "0000-00-00"],
    "app": ["x" * 401],
    "set": ["x" * 401],
    "model": ["x" * 401],
    "text": ["x" * 401],
    "keep": ["no"],
    "behind": [
        *("1", "{}", "[]", "[1]", '["a","b","c"]', '[1,"a"]', "[1,2,3]", '[true,"a","b"]', '[NaN,"a","b"]'),
        *('[1e999,"a","b"]', f'[{"9" * 400},"a","b"]', '[1,"\\ud800","b"]', '[1,"\\u0000","b"]', "[" * 700, "x" * 801),
    ],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in BAD.items() for value in values])
def test_a_field_of_a_query_that_does_not_fit_is_named(person: Browser, field: str, value: str) -> None:
    refused(person.get(f"{ROOT}?{urlencode({field: value})}"), field)


def refused(answer: Answered, field: str) -> None:
    assert answer.status == 400, answer.body
    assert f'role="alert">{field} ' in text(answer)


@pytest.mark.parametrize("raw", ["app=%ff", "text=%ED%A0%80", "set=%00", "a=&" * 3000])
def test_a_query_that_is_no_text_is_refused(person: Browser, raw: str) -> None:
    for path in (ROOT, ONE, f"{ROOT}/sent", f"{ROOT}/next", f"{ROOT}/body", f"{ROOT}/text"):
        assert person.get(f"{path}?{raw}").status == 400, path


def test_a_field_that_is_sent_twice_is_refused(person: Browser) -> None:
    refused(person.get(f"{ROOT}?app=a&app=b"), "app")


def test_an_end_before_the_beginning_is_refused(person: Browser) -> None:
    refused(person.get(f"{ROOT}?since=2026-02-02&until=2026-02-01"), "until")


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("trajectory?app=default&id=t&behind=[1]", "behind"),
        ("trajectory?app=default&id=t&list=arm%3Dbest", "arm"),
        ("trajectory?app=default&id=t&list=app%3D%25ff", "list"),
        ("body?id=ex-t-0&part=all", "part"),
        ("text?id=ex-t-0", "message"),
        ("text?id=ex-t-0&message=-1", "message"),
        ("text?id=ex-t-0&message=1e3", "message"),
        ("text?id=ex-t-0&answer=x", "answer"),
        ("next?app=default&id=t&list=view%3Drows", "view"),
    ],
)
def test_a_field_of_the_other_pages_that_does_not_fit_is_named(
    proxy: RunningProxy, person: Browser, path: str, field: str
) -> None:
    record(proxy, (asked("q"), said("a")))
    refused(person.get(f"{ROOT}/{path}"), field)


@pytest.mark.parametrize("value", ["", "2", "-1", "nan", "good", "1e0"])
def test_a_label_that_is_no_reward_of_the_page_is_refused(proxy: RunningProxy, person: Browser, value: str) -> None:
    record(proxy, (asked("q"), said("a")))
    refused(person.send(f"{ROOT}/label", app="default", id="t", value=value), "value")
    refused(person.send(f"{ROOT}/label", app="default", id="t", value="1", comment="x" * 1001), "comment")
    for choice in ("1", "-1", "x", "9" * 12):
        refused(person.send(f"{ROOT}/label", app="default", id="t", value="1", choice=choice), "choice")
    with closing(Store.open(proxy.settings.store.url)) as store:
        assert store.labels.of_trajectory("default", "t") == []
