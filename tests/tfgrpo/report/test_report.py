from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.tfgrpo.report.example import GATE, RESULT, edit, run, step
from tfgrpo import report
from tfgrpo.errors import UsageError

FORMATS = sorted(report.WRITERS)
NASTY = "<script>alert('x')</script> <img src=x onerror=y> [a](javascript:b) | {{ 7*7 }} ${x}\n# h"


class Page(HTMLParser):
    """The elements and attributes of a page, and its text; an element that is closed wrongly is an error."""

    VOID = frozenset({"meta"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def everywhere(text: str) -> dict[str, Any]:
    """A result with a text of someone else's in each place that has one."""
    entry = {"id": text, "text": text}
    nasty = edit("add", text, text, why=text, reason=text)
    return {
        **RESULT,
        "status": text,
        "policy_model": text,
        "splits": {text: 1},
        "applied": [nasty],
        "refused": [nasty],
        "taken_back": [nasty],
        "faults": [text],
        "steps": [step(1, 0.1, contrasts=[{"task": text, "rewards": [1]}]), step(2, 0.2)],
        "library_before": [{"id": "e1", "text": text}, {"id": "e2", "text": text}],
        "library_after": [{"id": "e1", "text": "x"}, entry],
        "gate": {**GATE, "verdict": text},
        "usage": {text: {"calls": 1}},
    }


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "shown",
    [
        "s@4",
        "Status: helps",
        "0.700",
        "+0.100 to +0.300",
        "below 0.080",
        "2 rollouts gave no answer",
        "48 held",
        "What is 1+1?",
        "0.25, –",
        "Say x.",
        "It was right more often.",
        "no entry has the id e9",
        "tasks earned 0.2 less",
        "group g1: the answer holds no JSON",
        "Gone.",
        "New.",
        "0.2500",
        "unknown",
        "1 min 15 s",
        "seed 7",
    ],
)
def test_a_report_says_what_the_run_came_to(form: str, shown: str) -> None:
    assert shown in re.sub(r"\\(.)", r"\1", report.WRITERS[form](run()))


def test_nothing_in_what_others_wrote_acts_in_the_page() -> None:
    page = Page(report.html(run(everywhere(NASTY))))
    assert not page.tags & {"script", "img", "a", "iframe", "link", "object"}
    assert not [name for name in page.attributes if name.startswith("on")]
    assert "alert('x')" in "".join(page.text)


def test_nothing_in_what_others_wrote_acts_in_the_markdown() -> None:
    written = report.markdown(run(everywhere(NASTY)))
    assert not re.search(r"(?<!\\)<|(?<!\\)\[|(?<!\\)\$\{", written)
    assert "\n# h" not in written


def test_the_page_loads_and_runs_nothing() -> None:
    page = report.html(run())
    parsed = Page(page)
    assert not re.search(r"https?:|//[a-z]|url\(|@import|expression\(", page)
    assert not parsed.attributes & {"src", "href", "style", "srcset"}
    assert "script" not in parsed.tags


def test_the_pages_policy_allows_its_own_style_and_nothing_else() -> None:
    page = report.html(run())
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'" in page


@pytest.mark.parametrize("form", FORMATS)
def test_what_a_run_knows_of_its_machine_is_not_told(form: str) -> None:
    written = report.WRITERS[form](run())
    assert not [secret for secret in ("machine-x", "4711", "sk-secret") if secret in written]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("result", "status", "said"),
    [
        ({}, "running", "not at its end"),
        ({}, "finished", "did not change"),
        ({"error": "the key was refused"}, "failed", "failed: the key was refused"),
        ({"error": "interrupted"}, "stopped", "stopped: interrupted"),
    ],
)
def test_a_run_without_a_whole_result_has_a_report(form: str, result: Any, status: str, said: str) -> None:
    written = report.WRITERS[form](run(result, status=status, ended_at=None))
    assert said in written
    assert "No held-out comparison" in written


@pytest.mark.parametrize("form", FORMATS)
def test_a_run_of_the_first_release_has_a_report(form: str) -> None:
    known = ("run", "set", "version", "status", "groups", "contrasting", "applied", "usage")
    early = {name: RESULT[name] for name in known}
    written = report.WRITERS[form](run({**early, "experiences": [{"id": "e1", "text": "Say x.", "support": 2}]}))
    assert "16 of 36 groups contrasted" in written
    assert "Say x." in written


def test_a_result_of_another_form_is_said_in_one_line() -> None:
    with pytest.raises(UsageError, match=r"run r1 has another form: .*steps"):
        report.html(run({"steps": 3}))


@pytest.mark.parametrize(
    ("gate", "why"),
    [
        ({"verdict": "helps"}, "whole interval lies above zero: helps"),
        ({"verdict": "hurts", "interval": [-0.3, -0.1]}, "whole interval lies below zero: hurts"),
        ({"verdict": "no effect shown", "interval": [-0.1, 0.3]}, "does not leave zero out: no effect shown"),
        ({"verdict": "no effect shown"}, "smaller than wanted or a guard is unclear: no effect shown"),
        ({"verdict": "hurts", "guards": [{"guard": "g.jsonl", "verdict": "harmed"}]}, "A guard got worse: hurts"),
        ({"level": 0.05}, "an interval (at 95 percent) from"),
        ({"guards": [{"guard": "g.jsonl", "verdict": "unharmed", "n": 30}]}, "Guard g.jsonl: unharmed. The"),
    ],
)
@pytest.mark.parametrize("form", FORMATS)
def test_the_decision_is_explained(form: str, gate: dict[str, Any], why: str) -> None:
    assert why in report.WRITERS[form](run({**RESULT, "gate": {**GATE, **gate}}))
