"""The Python API against the simulated provider on a real socket, and its documentation, whose blocks are run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from socket import create_server
from typing import Any

import pytest
import uvicorn

import tfgrpo
from tfgrpo import (
    Evaluation,
    Library,
    Model,
    Task,
    TfgrpoError,
    Trained,
    evaluate,
    load_library,
    load_tasks,
    split,
    train,
)
from tfgrpo.simulation.server import create
from tfgrpo.simulation.world import World
from tfgrpo.types import Experience

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/python.md").read_text()
ROWS = World.draw(0).tasks(12, split="train")


class Running(uvicorn.Server):
    """The provider in a thread: the calls under test block the loop that this test may run in."""

    def __init__(self) -> None:
        super().__init__(uvicorn.Config(create(0), log_level="warning", access_log=False))
        self.listening = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets=sockets)
        self.listening.set()


@pytest.fixture
def url() -> Iterator[str]:
    with create_server(("127.0.0.1", 0)) as listener:
        server = Running()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        assert server.listening.wait(10)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


def models(url: str) -> dict[str, Model]:
    return {role: Model(model=f"sim-{role}", base_url=url) for role in ("policy", "optimizer")}


def grader(answer: str, reference: str) -> bool:
    return answer.strip().endswith(f"Answer: {reference}")


def learned(url: str, tasks: Any = ROWS, **settings: Any) -> Trained:
    return train(tasks, **{"grader": grader, "epochs": 1, "progress": False, **models(url), **settings})


def test_the_documentation_runs_as_it_stands(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL):
        exec(block.replace("http://127.0.0.1:9000/v1", url), names)  # noqa: S102 - our own documentation
    assert len(names["trained"].library) > 0
    assert names["found"].verdict in ("helps", "hurts", "no effect shown")
    assert [guard.name for guard in names["proved"].gate.guards] == ["greetings"]


@pytest.mark.parametrize("name", tfgrpo.__all__)
def test_each_name_is_there_and_documented(name: str) -> None:
    assert getattr(tfgrpo, name) is not None
    assert name in dir(tfgrpo)
    assert re.search(rf"`{name}\b", DOCUMENT)


def test_importing_the_package_loads_nothing_that_takes_long() -> None:
    shown = "import sys, tfgrpo; print([n for n in ('pydantic', 'sqlalchemy', 'msgspec', 'rich') if n in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", shown], cwd=ROOT, capture_output=True, check=True)  # noqa: S603 - ours
    assert ran.stdout == b"[]\n"


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(tfgrpo.__file__).parent / "py.typed").exists()


async def test_a_notebook_whose_loop_runs_trains_too(url: str) -> None:
    assert "groups contrasted" in str(learned(url))


def test_training_goes_on_from_a_library_and_pays_for_nothing_twice(url: str, tmp_path: Path) -> None:
    start = Library((Experience("e4", "Be kind to strangers."),), 5)
    first = learned(url, library=start, cache=tmp_path / "memo")
    again = learned(url, library=start, cache=tmp_path / "memo")
    assert (again.library, again.usage.calls) == (first.library, 0)
    assert first.library.next_id >= 5


def test_two_libraries_are_compared(url: str) -> None:
    found = evaluate(
        ROWS,
        grader="exact",
        policy=models(url)["policy"],
        library=Library((Experience("e1", "Hm."),), 2),
        k=2,
        progress=False,
        gate={"confidence": 0.9},
    )
    assert isinstance(found, Evaluation)
    assert (found.tasks, found.samples, found.level) == (12, 2, 0.1)


def test_what_was_learned_is_proved_on_tasks_held_out_of_it(url: str) -> None:
    parts = split(World.draw(0).tasks(30, split="train"), held_out=0.4)
    trained = learned(url, tasks=parts.train, held_out=parts.held_out, gate={"samples": 2})
    assert trained.gate is not None
    assert (trained.gate.tasks, trained.gate.samples) == (len(parts.held_out), 2)
    assert f"gate: {trained.verdict} on {len(parts.held_out)} held-out tasks x 2" in str(trained)


def test_without_tasks_held_out_nothing_is_said_of_the_worth(url: str) -> None:
    trained = learned(url)
    assert (trained.gate, trained.verdict) == (None, None)


def test_harm_to_a_guard_leaves_nothing_shown_to_help(url: str) -> None:
    rows = World.draw(0).tasks(8, split="test")
    wrong = [{"question": row["question"], "answer": "nobody's answer"} for row in rows]
    found = evaluate(
        rows,
        grader=grader,
        policy=models(url)["policy"],
        library=Library((Experience("e1", "Hm."),), 2),
        guards={"easy": rows, "lost": wrong},
        k=1,
        progress=False,
    )
    assert [(guard.name, guard.tasks) for guard in found.guards] == [("easy", 8), ("lost", 8)]
    assert found.verdict != "helps"


def test_a_split_is_the_same_in_any_order() -> None:
    rows = World.draw(0).tasks(40, split="train")
    one, other = split(rows, held_out=0.5), split(rows[::-1], held_out=0.5)
    assert {task.key for task in one.held_out} == {task.key for task in other.held_out}
    assert len(one.train) + len(one.held_out) == 40


def test_few_held_out_tasks_are_warned_of(url: str) -> None:
    with pytest.warns(UserWarning, match="2 tasks are held out, and under 6"):
        learned(url, tasks=ROWS[2:], held_out=ROWS[:2], gate={"samples": 1})


def test_a_saved_library_comes_into_a_store(url: str, tmp_path: Path) -> None:
    trained = learned(url)
    trained.save(tmp_path / "l.json")
    assert load_library(tmp_path / "l.json").experiences == trained.library.experiences
    assert json.loads((tmp_path / "l.json").read_text())["policy_model"] == "sim-policy"


def test_a_foreign_library_is_loaded_with_ids_of_ours(tmp_path: Path) -> None:
    (tmp_path / "l.json").write_text('{"G0": "Say x.", "G1": ""}')
    with pytest.warns(UserWarning, match="G1 is left out: no text"):
        library = load_library(tmp_path / "l.json")
    assert library == Library((Experience("e1", "Say x."),), 2)


def test_tasks_of_a_file_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"question": "1+1?", "answer": 2}\n')
    (task,) = load_tasks(tmp_path / "t.jsonl")
    assert isinstance(task, Task)
    assert (task.question, task.reference) == ("1+1?", "2")


@pytest.mark.parametrize(
    ("tasks", "settings", "said"),
    [
        ([], {}, "there is no task"),
        ([{"question": "x"}, {"answer": "y"}], {}, r"tasks\[1\]"),
        ([{"question": "x", "answer": {1}}], {}, r"tasks\[0\]"),
        ([{"question": "x"}], {"grader": "exact"}, "right answer"),
        ([{"question": "x"}], {"grader": lambda guess: guess}, "asks for guess"),
        ([{"question": "x"}], {"held_out": [{"question": "x"}]}, "in two of tasks, validation and held_out"),
        ([{"question": "x"}], {"held_out": [{"answer": "x"}]}, r"held_out\[0\]"),
        ([{"question": "x"}], {"guards": {"g": [{"question": "y"}]}}, "needs held_out tasks"),
        ([{"question": "x"}], {"guards": {"g": []}}, "the guard g has no task"),
        ([{"question": "x"}], {"epochs": 0}, "epochs"),
        ([{"question": "x"}], {"mood": 1}, "mood is not a known setting"),
        ([{"question": "x"}], {"policy": Model()}, "no model is named"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(tasks: Any, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(TfgrpoError, match=said):
        train(tasks, **{"grader": grader, "progress": False, **models("http://127.0.0.1:9/v1"), **settings})
