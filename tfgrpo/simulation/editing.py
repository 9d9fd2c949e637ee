"""How the simulated optimizer edits a library: proposals from lessons, and one edit from all proposals.

A text is compared by what it says (its first feature and polarity), or by its words when it speaks of no known
behaviour. What counts as evidence is agreement between proposals; nothing here knows which features matter.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfgrpo.simulation.dials import Dials
from tfgrpo.simulation.frame import Entry, Frame
from tfgrpo.simulation.language import lesson
from tfgrpo.simulation.parsing import parse

Key = tuple[int, int] | str
"""What a text says: (feature, polarity), or its words in order when it names no feature."""

FEW = 4
"""Below so many proposals a single one is enough: there is nobody who could agree."""


def key(text: str) -> Key:
    """What `text` says, by which texts are compared."""
    mentions = parse(text)
    if mentions:
        return mentions[0].feature, mentions[0].polarity
    return " ".join(text.casefold().split())


def opposite(said: Key) -> Key | None:
    """The key that contradicts this one; None for a text that names no feature."""
    return None if isinstance(said, str) else (said[0], -said[1])


def propose(frame: Frame, rng: random.Random, dials: Dials) -> dict[str, object]:
    """The operations that one group's lessons call for, against the library as it is."""
    entries = frame.library()
    known = {key(entry.text): entry for entry in entries}
    rejected = {key(text) for text in frame.bullets("rejected")}
    operations = _merges(entries, rng)
    for text in frame.bullets("lessons"):
        said = key(text)
        against = opposite(said)
        if said in known:
            operations.append(_confirm(known[said], text, rng, dials))
            continue
        if against in known:
            operations.append(_operation("delete", [known[against].id], None, "the lessons say the opposite"))
        if said not in rejected:
            operations.append(_operation("add", [], text, "the library does not say this yet"))
    return {"operations": operations}


def _confirm(entry: Entry, text: str, rng: random.Random, dials: Dials) -> dict[str, object]:
    if rng.random() < dials.reword:
        return _operation("update", [entry.id], text, "the same lesson, said anew")
    return _operation("keep", [entry.id], None, "the lessons confirm it")


def _merges(entries: Iterable[Entry], rng: random.Random) -> list[dict[str, object]]:
    alike: defaultdict[Key, list[Entry]] = defaultdict(list)
    for entry in entries:
        alike[key(entry.text)].append(entry)
    return [
        _operation("merge", [one.id for one in same], _reworded(said, same, rng), "they say the same")
        for said, same in alike.items()
        if len(same) > 1
    ]


def _reworded(said: Key, same: Sequence[Entry], rng: random.Random) -> str:
    return same[0].text if isinstance(said, str) else lesson(said[0], said[1], rng)


@dataclass(slots=True)
class _Ballot:
    """What all proposals say together."""

    texts: defaultdict[Key, list[str]] = field(default_factory=lambda: defaultdict(list))
    kept: Counter[str] = field(default_factory=Counter)
    deleted: Counter[str] = field(default_factory=Counter)
    merged: dict[tuple[str, ...], str] = field(default_factory=dict)
    cast: int = 0

    def needed(self, dials: Dials) -> int:
        """So many proposals must agree on an edit: chance agreement grows with their number, but slower."""
        return 1 if self.cast < FEW else max(2, math.ceil(math.sqrt(self.cast) * dials.agreement))


def consolidate(frame: Frame, rng: random.Random, dials: Dials) -> dict[str, object]:
    """One edit from all proposals: what several agree on and few contradict, the best supported first."""
    entries = {entry.id: entry for entry in frame.library()}
    ballot = _count(frame.operations(), entries)
    known = {key(entry.text): entry for entry in entries.values()}
    needed = ballot.needed(dials)
    ranked: list[tuple[int, dict[str, object]]] = []
    for said, texts in ballot.texts.items():
        ranked.extend(
            _backed(
                said, texts, ballot=ballot, known=known, needed=needed, careless=rng.random() < dials.careless, rng=rng
            )
        )
    ranked.extend(_deletions(entries, ballot, needed))
    merges = [_operation("merge", list(ids), text, "they say the same") for ids, text in ballot.merged.items()]
    ranked.sort(key=lambda one: -one[0])
    return {"operations": _without_clashes(merges + [one for _, one in ranked])[: dials.operations]}


def _count(operations: Iterable[dict[str, Any]], entries: dict[str, Entry]) -> _Ballot:
    ballot = _Ballot()
    for one in operations:
        name, text = one.get("operation"), one.get("text")
        listed = one.get("ids")
        ids = [id_ for id_ in listed if isinstance(id_, str) and id_ in entries] if isinstance(listed, list) else []
        ballot.cast += 1
        if name in ("add", "update") and isinstance(text, str) and text.strip():
            ballot.texts[key(text)].append(text)
        elif name == "delete":
            ballot.deleted.update(ids)
        elif name == "keep":
            ballot.kept.update(ids)
        elif name == "merge" and len(set(ids)) > 1 and isinstance(text, str):
            ballot.merged.setdefault(tuple(dict.fromkeys(ids)), text)
    return ballot


def _backed(
    said: Key,
    texts: Sequence[str],
    *,
    ballot: _Ballot,
    known: dict[Key, Entry],
    needed: int,
    careless: bool,
    rng: random.Random,
) -> list[tuple[int, dict[str, object]]]:
    """The edit that one saying deserves by its support, if any, with the net support."""
    against = opposite(said)
    contradicting = len(ballot.texts.get(against, ())) if against is not None else 0
    net = len(texts) - contradicting
    if against in known:
        net -= ballot.kept[known[against].id]
    if (len(texts) < needed or net < needed) and not careless:
        return []
    why = f"{len(texts)} proposals say so, {contradicting} the opposite"
    text = rng.choice(texts)
    if said in known:
        return [(net, _operation("update", [known[said].id], text, why))]
    if against in known:
        return [(net, _operation("update", [known[against].id], text, why))]
    return [(net, _operation("add", [], text, why))]


def _deletions(entries: dict[str, Entry], ballot: _Ballot, needed: int) -> list[tuple[int, dict[str, object]]]:
    found = []
    for id_, votes in ballot.deleted.items():
        support = ballot.kept[id_] + len(ballot.texts.get(key(entries[id_].text), ()))
        if votes >= needed and votes > support:
            why = f"{votes} proposals speak against it, {support} for it"
            found.append((votes - support, _operation("delete", [id_], None, why)))
    return found


def _without_clashes(operations: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """Each entry is edited once; the first edit stands."""
    taken: set[object] = set()
    chosen = []
    for one in operations:
        ids = one["ids"]
        assert isinstance(ids, list)
        if taken.isdisjoint(ids):
            taken.update(ids)
            chosen.append(one)
    return chosen


def _operation(name: str, ids: list[str], text: str | None, why: str) -> dict[str, object]:
    return {"why": why, "operation": name, "ids": ids, "text": text}
