"""Documentation under test: each setting, endpoint and command stands in it, and the README's commands exist."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from proxy.__main__ import command_line
from proxy.settings import Settings, load
from tests import references
from tfgrpo.commands.arguments import parser

ROOT = Path(__file__).parent.parent
DOCS = {path.name: path.read_text() for path in [ROOT / "README.md", *ROOT.glob("docs/*.md")]}
FEW = 10
DOCS |= {f"reference/{path.name}": path.read_text() for path in ROOT.glob("docs/reference/*.md")}


def _sections(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        for one in [field.annotation, *getattr(field.annotation, "__args__", ())]:
            if isinstance(one, type) and issubclass(one, BaseModel):
                yield from _sections(one)


SECTIONS = sorted({*_sections(Settings)} - {Settings}, key=str)


@pytest.mark.parametrize("section", SECTIONS)
def test_each_setting_has_its_sentence(section: type[BaseModel]) -> None:
    assert {*section.model_fields} - {*references.sentences(section)} == set(), "write it below the field"


def test_the_reference_is_what_make_docs_writes() -> None:
    kept = {path.name: path.read_text() for path in references.FOLDER.iterdir()}
    assert kept == references.pages(), "run make docs"


@pytest.mark.parametrize("path", sorted(set(re.findall(r'"(/[a-z/{}_:]+)"', (ROOT / "proxy/admin.py").read_text()))))
def test_each_admin_call_is_documented(path: str) -> None:
    assert path.replace(":int", "").replace(":path", "") in DOCS["api.md"]


def _blocks(kind: str) -> list[tuple[str, str]]:
    """Return each block of code of that kind with the document it stands in."""
    found = re.compile(rf"^```{kind}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [(name, text) for name, whole in DOCS.items() for text in found.findall(whole)]


COMMANDS = sorted(
    {
        line.split("#")[0].split("  ")[0].strip()
        for text in DOCS.values()
        for line in re.findall(r"^(?:\.venv/bin/|  )(tfgrpo(?:-proxy)? .*?)\s*&?$", text, re.MULTILINE)
    }
)
MAKE = re.compile(r"(?:(?<=`)|^)make ([a-z-]+)(?=`| {2,}| [A-Z]+=|$)", re.MULTILINE)
WRITTEN = {**DOCS, **{name: (ROOT / name).read_text() for name in ("CONTRIBUTING.md", "benchmarks/README.md")}}


def test_each_make_target_that_is_named_is_there() -> None:
    named = {one for text in WRITTEN.values() for one in MAKE.findall(text)}
    there = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert len(named) > FEW
    assert named - there == set()


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_line_is_understood(line: str) -> None:
    program, *words = shlex.split(line)
    known = parser() if program == "tfgrpo" else command_line()
    assert known.parse_args(words) is not None


@pytest.mark.parametrize(("name", "text"), _blocks("yaml"))
def test_each_configuration_is_one(name: str, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in re.findall(r"os\.environ/(\w+)", text):
        monkeypatch.setenv(variable, variable.lower())
    (tmp_path / "c.yaml").write_text(text)
    if "scrape_configs" not in text:  # of Prometheus
        assert load(tmp_path / "c.yaml", environ=os.environ), name


@pytest.mark.parametrize(("name", "text"), _blocks("python"))
def test_each_program_compiles(name: str, text: str) -> None:
    compile(text, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize(("name", "text"), _blocks("json"))
def test_each_json_is_json(name: str, text: str) -> None:
    assert json.loads(text), name


@pytest.mark.parametrize("name", sorted(DOCS))
def test_each_link_between_documents_leads_somewhere(name: str) -> None:
    folder = ROOT if name == "README.md" else (ROOT / "docs" / name).parent
    for target, place in re.findall(r"\]\((?!https?://)([^)#]*)#?([^)]*)\)", DOCS[name]):
        path = folder / target if target else ROOT / ("README.md" if name == "README.md" else f"docs/{name}")
        assert path.exists(), target
        assert not place or place in _places(path.read_text()), f"{target}#{place}"


def _places(text: str) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
