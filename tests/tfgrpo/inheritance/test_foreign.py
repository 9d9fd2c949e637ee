from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.tfgrpo.inheritance.test_own import VERSION
from tfgrpo import inheritance
from tfgrpo.errors import UsageError
from tfgrpo.types import Experience, Library

OLD = replace(VERSION, library=Library((Experience("e2", "Say x."), Experience("e3", "Ask ${HOME}."))))
"""A version from before entries had a grammar."""

AGENT = r"""
# @package _global_
defaults: [_self_]
model:
  model_provider: {model: some-model}
agent:
  name: solver
  instructions: "Solve it.\n[1] is no lesson.\n[G0]. First: do ${oc.env:HOME} and {{ 7 * 7 }}.\n[G1]. Second,\
    \ which goes\n  on.\n\n[G12]. Last."
"""


def read(text: str, name: str = "f.yaml") -> list[tuple[str, str]]:
    return [(one.id, one.text) for one in inheritance.read(text, name=name).experiences]


def test_a_flat_file_holds_a_lesson_under_each_key() -> None:
    assert read('{"G0": "a", "G7": "b ${x}"}', "f.json") == [("G0", "a"), ("G7", "b ${x}")]


def test_a_flat_file_with_another_value_names_its_key() -> None:
    with pytest.raises(UsageError, match="'G1'"):
        read('{"G0": "a", "G1": ["b"]}', "f.json")


def test_the_lessons_of_an_agent_are_read_and_nothing_in_them_is_expanded() -> None:
    assert read(AGENT) == [
        ("G0", "First: do ${oc.env:HOME} and {{ 7 * 7 }}."),
        ("G1", "Second, which goes on."),
        ("G12", "Last."),
    ]


def test_the_model_of_an_agent_is_known() -> None:
    assert inheritance.read(AGENT, name="f.yml").policy_model == "some-model"


def test_a_model_that_would_have_to_be_expanded_is_not_known() -> None:
    assert inheritance.read(AGENT.replace("some-model", "'${m}'"), name="f.yml").policy_model is None


def test_a_tag_is_refused_and_not_run(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with pytest.raises(UsageError, match=r"f.yaml, line 1: .*python/object"):
        read(f"agent: !!python/object/apply:os.mkdir ['{made}']")
    assert not made.exists()


@pytest.mark.parametrize(
    "text",
    ["agent: {instructions: [", "agent: {instructions: 7}", "agent: {instructions: none}", "- x", "", "[" * 5_000],
)
def test_yaml_without_lessons_is_one_clear_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^f.yaml"):
        read(text)


def test_an_alias_bomb_costs_nothing() -> None:
    lines = ["a: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    assert read("\n".join([*lines, "agent: {instructions: '[G0]. a'}"])) == [("G0", "a")]


@pytest.mark.parametrize(("form", "name"), [("reference", "f.json"), ("agent-yaml", "f.yaml")])
def test_what_is_written_in_a_foreign_form_is_read_with_the_same_texts(form: str, name: str) -> None:
    assert read(inheritance.write(OLD, form), name) == [("G0", "Say x."), ("G1", "Ask ${HOME}.")]


def test_a_loader_that_expands_finds_nothing_to_expand_in_what_is_written() -> None:
    assert "Ask \\${HOME}" in inheritance.write(OLD, "agent-yaml")


def test_a_file_that_is_not_there_or_no_text_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_bytes(b"\xff\xfe\x00")
    for name in ("f.json", "absent.json"):
        with pytest.raises(UsageError, match="cannot be read"):
            inheritance.load(tmp_path / name)
