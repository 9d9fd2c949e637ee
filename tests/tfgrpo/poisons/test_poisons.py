"""Poisoned transcripts, from a client's request to the block that the next client is given."""

from __future__ import annotations

import json
import re

import pytest

from tests.tfgrpo.poisons.cases import HARMLESS, HONEST, POISONS
from tests.tfgrpo.poisons.drive import Outcome, outcome
from tests.tfgrpo.poisons.poison import Poison

TAGS = "objective|task|library|rollout|feedback|reference|lessons|rejected|operations"

REFUSED = [poison for poison in POISONS if poison.reason is not None]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return outcome(tmp_path_factory.mktemp("poisons"))


@pytest.mark.parametrize("poison", REFUSED, ids=lambda poison: poison.name)
def test_what_a_fooled_optimizer_makes_of_a_poison_is_refused_with_the_reason(found: Outcome, poison: Poison) -> None:
    assert poison.reason is not None
    assert poison.reason in found.refused.get(poison.name, f"not refused: {found.library}")


def test_only_what_is_harmless_to_look_at_reaches_the_library(found: Outcome) -> None:
    assert sorted(found.library) == sorted(poison.lesson for poison in (*HARMLESS, *HONEST))


def test_a_client_is_given_the_lessons_of_the_library_and_nothing_else_that_was_said(found: Outcome) -> None:
    (system, user) = json.loads(found.injected)["messages"]
    assert user["content"] == "hello"
    assert sorted(system["content"].splitlines()[1:-1]) == sorted(found.library)


@pytest.mark.parametrize("poison", POISONS, ids=lambda poison: poison.name)
def test_each_poison_was_put_to_the_optimizer(found: Outcome, poison: Poison) -> None:
    plain = "\n".join(found.sent).replace("&lt;", "<")
    assert f"Nothing of {poison.name} was seen" not in plain
    assert (poison.shown or poison.says.split("|")[-1].strip()) in plain or poison.place == "arguments"


@pytest.mark.parametrize("poison", [one for one in POISONS if one.secrets], ids=lambda poison: poison.name)
def test_no_secret_of_a_transcript_and_no_hidden_text_is_put_to_the_optimizer(found: Outcome, poison: Poison) -> None:
    assert not [said for said in found.sent for secret in poison.secrets if secret in said]


def test_no_content_opens_or_closes_a_section(found: Outcome) -> None:
    for said in (one for one in found.sent if one.startswith("<objective>")):
        inside = ""
        for tag in re.finditer(rf"<[\s\u200b]*(/?)[\s\u200b]*({TAGS})\b[^<>\n]*>?", said, re.IGNORECASE):
            line = said[said.rfind("\n", 0, tag.start()) + 1 :].split("\n", 1)[0]
            assert line == tag.group(), said
            assert (tag.group(1), tag.group(2)) == (("/", inside) if inside else ("", tag.group(2))), said
            inside = "" if inside else tag.group(2)
        assert not inside
