"""Writes `docs/reference/`: settings from their classes, commands from their parsers, the API from its document.

`make docs` runs it, and `test_docs.py` compares what it would write with what is there. What needs explaining stands in
the pages beside; a setting's sentence is the text below it in its class, and stands nowhere else.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import inspect
import json
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from proxy import admin
from proxy.__main__ import command_line
from proxy.admin_experiment import ExperimentApi
from proxy.auth import Keys
from proxy.bypass import Bypass
from proxy.deployments import Deployments
from proxy.experiments import Experiments
from proxy.settings import Settings
from tests.proxy.asgi import call
from tfgrpo.commands.arguments import parser
from tfgrpo.configuration import Model
from tfgrpo.experiment import Levels
from tfgrpo.store import Store

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
MADE = "<!-- Written by `make docs` from {source}: change it there. -->\n\n"
NEEDED = "needed"
LONGEST_DEFAULT = 60


def pages() -> dict[str, str]:
    """Each page of the folder, by its name."""
    return {"configuration.md": configuration(), "commands.md": commands(), "api.md": api()}


def main() -> None:
    """Write the pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
        sys.stdout.write(f"docs: wrote docs/reference/{name}\n")


def configuration() -> str:
    """Every setting with its default and its sentence."""
    parts = [MADE.format(source="the settings' classes") + "# Settings\n"]
    parts.append(f"What needs more than a sentence: [configuration](../configuration.md). {NEEDED}: has no default.\n")
    for name, field in Settings.model_fields.items():
        below = _model_of(field)
        assert below is not None, name
        lead = (inspect.getdoc(below) or "").partition("\n\n")[0]
        rows = [f"| `{key}` | {default} | {text} |" for key, default, text in _rows(below)]
        parts.append(f"## {name}\n\n{'A list. ' if _is_list(field) else ''}{_flat(lead)}\n")
        parts.append("\n".join(["| key | default | |", "|---|---|---|", *rows, ""]))
    return "\n".join(parts)


def _rows(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    texts = sentences(model)
    for name, field in model.model_fields.items():
        key = prefix + (field.alias or name)
        yield key, _default(field), _flat(texts.get(name, "")).replace("|", "\\|")
        below = _model_of(field)
        # What a model is, is said once, below `policy`.
        if below is not None and (below is not Model or name == "policy"):
            one = "[]" if _is_list(field) else ".NAME" if _is_mapping(field) else ""
            yield from _rows(below, f"{key}{one}.")


def sentences(model: type[BaseModel]) -> dict[str, str]:
    """The text below each field, in the source of its class."""
    found: dict[str, str] = {}
    for parent in reversed(model.__mro__[: model.__mro__.index(BaseModel)]):
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(parent))).body
        assert isinstance(tree, ast.ClassDef)
        found |= dict(_described(tree))
    return found


def _described(tree: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for one, after in zip(tree.body, tree.body[1:], strict=False):
        match one, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, text


def _model_of(field: FieldInfo) -> type[BaseModel] | None:
    """The section that a field holds, itself or in a list or mapping."""
    waiting = [field.annotation]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, type) and issubclass(one, BaseModel):
            return one
        waiting += getattr(one, "__args__", ())
    return None


def _is_list(field: FieldInfo) -> bool:
    return str(field.annotation).startswith("tuple[")


def _is_mapping(field: FieldInfo) -> bool:
    return str(field.annotation).startswith("dict[")


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return NEEDED
    if isinstance(value, BaseModel):
        return ""
    if isinstance(value, Mapping):
        value = {
            key: json.loads(one.model_dump_json()) if isinstance(one, BaseModel) else one for key, one in value.items()
        }
    text = json.dumps(value, default=str, ensure_ascii=False)
    if isinstance(value, str) and value:
        text = value
    return f"`{text}`" if len(text) <= LONGEST_DEFAULT else "see right"


def commands() -> str:
    """Every command with its arguments and examples."""
    parts = [MADE.format(source="the parsers of the command lines"), "# Command lines\n"]
    parts.append("\nWhat needs more than a line: [commands](../commands.md).\n")
    for name, one in [("tfgrpo-proxy", command_line()), *_all_of(parser(), "tfgrpo")]:
        rows = [f"| {_shape(of)} | {_said(of)} |" for of in one._actions if _is_shown(of)]  # noqa: SLF001 - argparse has no public way
        parts.append(f"\n## {name}\n\n{one.description}\n")
        parts.append("\n".join(["", "| argument | |", "|---|---|", *rows, ""]) if rows else "")
        parts.append(f"\n```\n{textwrap.dedent(one.epilog).strip()}\n```\n" if one.epilog else "")
    return "".join(parts)


def _all_of(of: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, of
    for action in of._actions:  # noqa: SLF001 - as above
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            for below, inner in action.choices.items():
                yield from _all_of(inner, f"{name} {below}")


def _is_shown(of: argparse.Action) -> bool:
    hidden = argparse._HelpAction, argparse._SubParsersAction  # noqa: SLF001 - as above
    return not isinstance(of, hidden) and of.help != argparse.SUPPRESS


def _shape(of: argparse.Action) -> str:
    value = "|".join(map(str, of.choices)) if of.choices else of.metavar or of.dest.upper()
    if not of.option_strings:
        return f"`{value}`"
    takes = "" if of.nargs == 0 else f" {value}"
    return ", ".join(f"`{name}{takes}`" for name in of.option_strings).replace("|", "\\|")


def _said(of: argparse.Action) -> str:
    return _flat(f"{of.help or ''}{' (needed)' if of.required and of.option_strings else ''}").replace("|", "\\|")


def api() -> str:
    """Every call of feedback and of the admin API, with what it takes."""
    written = asyncio.run(_document())
    parts = [MADE.format(source="the OpenAPI document"), "# Calls\n\n"]
    parts.append(
        "What they mean stands in [the API](../api.md); a running proxy serves the document at `/admin/openapi.json`.\n"
    )
    for path, methods in written["paths"].items():
        for method, one in methods.items():
            parts.append(f"\n## {method.upper()} {path}\n\n{one['summary']}\n")
            rows = [_parameter(of) for of in one.get("parameters", ())]
            parts.append(_table("takes", [*rows, *_body(one, written["components"]["schemas"])]))
            parts.append(_table("gives", list(_answer(one))))
    return "".join(parts)


def _table(head: str, rows: list[str]) -> str:
    return f"\n| {head} | | |\n|---|---|---|\n" + "\n".join(rows) + "\n" if rows else ""


def _parameter(of: Mapping[str, Any]) -> str:
    needed = ", needed" if of.get("required") else ""
    return f"| `{of['name']}` | {of['in']}{needed} | {_kind(of['schema'])}{_described_as(of['schema'])} |"


def _answer(one: Mapping[str, Any]) -> Iterator[str]:
    done = next(answer for status, answer in one["responses"].items() if status.startswith("2"))
    for name, of in done["content"]["application/json"]["schema"].get("properties", {}).items():
        yield f"| `{name}` | answer | {_kind(of)}{_described_as(of)} |"


def _described_as(schema: Mapping[str, Any]) -> str:
    return f"; {schema['description']}" if "description" in schema else ""


def _body(one: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    if "requestBody" not in one:
        return
    schema = one["requestBody"]["content"]["application/json"]["schema"]
    yield from _fields(schema.get("anyOf", [schema])[0], schemas, "")


def _fields(schema: Mapping[str, Any], schemas: Mapping[str, Any], prefix: str) -> Iterator[str]:
    whole = schemas[schema["$ref"].rpartition("/")[2]]
    for name, of in whole.get("properties", {}).items():
        needed = ", needed" if name in whole.get("required", ()) else ""
        yield f"| `{prefix}{name}` | body{needed} | {_kind(of)} |"
        below = of.get("items", {})
        if "$ref" in below:
            yield from _fields(below, schemas, f"{prefix}{name}[].")


def _kind(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    said = str(schema.get("type", "any"))
    bounds = [("minimum", "from"), ("maximum", "to"), ("default", "else")]
    return " ".join([said, *(f"{word} {schema[name]}" for name, word in bounds if schema.get(name) not in (None, ""))])


async def _document() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{folder}/s.db", migrate=True)
        try:
            live = ExperimentApi(Experiments(store, window=86400, early=3600, levels=Levels()), "manual")
            app = admin.create(store, Deployments(store), Keys(Settings(), b"s" * 32), live, bypass=Bypass(store))
            answer = await call(app, "GET", admin.DOCUMENT)
        finally:
            store.close()
    found: dict[str, Any] = answer.json
    return found


def _flat(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    main()
