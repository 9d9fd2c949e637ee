"""The two forms of the reference implementation (youtu-agent): flat JSON, and lessons inside an agent's instructions.

They are read as data. Its own configuration loader expands `${...}` wherever it stands, also in a lesson; here such
a text is a text, and in what is written the mark is escaped in that loader's way. YAML tags are refused, not run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from tfgrpo.errors import UsageError
from tfgrpo.inheritance.documents import JSON, Inherited
from tfgrpo.types import Experience, Version

INTRODUCTION: Final = "Lessons from earlier attempts at such tasks:"

_ENTRY: Final = re.compile(r"\[([A-Za-z]+\d+)\]\.?\s+(.*)")


def read_flat(values: JSON, name: str) -> Inherited:
    """Return the lessons of `{"G0": "text", ...}`; UsageError names a key whose value is no text."""
    for key, value in values.items():
        if not isinstance(value, str):
            raise UsageError(
                f"{name}: the value of {key!r} is no text; a flat file holds a text under each key, ours a `format`"
            )
    return Inherited(name, "flat JSON", tuple(Experience(key, text) for key, text in values.items()))


def read_agent(text: str, name: str) -> Inherited:
    """Return the lessons in `agent.instructions`: its lines `[G0]. text`, each up to the next or a blank line.

    Raises:
        UsageError: it is no YAML, holds a tag that would make an object, or has no such line.
    """
    values = _yaml(text, name)
    instructions = _at(values, "agent", "instructions")
    if not isinstance(instructions, str):
        raise UsageError(f"{name}: agent.instructions is no text; that is where an agent's lessons stand")
    entries = tuple(Experience(id_, said) for id_, said in _entries(instructions))
    if not entries:
        raise UsageError(f"{name}: agent.instructions has no line such as '[G0]. a lesson'")
    model = _at(values, "model", "model_provider", "model")
    known = isinstance(model, str) and model.isprintable() and "${" not in model
    return Inherited(name, "agent YAML", entries, policy_model=model if known else None)


def write_flat(version: Version) -> str:
    """Return `{"G0": "text", ...}` in the library's order. Ids and provenance have no place in it."""
    flat = {f"G{number}": one.text for number, one in enumerate(version.library.experiences)}
    return json.dumps(flat, ensure_ascii=False, indent=2) + "\n"


def write_agent(version: Version) -> str:
    """Return an agent's YAML with the lessons as its instructions."""
    lessons = [f"[G{number}]. {one.text}" for number, one in enumerate(version.library.experiences)]
    instructions = "\n".join([INTRODUCTION, *lessons]).replace("${", "\\${")
    values = {"agent": {"name": version.set, "instructions": instructions}}
    return yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=100)


def _yaml(text: str, name: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{name}{line}: {error.problem or 'not YAML'}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{name} is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise UsageError(f"{name}: its YAML is nested too deep") from error


def _at(values: Any, *path: str) -> Any:
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def _entries(instructions: str) -> Iterator[tuple[str, str]]:
    id_, said = "", list[str]()
    for line in [*instructions.replace("\\${", "${").splitlines(), ""]:
        found = _ENTRY.match(line)
        if id_ and (found or not line.strip()):
            yield id_, " ".join(said)
            id_ = ""
        if found:
            id_, said = found[1], [found[2]]
        elif id_:
            said.append(line.strip())
