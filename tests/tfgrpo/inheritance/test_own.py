from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tfgrpo import inheritance
from tfgrpo.errors import UsageError
from tfgrpo.types import Experience, Library, Version

VERSION = Version(
    set="s",
    version=3,
    library=Library((Experience("e2", "Say x.", ("g1", "g2"), 4), Experience("greeting", r"Write \frac{a}{b}.")), 9),
    status="helps",
    created_at=12.5,
    parent=2,
    policy_model="m",
    run="r1",
    note="n",
)  # fmt: skip

texts = st.text(st.characters(codec="utf-8"))


def edited(**values: Any) -> str:
    return json.dumps({**json.loads(inheritance.write(VERSION, "json")), **values})


@given(texts, st.lists(texts, max_size=3), st.integers(0, 1000), st.sampled_from(["helps", "hurts", "by hand"]))
def test_what_is_written_is_read_as_the_same_version(text: str, sources: list[str], support: int, status: Any) -> None:
    version = replace(
        VERSION,
        library=Library((Experience("e1", text, tuple(sources), support),), 2),
        status=status,
        policy_model=text or None,
        parent=support,
    )
    found = inheritance.read(inheritance.write(version, "json"), name="f.json")
    assert (found.version, found.intact) == (version, True)


def test_a_lesson_edited_in_the_file_is_noticed() -> None:
    entry = json.loads(edited())["experiences"][0] | {"text": "Say y."}
    assert not inheritance.read(edited(experiences=[entry]), name="f.json").intact


def test_a_status_edited_in_the_file_is_noticed() -> None:
    assert not inheritance.read(edited(status="hurts"), name="f.json").intact


def test_a_key_of_a_later_release_is_passed_over() -> None:
    assert inheritance.read(edited(mood="good"), name="f.json").version == VERSION


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"format_version": 2}, "format_version: 2"),
        ({"format": "other"}, "'other'"),
        ({"status": "perfect"}, "status"),
        ({"experiences": [{"id": "e1"}]}, "experiences[0]"),
        ({"experiences": [{"id": "e1", "text": 7}]}, "experiences[0].text"),
        ({"experiences": [{"id": "e 1", "text": "x"}]}, "experiences[0].id"),
        ({"experiences": [{"id": "e1", "text": "x"}] * 2}, "experiences[1].id"),
        ({"experiences": [{"id": "e1", "text": "x", "support": -1}]}, "experiences[0].support"),
        ({"experiences": [{"id": "e1", "text": "\ud800"}]}, "surrogate"),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(values: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as raised:
        inheritance.read(edited(**values), name="f.json")
    assert named in str(raised.value)
    assert str(raised.value).startswith("f.json")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{\n"G0": "a",\n"G1" "b"}', "line 3"),
        ('{"G0": "a", "G0": "b"}', "'G0'"),
        ("[" * 100_000, "too deep"),
        ('["a"]', "object"),
        ("", "line 1"),
    ],
)
def test_json_that_cannot_be_read_is_said_with_its_place(text: str, named: str) -> None:
    with pytest.raises(UsageError, match=r"^f.json") as raised:
        inheritance.read(text, name="f.json")
    assert named in str(raised.value)
