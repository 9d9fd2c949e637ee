"""The OpenAPI document of the admin API and of feedback, made from the routes and models that serve them.

Paths and methods come from the routes, what is said of them from the handlers' docstrings, bodies from the pydantic
models that check them. What a signature does not hold, which model and which query a call reads, stands in the tables
here; a test holds them to the routes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.routing import Route

from proxy.admin_bypass import NewBypass
from proxy.admin_reviews import Approval, Rejection
from proxy.admin_sets import NewDeployment, NewVersion, Rollback
from proxy.admin_traffic import LONGEST_PAGE, PAGE, SECONDS
from proxy.admin_withdrawals import NewWithdrawal
from proxy.feedback import Feedback

JSON: Final = "application/json"

BODIES: Final[Mapping[str, type[BaseModel]]] = {
    "add_version": NewVersion,
    "deploy": NewDeployment,
    "rollback": Rollback,
    "switch": NewBypass,
    "approve": Approval,
    "reject": Rejection,
    "withdraw": NewWithdrawal,
}
"""The model of what a call takes, by the name of its handler."""

OPTIONAL: Final = frozenset({"rollback", "approve"})
"""Calls whose body may be left out."""

_TEXT: Final = {"type": "string"}
QUERIES: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "exchanges": {
        "limit": {"type": "integer", "minimum": 1, "maximum": LONGEST_PAGE, "default": PAGE},
        "next": {"type": "string", "description": "`next` of the page before, with the same query beside it"},
        "before": {"type": "number", "description": "a time: those that began before it"},
        "app": _TEXT,
        "set": _TEXT,
        "trajectory": {"type": "string", "description": "found at once beside its `app`"},
    },
    "trajectory": {"app": _TEXT},
    "experiment": {"revision": {"type": "integer", "minimum": 0, "maximum": 999_999_999}},
}
"""The query parameters of a call, by the name of its handler; any other is refused."""

ANSWERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "exchanges": {
        "exchanges": {"type": "array", "items": {"type": "object"}, "description": "may be none where `next` is there"},
        "next": {
            "anyOf": [{"type": "string"}, {"type": "null"}],
            "description": "sent as `next`, goes on behind this page; null: that was all",
        },
        "back_to": {
            "anyOf": [{"type": "number"}, {"type": "null"}],
            "description": f"a time: its {SECONDS:g} s were over, and nothing older was looked at; null: the page is "
            "full, or that was all",
        },
    }
}
"""What the answer of a call holds, all of it always there, by the name of its handler."""

_CONVERTED: Final = re.compile(r"\{(\w+)(?::(\w+))?\}")
_COMPONENT: Final = "#/components/schemas/{model}"
_ERROR: Final = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string", "description": "what happened, and what to do"},
                "type": {"const": "proxy_error"},
                "param": {"type": ["string", "null"], "description": "the field at fault"},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}


class Calls(Route):
    """A route that knows the handler of each method."""

    def __init__(self, path: str, endpoint: Any, handlers: Mapping[str, Any]) -> None:
        super().__init__(path, endpoint, methods=list(handlers))
        self.handlers = handlers


def document(routes: Iterable[Calls]) -> dict[str, Any]:
    """Return the document of these routes and of feedback."""
    models: list[type[BaseModel]] = [*BODIES.values(), Feedback]
    _, schemas = models_json_schema([(one, "validation") for one in models], ref_template=_COMPONENT)
    paths: dict[str, Any] = {"/v1/feedback": {"post": _feedback()}}
    for route in routes:
        shown = _CONVERTED.sub(r"{\1}", route.path)
        paths[shown] = {method.lower(): _call(route.path, handler) for method, handler in route.handlers.items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tfgrpo-proxy",
            "version": version("tfgrpo-proxy"),
            "description": "The control plane and feedback. What is relayed is described by its upstream.",
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": {**schemas["$defs"], "Error": _ERROR},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _call(path: str, handler: Any) -> dict[str, Any]:
    name = handler.__name__
    made = {
        "operationId": name,
        "summary": _summary(handler),
        "parameters": [*_path_parameters(path), *_query_parameters(name)],
        "responses": _responses(201 if name == "add_version" else 200, _answer(name)),
    }
    if name in BODIES:
        made["requestBody"] = _body(_reference(BODIES[name]), required=name not in OPTIONAL)
    return made


def _summary(handler: Any) -> str:
    return (inspect.getdoc(handler) or "").partition("\n")[0]


def _path_parameters(path: str) -> list[dict[str, Any]]:
    # Starlette's `int` takes digits alone, `path` any text, slashes included.
    kinds: dict[str | None, dict[str, Any]] = {"int": {"type": "integer", "minimum": 0}}
    return [
        {"name": name, "in": "path", "required": True, "schema": kinds.get(kind, {"type": "string", "minLength": 1})}
        for name, kind in _CONVERTED.findall(path)
    ]


def _query_parameters(name: str) -> list[dict[str, Any]]:
    return [{"name": one, "in": "query", "schema": dict(schema)} for one, schema in QUERIES.get(name, {}).items()]


def _answer(name: str) -> dict[str, Any]:
    held = ANSWERS.get(name, {})
    return {"type": "object", **({"required": list(held), "properties": dict(held)} if held else {})}


def _feedback() -> dict[str, Any]:
    one = _reference(Feedback)
    stored = {"type": "object", "required": ["feedback_id", "status"]}
    return {
        "operationId": "feedback",
        # Where no apps are configured, whoever made an exchange may label it, with a key or without.
        "security": [{"key": []}, {}],
        "summary": "Label an exchange or a trajectory: one label, or a list of them, all or none.",
        "requestBody": _body({"anyOf": [one, {"type": "array", "items": one}]}, required=True),
        "responses": _responses(200, {"anyOf": [stored, {"type": "array", "items": stored}]}),
    }


def _reference(model: type[BaseModel]) -> dict[str, Any]:
    return {"$ref": _COMPONENT.format(model=model.__name__)}


def _body(schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    return {"required": required, "content": {JSON: {"schema": schema}}}


def _responses(status: int, schema: dict[str, Any]) -> dict[str, Any]:
    refused = {"description": "refused: why", "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}}
    return {
        str(status): {"description": "done", "content": {JSON: {"schema": schema}}},
        "4XX": refused,
        "503": refused,
    }
