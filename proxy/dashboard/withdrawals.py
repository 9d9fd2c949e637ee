"""The page by which a person takes back what was learned from a trajectory or a group. The rules are the store's."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from proxy.dashboard import pages
from proxy.dashboard.forms import Form, refused
from proxy.deployments import Deployments
from tfgrpo.errors import Conflict
from tfgrpo.store import Done, Store, Withdrawable
from tfgrpo.withdrawal import Withdrawal

WITHDRAW: Final = "/admin/withdraw"
ACTOR: Final = "dashboard"
KINDS: Final[tuple[Withdrawable, ...]] = ("exchange", "app", "source")


class WithdrawalPages:
    """What is withdrawn."""

    def __init__(self, store: Store, deployments: Deployments) -> None:
        self._withdrawals = store.withdrawals
        self._deployments = deployments

    async def withdraw(self, request: Request, form: Form) -> Response:
        """Say what would go; do it when that was confirmed: for live requests too where `deploy` asks for it."""
        kind = next((one for one in KINDS if one == form.text("kind")), None)
        name, reason = form.text("name"), form.text("reason")
        if kind is None:
            raise refused("kind", f"is {form.text('kind')[:40]!r}; it takes {', '.join(KINDS)}")
        plans = await asyncio.to_thread(self._withdrawals.plan, kind, name)
        if form.text("confirmed") != "yes":
            asked: dict[str, Any] = {"kind": kind, "name": name, "reason": reason, "seen": _seen(plans)}
            return pages.page("confirm_withdrawal.html", token=request.state.token, plans=plans, **asked)
        if form.text("seen", longest=None) != _seen(plans):
            raise Conflict("what rests on it is no longer what the page said; look at it again and decide anew")
        deploy = form.text("deploy") == "yes"
        done = await asyncio.to_thread(
            lambda: self._withdrawals.withdraw(kind, name, reason=reason, actor=ACTOR, deploy=deploy)
        )
        if any(one.deployment is not None for one in done):
            await self._deployments.reach_all()
        return pages.see(_next(done))


def _seen(plans: list[Withdrawal]) -> str:
    """Return what a page says of plans, short: each set, the version that is followed, and how many entries stay."""
    return " ".join(f"{one.set}@{one.base}:{len(one.library)}" for one in plans)


def _next(done: list[Done]) -> str:
    """Return the page of the set that changed; of several, or none, that of all sets."""
    return f"/admin/sets/{quote(done[0].plan.set, safe='')}" if len(done) == 1 else "/admin/sets"
