"""What of a request is handed to litellm: the fields that the called API defines, and no other.

litellm takes control parameters and a request's fields in one bag and obeys both: an address, a mock answer, a fallback
to another provider. A list of what must not come in would be outdated with its next release, so this is a list of what
may. Pure; litellm is not known here, only what it can be asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from proxy.errors import ProxyError
from proxy.json_bodies import parsed

JSON = dict[str, Any]

_SAMPLED: Final = "model seed stop stream stream_options temperature top_p user n logit_bias max_tokens"
_PENALTIES: Final = "frequency_penalty presence_penalty"

_MODEL: Final = re.compile(r"(?!.*(?:\.\.|//))[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")
"""Some providers have the model in the address they are called at; none of these characters can change that."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An API that litellm carries. `call` is its function there, `done` what ends a stream, `named` frames events."""

    call: str
    needs: str
    takes: frozenset[str]
    done: bytes = b"data: [DONE]\n\n"
    named: bool = False


def _taking(*names: str) -> frozenset[str]:
    return frozenset(" ".join(names).split())


OPERATIONS: Final[Mapping[str, Operation]] = {
    "/chat/completions": Operation(
        "acompletion",
        "messages",
        _taking(
            _SAMPLED,
            _PENALTIES,
            "messages audio function_call functions logprobs max_completion_tokens metadata modalities",
            "parallel_tool_calls prediction prompt_cache_key prompt_cache_retention reasoning_effort response_format",
            "safety_identifier service_tier store tool_choice tools top_logprobs verbosity web_search_options",
            # Not OpenAI's, but what clients of OpenAI-compatible endpoints send to the models behind them.
            "thinking top_k",
        ),
    ),
    "/completions": Operation(
        "atext_completion", "prompt", _taking(_SAMPLED, _PENALTIES, "prompt best_of echo logprobs suffix")
    ),
    "/embeddings": Operation("aembedding", "input", _taking("model input dimensions encoding_format user")),
    "/responses": Operation(
        "aresponses",
        "input",
        _taking(
            "model input include instructions max_output_tokens max_tool_calls metadata parallel_tool_calls",
            "prompt_cache_key reasoning safety_identifier service_tier store stream temperature text tool_choice tools",
            "top_logprobs top_p truncation user",
        ),
        done=b"",
        named=True,
    ),
}


def operation(method: str, below: str, upstream: str) -> Operation:
    """Return how litellm carries a request; ProxyError 404 when it does not."""
    found = OPERATIONS.get(below.removesuffix("/")) if method == "POST" else None
    if found is None:
        carried = ", ".join(OPERATIONS)
        raise ProxyError(
            404,
            f"{method} {below[:200]} is not carried to the upstream {upstream!r}, which is reached through litellm; "
            f"what is: GET /models, POST to {carried}",
            code="not_carried",
        )
    return found


def fields(body: bytes, asked: Operation) -> JSON:
    """Return the fields of a body, checked.

    Raises:
        ProxyError: 400, it is no JSON object, lacks what the API needs, or holds a field that is not taken.
    """
    value = parsed(body)
    if not isinstance(value, dict):
        raise ProxyError(400, "the body must be a JSON object", code="invalid_json")
    for name in value:
        if name not in asked.takes:
            raise _refusal(name, "is not taken by an upstream that is reached through litellm", code="unknown_field")
    for name in ("model", asked.needs):
        if value.get(name) is None:
            raise _refusal(name, "is missing")
    if not isinstance(value["model"], str) or not _MODEL.fullmatch(value["model"]):
        raise _refusal("model", "is no name of a model")
    if not isinstance(value.get("stream") or False, bool):
        raise _refusal("stream", "must be true or false")
    _check_types(value)
    _check_numbers(value)
    return value


def _check_types(value: JSON) -> None:
    """Refuse what litellm would read as more than the API defines, or stumble over."""
    messages = value.get("messages", [])
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        raise _refusal("messages", "must be a list of objects")
    metadata = value.get("metadata") or {}
    if not isinstance(metadata, dict) or not all(isinstance(one, str) for one in metadata.values()):
        # litellm keeps its own notes there, and follows them.
        raise _refusal("metadata", "must be an object of texts")
    tools = value.get("tools") or []
    if not isinstance(tools, list) or not all(isinstance(one, dict) for one in tools):
        raise _refusal("tools", "must be a list of objects")
    if any(one.get("type") == "mcp" for one in tools):
        # litellm itself would call some of them.
        raise _refusal("tools", "of the type mcp are not taken by an upstream that is reached through litellm")
    if not isinstance(value.get("stream_options") or {}, dict):
        raise _refusal("stream_options", "must be an object")


def _check_numbers(value: JSON) -> None:
    """Refuse what was read and cannot be written as JSON again: NaN, 1e400."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise ProxyError(400, "the body holds a number that is not finite", code="invalid_json") from error


def _refusal(name: str, said: str, *, code: str = "invalid_value") -> ProxyError:
    shown = name[:200]
    return ProxyError(400, f"{shown!r} {said}", code=code, param=shown)
