"""Whom a label speaks of, and whether the caller may judge it.

A genuine exchange id of the caller's own needs no record. Anything else is looked up among what is recorded and what
waits to be; a record that is still on its way is waited for. What belongs to someone else is answered like what does
not exist.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from proxy import json_bodies
from proxy.auth import Headers, Identity, Keys
from proxy.errors import ProxyError
from proxy.exchange_ids import ExchangeIds
from proxy.recording import Recorder
from proxy.settings import DEFAULT_APP
from tfgrpo.store import Store
from tfgrpo.types import Exchange

PATIENCE = 2.0
"""How long a record that is on its way is waited for, in seconds."""

FIRST_PAUSE = 0.025
LONGEST_PAUSE = 0.25
LOOKED_AT = 50
"""How many exchanges of a trajectory are looked at to find one that the caller made."""

TargetField = Literal["completion_id", "exchange_id", "trajectory_id"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a label names: the field, its value, the choice, and where the label stands in what was sent."""

    field: TargetField
    value: str
    choice: int
    where: str

    @property
    def param(self) -> str:
        """How the field is called in an error."""
        return json_bodies.path(self.where, self.field)


@dataclass(frozen=True, slots=True)
class Target:
    """What a label is stored for: an exchange or a trajectory of `app`. `credential` is the labeller's."""

    app: str
    credential: str
    exchange: str | None = None
    trajectory: str | None = None


@dataclass(frozen=True, slots=True)
class _Caller:
    headers: Headers
    identity: Identity


class Targets:
    """Finds what labels name. `apps` are the configured ones."""

    def __init__(
        self,
        store: Store,
        recorder: Recorder,
        ids: ExchangeIds,
        keys: Keys,
        apps: Sequence[str] = (),
        *,
        patience: float = PATIENCE,
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._ids = ids
        self._keys = keys
        self._apps = (*apps, DEFAULT_APP)
        self._patience = patience

    async def find(self, wanted: Sequence[Wanted], headers: Headers) -> list[Target]:
        """Return what each label names.

        Raises:
            ProxyError: 404 for what does not exist or is not the caller's, 409 for what is ambiguous, 400 for a choice
                that there is not; the first in order.
            StoreError: The store did not answer.
        """
        caller = _Caller(headers, self._keys.labels_for(headers))
        found: dict[int, Target] = {}
        deadline, pause = time.monotonic() + self._patience, FIRST_PAUSE
        while True:
            found |= await asyncio.to_thread(self._round, wanted, caller, found)
            missing = [one for number, one in enumerate(wanted) if number not in found]
            left = deadline - time.monotonic()
            if not missing:
                return [found[number] for number in range(len(wanted))]
            if left <= 0:
                raise _absent(missing[0])
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _round(self, wanted: Sequence[Wanted], caller: _Caller, known: dict[int, Target]) -> dict[int, Target]:
        # What waits is read first: a record that is written in between is then seen twice, and not never.
        waiting = [exchange for exchange, _ in self._recorder.unwritten()]
        look = {"completion_id": self._completion, "exchange_id": self._exchange, "trajectory_id": self._trajectory}
        found = {
            number: look[one.field](one, caller, waiting) for number, one in enumerate(wanted) if number not in known
        }
        return {number: target for number, target in found.items() if target is not None}

    def _completion(self, wanted: Wanted, caller: _Caller, waiting: Sequence[Exchange]) -> Target | None:
        here = [one for one in waiting if one.completion_id == wanted.value]
        there = self._store.traffic.by_completion(wanted.value)
        mine = {one.id: one for one in (*here, *there) if self._may_label(caller, one)}
        if len(mine) > 1:
            raise ProxyError(
                409,
                f"{wanted.param}: {len(mine)} exchanges were answered with {wanted.value!r}; "
                "name one by exchange_id, from the response header x-tfgrpo-exchange",
                code="ambiguous",
                param=wanted.param,
            )
        return next((_of_exchange(wanted, caller, one) for one in mine.values()), None)

    def _exchange(self, wanted: Wanted, caller: _Caller, waiting: Sequence[Exchange]) -> Target | None:
        if not self._ids.genuine(wanted.value):
            raise _absent(wanted, final=True)
        app, credential = caller.identity.app, caller.identity.credential
        owned = self._ids.owned(wanted.value, app, credential)
        if owned and wanted.choice == 0:
            return Target(app, credential, exchange=wanted.value)
        record = next((one for one in waiting if one.id == wanted.value), None)
        record = record or self._store.traffic.exchange(wanted.value)
        if record is None:
            return Target(app, credential, exchange=wanted.value) if owned else None
        if not (owned or self._may_label(caller, record)):
            raise _absent(wanted, final=True)
        return _of_exchange(wanted, caller, record)

    def _trajectory(self, wanted: Wanted, caller: _Caller, waiting: Sequence[Exchange]) -> Target | None:
        apps = [app for app in self._apps if self._has_trajectory(app, wanted.value, caller, waiting)]
        if len(apps) > 1:
            raise ProxyError(
                409,
                f"{wanted.param}: {len(apps)} apps have a trajectory {wanted.value!r}; use a key of the one you mean",
                code="ambiguous",
                param=wanted.param,
            )
        return Target(apps[0], caller.identity.credential, trajectory=wanted.value) if apps else None

    def _has_trajectory(self, app: str, trajectory: str, caller: _Caller, waiting: Sequence[Exchange]) -> bool:
        """Say whether the app has the trajectory and the caller may judge it."""
        traffic = self._store.traffic
        if app != DEFAULT_APP and self._keys.may_label(caller.headers, app=app, credential=""):
            return traffic.assignment(app, trajectory) is not None
        here = [one for one in waiting if (one.app, one.trajectory) == (app, trajectory)]
        there = traffic.page(app=app, trajectory=trajectory, limit=LOOKED_AT)
        return any(self._may_label(caller, one) for one in (*here, *there))

    def _may_label(self, caller: _Caller, exchange: Exchange) -> bool:
        return self._keys.may_label(caller.headers, app=exchange.app, credential=exchange.credential)


def _of_exchange(wanted: Wanted, caller: _Caller, exchange: Exchange) -> Target:
    if wanted.choice >= exchange.choices:
        param = json_bodies.path(wanted.where, "choice")
        raise ProxyError(
            400,
            f"{param} is {wanted.choice}; the exchange has {exchange.choices} choices, counted from 0",
            code="invalid_value",
            param=param,
        )
    return Target(exchange.app, caller.identity.credential, exchange=exchange.id)


def _absent(wanted: Wanted, *, final: bool = False) -> ProxyError:
    said = f"{wanted.param}: nothing of yours is known as {wanted.value!r}"
    whose = "a label needs the key that made the exchange, or another of its app's, or the admin key"
    if final:
        return ProxyError(404, f"{said}; {whose}", code="not_found", param=wanted.param)
    return ProxyError(
        404,
        f"{said} yet; nothing was stored, it is safe to send this again ({whose})",
        code="not_found_yet",
        param=wanted.param,
    )
