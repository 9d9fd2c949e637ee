"""The frame of an optimizer's call: a stage, sections in tags, and answers that are JSON, sometimes not quite.

It knows the form of the conversation and nothing of what stands in it.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfgrpo.types import Message

_STAGE = re.compile(r"\s*Stage:\s*([a-z]+)", re.IGNORECASE)
_SECTION = re.compile(
    r"^[ \t]*<([a-z]+)((?:[ \t]+[a-z]+=\"[^\"\n]*\")*)[ \t]*>(.*?)</\1>[ \t]*$", re.DOTALL | re.MULTILINE
)
_ATTRIBUTE = re.compile(r"([a-z]+)=\"([^\"]*)\"")
_ENTRY = re.compile(r"^[ \t]*\[([^\]\n]+)\][ \t]*(.*\S)", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*[-*][ \t]+(.*\S)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """One tagged section of a user message, its content unescaped."""

    name: str
    attributes: Mapping[str, str]
    content: str

    def number(self, attribute: str) -> float | None:
        """An attribute as a finite number; None when it is absent or is none."""
        try:
            value = float(self.attributes.get(attribute, ""))
        except ValueError:
            return None
        return value if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Entry:
    """One line `[id] text` of a library."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Frame:
    """What an optimizer's call asks: its stage (empty when it names none) and its sections, in order."""

    stage: str
    sections: tuple[Section, ...]

    def content(self, name: str) -> str:
        """The joined contents of all sections of a name."""
        return "\n".join(one.content for one in self.sections if one.name == name)

    def all(self, name: str) -> list[Section]:
        """The sections of a name."""
        return [one for one in self.sections if one.name == name]

    def library(self) -> list[Entry]:
        """The entries of the library; none when the section is absent or empty."""
        return [Entry(id_.strip(), text) for id_, text in _ENTRY.findall(self.content("library"))]

    def bullets(self, name: str) -> list[str]:
        """The lines `- text` of a section."""
        return list(_BULLET.findall(self.content(name)))

    def operations(self) -> list[dict[str, Any]]:
        """The proposals, one JSON object a line; a line that is none is passed over."""
        return [one for line in self.content("operations").splitlines() if (one := _object(line)) is not None]


def read_frame(messages: Sequence[Message]) -> Frame:
    """The frame of a conversation; a turn that asks for a repair changes nothing of it."""
    system = next((one.text for one in messages if one.role in {"system", "developer"}), "")
    stage = _STAGE.match(system)
    asked = "\n".join(one.text for one in messages if one.role == "user")
    sections = tuple(
        Section(name, dict(_ATTRIBUTE.findall(attributes)), content.replace("&lt;", "<").strip("\n"))
        for name, attributes, content in _SECTION.findall(asked)
    )
    return Frame(stage.group(1).lower() if stage else "", sections)


def write_json(value: Mapping[str, object], rng: random.Random, *, broken: float) -> str:
    """`value` as JSON text, now and then (`broken`) with what real models do to it."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    if rng.random() >= broken:
        return text
    return rng.choice((_fenced, _trailing, _cut, _announced, _echoed))(text)


def _fenced(text: str) -> str:
    return f"```json\n{text}\n```"


def _trailing(text: str) -> str:
    return text[:-2] + ",\n}"


def _cut(text: str) -> str:
    return text[: len(text) * 3 // 4]


def _announced(text: str) -> str:
    return f"Sure, here is what I found {{in short}}:\n\n{text}\n\nLet me know if anything is missing."


def _echoed(text: str) -> str:
    return f'{text}\n\nThe form was:\n{{"type": "object", "properties": {{}}}}'


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
