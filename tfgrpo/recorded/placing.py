"""Recorded exchanges become trajectories: a request that carries an earlier answer continues it.

The evidence is that of the live path (`tfgrpo.trajectories`). Ids are hashes of what was recorded, so that the same
file gives the same rows, and importing it again adds nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from tfgrpo.dialects.chat import Chat
from tfgrpo.recorded.formats import Piece
from tfgrpo.trajectories import Patterns, Sought, answer_keys, chain, group_key, request_keys, scope
from tfgrpo.types import Assignment, Bodies, Exchange, Label, Request, Response

Placed: TypeAlias = tuple[Exchange, Bodies, Assignment | None, Label | None]
"""An exchange, its bodies, what its trajectory was given if it begins one, and its label."""

UPSTREAM: Final = "imported"
_CHAT: Final = Chat()


class Placing:
    """Places the pieces of one file, in the order of time. `ignore` and `system` say which requests are one task."""

    def __init__(self, app: str, set_name: str, *, ignore: Patterns, system: bool) -> None:
        self._app, self._set = app, set_name
        self._ignore, self._system = ignore, system
        self._found: dict[str, list[tuple[Exchange, str]]] = {}
        self._continued: set[str] = set()

    def place(self, pieces: Iterable[Piece]) -> Iterator[Placed]:
        """Yield each exchange with what belongs to it."""
        for piece in pieces:
            request, response = json.dumps(piece.request).encode(), json.dumps(piece.response).encode()
            asked, answered = _CHAT.read_request(request), _CHAT.read_response(response, "application/json")
            if asked is not None and answered is not None:
                bodies = Bodies(request, response, response_type="application/json")
                yield self._placed(piece, bodies, asked, answered)

    def _placed(self, piece: Piece, bodies: Bodies, asked: Request, answered: Response) -> Placed:
        within = scope(self._app, self._set)
        said = chain(within, asked, self._ignore)
        parent = self._parent(request_keys(within, asked, said))
        name = "imported-" + _digest(self._app, self._set, piece.id)
        exchange = self._exchange(piece, name, parent, asked, answered)
        for key in answer_keys(within, said, answered):
            self._found.setdefault(key, []).append((exchange, said.system))
        begins = None if parent else self._assignment(exchange)
        return exchange, bodies, begins, self._label(piece, exchange)

    def _parent(self, keys: Iterable[Sought]) -> Exchange | None:
        """Return the oldest exchange that has this evidence and no child; then the new one continues it."""
        for sought in keys:
            known = self._found.get(sought.key, [])
            same = [of for of in known if of[1] == sought.system] if sought.system else []
            for one, _ in (*same, *known):
                if one.id not in self._continued:
                    self._continued.add(one.id)
                    return one
        return None

    def _group(self, asked: Request) -> str:
        return group_key(
            app=self._app,
            set_name=self._set,
            model=asked.model,
            request=asked,
            ignore=self._ignore,
            system=self._system,
        )

    def _exchange(
        self, piece: Piece, name: str, parent: Exchange | None, asked: Request, answered: Response
    ) -> Exchange:
        return Exchange(
            id=name,
            app=self._app,
            set=self._set,
            version=0,
            arm="none",
            trajectory=parent.trajectory if parent else name,
            group=parent.group if parent else self._group(asked),
            dialect=_CHAT.name,
            method="POST",
            path="/v1/chat/completions",
            model=piece.request["model"] if isinstance(piece.request["model"], str) else None,
            upstream=UPSTREAM,
            credential="",
            outcome="complete" if answered.complete else "broken",
            status=200,
            started_at=piece.started_at,
            first_byte_at=None,
            ended_at=piece.ended_at,
            completion_id=piece.id,
            prompt_tokens=answered.prompt_tokens,
            completion_tokens=answered.completion_tokens,
            parent=parent.id if parent else None,
            choices=asked.n,
            finish_reason=answered.choices[0].finish_reason if answered.choices else None,
            note="imported",
        )

    def _assignment(self, first: Exchange) -> Assignment:
        return Assignment(
            first.trajectory, self._app, self._set, 0, "none", None, 0, first.group, first.model, first.started_at
        )

    def _label(self, piece: Piece, exchange: Exchange) -> Label | None:
        if piece.reward is None:
            return None
        name = f"{exchange.id}-reward"
        return Label(name, self._app, exchange.id, None, 0, "reward", piece.reward, "import", "", piece.ended_at)


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
