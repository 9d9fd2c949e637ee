"""One recorded exchange out of one line: OpenAI's stored chat completions, LiteLLM's spend logs.

Fields of LiteLLM are those of its table `LiteLLM_SpendLogs`; messages and answers stand in it only where
`store_prompts_in_spend_logs` is on. Keys, users and addresses in a log are never read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

JSON: TypeAlias = dict[str, Any]

_PARAMETERS: Final = (
    "temperature",
    "top_p",
    "n",
    "stop",
    "tools",
    "tool_choice",
    "response_format",
    "seed",
    "max_tokens",
)


class UnfitError(ValueError):
    """A line that holds no exchange; the text says why."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A chat completion as it was asked and answered. Times are Unix seconds; `reward` in [0, 1] where there is one."""

    id: str
    request: JSON
    response: JSON
    started_at: float
    ended_at: float
    reward: float | None = None


def stored_completion(line: JSON) -> Piece:
    """Read a stored chat completion: its own fields, and its input `messages` (a list, or a page of one)."""
    messages = line.get("messages")
    if isinstance(messages, dict):
        messages = messages.get("data")
    created = _time(line.get("created"), "created")
    answer = {key: value for key, value in line.items() if key not in ("messages", "metadata")}
    return _piece(line, _asked(line, messages, line.get("model")), answer, (created, created))


def spend_log(line: JSON) -> Piece:
    """Read a row of LiteLLM's spend logs, as JSON of its API or of its table."""
    if line.get("status") == "failure":
        raise UnfitError("the call failed, so there is nothing to learn from")
    asked = _object(line.get("proxy_server_request"))
    messages = _value(line.get("messages")) or asked.get("messages")
    answer = _object(line.get("response"))
    started = _time(line.get("startTime"), "startTime")
    ended = _time(line.get("endTime"), "endTime") if line.get("endTime") else started
    model = line.get("model_group") or line.get("model")
    given = {**line, "id": line.get("request_id"), "metadata": _object(line.get("metadata"))}
    return _piece(given, _asked(asked, messages, model), answer, (started, ended))


FORMATS: Final[Mapping[str, Callable[[JSON], Piece]]] = {"openai": stored_completion, "litellm": spend_log}
"""What reads a line, by the name of its format."""


def _piece(line: JSON, request: JSON, response: JSON, times: tuple[float, float]) -> Piece:
    if not isinstance(response.get("choices"), list) or not response["choices"]:
        raise UnfitError("it holds no answer: `choices` is missing or empty")
    name = line.get("id") or response.get("id")
    if not isinstance(name, str) or not name:
        raise UnfitError("it has no id")
    return Piece(name, request, {"id": name, **response}, *times, reward=_reward(line))


def _asked(fields: JSON, messages: Any, model: Any) -> JSON:
    if not isinstance(messages, list) or not messages:
        raise UnfitError("it holds no `messages`: what was asked was not kept")
    kept = {name: fields[name] for name in _PARAMETERS if fields.get(name) is not None}
    return {"model": model, "messages": messages, **kept}


def _reward(line: JSON) -> float | None:
    metadata = line.get("metadata")
    found = line.get("reward", metadata.get("reward") if isinstance(metadata, dict) else None)
    if found is None:
        return None
    try:
        value = float(found)
    except (TypeError, ValueError):
        value = -1.0
    if not 0 <= value <= 1:
        raise UnfitError(f"reward is {found!r}; it is a number in [0, 1]")
    return value


def _time(value: Any, name: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise UnfitError(f"{name} is {value!r}; it is a time such as 2026-01-31T12:00:00Z or Unix seconds") from error
    # LiteLLM's table keeps UTC without saying so.
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _object(value: Any) -> JSON:
    found = _value(value)
    return found if isinstance(found, dict) else {}


def _value(value: Any) -> Any:
    """Return a JSON value that may stand there as text of JSON, as LiteLLM writes it."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return None
