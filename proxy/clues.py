"""What a request says about where it belongs, and the link keys that follow from it. Pure."""

from __future__ import annotations

import re

import msgspec

from proxy.arms import Pin
from tfgrpo import trajectories
from tfgrpo.types import Assignment, Request

SESSION_ID = re.compile(r"[!-~]{1,200}")


class Evidence(msgspec.Struct, frozen=True):
    """What a request says about where it belongs. `retry`: its SDK says that it repeats an earlier one."""

    app: str
    set_name: str | None
    request: Request | None
    body: bytes = b""
    group: str | None = None
    trajectory: str | None = None
    session: str | None = None
    retry: bool = False
    pin: Pin = None
    injectable: bool = True

    @property
    def scope(self) -> str:
        """What chains stay within."""
        return trajectories.scope(self.app, self.set_name)

    @property
    def retry_key(self) -> str:
        """The key under which a failed request with the same body is found."""
        return trajectories.retry_key(self.scope, self.body)


class Clues(msgspec.Struct, frozen=True):
    """The link keys of a request.

    `chain` finds what it continues, the strongest first, and `said` holds the hashes of the conversation; `failed`
    finds what it repeats; `name` is its explicit trajectory and `named` the key of that in memory; `session` is its
    session and `tasks` the key of that session's tasks.
    """

    app: str
    set_name: str | None
    scope: str
    continues: bool
    chain: tuple[trajectories.Sought, ...]
    said: trajectories.Chain | None
    failed: str | None
    name: str | None
    named: str | None
    session: str | None
    tasks: str | None

    def allow(self, assignment: Assignment) -> bool:
        """Say whether this may be the request's trajectory, as far as its set and its session say."""
        if assignment.set != self.set_name:
            return False
        trajectory = assignment.trajectory
        return self.session is None or trajectory == self.session or trajectory.startswith(f"{self.session}/")


def clues(evidence: Evidence, ignore: trajectories.Patterns = ()) -> Clues:
    """Return the link keys of a request. An explicit trajectory makes its session immaterial.

    `ignore` is what does not count in system texts.
    """
    request, within = evidence.request, evidence.scope
    continues = request is not None and trajectories.continues(request)
    said = None if request is None else trajectories.chain(within, request, ignore)
    session = _session(evidence) if evidence.trajectory is None else None
    everywhere = trajectories.scope(evidence.app, None)
    return Clues(
        app=evidence.app,
        set_name=evidence.set_name,
        scope=within,
        continues=continues,
        chain=trajectories.request_keys(within, request, said) if request and said and continues else (),
        said=said,
        failed=evidence.retry_key if evidence.retry else None,
        name=evidence.trajectory,
        named=None if evidence.trajectory is None else f"{everywhere}\0{evidence.trajectory}",
        session=session,
        # Ids of trajectories are unique within an app, so a session's tasks are counted over all sets.
        tasks=None if session is None else trajectories.session_key(everywhere, session),
    )


def task_number(trajectory: str, session: str) -> int:
    """Return which task of its session a trajectory is, from 1 on."""
    rest = trajectory.removeprefix(f"{session}/")
    return int(rest) if rest != trajectory and rest.isdecimal() else 1


def _session(evidence: Evidence) -> str | None:
    if evidence.session is not None:
        return evidence.session
    said = evidence.request.session_id if evidence.request is not None else None
    return said if said is not None and SESSION_ID.fullmatch(said) else None
