"""Reads our Dockerfile: its instructions by stage. It knows the few forms that ours uses."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def stages() -> list[list[tuple[str, str]]]:
    """Return each stage as its instructions and what stands behind them, lines joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    found: list[list[tuple[str, str]]] = []
    for line in filter(None, lines):
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            found.append([])
        found[-1].append((instruction, rest.strip()))
    return found


def of(stage: list[tuple[str, str]], instruction: str) -> list[str]:
    """Return what stands behind each such instruction."""
    return [rest for name, rest in stage if name == instruction]


def environment(stage: list[tuple[str, str]]) -> dict[str, str]:
    """Return what a stage's ENV sets."""
    return dict(pair.split("=", 1) for line in of(stage, "ENV") for pair in line.split())


def command(stage: list[tuple[str, str]], instruction: str) -> list[str]:
    """Return an instruction in exec form as a list; ValueError when it is not in that form."""
    (written,) = of(stage, instruction)
    words: list[str] = json.loads(written[written.index("[") :])
    return words
