from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.auth import Identity
from proxy.errors import ProxyError
from proxy.paths import Address, locate
from proxy.routing import Route, Router
from proxy.settings import Settings

UPSTREAMS = [
    {"name": "local", "base_url": "http://127.0.0.1:1/v1", "models": ["qwen*"]},
    {"name": "openai", "base_url": "http://127.0.0.1:2/v1", "api_key": "sk-paid", "models": ["gpt-*", "o1"]},
]
APPS: list[dict[str, Any]] = [
    {"name": "shop", "keys": ["k1"], "sets": ["math", "code"], "upstream": "openai", "upstream_key": "sk-shop"},
    {"name": "desk", "keys": ["k2"]},
]
ANYONE = Identity("default", "c")


def route(
    headers: dict[bytes, bytes] | None = None,
    *,
    path: str = "/v1/chat/completions",
    model: str | None = "gpt-4o",
    who: Identity = ANYONE,
    home: str | None = None,
    **sections: Any,
) -> Route:
    router = Router(Settings.model_validate({"upstreams": UPSTREAMS, **sections}))
    address = router.locate(path)
    assert address is not None
    return router.route(who, address, headers or {}, model, home=home)


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/v1/chat/completions", Address("/chat/completions")),
        ("/v1", Address("")),
        ("/v1/models/org%2Fname", Address("/models/org%2Fname")),
        ("/v1/models/", Address("/models/")),
        ("/set/math/v1/x", Address("/x", "math")),
        ("/session/a%2Fb/v1/x", Address("/x", session="a/b")),
        ("/set/math/session/s1/openai/v1/x", Address("/x", "math", "s1", "openai")),
        ("/openai/v1/x", Address("/x", upstream="openai")),
    ],
)
def test_a_path_says_set_session_and_upstream(path: str, address: Address) -> None:
    assert locate(path, {"openai"}) == address


@pytest.mark.parametrize("path", ["/", "/chat/completions", "/other/v1/x", "/v2/x", "/v1x", "/set/math", "/openai"])
def test_a_path_outside_the_bases_addresses_nothing(path: str) -> None:
    assert locate(path, {"openai"}) is None


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../admin",
        "/v1/..%2fadmin",
        "/v1/%252e%252e/x",
        "/v1/.",
        "/v1//x",
        "/v1/a%2F%2Fb",
        "/v1/a%5C..%5Cb",
        "/v1/%" + "25" * 9 + "2e",
        "/set/UPPER/v1/x",
        "/session/a%20b/v1/x",
    ],
)
def test_a_path_that_climbs_or_misnames_is_a_400(path: str) -> None:
    with pytest.raises(ProxyError) as caught:
        locate(path, ())
    assert caught.value.status == 400


@given(st.text(alphabet="/.%25ef\\av1", max_size=40))
def test_what_is_relayed_never_leaves_its_prefix(rest: str) -> None:
    try:
        address = locate(f"/v1/{rest}", ())
    except ProxyError:
        return
    assert address is not None
    assert ".." not in address.below.replace("\\", "/").split("/")


@pytest.mark.parametrize(("model", "name"), [("qwen3", "local"), ("gpt-4o", "openai"), ("o1", "openai")])
def test_the_first_pattern_that_fits_chooses_the_upstream(model: str, name: str) -> None:
    assert route(model=model).upstream.name == name


def test_a_model_that_nobody_serves_is_a_404() -> None:
    with pytest.raises(ProxyError) as caught:
        route(model="o1-mini")
    assert (caught.value.status, caught.value.code) == (404, "model_not_found")


def test_without_a_model_it_is_the_first_upstream() -> None:
    assert route(model=None).upstream.name == "local"


def test_without_a_model_an_app_has_its_own_upstream() -> None:
    assert route(model=None, who=Identity("shop", "c"), apps=APPS).upstream.name == "openai"


def test_an_upstream_can_be_named_by_the_path() -> None:
    assert route(path="/openai/v1/x", model="qwen3").upstream.name == "openai"


@pytest.mark.parametrize(
    ("model", "path", "app", "name"),
    [
        (None, "/v1/x", "shop", "local"),
        ("gpt-4o", "/v1/x", "desk", "openai"),
        (None, "/openai/v1/x", "desk", "openai"),
    ],
)
def test_what_a_request_names_decides_after_path_and_model_and_before_its_app(
    model: str | None, path: str, app: str, name: str
) -> None:
    assert route(model=model, path=path, who=Identity(app, "c"), apps=APPS, home="local").upstream.name == name


def test_an_upstream_that_is_not_configured_any_more_is_nobodys_home() -> None:
    assert route(model=None, home="gone").upstream.name == "local"


def test_an_alias_of_the_upstream_that_made_it_says_which_model_is_sent() -> None:
    params = {"model": "openai/gpt-4o", "api_base": "http://127.0.0.1:9/v1"}
    entries = [{"model_name": name, "litellm_params": params} for name in ("*", "fast")]
    found = route(model="fast", home="model_list:fast", upstreams=[], model_list=entries)
    assert (found.upstream.name, found.model) == ("model_list:fast", "gpt-4o")


@pytest.mark.parametrize(
    ("model", "path", "open_"), [("both", "/v1/x", True), ("o1", "/v1/x", False), (None, "/openai/v1/x", False)]
)
def test_path_and_model_may_leave_a_choice_between_upstreams(model: str | None, path: str, open_: bool) -> None:
    upstreams = [{**one, "models": [*one["models"], "both"]} for one in UPSTREAMS]
    router = Router(Settings.model_validate({"upstreams": upstreams}))
    address = router.locate(path)
    assert address is not None
    assert router.leaves_open(address, model) is open_


@pytest.mark.parametrize(
    ("name", "model", "asked", "sent"),
    [
        ("fast", "openai/gpt-4o", "fast", "gpt-4o"),
        ("fast", "fast", "fast", None),
        ("team-*", "openai/gpt-*", "team-5", "gpt-5"),
        ("*", "openai/*", "any", None),
    ],
)
def test_an_alias_says_which_model_is_sent(name: str, model: str, asked: str, sent: str | None) -> None:
    params = {"model": model, "api_base": "http://127.0.0.1:9/v1"}
    found = route(model=asked, upstreams=[], model_list=[{"model_name": name, "litellm_params": params}])
    assert (found.model, found.upstream.base_url) == (sent, "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("headers", "path", "expected"),
    [
        ({b"x-tfgrpo-set": b"code"}, "/set/math/v1/x", ("code", None)),
        ({b"x-tfgrpo-set": b"code@3"}, "/v1/x", ("code", 3)),
        ({b"x-tfgrpo-set": b"none"}, "/v1/x", ("routed", "none")),
        ({}, "/set/math/v1/x", ("math", None)),
        ({}, "/v1/x", ("routed", None)),
    ],
)
def test_the_set_is_the_headers_then_the_paths_then_the_routes(
    headers: dict[bytes, bytes], path: str, expected: tuple[str, Any]
) -> None:
    found = route(headers, path=path, routes=[{"set": "other", "models": ["qwen*"]}, {"set": "routed"}])
    assert (found.set_name, found.pin) == expected


@pytest.mark.parametrize("value", [b"", b"Math", b"math@", b"math@-1", b"math@x", b"a/b", b"math@1@2", "mäth".encode()])
def test_an_unreadable_set_header_is_a_400(value: bytes) -> None:
    with pytest.raises(ProxyError) as caught:
        route({b"x-tfgrpo-set": value})
    assert caught.value.status == 400


def test_an_apps_first_set_is_what_its_requests_get() -> None:
    assert route(who=Identity("shop", "c"), apps=APPS, routes=[{"set": "routed"}]).set_name == "math"


@pytest.mark.parametrize("app", ["shop", "desk"])
@pytest.mark.parametrize("headers", [{b"x-tfgrpo-set": b"secret"}, {}])
def test_a_set_that_an_app_does_not_list_is_a_404(app: str, headers: dict[bytes, bytes]) -> None:
    with pytest.raises(ProxyError) as caught:
        route(headers, path="/set/secret/v1/x", who=Identity(app, "c"), apps=APPS)
    assert caught.value.status == 404


def test_an_app_pays_with_its_own_key_before_the_upstreams() -> None:
    keys = [route(who=Identity(name, "c"), apps=APPS).credential for name in ("shop", "desk")]
    assert keys == ["sk-shop", "sk-paid"]


def test_a_key_of_ours_never_goes_to_an_upstream() -> None:
    found = route(model="qwen3", who=Identity("desk", "c"), apps=APPS)
    assert (found.credential, found.own) == (None, False)


def test_a_stranger_that_passes_through_cannot_spend_the_upstreams_key() -> None:
    found = route(who=Identity("default", "c", known=False), apps=APPS)
    assert (found.credential, found.own) == (None, True)


@pytest.mark.parametrize(
    ("headers", "session"),
    [
        ({b"x-session-id": b"s1", b"helicone-session-id": b"s2"}, "s1"),
        ({b"helicone-session-id": b"s2"}, "s2"),
        ({b"x-session-id": b"not fit", b"x-litellm-trace-id": b"s3"}, "s3"),
        ({b"x-session-id": b"x" * 201}, None),
    ],
)
def test_a_session_id_is_taken_from_the_headers_that_others_use(headers: dict[bytes, bytes], session: str) -> None:
    assert route(headers).session == session


@pytest.mark.parametrize(("value", "retry"), [(b"0", False), (b"2", True)])
def test_an_sdk_says_that_it_repeats(value: bytes, retry: bool) -> None:
    assert route({b"x-stainless-retry-count": value}).retry is retry


def test_no_key_shows_in_a_route() -> None:
    assert "sk-" not in repr(route(who=Identity("shop", "c"), apps=APPS))


def test_the_models_that_the_configuration_names_are_known_with_their_owners() -> None:
    params = {"model": "anthropic/claude", "api_key": "sk-a"}
    entries = [{"model_name": name, "litellm_params": params} for name in ("fast", "team-*", "fast")]
    router = Router(Settings.model_validate({"upstreams": UPSTREAMS, "model_list": entries}))
    assert list(router.models.items()) == [("fast", "anthropic"), ("o1", "openai")]
