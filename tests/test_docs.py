"""Documentation under test: each setting, endpoint and command stands in it, and the README's commands exist."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from proxy.settings import Settings
from tfgrpo.commands.arguments import parser
from tfgrpo.configuration import Model

ROOT = Path(__file__).parent.parent
DOCS = {path.name: path.read_text() for path in [ROOT / "README.md", *ROOT.glob("docs/*.md")]}


def _settings(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield name
        inner = [field.annotation, *getattr(field.annotation, "__args__", ())]
        for one in inner:
            if isinstance(one, type) and issubclass(one, BaseModel) and one is not Model:
                yield from _settings(one)


def _commands(of: argparse.ArgumentParser, prefix: str) -> Iterator[str]:
    below = [action for action in of._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001 - argparse has no public way
    for action in below:
        for name, inner in action.choices.items():
            deeper = list(_commands(inner, f"{prefix} {name}"))
            yield from deeper or [f"{prefix} {name}"]


@pytest.mark.parametrize("name", sorted({*_settings(Settings), *Model.model_fields}))
def test_each_setting_is_documented(name: str) -> None:
    assert re.search(rf"\b{name}\b", DOCS["configuration.md"])


@pytest.mark.parametrize("command", list(_commands(parser(), "tfgrpo")))
def test_each_command_is_documented(command: str) -> None:
    assert command in DOCS["commands.md"]


@pytest.mark.parametrize("path", sorted(set(re.findall(r'"(/[a-z/{}_:]+)"', (ROOT / "proxy/admin.py").read_text()))))
def test_each_admin_call_is_documented(path: str) -> None:
    assert path.replace(":int", "").replace(":path", "") in DOCS["api.md"]


@pytest.mark.parametrize("target", re.findall(r"^make (\w+)", DOCS["README.md"], re.MULTILINE))
def test_each_make_target_of_the_readme_is_there(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("line", re.findall(r"^\.venv/bin/tfgrpo (.*?)(?:\s+#.*)?$", DOCS["README.md"], re.MULTILINE))
def test_each_command_line_of_the_readme_is_understood(line: str) -> None:
    assert parser().parse_args(line.split()).command == line.split(maxsplit=1)[0]


@pytest.mark.parametrize("name", sorted(DOCS))
def test_each_link_between_documents_leads_somewhere(name: str) -> None:
    folder = ROOT if name == "README.md" else ROOT / "docs"
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", DOCS[name]):
        assert (folder / target).exists(), target
