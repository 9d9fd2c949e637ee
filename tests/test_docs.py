"""Documentation under test: each setting, endpoint and command stands in it, and the README's commands exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from proxy.settings import Settings
from tests import references
from tfgrpo.commands.arguments import parser

ROOT = Path(__file__).parent.parent
DOCS = {path.name: path.read_text() for path in [ROOT / "README.md", *ROOT.glob("docs/*.md")]}
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


@pytest.mark.parametrize("target", re.findall(r"^make (\w+)", DOCS["README.md"], re.MULTILINE))
def test_each_make_target_of_the_readme_is_there(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("line", re.findall(r"^\.venv/bin/tfgrpo (.*?)(?:\s+#.*)?$", DOCS["README.md"], re.MULTILINE))
def test_each_command_line_of_the_readme_is_understood(line: str) -> None:
    assert parser().parse_args(line.split()).command == line.split(maxsplit=1)[0]


@pytest.mark.parametrize("name", sorted(DOCS))
def test_each_link_between_documents_leads_somewhere(name: str) -> None:
    folder = ROOT if name == "README.md" else (ROOT / "docs" / name).parent
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", DOCS[name]):
        assert (folder / target).exists(), target
