from __future__ import annotations

import hashlib
from typing import Any

import pytest

from proxy.auth import Identity, Keys
from proxy.errors import ProxyError
from proxy.settings import Settings

SECRET = bytes(32)
APPS = [
    {"name": "shop", "keys": ["sk-shop-0000000000000000000001"], "feedback_key": "fb-shop"},
    {"name": "desk", "keys": ["sk-shop-0000000000000000000002", "sk-desk"]},
]


def keys(**sections: Any) -> Keys:
    return Keys(Settings.model_validate(sections), SECRET)


def bearer(key: str) -> list[tuple[bytes, bytes]]:
    return [(b"authorization", f"Bearer {key}".encode())]


def scope(host: str = "127.0.0.1:8000", peer: str = "127.0.0.1", **headers: str) -> dict[str, Any]:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"client": (peer, 5), "headers": [(b"host", host.encode()), *named]}


def test_without_apps_everyone_is_the_default_app_with_a_hashed_credential() -> None:
    identity = keys().identify(dict(bearer("sk-CANARY")))
    assert identity.app == "default"
    assert identity.credential
    assert "CANARY" not in repr(identity)


@pytest.mark.parametrize("header", [b"authorization", b"x-api-key", b"api-key"])
def test_a_key_is_found_wherever_a_client_shows_it(header: bytes) -> None:
    assert keys(apps=APPS).identify({header: b"sk-desk"}).app == "desk"


def test_two_keys_with_a_long_common_prefix_are_two() -> None:
    apps = [keys(apps=APPS).identify(dict(bearer(f"sk-shop-000000000000000000000{k}"))).app for k in (1, 2)]
    assert apps == ["shop", "desk"]


@pytest.mark.parametrize("key", ["", "sk-other", "sk-des", "sk-desk2", "' OR 1=1 --", "\x00", "x" * 10_000, "übung"])
def test_an_unknown_key_is_a_401(key: str) -> None:
    with pytest.raises(ProxyError) as caught:
        keys(apps=APPS).identify(dict(bearer(key)))
    assert caught.value.status == 401


def test_an_unknown_key_may_pass_through_where_that_is_configured() -> None:
    identity = keys(apps=APPS, server={"pass_through": True}).identify(dict(bearer("sk-other")))
    assert (identity.app, identity.known) == ("default", False)


@pytest.mark.parametrize(
    "wanted",
    [
        scope(),
        scope("localhost"),
        scope("[::1]:8000", "::1"),
        scope(origin="http://127.0.0.1:8000"),
    ],
)
def test_without_an_admin_key_a_local_person_is_the_administrator(wanted: dict[str, Any]) -> None:
    assert keys().is_admin(wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        scope(peer="10.0.0.9"),
        scope("proxy.example"),
        scope("127.0.0.1.evil.example"),
        scope(x_forwarded_for="127.0.0.1"),
        scope(forwarded="for=127.0.0.1"),
        scope(origin="http://evil.example"),
        scope(origin="null"),
        scope("[broken"),
        {"client": None, "headers": []},
    ],
)
def test_without_an_admin_key_nobody_else_is(wanted: dict[str, Any]) -> None:
    assert not keys().is_admin(wanted)


@pytest.mark.parametrize("key", ["old", "new"])
def test_two_admin_keys_may_be_valid_at_once(key: str) -> None:
    assert keys(server={"admin_key": ["old", "new"]}).is_admin(scope("x", "10.0.0.9", authorization=f"Bearer {key}"))


@pytest.mark.parametrize("key", ["", "ol", "older", "é"])
def test_with_an_admin_key_only_that_key_will_do(key: str) -> None:
    assert not keys(server={"admin_key": "old"}).is_admin(scope(authorization=f"Bearer {key}"))


@pytest.mark.parametrize(
    ("key", "may"),
    [
        ("sk-shop-0000000000000000000001", True),
        ("fb-shop", True),
        ("root", True),
        ("sk-desk", False),
        ("", False),
        ("x", False),
    ],
)
def test_an_apps_keys_its_feedback_key_and_the_admin_key_may_label(key: str, may: bool) -> None:
    all_keys = keys(apps=APPS, server={"admin_key": "root"})
    assert all_keys.may_label(bearer(key), app="shop", credential="any") is may


def test_in_the_default_app_the_credential_that_made_an_exchange_may_label_it() -> None:
    all_keys = keys()
    made = all_keys.identify(dict(bearer("sk-1"))).credential
    may = [all_keys.may_label(bearer(key), app="default", credential=made) for key in ("sk-1", "sk-2")]
    assert may == [True, False]


def test_a_feedback_key_labels_for_its_app_and_opens_nothing_else() -> None:
    all_keys = keys(apps=APPS)
    assert all_keys.labels_for(bearer("fb-shop")) == Identity("shop", all_keys.hashed(b"fb-shop"))
    with pytest.raises(ProxyError):
        all_keys.identify(dict(bearer("fb-shop")))


def test_both_keys_of_an_app_are_valid_at_once() -> None:
    all_keys = keys(apps=APPS)
    assert [all_keys.identify(dict(bearer(key))).app for key in ("sk-shop-0000000000000000000002", "sk-desk")] == [
        "desk"
    ] * 2


def test_no_key_is_kept_as_it_is() -> None:
    held = repr(vars(keys(apps=APPS, server={"admin_key": "root"})))
    assert not [key for key in ("sk-shop", "sk-desk", "fb-shop", "root") if key in held]


def test_a_key_may_stand_in_the_configuration_as_its_hash() -> None:
    hashed = f"sha256:{hashlib.sha256(b'sk-secret').hexdigest()}"
    all_keys = keys(apps=[{"name": "shop", "keys": [hashed, "sk-other"]}])
    for _ in range(2):
        assert all_keys.identify(dict(bearer("sk-secret"))).app == "shop"
    assert all_keys.may_label(bearer("sk-secret"), app="shop", credential="any")
    for key in (hashed, hashed.removeprefix("sha256:"), "", "sk-secre"):
        with pytest.raises(ProxyError):
            all_keys.identify(dict(bearer(key)))


def test_a_hashed_key_may_label_before_it_was_used() -> None:
    hashed = f"sha256:{hashlib.sha256(b'sk-secret').hexdigest()}"
    all_keys = keys(apps=[{"name": "shop", "keys": [hashed]}, {"name": "desk", "keys": ["k"]}])
    may = [all_keys.may_label(bearer("sk-secret"), app=app, credential="any") for app in ("shop", "desk")]
    assert may == [True, False]
