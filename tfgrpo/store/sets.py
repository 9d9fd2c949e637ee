"""Which versions of an experience set live requests get: deployments, rollbacks, and the way back."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, func, select

from tfgrpo import withdrawal
from tfgrpo.errors import Conflict
from tfgrpo.library import Limits
from tfgrpo.store import commits, deployable, history, reviews, schema, withdrawals
from tfgrpo.store.versions import Versions, check_set, find, find_no_draft
from tfgrpo.types import Deployment


class Sets(Versions):
    """All experience sets of a store: their versions, and what is deployed of them."""

    def deployment(self, set_name: str) -> Deployment | None:
        """Return the current deployment of a set."""
        return next(iter(self.history(set_name)), None)

    def deployments(self) -> list[Deployment]:
        """Return the current deployment of every set that has one."""
        table = schema.history
        newest = select(table.c.set, func.max(table.c.revision).label("revision")).group_by(table.c.set).subquery()
        query = select(table).join(newest, (table.c.set == newest.c.set) & (table.c.revision == newest.c.revision))
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return [history.deployment(row) for row in rows]

    def history(self, set_name: str) -> list[Deployment]:
        """Return the deployments of a set, the newest first."""
        rows = self._database.read(lambda connection: history.deployments(connection, set_name))
        return [history.deployment(row) for row in rows]

    def newest_rollback(self, set_name: str) -> int:
        """Return the revision of the newest rollback or withdrawal of a set; 0 if there was none."""
        return next((one.revision for one in self.history(set_name) if one.action != "deploy"), 0)

    def deploy(
        self,
        set_name: str,
        *,
        live: int | None,
        candidate: int | None = None,
        shares: Mapping[str, float] | None = None,
        reason: str,
        actor: str,
        if_revision: int | None = None,
        limits: Limits | None = None,
    ) -> Deployment:
        """Make a new deployment of a set; what is not named is unset. `limits` bounds the libraries it may give whole.

        Raises:
            NotFound: The set, or a version, does not exist.
            UsageError: The shares or the candidate do not fit, `field` names it; or a version is a draft, or holds an
                entry that cannot be a lesson; or a library is over `limits`; or the reason is too long.
            Conflict: The current revision is not `if_revision`; or a version was rejected, awaits approval, rests on
                evidence that was withdrawn, or is not as it was stored.
        """
        shares = dict(shares or {})
        deployable.check_shares(live, candidate, shares)
        history.check_said(reason=reason, actor=actor)

        def work(connection: Connection) -> Deployment:
            check_set(connection, set_name)
            for arm, version in (("live", live), ("candidate", candidate)):
                if version is not None:
                    found = find_no_draft(connection, set_name, version)
                    commits.check(connection, set_name, version)
                    deployable.check_size(found, limits, arm)
                    deployable.check_entries(found.library, ours=self._rules.secrets)
                    reviews.check(connection, found, required=self._rules.approval)
                    withdrawals.check(connection, found)
            revision = _next_revision(connection, set_name, if_revision)
            # What was withdrawn leaves every trajectory with its next request, also those that keep their version.
            leaving = _withdrawn(connection, set_name)
            made = Deployment(
                set=set_name,
                revision=revision,
                live=live,
                candidate=candidate,
                shares=shares,
                action="deploy" if leaving is None else "withdraw",
                reason=reason,
                actor=actor,
                created_at=time.time(),
                effective=revision,
            )
            history.deployed(connection, made, undone=leaving)
            return made

        return self._database.write(work, durable=True)

    def rollback(self, set_name: str, *, reason: str, actor: str, if_revision: int | None = None) -> Deployment:
        """Restore the newest earlier deployment that was not itself rolled back, as a new entry of the history.

        Raises:
            NotFound: The set does not exist.
            UsageError: The reason is too long.
            Conflict: There is no earlier deployment to go back to, or the current revision is not `if_revision`.
        """
        history.check_said(reason=reason, actor=actor)

        def work(connection: Connection) -> Deployment:
            check_set(connection, set_name)
            _next_revision(connection, set_name, if_revision)
            rows = history.deployments(connection, set_name)
            restored = _restorable(connection, rows, set_name)
            made = Deployment(
                set=set_name,
                revision=rows[0].revision + 1,
                live=restored.live,
                candidate=restored.candidate,
                shares=json.loads(restored.shares),
                action="rollback",
                reason=reason,
                actor=actor,
                created_at=time.time(),
                effective=restored.revision,
            )
            history.deployed(connection, made, undone=rows[0].effective)
            return made

        return self._database.write(work, durable=True)

    def restorable(self, set_name: str) -> Deployment:
        """Return the deployment that a rollback would restore now.

        Raises:
            NotFound: The set does not exist.
            Conflict: There is no earlier deployment to go back to.
        """

        def work(connection: Connection) -> Deployment:
            check_set(connection, set_name)
            return history.deployment(_restorable(connection, history.deployments(connection, set_name), set_name))

        return self._database.read(work)

    def drop_candidate(self, set_name: str, *, reason: str, actor: str, if_revision: int) -> Deployment:
        """Go on without the candidate: live and the share of control stay as they are.

        It stands in the history as a rollback: the candidate's trajectories get live with their next request.

        Raises:
            NotFound: The set does not exist.
            Conflict: The current revision is not `if_revision`.
        """

        def work(connection: Connection) -> Deployment:
            check_set(connection, set_name)
            revision = _next_revision(connection, set_name, if_revision)
            current = history.deployment(history.deployments(connection, set_name)[0])
            made = msgspec.structs.replace(
                current,
                revision=revision,
                candidate=None,
                shares={arm: share for arm, share in current.shares.items() if arm != "candidate"},
                action="rollback",
                reason=reason,
                actor=actor,
                created_at=time.time(),
                effective=revision,
            )
            history.deployed(connection, made, undone=current.effective)
            return made

        return self._database.write(work, durable=True)


def _next_revision(connection: Connection, set_name: str, expected: int | None) -> int:
    rows = history.deployments(connection, set_name)
    current = rows[0].revision if rows else 0
    if expected is not None and expected != current:
        raise Conflict(f"set {set_name!r} is at revision {current}, not {expected}; read it again and decide anew")
    return current + 1


def _withdrawn(connection: Connection, set_name: str) -> int | None:
    """Return the revision of what is deployed, if it gives live requests an entry that was withdrawn."""
    current = next(iter(history.deployments(connection, set_name)), None)
    return current.effective if current is not None and _held(connection, current) else None


def _held(connection: Connection, row: Row[Any]) -> bool:
    """Whether a version of this deployment holds an entry that was withdrawn."""
    said = withdrawals.said(connection, row.set)
    named = [version for version in (row.live, row.candidate) if version] if said else []
    return any(withdrawal.holds(find(connection, row.set, version).library, said) for version in named)


def _restorable(connection: Connection, rows: list[Row[Any]], set_name: str) -> Row[Any]:
    undone = {row.undone for row in rows} | {rows[0].effective if rows else None}
    for row in rows:
        earlier = row.action != "rollback" and row.revision not in undone and row.revision < rows[0].effective
        if earlier and not _held(connection, row):
            return row
    raise Conflict(f"set {set_name!r} has no earlier deployment to roll back to; to inject nothing, deploy live: null")
