"""The pages of experience sets: versions, what differs, where each entry comes from; edit, deploy, roll back.

Nothing changes before a page has said what will. The rules are the store's and the admin API's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from proxy import hand_written, json_bodies
from proxy.admin_sets import NewVersion
from proxy.dashboard import pages
from proxy.dashboard.forms import Form, refused
from proxy.deployments import Deployments
from tfgrpo import library as libraries
from tfgrpo.errors import NotFound
from tfgrpo.library import Limits
from tfgrpo.store import Store
from tfgrpo.types import EMPTY_VERSION, Deployment, Library, Version

ACTOR = "dashboard"
_BLANK_LINES = 3


class SetPages:
    """The pages under `/admin/sets`."""

    def __init__(self, store: Store, deployments: Deployments, limits: Limits | None) -> None:
        self._sets = store.sets
        self._glances, self._evidence, self._reviews = store.glances, store.evidence, store.reviews
        self._limits = limits
        self._deployments = deployments

    async def all(self, request: Request) -> Response:
        """Show every set with what is deployed of it."""

        def work() -> list[dict[str, Any]]:
            deployed = {one.set: one for one in self._sets.deployments()}
            made = self._glances.versions()
            return [
                {"name": name, "versions": made.get(name, 0), "deployment": deployed.get(name)}
                for name in self._sets.names()
            ]

        return pages.page("sets.html", token=request.state.token, sets=await asyncio.to_thread(work))

    async def one(self, request: Request) -> Response:
        """Show a set: what is deployed, its versions, its history. `live` of the query fills in what to deploy."""
        name, wanted = request.path_params["set"], Form.query(request).number("live")

        def work() -> dict[str, Any]:
            versions = self._known(name)
            history = self._sets.history(name)
            return {"versions": versions[::-1], "deployment": self._sets.deployment(name), "history": history}

        return pages.page(
            "set.html", token=request.state.token, name=name, wanted=wanted, **await asyncio.to_thread(work)
        )

    async def version(self, request: Request) -> Response:
        """Show one version: its entries, what each is worth where it was measured, the groups that it rests on."""
        name, number = request.path_params["set"], request.path_params["version"]

        def work() -> dict[str, Any]:
            found = self._sets.version(name, number)
            measured = self._evidence.newest("ablation", name, number)
            worth = {one["id"]: one for one in measured.result.get("entries", ())} if measured else {}
            standing = self._reviews.standings(name).get(number)
            asked = self._reviews.required
            return {"version": found, "measured": measured, "worth": worth, "standing": standing, "asked": asked}

        return pages.page("version.html", token=request.state.token, name=name, **await asyncio.to_thread(work))

    async def diff(self, request: Request) -> Response:
        """Show how two versions of a set differ."""
        name, query = request.path_params["set"], Form.query(request)
        before, after = query.number("before") or EMPTY_VERSION, query.number("after") or EMPTY_VERSION

        def work() -> dict[str, Any]:
            old, new = self._sets.version(name, before), self._sets.version(name, after)
            return {"before": old, "after": new, "diff": libraries.diff(old.library, new.library)}

        return pages.page("diff.html", token=request.state.token, name=name, **await asyncio.to_thread(work))

    async def edit(self, request: Request) -> Response:
        """Show the form that makes a version by hand from another."""
        name = hand_written.set_name(request.path_params["set"])
        number = Form.query(request).number("parent") or EMPTY_VERSION
        parent = await asyncio.to_thread(self._sets.version, name, number)
        return pages.page("edit.html", token=request.state.token, name=name, parent=parent, blank=range(_BLANK_LINES))

    async def store_edit(self, request: Request, form: Form) -> Response:
        """Say what an edit changes; store it when that was confirmed."""
        name = hand_written.set_name(request.path_params["set"])
        parent, body = form.number("parent"), _edited(form)

        def library(versions: Sequence[Version]) -> Library:
            return hand_written.library(body.experiences, versions, parent=parent)

        if not _confirmed(form):

            def look() -> dict[str, Any]:
                before = self._sets.version(name, parent or EMPTY_VERSION)
                after = library(self._sets.versions(name))
                return {"before": before, "after": after, "diff": libraries.diff(before.library, after)}

            found = await asyncio.to_thread(look)
            values = {"token": request.state.token, "name": name, "lessons": body.experiences, "note": body.note}
            return pages.page("confirm_edit.html", **values, **found)
        made = await asyncio.to_thread(
            lambda: self._sets.add_version(name, library, status="by hand", parent=parent, note=body.note)
        )
        return pages.see(f"{_path(name)}/versions/{made.version}")

    async def deploy(self, request: Request, form: Form) -> Response:
        """Say what a deployment changes; deploy when that was confirmed."""
        name, live, candidate = request.path_params["set"], form.number("live"), form.number("candidate")
        shares = {arm: form.share(arm) for arm in ("candidate_share", "control_share")}
        shares = {arm.removesuffix("_share"): share for arm, share in shares.items() if share}
        reason, revision = form.text("reason"), form.number("if_revision")
        if sum(shares.values()) > 1:
            raise refused("control_share", "and candidate_share are together more than 100 percent")
        if not _confirmed(form):
            now, after = await asyncio.to_thread(self._compared, name, live)
            values = {"token": request.state.token, "name": name, "live": live, "candidate": candidate}
            diff = libraries.diff(now, after)
            current = await asyncio.to_thread(self._sets.deployment, name)
            return pages.page("confirm_deploy.html", **values, shares=shares, reason=reason, current=current, diff=diff)
        await asyncio.to_thread(
            lambda: self._sets.deploy(
                name,
                live=live,
                candidate=candidate,
                shares=shares,
                reason=reason,
                actor=ACTOR,
                if_revision=revision,
                limits=self._limits,
            )
        )
        await self._deployments.reach_all()
        return pages.see(_path(name))

    async def rollback(self, request: Request, form: Form) -> Response:
        """Say what a rollback restores; do it when that was confirmed."""
        name, reason, revision = request.path_params["set"], form.text("reason"), form.number("if_revision")
        restored = await asyncio.to_thread(self._sets.restorable, name)
        current = await asyncio.to_thread(self._sets.deployment, name)
        if not _confirmed(form):
            now, after = await asyncio.to_thread(self._compared, name, restored.live)
            values = {"token": request.state.token, "name": name, "reason": reason}
            diff = libraries.diff(now, after)
            return pages.page("confirm_rollback.html", **values, current=current, restored=restored, diff=diff)
        if revision is None:
            raise refused("if_revision", "is missing: it says what was deployed when you looked")
        await asyncio.to_thread(lambda: self._sets.rollback(name, reason=reason, actor=ACTOR, if_revision=revision))
        await self._deployments.reach_all()
        return pages.see(_path(name))

    def _compared(self, name: str, live: int | None) -> tuple[Library, Library]:
        """Return the library that live requests of a set get now, and that of the version `live`."""
        self._known(name)
        current: Deployment | None = self._sets.deployment(name)
        served = (current.live if current else None) or EMPTY_VERSION
        return self._sets.version(name, served).library, self._sets.version(name, live or EMPTY_VERSION).library

    def _known(self, name: str) -> list[Version]:
        versions = self._sets.versions(name)
        if not versions and name not in self._sets.names():
            raise NotFound(f"there is no set {name!r}; /admin/sets lists those there are")
        return versions


def _edited(form: Form) -> NewVersion:
    """The form's lines as the body that the admin API takes. A line that was emptied takes its entry out."""
    ids, texts = form.all("id"), form.all("text")
    if len(ids) != len(texts):
        raise refused("id", f"stands there {len(ids)} times, text {len(texts)} times; each text has its id")
    lessons = [{"id": id_ or None, "text": text} for id_, text in zip(ids, texts, strict=True) if text.strip()]
    return json_bodies.checked(NewVersion, {"experiences": lessons, "note": form.text("note")})


def _confirmed(form: Form) -> bool:
    return form.text("confirmed") == "yes"


def _path(name: str) -> str:
    return f"/admin/sets/{quote(name, safe='')}"
