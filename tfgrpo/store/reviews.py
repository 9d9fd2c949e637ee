"""What people say of learned versions: approved, rejected, or nothing yet. Each word is a row of the set's history.

A version that a run made may need approval; one written or imported by hand is a person's already. Entries are what is
approved: a version none of whose texts is new to the approved and hand-written ones needs no further word.
"""

from __future__ import annotations

from sqlalchemy import Connection, select

from tfgrpo.errors import Conflict, UsageError
from tfgrpo.store import commits, history, schema, versions
from tfgrpo.store.deployable import NO_RULES, Rules
from tfgrpo.store.engine import Database
from tfgrpo.types import EMPTY_VERSION, Standing, Version


class Reviews:
    """The reviews of all sets."""

    def __init__(self, database: Database, rules: Rules = NO_RULES) -> None:
        self._database = database
        self._required = rules.approval

    @property
    def required(self) -> bool:
        """Whether what a run learned needs a person's word before it is deployed."""
        return self._required

    def standings(self, set_name: str) -> dict[int, Standing]:
        """Return how the versions of a set stand; one that needs no word and has none is not in it."""
        return self._database.read(lambda connection: _standings(connection, set_name))

    def refuses(self, version: Version) -> bool:
        """Whether a deployment of the version would be refused for what a person said, or did not say yet."""
        standing = self.standings(version.set).get(version.version)
        return standing == "rejected" or (self._required and standing == "awaiting")

    def approve(self, set_name: str, version: int, *, reason: str, actor: str) -> Standing:
        """Let a version be deployed.

        Raises:
            NotFound: The set has no such version.
            UsageError: It is a draft, or the empty library; or the reason is too long.
            Conflict: It is not as it was stored.
        """
        history.check_said(reason=reason, actor=actor)

        def work(connection: Connection) -> Standing:
            _reviewable(connection, set_name, version)
            commits.check(connection, set_name, version)
            history.said(connection, set_name, "approve", version=version, reason=reason, actor=actor)
            return "approved"

        return self._database.write(work, durable=True)

    def reject(self, set_name: str, version: int, *, reason: str, actor: str) -> Standing:
        """Let a version not be deployed, whatever the configuration asks, until it is approved.

        Raises:
            NotFound: The set has no such version.
            UsageError: It is a draft, or the empty library; or there is no reason, or one that is too long.
            Conflict: It is deployed now.
        """
        if not reason.strip():
            raise UsageError("reason: say why the version is rejected; it stands in the history", field="reason")
        history.check_said(reason=reason, actor=actor)

        def work(connection: Connection) -> Standing:
            _reviewable(connection, set_name, version)
            now = next(iter(history.deployments(connection, set_name)), None)
            if now is not None and version in (now.live, now.candidate):
                raise Conflict(f"version {version} of {set_name!r} is deployed: roll it back first, then reject it")
            history.said(connection, set_name, "reject", version=version, reason=reason, actor=actor)
            return "rejected"

        return self._database.write(work, durable=True)


def check(connection: Connection, version: Version, *, required: bool) -> None:
    """Raise Conflict when a version may not be deployed: it was rejected, or it awaits approval that is `required`."""
    standing = _standings(connection, version.set).get(version.version)
    name = f"version {version.version} of {version.set!r}"
    if standing == "rejected":
        raise Conflict(f"{name} was rejected; deploy another, or approve it first")
    if standing == "awaiting" and required:
        raise Conflict(
            f"{name} awaits approval: read it, then `tfgrpo sets approve {version.set}@{version.version}`, or POST "
            f"/admin/api/sets/{version.set}/versions/{version.version}/approve"
        )


def _reviewable(connection: Connection, set_name: str, version: int) -> None:
    versions.find_no_draft(connection, set_name, version)
    if version == EMPTY_VERSION:
        raise UsageError("version 0 is the empty library, which needs no approval; name a version from 1 on")


def _standings(connection: Connection, set_name: str) -> dict[int, Standing]:
    found = versions.all_of(connection, set_name)
    table = schema.history
    query = select(table.c.version, table.c.action).where(
        table.c.set == set_name, table.c.action.in_(("approve", "reject"))
    )
    standings: dict[int, Standing] = {}
    for version, action in connection.execute(query.order_by(table.c.number)):
        standings[version] = "approved" if action == "approve" else "rejected"
    by_person = [one for one in found if standings.get(one.version, _own(one)) == "approved"]
    vouched = {entry.text for one in by_person for entry in one.library.experiences}
    for one in found:
        if one.version not in standings and one.run is not None:
            known = all(entry.text in vouched for entry in one.library.experiences)
            standings[one.version] = "approved" if known else "awaiting"
    return standings


def _own(version: Version) -> Standing:
    return "awaiting" if version.run is not None else "approved"
