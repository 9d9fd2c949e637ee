"""The admin API's switch that takes the proxy out of the way, for every worker on the store, and back."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from msgspec import structs
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from proxy import json_bodies
from proxy.admin_sets import ACTOR
from proxy.bypass import Bypass
from proxy.errors import ProxyError
from proxy.json_bodies import Body
from tfgrpo.store import Store

BODY_BYTES: Final = 1 << 16


class NewBypass(Body):
    """Whether the proxy stands out of the way, and why."""

    bypass: bool
    reason: str = ""


class BypassApi:
    """The endpoint `/admin/api/bypass`."""

    def __init__(self, store: Store, bypass: Bypass) -> None:
        self._store = store
        self._bypass = bypass

    async def bypass(self, _: Request) -> Response:
        """Whether requests are relayed alone, and each time that this was switched, the newest first."""
        return JSONResponse(await self._shown())

    async def switch(self, request: Request) -> Response:
        """Relay alone, or inject and record again: every worker within a second, and after a restart too."""
        raw = await json_bodies.read(request.receive, limit=BODY_BYTES)
        body = json_bodies.checked(NewBypass, json_bodies.parsed(raw))
        if self._bypass.configured and not body.bypass:
            raise ProxyError(
                409,
                "server.bypass is true in the configuration, which counts for more: take it out and restart",
                code="conflict",
                param="bypass",
            )
        await asyncio.to_thread(lambda: self._store.bypass.switch(on=body.bypass, reason=body.reason, actor=ACTOR))
        await self._bypass.reach_all()
        return JSONResponse(await self._shown())

    async def _shown(self) -> dict[str, Any]:
        history = await asyncio.to_thread(self._store.bypass.history)
        return {
            "bypass": self._bypass.configured or bool(history and history[0].bypass),
            "configured": self._bypass.configured,
            "history": [structs.asdict(one) for one in history],
        }
