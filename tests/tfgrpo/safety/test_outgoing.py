from __future__ import annotations

import json
from typing import Any

import pytest

from tfgrpo.safety import outgoing
from tfgrpo.types import Experience, Library, Version

HELD = {
    "key": "Use sk-proj-abcdefghijklmnopqrstuv first.",
    "e-mail": "Ask ann@shop.example first.",
    "telephone number": "Call 555-123-4567 first.",
    "IBAN": "Pay to DE89 3704 0044 0532 0130 00 first.",
    "card number": "Charge 5425 2334 3010 9903 first.",
    "secret": "Say open-sesame first.",
}
OURS = ("open-sesame",)
FINE = Experience("e1", "Check 1234567890123456 and 12.50 twice.")


def held(kind: str) -> Library:
    return Library((FINE, Experience("e2", HELD[kind], ("g",), 2)), 3)


@pytest.mark.parametrize("kind", HELD)
def test_a_prompt_goes_without_an_entry_that_holds_something(kind: str) -> None:
    kept, left_out = outgoing.injected(held(kind), OURS)
    assert (kept, left_out) == (Library((FINE,), 3), (("e2", kind),))


@pytest.mark.parametrize("kind", HELD)
def test_a_file_gets_a_placeholder(kind: str) -> None:
    made, changed = outgoing.version(Version("math", 1, held(kind), "helps", 0.0, note=HELD[kind]), OURS)
    first, second = made.library.experiences
    assert (changed, first) == (1, FINE)
    assert f"[redacted {kind}] first." in second.text
    assert (second.id, second.sources, second.support) == ("e2", ("g",), 2)
    assert f"[redacted {kind}]" in made.note


def test_what_holds_nothing_is_the_same() -> None:
    library = Library((FINE,), 2)
    assert outgoing.injected(library, OURS) == (library, ())


@pytest.mark.parametrize(
    ("value", "after"),
    [
        ({"to": ["ann@shop.example", 1]}, {"to": ["[redacted e-mail]", 1]}),
        ({"ann@shop.example": None}, {"[redacted e-mail]": None}),
        (5425233430109903, "[redacted card number]"),
        ([12345, 1.5, True, None], [12345, 1.5, True, None]),
        ('{"a": "ann\\u0040shop.example", "card": 5425233430109903}', None),
        ("[1, 2", "[1, 2"),
        ('{"a": 1,  "b": 2}', '{"a": 1,  "b": 2}'),
    ],
)
def test_json_stays_json_and_keeps_what_is_nobodys(value: Any, after: Any) -> None:
    if after is None:
        said = outgoing.value(value)
        assert json.loads(said) == {"a": "[redacted e-mail]", "card": "[redacted card number]"}
    else:
        assert outgoing.value(value) == after
