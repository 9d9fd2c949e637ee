from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlencode

import pytest

from proxy.dashboard.sessions import SECONDS, WRONG_KEYS, Sessions, WrongKeys
from tests.conftest import Answered, RunningProxy, StartProxy

FORM = "application/x-www-form-urlencoded"
SET = "/admin/sets/math"


@dataclass
class Browser:
    """A person at the dashboard: keeps the cookie, sends the forms that a page holds."""

    proxy: RunningProxy
    cookie: str = ""

    def get(self, path: str) -> Answered:
        return self._keep(self.proxy.request("GET", path, headers=self._headers()))

    def post(self, path: str, fields: dict[str, str] | list[tuple[str, str]] | bytes) -> Answered:
        body = fields if isinstance(fields, bytes) else urlencode(fields).encode()
        return self._keep(self.proxy.request("POST", path, body, self._headers() | {"content-type": FORM}))

    def token(self) -> str:
        found = re.search(r'name="token" value="([0-9a-f]+)"', self.get("/admin/sets").body.decode())
        assert found
        return found[1]

    def send(self, path: str, **fields: str) -> Answered:
        return self.post(path, {"token": self.token(), **fields})

    def _headers(self) -> dict[str, str]:
        return {"host": f"127.0.0.1:{self.proxy.port}"} | ({"cookie": self.cookie} if self.cookie else {})

    def _keep(self, answer: Answered) -> Answered:
        given = answer.headers.get("set-cookie")
        self.cookie = given.partition(";")[0] if given else self.cookie
        return answer


@pytest.fixture
def proxy(start_proxy: StartProxy) -> RunningProxy:
    made = start_proxy(server={"admin_key": "root"})
    key = {"authorization": "Bearer root"}
    for texts in (["Show each step."], ["Show every step.", "Check a <b & c> d."]):
        body = {"experiences": [{"text": text, "id": f"e{place}"} for place, text in enumerate(texts, 1)]}
        assert made.request("POST", "/admin/api/sets/math/versions", body, key).status == 201
    return made


@pytest.fixture
def person(proxy: RunningProxy) -> Browser:
    made = Browser(proxy)
    assert made.post("/admin/login", {"key": "root"}).status == 303
    return made


def _text(answer: Answered) -> str:
    return " ".join(answer.body.decode().split())


def test_who_is_not_logged_in_is_asked_for_the_key(proxy: RunningProxy) -> None:
    answer = Browser(proxy).get(SET)
    assert (answer.status, answer.headers["location"]) == (303, "/admin/login")


def test_a_session_is_a_cookie_that_no_script_and_no_other_site_can_use(proxy: RunningProxy) -> None:
    cookie = Browser(proxy).post("/admin/login", {"key": "root"}).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert f"Max-Age={SECONDS}" in cookie
    assert "root" not in cookie


def test_wrong_keys_are_refused_and_soon_no_more_of_them_are_answered(proxy: RunningProxy) -> None:
    person = Browser(proxy)
    assert [person.post("/admin/login", {"key": "guess"}).status for _ in range(WRONG_KEYS)] == [401] * WRONG_KEYS
    late = person.post("/admin/login", {"key": "root"})
    assert (late.status, "retry-after" in late.headers) == (429, True)


@pytest.mark.parametrize("path", ["/admin/sets", SET, f"{SET}/versions/2", f"{SET}/diff?after=2", f"{SET}/edit"])
def test_a_page_carries_a_policy_that_lets_nothing_foreign_and_nothing_inline_in(person: Browser, path: str) -> None:
    answer = person.get(path)
    assert answer.status == 200
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'")
    assert not re.search(r"<script>|<style|\sstyle=|\son\w+=|https?://", answer.body.decode())
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_what_a_model_wrote_is_shown_as_text(person: Browser) -> None:
    assert "Check a &lt;b &amp; c&gt; d." in _text(person.get(f"{SET}/versions/2"))


def test_two_versions_are_compared_entry_by_entry(person: Browser) -> None:
    shown = _text(person.get(f"{SET}/diff?before=1&after=2"))
    assert "1 added, 1 changed, 0 removed" in shown
    assert "<del>Show each step.</del> <ins>Show every step.</ins>" in shown


def test_a_deployment_says_what_changes_and_happens_when_it_is_confirmed(person: Browser) -> None:
    wish = {"live": "2", "candidate": "1", "candidate_share": "10", "control_share": "5", "reason": "try"}
    asked = person.send(f"{SET}/deploy", **wish)
    assert (asked.status, "Show every step." in _text(asked), "10 % candidate" in _text(asked)) == (200, True, True)
    assert "never deployed" in _text(person.get("/admin/sets"))
    assert person.send(f"{SET}/deploy", **wish, if_revision="0", confirmed="yes").status == 303
    shown = _text(person.get(SET))
    assert "Revision 1" in shown
    assert "by dashboard: try" in shown


def test_a_confirmation_of_what_is_no_longer_so_is_a_conflict(person: Browser) -> None:
    for _ in range(2):
        answer = person.send(f"{SET}/deploy", live="1", if_revision="0", confirmed="yes")
    assert answer.status == 409


def test_a_rollback_says_what_it_restores_and_restores_it_when_confirmed(person: Browser) -> None:
    for revision, live in enumerate("12"):
        person.send(f"{SET}/deploy", live=live, if_revision=str(revision), confirmed="yes")
    asked = _text(person.send(f"{SET}/rollback"))
    assert "back to revision 1" in asked
    assert "<ins>Show each step.</ins>" in asked
    assert person.send(f"{SET}/rollback", if_revision="1", confirmed="yes").status == 409
    assert person.send(f"{SET}/rollback", if_revision="2", confirmed="yes").status == 303
    assert "rollback to 1" in _text(person.get(SET))


def test_an_edit_by_hand_is_a_new_version_that_keeps_ids_once_confirmed(person: Browser) -> None:
    fields = [("token", person.token()), ("parent", "2"), ("id", "e1"), ("text", ""), ("id", "e2"), ("text", "Units.")]
    fields += [("id", ""), ("text", "Name the theorem."), ("note", "mine")]
    asked = _text(person.post(f"{SET}/edit", fields))
    assert asked.count('class="sign"') == 3
    assert person.get(f"{SET}/versions/3").status == 404
    stored = person.post(f"{SET}/edit", [*fields, ("confirmed", "yes")])
    assert (stored.status, stored.headers["location"]) == (303, f"{SET}/versions/3")
    assert "<code>e2</code> Units." in _text(person.get(f"{SET}/versions/3"))


@pytest.mark.parametrize("token", ["", "0" * 64, "ü"])
def test_a_form_without_the_token_of_its_session_does_nothing(person: Browser, token: str) -> None:
    answer = person.post(f"{SET}/deploy", {"token": token, "live": "1", "confirmed": "yes"})
    assert (answer.status, "token" in _text(answer)) == (403, True)
    assert "never deployed" in _text(person.get("/admin/sets"))


@pytest.mark.parametrize(
    ("path", "fields", "named"),
    [
        ("deploy", {"live": "one"}, "live"),
        ("deploy", {"live": "9" * 40}, "live"),
        ("deploy", {"live": "٣"}, "live"),
        ("deploy", {"live": "1", "candidate_share": "nan"}, "candidate_share"),
        ("deploy", {"live": "1", "control_share": "101"}, "control_share"),
        ("deploy", {"live": "1", "candidate": "2", "candidate_share": "60", "control_share": "60"}, "control_share"),
        ("deploy", {"live": "1", "reason": "x" * 1001}, "reason"),
        ("deploy", {"live": "1", "reason": "\0"}, "reason"),
        ("rollback", {"if_revision": "-1"}, "if_revision"),
        ("edit", {"parent": "a"}, "parent"),
        ("edit", {"text": "no id"}, "id"),
        ("edit", {"id": "x y", "text": "a"}, "experiences[0].id"),
        ("edit", {"id": "", "text": "x" * 2001}, "experiences[0].text"),
        ("edit", {"id": "", "text": "a\nb"}, "experiences[0].text"),
    ],
)
def test_a_field_that_does_not_fit_is_named(person: Browser, path: str, fields: dict[str, str], named: str) -> None:
    answer = person.send(f"{SET}/{path}", **fields)
    assert answer.status == 400
    assert f'role="alert">{named} ' in _text(answer)


@pytest.mark.parametrize("body", [b"key=%ff", b"key=\xff", b"a&" * 3000])
def test_a_form_that_is_no_text_is_refused(person: Browser, body: bytes) -> None:
    assert person.post(f"{SET}/deploy", body).status == 400


def test_a_form_of_more_than_a_megabyte_is_refused(person: Browser) -> None:
    assert person.post(f"{SET}/deploy", b"a" * (1 << 20) + b"b").status == 413


@pytest.mark.parametrize("path", ["/admin/sets/law", f"{SET}/versions/9", f"{SET}/diff?before=9", "/admin/nothing"])
def test_what_is_not_there_is_a_page_that_says_so(person: Browser, path: str) -> None:
    assert person.get(path).status == 404


def test_without_a_key_this_machine_needs_no_login_and_its_forms_still_need_a_token(start_proxy: StartProxy) -> None:
    proxy = start_proxy()
    person = Browser(proxy)
    assert person.get("/admin/sets").status == 200
    assert person.post(f"{SET}/deploy", {"live": "1"}).status == 403
    foreign = proxy.request("GET", "/admin/sets", headers={"host": "example.org"})
    assert foreign.status == 401


def test_a_session_ends_with_its_time() -> None:
    now = 1000.0
    sessions = Sessions(b"s" * 32, clock=lambda: now)
    cookie = sessions.begin()
    assert sessions.holds(cookie)
    now += SECONDS + 1
    assert not sessions.holds(cookie)


@pytest.mark.parametrize("cookie", ["", ".", "a.b.c", "99999999999.aa.", "ü.ü.ü"])
def test_a_cookie_that_is_not_ours_holds_nothing(cookie: str) -> None:
    assert not Sessions(b"s" * 32).holds(cookie)


def test_an_address_may_try_again_after_a_minute() -> None:
    now = 0.0
    wrong = WrongKeys(clock=lambda: now)
    for _ in range(WRONG_KEYS):
        wrong.count("10.0.0.1")
    assert (wrong.wait("10.0.0.1"), wrong.wait("10.0.0.2")) == (60.0, 0.0)
    now = 61.0
    assert wrong.wait("10.0.0.1") == 0.0
