"""Our own export of traffic: one trajectory a line, with its exchanges, bodies and labels, without any credential."""

from __future__ import annotations

import base64
import json
from collections.abc import Container, Iterator, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from tfgrpo.recorded.formats import UnfitError
from tfgrpo.store import Batch, Store
from tfgrpo.types import Assignment, Bodies, Exchange, Label

JSON: TypeAlias = dict[str, Any]
FORMAT: Final = "tfgrpo traffic 1"
_T = TypeVar("_T")
_RAW: Final = ("request", "response")


def lines(store: Store, *, set_name: str | None, unnamed: bool) -> Iterator[str]:
    """Yield the trajectories of one set, of none (`unnamed`), or of all that can be learned from."""
    for attempt in store.learnable.attempts(set_name=set_name, unnamed=unnamed):
        given = store.traffic.assignment(attempt.app, attempt.trajectory)
        exchanges = store.traffic.trajectory(attempt.app, attempt.trajectory)
        bodies = store.traffic.bodies([one.id for one in exchanges])
        labels = store.labels.of_trajectory(attempt.app, attempt.trajectory)
        whole = {
            "format": FORMAT,
            "assignment": None if given is None else asdict(given),
            "exchanges": [_written(one, bodies.get(one.id)) for one in exchanges],
            "labels": [asdict(replace(one, credential="")) for one in labels],
        }
        yield json.dumps(whole)


def taken(line: JSON, *, app: str, set_name: str, versions: Container[int]) -> tuple[Batch, list[Label]]:
    """Return what a line records, as traffic of this app and set, which has these `versions`.

    Raises:
        UnfitError: The line is no trajectory of such an export, or was given a version that is not there.
    """
    if line.get("format") != FORMAT:
        raise UnfitError(f"`format` is not {FORMAT!r}: it is no line of `tfgrpo traffic export --format tfgrpo`")
    try:
        assignment = _read(line["assignment"], Assignment)
        exchanges = [(_read(one, Exchange), _bodies(one)) for one in line["exchanges"]]
        labels = [_read(one, Label) for one in line["labels"]]
    except (KeyError, TypeError, ValueError) as error:
        raise UnfitError(f"it is damaged: {error}") from error
    missing = sorted({one.version for one, _ in exchanges if one.version and one.version not in versions})
    if missing:
        raise UnfitError(f"it was given {set_name}@{missing[0]}, which is not here; import that version first")
    return Batch(
        exchanges=tuple((replace(one, app=app, set=set_name, credential=""), bodies) for one, bodies in exchanges),
        assignments=(replace(assignment, app=app, set=set_name),),
    ), [replace(one, app=app, credential="") for one in labels]


def _written(exchange: Exchange, bodies: Bodies | None) -> JSON:
    kept = asdict(bodies if bodies is not None else Bodies())
    packed = {name: base64.b64encode(kept[name]).decode() for name in _RAW}
    return {**asdict(replace(exchange, credential="")), "bodies": {**kept, **packed}}


def _bodies(fields: Mapping[str, Any]) -> Bodies:
    kept = fields["bodies"]
    return _read({**kept, **{name: base64.b64decode(kept[name], validate=True) for name in _RAW}}, Bodies)


def _read(value: Any, kind: type[_T]) -> _T:
    return msgspec.convert(value, kind)
