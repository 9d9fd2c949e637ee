"""What the answer of a chat endpoint says: its text, what it took, whether it was cut. It trusts no form."""

from __future__ import annotations

from typing import Any, TypeAlias

from tfgrpo.errors import RequestRefused
from tfgrpo.usage import Tokens

JSON: TypeAlias = dict[str, Any]


def text(answer: JSON) -> str:
    """Return what the first choice says, "" when that is nothing: no content, or thoughts alone.

    Raises:
        RequestRefused: there is no choice with a message.
    """
    try:
        return _text(answer["choices"][0]["message"]["content"])
    except (KeyError, IndexError, TypeError) as error:
        raise RequestRefused("the answer holds no choice with a message") from error


def tokens(answer: JSON) -> Tokens | None:
    """Return what the answer took, None where it does not say."""
    usage = answer.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    prompt, completion = _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens"))
    if prompt is None or completion is None:
        return None
    cached = _detail(counts, "prompt_tokens_details", "cached_tokens")
    reasoning = _detail(counts, "completion_tokens_details", "reasoning_tokens")
    return Tokens(prompt, completion, min(cached, prompt), min(reasoning, completion))


def is_cut(answer: JSON) -> bool:
    """Whether the first choice met the endpoint's limit of length."""
    return bool(answer["choices"][0].get("finish_reason") == "length")


def _text(content: Any) -> str:
    """Some endpoints give a text in parts."""
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _detail(counts: JSON, group: str, name: str) -> int:
    details = counts.get(group)
    return (_count(details.get(name)) or 0) if isinstance(details, dict) else 0


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
