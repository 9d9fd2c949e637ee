"""The models of the configuration, as `GET /v1/models` lists them: litellm has no such list of a provider's.

Patterns stand for models that nobody here can name; they are left out. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from proxy.errors import ProxyError

_PATH: Final = "/models"


def answer(method: str, below: str, models: Mapping[str, str]) -> bytes | None:
    """Return the list, or the one model that a path asks for; None when it asks for something else.

    `models` holds the owners by the names of models, in order.

    Raises:
        ProxyError: 404, there is no such model.
    """
    path = below.removesuffix("/")
    if method != "GET" or not (path == _PATH or path.startswith(f"{_PATH}/")):
        return None
    if path == _PATH:
        return _json({"object": "list", "data": [_model(name, owner) for name, owner in models.items()]})
    name = unquote(path[len(_PATH) + 1 :])
    if name not in models:
        raise ProxyError(
            404,
            f"the configuration names no model {name[:200]!r}; what a pattern stands for is not listed",
            code="model_not_found",
            param="model",
        )
    return _json(_model(name, models[name]))


def _model(name: str, owner: str) -> dict[str, Any]:
    # When it was made is not known; the field is needed, and a number.
    return {"id": name, "object": "model", "created": 0, "owned_by": owner}


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
