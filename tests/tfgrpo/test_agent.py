from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tfgrpo.agent import Agent
from tfgrpo.errors import UsageError
from tfgrpo.types import Task


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    return tmp_path


def test_an_agent_is_found_beside_the_data(here: Path) -> None:
    (here / "beside_the_data.py").write_text("def ask(task, base_url, headers):\n    return 'hi'\n")
    assert Agent.load("python:beside_the_data:ask").function(None, "", {}) == "hi"


@pytest.mark.parametrize("name", ["chatty", "python:", "python:module", "python::ask"])
def test_a_name_of_no_runner_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="chat or python:module:function"):
        Agent.load(name)


def test_a_module_that_is_not_there_is_named_with_the_places_that_were_looked_in(here: Path) -> None:
    with pytest.raises(UsageError) as refused:
        Agent.load("python:nowhere_at_all:ask")
    assert f"No module named 'nowhere_at_all'; looked in {here}" in str(refused.value)
    assert sys.prefix in str(refused.value)


def test_a_function_that_is_not_there_is_named(here: Path) -> None:
    (here / "without_it.py").write_text("")
    with pytest.raises(UsageError, match="no attribute 'ask'"):
        Agent.load("python:without_it:ask")


def test_a_module_that_raises_is_an_error_of_one_line(here: Path) -> None:
    (here / "raises_at_once.py").write_text("raise RuntimeError('no key\\nset')\n")
    with pytest.raises(UsageError, match="RuntimeError: no key set"):
        Agent.load("python:raises_at_once:ask")


@pytest.mark.parametrize("text", ["ask = 3", "def ask(task): ...", "def ask(task, base_url, headers, more): ..."])
def test_what_cannot_be_called_with_the_three_is_refused(here: Path, text: str) -> None:
    name = f"unfit_{abs(hash(text))}"
    (here / f"{name}.py").write_text(f"{text}\n")
    with pytest.raises(UsageError, match=r"a function of \(task, base_url, headers\)"):
        Agent.load(f"python:{name}:ask")


async def test_an_answer_that_a_plain_function_hands_on_is_awaited() -> None:
    async def later() -> str:
        return "hi"

    agent = Agent("python:mine:ask", lambda _task, _base_url, _headers: later())
    assert await agent.answer(Task("k", ()), "", {}, seconds=5) == "hi"
