"""The secrets that a configuration holds, as texts to look for: no lesson and no export may carry one of them.

Of checked settings every `SecretStr` is one; of sections that a command does not check, what stands under a name that
ends like a key's. It never shows what it found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel, SecretStr
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

_REFERENCE: Final = "os.environ/"
_NAMES: Final = re.compile(r"(?:^|_)(?:keys?|secret|token|password|credentials)$", re.IGNORECASE)


def of(settings: BaseModel, *, store: str) -> tuple[str, ...]:
    """Return the secrets of checked settings, and the password in the address of their store."""
    return (*checked(settings), *of_url(store))


def checked(value: object) -> Iterator[str]:
    """Yield the secrets of a settings model, or of what stands in one."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        # Not `dict(value)`: a section may have a field `keys`.
        yield from checked([getattr(value, name) for name in type(value).model_fields])
        yield from checked(value.model_extra or {})
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from checked(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from checked(inner)


def unchecked(value: object, environ: Mapping[str, str], *, named: bool = False) -> Iterator[str]:
    """Yield what stands in a configuration as YAML gives it under the name of a secret; `os.environ/NAME` resolved."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from unchecked(inner, environ, named=_NAMES.search(str(name)) is not None)
    elif isinstance(value, list):
        for inner in value:
            yield from unchecked(inner, environ, named=named)
    elif named and isinstance(value, str):
        known = environ.get(value.removeprefix(_REFERENCE)) if value.startswith(_REFERENCE) else value
        yield from [known] if known else []


def of_url(url: str) -> Iterator[str]:
    """Yield the password of a database's address."""
    try:
        password: Any = make_url(url).password
    except ArgumentError:
        return
    yield from [str(password)] if password else []
