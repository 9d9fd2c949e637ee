from __future__ import annotations

import json
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tfgrpo.__main__ import main
from tfgrpo.commands.arguments import EXAMPLES, parser
from tfgrpo.library import from_texts
from tfgrpo.store import Store

LINES = [line.split("   ")[0].strip() for text in EXAMPLES.values() for line in text.splitlines() if "  tfgrpo" in line]
READING = ("groups", "sets list", "sets show s", "sets diff s@1 s@2", "sets export s", "runs", "runs list")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    address = f"sqlite:///{tmp_path}/t.db"
    store = Store.open(address, migrate=True)
    for texts in (["Check the sign."], ["Check the sign.", "Name the unit."]):
        store.sets.add_version("s", from_texts(texts, next_id=store.sets.next_id("s")), status="by hand")
    store.close()
    written = tmp_path / "c.yaml"
    written.write_text(json.dumps({"store": {"url": address}}))
    return written


@pytest.mark.parametrize("line", LINES)
def test_each_example_of_the_help_is_a_command_line_that_is_understood(line: str) -> None:
    program, *words = shlex.split(line)
    assert (program, parser().parse_args(words).command) == ("tfgrpo", words[0])


@pytest.mark.parametrize("program", ["tfgrpo", "proxy"])
def test_each_program_says_its_version(program: str) -> None:
    said = subprocess.run([sys.executable, "-m", program, "--version"], capture_output=True, text=True, check=True)  # noqa: S603 - our own programs
    assert said.stdout.split() == [program.replace("proxy", "tfgrpo-proxy"), version("tfgrpo-proxy")]


def test_each_command_shows_examples() -> None:
    assert {*EXAMPLES} - {""} == {line.split()[1] for line in LINES}


@pytest.mark.parametrize("command", READING)
def test_each_command_that_reads_answers_in_json(
    config: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), "--config", str(config), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) is not None


@pytest.mark.parametrize(
    ("command", "status"),
    [("runs show nowhere", 1), ("sets show s@9", 1), ("sets show nowhere", 1), ("groups --config /no/such.yaml", 2)],
)
def test_a_failure_is_one_line_and_a_status_that_says_whose_it_is(
    config: Path, command: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), *([] if "--config" in command else ["--config", str(config)])]) == status
    captured = capsys.readouterr()
    assert (captured.out, len(captured.err.splitlines())) == ("", 1)
