"""Our own format: JSON with everything that is known of a version, and a digest that tells whether it was edited.

What a comparison said of a version (`helps`) holds for its lessons as they were. The digest guards against a slip, not
against malice: it has no secret.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Final, Literal

import msgspec

from tfgrpo.errors import UsageError
from tfgrpo.inheritance.documents import JSON, Inherited
from tfgrpo.types import Experience, Library, Version

FORMAT: Final = "tfgrpo experience set"
FORMAT_VERSION: Final = 1

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_Status = Literal["unproven", "helps", "hurts", "no effect shown", "by hand"]
"""What a version that is kept may be; a library under test is none."""
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class _Entry(msgspec.Struct, frozen=True):
    id: str
    text: str
    sources: tuple[str, ...] = ()
    support: _Count = 1


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """The file as it stands there. Keys that are not known are passed over: a later release may add some."""

    format: str
    format_version: _Count
    set: str
    version: _Count
    status: _Status
    created_at: float = 0.0
    parent: _Count | None = None
    policy_model: str | None = None
    run: str | None = None
    note: str = ""
    next_id: _Count = 1
    experiences: tuple[_Entry, ...]
    digest: str = ""


def write(version: Version) -> str:
    """Return a version as JSON. Reading it gives the same version."""
    entries = [
        {"id": one.id, "text": one.text, "sources": list(one.sources), "support": one.support}
        for one in version.library.experiences
    ]
    values = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "set": version.set,
        "version": version.version,
        "status": version.status,
        "created_at": version.created_at,
        "parent": version.parent,
        "policy_model": version.policy_model,
        "run": version.run,
        "note": version.note,
        "next_id": version.library.next_id,
        "experiences": entries,
        "digest": digest(version),
    }
    return msgspec.json.format(msgspec.json.encode(values), indent=2).decode() + "\n"


def read(values: JSON, name: str) -> Inherited:
    """Return what a file of this format holds.

    Raises:
        UsageError: a key is missing, of another type or unknown kind; the message names its path.
    """
    if values["format"] != FORMAT:
        raise UsageError(f"{name}: format: {values['format']!r} is not known; `sets export` writes {FORMAT!r}")
    if isinstance(values.get("format_version"), int) and values["format_version"] > FORMAT_VERSION:
        raise UsageError(
            f"{name}: format_version: {values['format_version']} is of a later release; this one reads {FORMAT_VERSION}"
        )
    try:
        file = msgspec.convert(values, _File)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: {str(error).replace('$.', '')}") from error
    version = _version(file, name)
    return Inherited(
        name=name,
        form="our JSON",
        experiences=version.library.experiences,
        version=version,
        intact=file.digest == digest(version),
        policy_model=file.policy_model,
    )


def digest(version: Version) -> str:
    """Return a digest of a version's lessons and of what is said of them."""
    entries = [[one.id, one.text, one.sources, one.support] for one in version.library.experiences]
    said = [version.status, version.parent, version.policy_model, version.run, entries]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _version(file: _File, name: str) -> Version:
    seen: set[str] = set()
    for place, entry in enumerate(file.experiences):
        if not _ID.fullmatch(entry.id):
            raise UsageError(f"{name}: experiences[{place}].id: letters, digits, '.', '_' and '-', at most 64")
        if entry.id in seen:
            raise UsageError(f"{name}: experiences[{place}].id: {entry.id} stands there twice")
        seen.add(entry.id)
    entries = tuple(Experience(one.id, one.text, one.sources, one.support) for one in file.experiences)
    return Version(
        set=file.set,
        version=file.version,
        library=Library(entries, file.next_id),
        status=file.status,
        created_at=file.created_at,
        parent=file.parent,
        policy_model=file.policy_model,
        run=file.run,
        note=file.note,
    )
