"""The admin API's endpoints of experience sets: versions, the deployment, its history.

They check the form of what is sent; the rules of versions and deployments are the store's. A change is in force in
this worker when it is answered, in the others within a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from msgspec import structs
from pydantic import Field, field_validator
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from proxy import hand_written, json_bodies
from proxy.deployments import Deployments
from proxy.errors import ProxyError
from proxy.hand_written import Lesson
from proxy.json_bodies import Body
from tfgrpo.errors import NotFound
from tfgrpo.library import Limits
from tfgrpo.store import Store
from tfgrpo.store.policies import foreign
from tfgrpo.types import Deployment, Library, Version

_log = logging.getLogger(__name__)

BODY_BYTES = 1 << 20
ACTOR = "admin api"

MOST: Final = 1 << 31
"""No number of a version is as high."""

_M = TypeVar("_M", bound=Body)


class NewVersion(Body):
    """A version by hand."""

    experiences: list[Lesson]
    parent: int | None = None
    note: str = ""


class Shares(Body):
    """Parts of new trajectories; what is left is live."""

    candidate: float = 0.0
    control: float = 0.0


class NewDeployment(Body):
    """What live requests of a set get from now on. `live` None is version 0."""

    live: int | None = Field(None, ge=1, lt=MOST)
    candidate: int | None = Field(None, ge=1, lt=MOST)
    shares: Shares = Shares()
    reason: str = ""
    if_revision: int | None = None

    @field_validator("shares", mode="before", json_schema_input_type=Shares | None)
    @classmethod
    def _unset(cls, value: Any) -> Any:
        return Shares() if value is None else value


class Rollback(Body):
    """Why the newest deployment is taken back."""

    reason: str = ""


class SetsApi:
    """The endpoints of `/admin/api/sets`. `limits`: of a library that may be deployed."""

    def __init__(self, store: Store, deployments: Deployments, limits: Limits | None = None) -> None:
        self._store = store
        self._limits = limits
        self._deployments = deployments

    async def sets(self, _: Request) -> Response:
        """Every set with its deployment."""

        def work() -> list[dict[str, Any]]:
            deployed = {one.set: one for one in self._store.sets.deployments()}
            made = self._store.glances.versions()
            return [
                {
                    "set": name,
                    "versions": made.get(name, 0),
                    "deployment": _deployed(deployed.get(name)),
                }
                for name in self._store.sets.names()
            ]

        return JSONResponse({"sets": await asyncio.to_thread(work)})

    async def one_set(self, request: Request) -> Response:
        """One set: its versions and its deployment."""
        name = request.path_params["set"]

        def work() -> dict[str, Any]:
            versions = self._known(name)
            deployment = self._store.sets.deployment(name)
            return {"set": name, "versions": versions, "deployment": _deployed(deployment)}

        return JSONResponse(await asyncio.to_thread(work))

    async def versions(self, request: Request) -> Response:
        """The versions of a set."""
        name = request.path_params["set"]
        return JSONResponse({"set": name, "versions": await asyncio.to_thread(self._known, name)})

    async def version(self, request: Request) -> Response:
        """One version with its library."""
        name, number = request.path_params["set"], request.path_params["version"]
        found, standings = await asyncio.to_thread(
            lambda: (self._store.sets.version(name, number), self._store.reviews.standings(name))
        )
        return JSONResponse(_whole(found) | {"approval": standings.get(number)})

    async def add_version(self, request: Request) -> Response:
        """Store a version by hand."""
        name = hand_written.set_name(request.path_params["set"])
        body = await _body(request, NewVersion)

        def library(versions: Sequence[Version]) -> Library:
            return hand_written.library(body.experiences, versions, parent=body.parent)

        def work() -> Version:
            return self._store.sets.add_version(name, library, status="by hand", parent=body.parent, note=body.note)

        made = await asyncio.to_thread(work)
        return JSONResponse({"set": made.set, "version": made.version}, status_code=201)

    async def deployment(self, request: Request) -> Response:
        """The deployment of a set."""
        name = request.path_params["set"]

        def work() -> Deployment:
            self._known(name)
            found = self._store.sets.deployment(name)
            if found is None:
                raise NotFound(f"set {name!r} has no deployment; PUT one here")
            return found

        return JSONResponse(_deployed(await asyncio.to_thread(work)))

    async def deploy(self, request: Request) -> Response:
        """Replace the deployment of a set, at once."""
        name = request.path_params["set"]
        body = await _body(request, NewDeployment)
        if not body.model_fields_set & {"live", "candidate"}:
            # Taken as it stands, `{}` would take everything from live requests.
            raise ProxyError(400, "live is missing; null injects nothing", code="invalid_value", param="live")
        made = await asyncio.to_thread(
            lambda: self._store.sets.deploy(
                name,
                live=body.live,
                candidate=body.candidate,
                shares=body.shares.model_dump(exclude_unset=True),
                reason=body.reason,
                actor=ACTOR,
                if_revision=body.if_revision,
                limits=self._limits,
            )
        )
        await self._deployments.reach_all()
        warnings = await asyncio.to_thread(self._warnings, made)
        return JSONResponse({**(_deployed(made) or {}), **({"warnings": warnings} if warnings else {})})

    async def rollback(self, request: Request) -> Response:
        """Restore the newest earlier deployment that was not itself rolled back."""
        name = request.path_params["set"]
        body = await _body(request, Rollback, may_be_empty=True)
        made = await asyncio.to_thread(lambda: self._store.sets.rollback(name, reason=body.reason, actor=ACTOR))
        await self._deployments.reach_all()
        return JSONResponse(_deployed(made))

    async def history(self, request: Request) -> Response:
        """Everything that was done to a set, the newest first."""
        name = request.path_params["set"]

        def work() -> list[dict[str, Any]]:
            self._known(name)
            return [structs.asdict(one) for one in self._store.history.of(name)]

        return JSONResponse({"set": name, "history": await asyncio.to_thread(work)})

    def _warnings(self, made: Deployment) -> list[str]:
        """Return, and log, which of the versions deployed were learned for other models than the set's traffic uses."""
        versions = [number for number in (made.live, made.candidate) if number]
        told = [foreign(self._store, self._store.sets.version(made.set, number)) for number in versions]
        warnings = [said for said in told if said is not None]
        for said in warnings:
            _log.warning("%s", said)
        return warnings

    def _known(self, name: str) -> list[dict[str, Any]]:
        """Return the versions of a set, without their libraries; NotFound when there is no such set."""
        versions = self._store.sets.versions(name)
        if not versions and name not in self._store.sets.names():
            raise NotFound(f"there is no set {name!r}; GET /admin/api/sets lists those there are")
        standings = self._store.reviews.standings(name)
        return [_summary(one) | {"approval": standings.get(one.version)} for one in versions]


async def _body(request: Request, model: type[_M], *, may_be_empty: bool = False) -> _M:
    raw = await json_bodies.read(request.receive, limit=BODY_BYTES)
    value = {} if may_be_empty and not raw.strip() else json_bodies.parsed(raw)
    return json_bodies.checked(model, value)


def _summary(version: Version) -> dict[str, Any]:
    return {
        "version": version.version,
        "status": version.status,
        "entries": len(version.library),
        "parent": version.parent,
        "policy_model": version.policy_model,
        "run": version.run,
        "note": version.note,
        "created_at": version.created_at,
    }


def _whole(version: Version) -> dict[str, Any]:
    lessons = [structs.asdict(entry) for entry in version.library.experiences]
    return {"set": version.set, **_summary(version), "experiences": lessons}


def _deployed(deployment: Deployment | None) -> dict[str, Any] | None:
    if deployment is None:
        return None
    return structs.asdict(deployment) | {"shares": dict(deployment.shares)}
