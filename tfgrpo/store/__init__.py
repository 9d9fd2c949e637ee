"""The store: exchanges, labels, sets, runs and evidence, behind one object that all programs share.

All calls block: on an event loop they belong in a thread. Any of them may raise `StoreError`. The store knows
nothing of HTTP or models; bodies are kept as raw bytes and read by whoever needs them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, insert, select

from tfgrpo.store import schema
from tfgrpo.store.browsing import Browsing as Browsing
from tfgrpo.store.bypass import Bypass as Bypass
from tfgrpo.store.bypass import Switch as Switch
from tfgrpo.store.deployable import NO_RULES
from tfgrpo.store.deployable import Rules as Rules
from tfgrpo.store.engine import Database
from tfgrpo.store.engine import parsed as parsed
from tfgrpo.store.evidence import Evidence as Evidence
from tfgrpo.store.evidence import Finding as Finding
from tfgrpo.store.experiments import START as START
from tfgrpo.store.experiments import Experiments as Experiments
from tfgrpo.store.experiments import Place as Place
from tfgrpo.store.frozen import Frozen as Frozen
from tfgrpo.store.frozen import FrozenRows as FrozenRows
from tfgrpo.store.frozen import Kind as Kind
from tfgrpo.store.glances import Glances as Glances
from tfgrpo.store.glances import NewestVersion as NewestVersion
from tfgrpo.store.glances import RunGlance as RunGlance
from tfgrpo.store.history import Fault as Fault
from tfgrpo.store.history import History as History
from tfgrpo.store.hours import Difference as Difference
from tfgrpo.store.hours import Fact as Fact
from tfgrpo.store.hours import Hours as Hours
from tfgrpo.store.hours import Rewarded as Rewarded
from tfgrpo.store.labels import Labels as Labels
from tfgrpo.store.labels import OtherContent as OtherContent
from tfgrpo.store.learnable import Attempt as Attempt
from tfgrpo.store.learnable import Learnable as Learnable
from tfgrpo.store.makers import Makers as Makers
from tfgrpo.store.pending import PendingLessons as PendingLessons
from tfgrpo.store.retention import Deleted as Deleted
from tfgrpo.store.retention import Kept as Kept
from tfgrpo.store.retention import Retention as Retention
from tfgrpo.store.reviews import Reviews as Reviews
from tfgrpo.store.runs import Run as Run
from tfgrpo.store.runs import Runs as Runs
from tfgrpo.store.sets import Sets as Sets
from tfgrpo.store.traffic import Batch as Batch
from tfgrpo.store.traffic import FoundLink as FoundLink
from tfgrpo.store.traffic import Traffic as Traffic
from tfgrpo.store.withdrawals import Done as Done
from tfgrpo.store.withdrawals import Withdrawable as Withdrawable
from tfgrpo.store.withdrawals import Withdrawals as Withdrawals

T = TypeVar("T")


class Store:
    """One store, by room. Made by `Store.open`."""

    def __init__(self, database: Database, rules: Rules = NO_RULES) -> None:
        self._database = database
        self.traffic = Traffic(database)
        self.learnable = Learnable(database)
        self.browsing = Browsing(database)
        self.makers = Makers(database)
        self.labels = Labels(database)
        self.sets = Sets(database, rules)
        self.history = History(database)
        self.reviews = Reviews(database, rules)
        self.withdrawals = Withdrawals(database)
        self.runs = Runs(database)
        self.pending = PendingLessons(database)
        self.glances = Glances(database)
        self.evidence = Evidence(database)
        self.experiments = Experiments(database)
        self.bypass = Bypass(database)
        self.frozen = FrozenRows(database)
        self.hours = Hours(database)
        self.retention = Retention(database)

    @classmethod
    def open(cls, url: str, *, migrate: bool = False, later: bool = False, rules: Rules = NO_RULES) -> Store:
        """Open the store at `url`, of SQLite or PostgreSQL; with `migrate`, make it or bring it up to date first.

        `later`: a server that cannot be reached now is opened and brought up to date when it first answers; until then
        each call raises StoreAway. `rules`: what is asked of the versions that are stored and deployed through it.

        Raises:
            StoreAway: Its server cannot be reached.
            StoreError: It cannot be opened, or its schema is not the one this program knows.
        """
        return cls(Database(url, migrate=migrate, later=later), rules)

    @property
    def shared(self) -> bool:
        """Whether programs on other machines may use this store."""
        return self._database.dialect != "sqlite"

    def secret(self, proposed: bytes | None = None) -> bytes:
        """Return the 32 bytes that exchange ids and arms are keyed with: made once, the same for every worker.

        `proposed`: what they become where there are none yet, instead of random ones.
        """

        def work(connection: Connection) -> str:
            meta = schema.meta
            found = connection.execute(select(meta.c.value).where(meta.c.key == "secret")).scalar()
            if found is None:
                found = (proposed or secrets.token_bytes(32)).hex()
                connection.execute(insert(meta).values(key="secret", value=found))
            return str(found)

        return bytes.fromhex(self._database.write(work, durable=True))

    def together(self, work: Callable[[], T]) -> T:
        """Return what `work` makes. All that it reads and writes in this store, in its thread, is one transaction.

        It may be called more than once: what it changes elsewhere must bear that.
        """
        return self._database.together(work)

    def backup(self, file: Path) -> None:
        """Write a whole copy of the store to a new file, while others write to it.

        Raises:
            UsageError: The file is there already, or the database is backed up by a program of its own.
            StoreError: The copy could not be made; none is left.
        """
        self._database.backup(file)

    def close(self) -> None:
        """Close every connection."""
        self._database.close()
