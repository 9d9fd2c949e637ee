"""The admin API's endpoints by which a person approves or rejects a version. The rules are the store's."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from proxy import json_bodies
from proxy.json_bodies import Body
from tfgrpo.store import Store

BODY_BYTES = 1 << 16
ACTOR = "admin api"


class Approval(Body):
    """Why a version may be deployed, and who says so."""

    reason: str = ""
    by: str = ""


class Rejection(Body):
    """Why a version may not be deployed, and who says so."""

    reason: str
    by: str = ""


class ReviewsApi:
    """The endpoints of `/admin/api/sets/{set}/versions/{version}/approve` and `/reject`."""

    def __init__(self, store: Store) -> None:
        self._reviews = store.reviews

    async def approve(self, request: Request) -> Response:
        """Let a version be deployed."""
        name, number = request.path_params["set"], request.path_params["version"]
        raw = await json_bodies.read(request.receive, limit=BODY_BYTES)
        body = json_bodies.checked(Approval, json_bodies.parsed(raw) if raw.strip() else {})
        standing = await asyncio.to_thread(
            lambda: self._reviews.approve(name, number, reason=body.reason, actor=actor(body.by))
        )
        return JSONResponse({"set": name, "version": number, "approval": standing})

    async def reject(self, request: Request) -> Response:
        """Let a version not be deployed, until it is approved."""
        name, number = request.path_params["set"], request.path_params["version"]
        raw = await json_bodies.read(request.receive, limit=BODY_BYTES)
        body = json_bodies.checked(Rejection, json_bodies.parsed(raw))
        standing = await asyncio.to_thread(
            lambda: self._reviews.reject(name, number, reason=body.reason, actor=actor(body.by))
        )
        return JSONResponse({"set": name, "version": number, "approval": standing})


def actor(by: str) -> str:
    """Return who the history shall name."""
    return f"{by} ({ACTOR})" if by.strip() else ACTOR
