"""What commands print: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfgrpo.errors import UsageError
from tfgrpo.types import Deployment, Operation, Version


def emit(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print a result as JSON."""
    say(json.dumps(value, ensure_ascii=False, indent=2))


def say(text: str) -> None:
    """Print a result for people."""
    # Lone surrogates of logged text cannot be encoded; they must not end the command.
    sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")


def write(text: str, path: Path | None) -> None:
    """Write a result to a file, or without one print it; UsageError when the file cannot be written."""
    if path is None:
        say(text.removesuffix("\n"))
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", field="output") from error


def note(text: str) -> None:
    """Tell the person something that is not the result."""
    sys.stderr.write(f"tfgrpo: {text}\n")


def of_version(version: Version) -> dict[str, Any]:
    """Return a version as JSON, with its experiences and their provenance."""
    return {
        "set": version.set,
        "version": version.version,
        "status": version.status,
        "parent": version.parent,
        "policy_model": version.policy_model,
        "run": version.run,
        "note": version.note,
        "created_at": version.created_at,
        "experiences": [
            {"id": one.id, "text": one.text, "sources": list(one.sources), "support": one.support}
            for one in version.library.experiences
        ],
    }


def of_deployment(deployment: Deployment) -> dict[str, Any]:
    """Return a deployment as JSON."""
    return {
        "set": deployment.set,
        "revision": deployment.revision,
        "live": deployment.live,
        "candidate": deployment.candidate,
        "shares": dict(deployment.shares),
        "action": deployment.action,
        "reason": deployment.reason,
        "actor": deployment.actor,
        "created_at": deployment.created_at,
    }


def of_operation(operation: Operation) -> dict[str, Any]:
    """Return an operation as JSON."""
    return {
        "operation": operation.operation,
        "ids": list(operation.ids),
        "text": operation.text,
        "why": operation.why,
        "sources": list(operation.sources),
    }
