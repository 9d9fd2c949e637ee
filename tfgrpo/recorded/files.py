"""A file of recorded traffic goes into the store: each line that fits, and the name of each that does not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from tfgrpo.errors import UsageError
from tfgrpo.recorded import ours
from tfgrpo.recorded.formats import FORMATS, Piece, UnfitError
from tfgrpo.recorded.placing import Placed, Placing
from tfgrpo.store import Batch, Store
from tfgrpo.types import Label

AT_ONCE: Final = 200
"""Exchanges a transaction."""


@dataclass(slots=True)
class Import:
    """What came of a file: exchanges and labels in it by whether they are new, and each unfit line with its reason."""

    exchanges: int = 0
    new: int = 0
    labels: int = 0
    new_labels: int = 0
    unfit: list[tuple[int, str]] = field(default_factory=list)


def take(store: Store, path: Path, form: str, *, placing: Placing, app: str, set_name: str) -> Import:
    """Store the exchanges of a file. The whole file is held in memory, for its lines are placed in the order of time.

    Raises:
        UsageError: The file cannot be read.
    """
    done = Import()
    rows = list(_rows(path, done))
    if form == "tfgrpo":
        versions = {one.version for one in store.sets.versions(set_name)}
        for number, row in rows:
            try:
                batch, labels = ours.taken(row, app=app, set_name=set_name, versions=versions)
            except UnfitError as error:
                done.unfit.append((number, str(error)))
            else:
                _store(store, batch, labels, done)
        return done
    placed = placing.place(sorted(_pieces(rows, form, done), key=lambda piece: (piece.started_at, piece.id)))
    for some in _chunks(placed):
        batch = Batch(
            exchanges=tuple((exchange, bodies) for exchange, bodies, _, _ in some),
            assignments=tuple(begins for _, _, begins, _ in some if begins is not None),
        )
        _store(store, batch, [label for _, _, _, label in some if label is not None], done)
    return done


def _rows(path: Path, done: Import) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", field="file") from error
    if text.lstrip().startswith("["):
        yield from _listed(text, path, done)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            done.unfit.append((number, f"it is not JSON: {error}"))
        else:
            yield from _mapping(number, row, done)


def _listed(text: str, path: Path, done: Import) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} begins like a JSON list and is none: {error}", field="file") from error
    for number, row in enumerate(rows, 1):
        yield from _mapping(number, row, done)


def _mapping(number: int, row: Any, done: Import) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(row, dict):
        yield number, row
    else:
        done.unfit.append((number, "it is no JSON object"))


def _pieces(rows: Sequence[tuple[int, dict[str, Any]]], form: str, done: Import) -> Iterator[Piece]:
    seen: Counter[str] = Counter()
    for number, row in rows:
        try:
            piece = FORMATS[form](row)
        except UnfitError as error:
            done.unfit.append((number, str(error)))
            continue
        seen[piece.id] += 1
        if seen[piece.id] > 1:
            done.unfit.append((number, f"the id {piece.id!r} stands in an earlier line"))
        else:
            yield piece


def _store(store: Store, batch: Batch, labels: Sequence[Label], done: Import) -> None:
    new = [one.id for one, _ in batch.exchanges if store.traffic.exchange(one.id) is None]
    store.traffic.add(batch)
    done.exchanges += len(batch.exchanges)
    done.new += len(new)
    statuses = store.labels.add(labels) if labels else []
    done.labels += len(statuses)
    done.new_labels += sum(status == "stored" for status in statuses)


def _chunks(placed: Iterator[Placed]) -> Iterator[list[Placed]]:
    while some := list(islice(placed, AT_ONCE)):
        yield some
