"""The process of the grader `json_schema`: whether an answer is JSON that fits a schema, and if not what does not fit.

The answer is JSON as a whole, or holds it in a fenced block, of which the last counts. Nothing is repaired: a program
that reads the answer would not do so either. Schemas are not fetched from anywhere.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import jsonschema
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry

from tfgrpo.checks.serving import JSON, Judgement, serve

MOST_FAULTS: Final = 5

_FENCED: Final = re.compile(r"^[ \t]*```[\w-]*[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)


def prepare(arguments: JSON) -> Judgement:
    """Return the judgement by `schema`, or without one by each task's reference."""
    given = arguments.get("schema")
    fixed = None if given is None else _validator(given)

    def judged(answer: str, reference: str | None, _: JSON) -> tuple[float, str | None]:
        validator = fixed if fixed is not None else _validator(_read(reference or ""))
        faults = _faults(validator, answer)
        return (0.0, "; ".join(faults)) if faults else (1.0, None)

    return judged


def _read(reference: str) -> Any:
    try:
        return json.loads(reference)
    except ValueError as error:
        raise ValueError(f"the reference {reference[:60]!r} is no JSON schema: {error}") from error


def _validator(schema: Any) -> Validator:
    kind = validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"the schema is none, at {error.json_path}: {error.message}") from error
    # An empty registry: by default an unknown reference is fetched from the network.
    return kind(schema, registry=Registry())


def _faults(validator: Validator, answer: str) -> list[str]:
    fenced = _FENCED.findall(answer)
    try:
        value = json.loads(fenced[-1] if fenced else answer)
    except (ValueError, RecursionError) as error:
        return [f"the answer is not JSON: {error}"]
    found = sorted(validator.iter_errors(value), key=lambda error: (error.json_path, error.message))
    said = [f"{error.json_path}: {error.message[:200]}" for error in found[:MOST_FAULTS]]
    return [*said, f"{len(found) - MOST_FAULTS} more"] if len(found) > MOST_FAULTS else said


if __name__ == "__main__":
    serve(prepare)
