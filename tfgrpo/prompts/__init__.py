"""The prompt texts, as files beside this module, and the frame that stages share: sections in tags.

The frame (one tag per line of its own, only our own tags escaped inside contents) is what makes a run readable and
another optimizer possible. The module knows no stage's meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Final, Literal, TypeAlias

from tfgrpo.safety import hidden

Stage: TypeAlias = Literal["summarise", "contrast", "propose", "consolidate"]

TAGS: Final = (
    "objective",
    "task",
    "library",
    "rollout",
    "feedback",
    "reference",
    "lessons",
    "rejected",
    "operations",
)

# White space inside a tag does not keep a model from taking it for one.
_TAG: Final = re.compile(rf"<(?=\s{{0,9}}/?\s{{0,9}}(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)


def system(stage: Stage, *, max_words: int, lessons: int = 1) -> str:
    """Return the system message of a stage. Its first line is `Stage: NAME`."""
    text = resources.files(__name__).joinpath(f"{stage}.md").read_text(encoding="utf-8")
    number = (
        "the one lesson"
        if lessons == 1
        else f"at most {lessons} lessons, the best supported first, and of them only those"
    )
    return text.replace("{max_words}", str(max_words)).replace("{lessons}", number).strip()


def section(tag: str, content: str, attributes: Mapping[str, str] | None = None) -> str:
    """Return one section: its tags on lines of their own, the content between them."""
    opening = "".join(f' {name}="{value}"' for name, value in (attributes or {}).items())
    return f"<{tag}{opening}>\n{escape(content)}\n</{tag}>"


def message(sections: Iterable[str]) -> str:
    """Return a user message of sections."""
    return "\n\n".join(sections)


def escape(text: str) -> str:
    """Return `text` with the opening bracket of our own tags, and of nothing else, written as `&lt;`.

    What nobody sees is taken out first, for it could stand inside a tag.
    """
    return _TAG.sub("&lt;", hidden.without(text))


def shorten(text: str, characters: int) -> str:
    """Return `text`, or its head and tail with a note of how much was left out between them."""
    if len(text) <= characters:
        return text
    head = characters * 3 // 5
    tail = characters - head
    return f"{text[:head]}\n[... {len(text) - characters} characters left out ...]\n{text[-tail:]}"
