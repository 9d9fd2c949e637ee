"""The pages by which a person approves or rejects a learned version. The rules are the store's."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from proxy.dashboard import pages
from proxy.dashboard.forms import Form, refused
from tfgrpo.store import Store

ACTOR: Final = "dashboard"
VERDICTS: Final = ("approve", "reject")


class ReviewPages:
    """What is said of versions."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def review(self, request: Request, form: Form) -> Response:
        """Say what approving or rejecting a version means; do it when that was confirmed."""
        name, number = request.path_params["set"], request.path_params["version"]
        verdict, reason = form.text("verdict"), form.text("reason")
        if verdict not in VERDICTS:
            raise refused("verdict", f"is {verdict[:40]!r}; it takes approve or reject")
        if verdict == "reject" and not reason:
            raise refused("reason", "is empty; say why the version is rejected, it stands in the history")
        if form.text("confirmed") != "yes":
            version = await asyncio.to_thread(self._store.sets.version, name, number)
            values = {"name": name, "version": version, "verdict": verdict, "reason": reason}
            return pages.page("confirm_review.html", token=request.state.token, **values)
        say = self._store.reviews.approve if verdict == "approve" else self._store.reviews.reject
        await asyncio.to_thread(lambda: say(name, number, reason=reason, actor=ACTOR))
        return pages.see(f"/admin/sets/{quote(name, safe='')}/versions/{number}")
