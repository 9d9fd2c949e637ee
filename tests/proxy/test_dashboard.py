from __future__ import annotations

import re

import pytest

from proxy.attempts import MOST_WRONG
from proxy.dashboard.sessions import SECONDS, Sessions
from tests.conftest import RunningProxy, StartProxy
from tests.proxy.browser import Browser, text
from tfgrpo.store import Finding, Store

SET = "/admin/sets/math"


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
    assert [person.post("/admin/login", {"key": "guess"}).status for _ in range(MOST_WRONG)] == [401] * MOST_WRONG
    late = person.post("/admin/login", {"key": "root"})
    assert (late.status, "retry-after" in late.headers) == (429, True)


@pytest.mark.parametrize("path", ["/admin/sets", SET, f"{SET}/versions/2", f"{SET}/diff?after=2", f"{SET}/edit"])
def test_a_page_carries_a_policy_that_lets_nothing_foreign_and_nothing_inline_in(person: Browser, path: str) -> None:
    answer = person.get(path)
    assert answer.status == 200
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'")
    assert not re.search(r"<script>|<style|\sstyle=|\son\w+=|https?://", answer.body.decode())
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_what_a_model_wrote_is_shown_astext(person: Browser) -> None:
    assert "Check a &lt;b &amp; c&gt; d." in text(person.get(f"{SET}/versions/2"))


def test_two_versions_are_compared_entry_by_entry(person: Browser) -> None:
    shown = text(person.get(f"{SET}/diff?before=1&after=2"))
    assert "1 added, 1 changed, 0 removed" in shown
    assert "<del>Show each step.</del> <ins>Show every step.</ins>" in shown


def test_a_deployment_says_what_changes_and_happens_when_it_is_confirmed(person: Browser) -> None:
    wish = {"live": "2", "candidate": "1", "candidate_share": "10", "control_share": "5", "reason": "try"}
    asked = person.send(f"{SET}/deploy", **wish)
    assert (asked.status, "Show every step." in text(asked), "10 % candidate" in text(asked)) == (200, True, True)
    assert "never deployed" in text(person.get("/admin/sets"))
    assert person.send(f"{SET}/deploy", **wish, if_revision="0", confirmed="yes").status == 303
    shown = text(person.get(SET))
    assert "Revision 1" in shown
    assert "by dashboard: try" in shown


def test_a_confirmation_of_what_is_no_longer_so_is_a_conflict(person: Browser) -> None:
    for _ in range(2):
        answer = person.send(f"{SET}/deploy", live="1", if_revision="0", confirmed="yes")
    assert answer.status == 409


def test_a_rollback_says_what_it_restores_and_restores_it_when_confirmed(person: Browser) -> None:
    for revision, live in enumerate("12"):
        person.send(f"{SET}/deploy", live=live, if_revision=str(revision), confirmed="yes")
    asked = text(person.send(f"{SET}/rollback"))
    assert "back to revision 1" in asked
    assert "<ins>Show each step.</ins>" in asked
    assert person.send(f"{SET}/rollback", if_revision="1", confirmed="yes").status == 409
    assert person.send(f"{SET}/rollback", if_revision="2", confirmed="yes").status == 303
    assert "rollback to 1" in text(person.get(SET))


def test_an_edit_by_hand_is_a_new_version_that_keeps_ids_once_confirmed(person: Browser) -> None:
    fields = [("token", person.token()), ("parent", "2"), ("id", "e1"), ("text", ""), ("id", "e2"), ("text", "Units.")]
    fields += [("id", ""), ("text", "Name the theorem."), ("note", "mine")]
    asked = text(person.post(f"{SET}/edit", fields))
    assert asked.count('class="sign"') == 3
    assert person.get(f"{SET}/versions/3").status == 404
    stored = person.post(f"{SET}/edit", [*fields, ("confirmed", "yes")])
    assert (stored.status, stored.headers["location"]) == (303, f"{SET}/versions/3")
    assert "<code>e2</code> Units." in text(person.get(f"{SET}/versions/3"))


def test_an_entry_says_what_it_is_worth_where_that_was_measured(proxy: RunningProxy, person: Browser) -> None:
    one = {"id": "e1", "text": "Show every step.", "effect": 0.12, "interval": [0.02, 0.22], "verdict": "helps"}
    found = Finding("k", "ablation", "math", 2, "tasks", "m", None, {"entries": [one], "n": 40, "k": 8})
    store = Store.open(proxy.settings.store.url)
    store.evidence.keep(found)
    store.close()
    assert '<span class="tag helps">helps</span> +0.120, between +0.020 and +0.220' in text(
        person.get(f"{SET}/versions/2")
    )
    assert "between" not in text(person.get(f"{SET}/versions/1"))


def test_a_candidate_is_stopped_or_made_live_and_the_control_share_stays(person: Browser) -> None:
    wish = {"live": "1", "candidate": "2", "candidate_share": "10", "control_share": "5"}
    person.send(f"{SET}/deploy", **wish, if_revision="0", confirmed="yes")
    shown = person.get(SET).body.decode()
    form = shown[shown.index('id="candidate-now"') :].partition("</form>")[0]
    assert 'name="control_share" value="5"' in form
    assert re.findall(r'name="live" value="(\d*)">([^<]*)', form) == [("2", "Make it live…"), ("1", "Stop it…")]


def test_a_version_is_rejected_and_approved_with_a_word_of_what_that_means(person: Browser) -> None:
    path = f"{SET}/versions/2"
    assert person.send(f"{path}/review", verdict="reject").status == 400
    assert person.send(f"{path}/review", verdict="shrug").status == 400
    asked = person.send(f"{path}/review", verdict="reject", reason="<b>vague</b>")
    assert "It can then not be deployed by anyone" in text(asked)
    assert "&lt;b&gt;vague" in text(asked)
    assert person.send(f"{path}/review", verdict="reject", reason="vague", confirmed="yes").status == 303
    assert '<span class="tag rejected">rejected</span>' in text(person.get(path))
    assert person.send(f"{SET}/deploy", live="2", if_revision="0", confirmed="yes").status == 409
    assert person.send(f"{path}/review", verdict="approve", confirmed="yes").status == 303
    assert person.send(f"{SET}/deploy", live="2", if_revision="0", confirmed="yes").status == 303


def test_a_rollback_names_what_was_deployed_when_it_was_decided(person: Browser) -> None:
    for revision, live in enumerate("12"):
        person.send(f"{SET}/deploy", live=live, if_revision=str(revision), confirmed="yes")
    assert person.send(f"{SET}/rollback", confirmed="yes").status == 400


@pytest.mark.parametrize("token", ["", "0" * 64, "ü"])
def test_a_form_without_the_token_of_its_session_does_nothing(person: Browser, token: str) -> None:
    answer = person.post(f"{SET}/deploy", {"token": token, "live": "1", "confirmed": "yes"})
    assert (answer.status, "token" in text(answer)) == (403, True)
    assert "never deployed" in text(person.get("/admin/sets"))


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
    assert f'role="alert">{named} ' in text(answer)


@pytest.mark.parametrize("name", ["Law", "a%20b", "%00", "x" * 65])
def test_a_name_that_no_request_can_ask_for_gets_no_version(person: Browser, name: str) -> None:
    assert person.get(f"/admin/sets/{name}/edit").status == 400
    answer = person.send(f"/admin/sets/{name}/edit", id="", text="Show each step.", confirmed="yes")
    assert (answer.status, "is no name of a set" in text(answer)) == (400, True)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"live=1&reason=%ff", "reason is not UTF-8 text"),
        (b"live=1&reason=\xff", "reason is not UTF-8 text"),
        (b"\xff" + b"&a" * 3000, "the form has more than 2000 fields"),
    ],
)
def test_a_form_that_is_no_text_is_refused_by_its_field(person: Browser, body: bytes, said: str) -> None:
    answer = person.post(f"{SET}/deploy", body)
    assert (answer.status, said in text(answer)) == (400, True)


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
