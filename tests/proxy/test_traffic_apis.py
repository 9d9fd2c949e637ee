"""A trajectory on its page, for every API that is read: what was said, its block, the bytes that went upstream."""

from __future__ import annotations

import re

import pytest

from proxy.dashboard.traffic import ONE, ROOT
from tests.conftest import StartProxy, StartUpstream
from tests.proxy import apis
from tests.proxy.apis import Api
from tests.proxy.browser import Browser, text

LESSON = "Show every step."


@pytest.mark.parametrize("api", apis.CONVERSATIONS, ids=lambda api: api.name)
def test_two_turns_are_one_conversation_whose_block_is_marked(
    api: Api, start_proxy: StartProxy, start_upstream: StartUpstream
) -> None:
    upstream = start_upstream(apis.speaks)
    proxy = start_proxy(upstream.base_url)
    proxy.deploy("math", LESSON)
    headers = {"content-type": "application/json", "x-tfgrpo-set": "math", "x-api-key": "k"}
    first = proxy.request("POST", api.path, api.first, headers)
    second = proxy.request("POST", api.path, api.then(api.first, first.json), headers)
    name, exchange = (second.headers[f"x-tfgrpo-{one}"] for one in ("trajectory", "exchange"))
    assert first.headers["x-tfgrpo-trajectory"] == name
    person = Browser(proxy)
    while person.get(f"{ROOT}/sent?id={exchange}").status != 200:
        continue
    shown = text(person.get(f"{ONE}?app=default&id={name}"))
    conversation = shown.partition("<h2>Conversation</h2>")[2]
    assert re.sub("<.*?>", "", conversation).count("2+2?") == 1
    assert conversation.count("and 3+3?") == 1
    marked = re.findall(r"<mark><span class=\"mark-note\">injected by the proxy</span>(.*?)</mark>", conversation)
    assert marked
    assert all(one.count(LESSON) == 1 for one in marked)
    assert conversation.count(LESSON) == len(marked)
    assert person.get(f"{ROOT}/body?id={exchange}&part=request").body == upstream.seen[-1].body
    assert person.get(f"{ROOT}/body?id={exchange}&part=answer").body == second.body


def test_a_plain_prompt_shows_its_block_in_front(start_proxy: StartProxy, start_upstream: StartUpstream) -> None:
    api, upstream = apis.COMPLETIONS, start_upstream(apis.speaks)
    proxy = start_proxy(upstream.base_url)
    proxy.deploy("math", LESSON)
    sent = proxy.request("POST", api.path, api.first, {"content-type": "application/json", "x-tfgrpo-set": "math"})
    person, exchange = Browser(proxy), sent.headers["x-tfgrpo-exchange"]
    while person.get(f"{ROOT}/sent?id={exchange}").status != 200:
        continue
    shown = text(person.get(f"{ONE}?app=default&id={sent.headers['x-tfgrpo-trajectory']}"))
    assert shown.index("injected by the proxy") < shown.index(LESSON) < shown.index("2+2=")
    assert person.get(f"{ROOT}/body?id={exchange}&part=request").body == upstream.seen[-1].body
