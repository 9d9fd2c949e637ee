"""The admin API's endpoint of withdrawals: what is taken back, and what was. What that means is the store's to say."""

from __future__ import annotations

import asyncio

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from proxy import json_bodies
from proxy.admin_reviews import actor
from proxy.deployments import Deployments
from proxy.json_bodies import Body
from tfgrpo.store import Done, Store, Withdrawable

BODY_BYTES = 1 << 16


class NewWithdrawal(Body):
    """What is withdrawn, why and by whom; whether live requests get the new versions, or nothing changes yet."""

    kind: Withdrawable
    name: str = Field(min_length=1)
    reason: str = ""
    by: str = ""
    deploy: bool = False
    dry_run: bool = False


class WithdrawalsApi:
    """The endpoint of `/admin/api/withdrawals`."""

    def __init__(self, store: Store, deployments: Deployments) -> None:
        self._withdrawals = store.withdrawals
        self._deployments = deployments

    async def withdrawals(self, _request: Request) -> Response:
        """Everything that was withdrawn, the newest first."""
        return JSONResponse({"withdrawals": await asyncio.to_thread(self._withdrawals.all)})

    async def withdraw(self, request: Request) -> Response:
        """Take back what was learned from an exchange, an app or a source."""
        raw = await json_bodies.read(request.receive, limit=BODY_BYTES)
        body = json_bodies.checked(NewWithdrawal, json_bodies.parsed(raw))
        done = await asyncio.to_thread(self._done, body)
        # Without a deployment too: clients that pin a version of before lose what was withdrawn of it.
        if done and not body.dry_run:
            await self._deployments.reach_all()
        withdrawn = {"kind": body.kind, "name": body.name}
        sets = [one.as_json() for one in done]
        return JSONResponse({"dry_run": body.dry_run, "withdrawn": withdrawn, "sets": sets})

    def _done(self, body: NewWithdrawal) -> list[Done]:
        if body.dry_run:
            return [Done(plan) for plan in self._withdrawals.plan(body.kind, body.name)]
        who = actor(body.by)
        return self._withdrawals.withdraw(body.kind, body.name, reason=body.reason, actor=who, deploy=body.deploy)
