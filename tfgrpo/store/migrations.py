"""How the schema came to be: numbered steps, append-only. A step that has been released is never edited.

Each step is a list of statements in the SQL that SQLite and PostgreSQL share; `{blob}` and `{real}` stand for the
types they name differently, `{hour}` for the hour in which an exchange or a trajectory began. What SQL cannot say is
a function, which keeps to what the tables were at its step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sqlalchemy import Connection, inspect, text

from tfgrpo.errors import StoreError
from tfgrpo.store import chain, commits

Statement: TypeAlias = str | Callable[[Connection], None]

TYPES: Mapping[str, Mapping[str, str]] = {
    "sqlite": {"blob": "BLOB", "real": "REAL", "hour": "CAST(started_at / 3600 AS INTEGER)"},
    "postgresql": {"blob": "BYTEA", "real": "DOUBLE PRECISION", "hour": "CAST(floor(started_at / 3600) AS INTEGER)"},
}


def _chain_deployments(connection: Connection) -> None:
    """Copy the deployments into the history, each chained to the one before of its set."""
    libraries = {
        (row.set, row.version): chain.digest(row.library)
        for row in connection.execute(text('SELECT "set", version, library FROM versions'))
    }
    before: dict[str, tuple[int, str]] = {}
    for row in connection.execute(text('SELECT * FROM deployments ORDER BY "set", revision')).mappings().all():
        number, previous = before.get(row["set"], (0, ""))
        named = [version for version in (row["live"], row["candidate"]) if version]
        contents = {str(version): libraries.get((row["set"], version)) for version in named}
        whole = dict(row) | {"entries": "[]", "contents": json.dumps(contents, sort_keys=True)}
        made = chain.sealed(whole, number=number + 1, previous=previous)
        _put(connection, "history", made)
        before[row["set"]] = number + 1, made["hash"]


def _commit_versions(connection: Connection) -> None:
    """Commit the versions there are, in their order, and note the newest row of each history."""
    before: dict[str, tuple[int, str]] = {}
    query = 'SELECT * FROM versions WHERE version < 500000000 ORDER BY "set", version'
    for row in connection.execute(text(query)).mappings().all():
        number, previous = before.get(row["set"], (0, ""))
        made = commits.committed(dict(row), number=number + 1, previous=previous, origin="migrated")
        _put(connection, "commits", made)
        before[row["set"]] = number + 1, str(made["hash"])
    newest = {
        row.set: row for row in connection.execute(text('SELECT "set", number, hash FROM history ORDER BY number'))
    }
    for name, one in newest.items():
        _put(connection, "meta", {"key": f"history {name}", "value": f"{one.number} {one.hash}"})


def _put(connection: Connection, table: str, row: Mapping[str, Any]) -> None:
    """Insert a row by the names that its table has at this step, not by those of today's schema."""
    columns, values = ", ".join(f'"{name}"' for name in row), ", ".join(f":{name}" for name in row)
    connection.execute(text(f"INSERT INTO {table} ({columns}) VALUES ({values})"), row)  # noqa: S608 - our names


STEPS: tuple[tuple[Statement, ...], ...] = (
    (
        """CREATE TABLE exchanges (
            id VARCHAR PRIMARY KEY, app VARCHAR NOT NULL, "set" VARCHAR, version INTEGER NOT NULL,
            arm VARCHAR NOT NULL, trajectory VARCHAR NOT NULL, "group" VARCHAR NOT NULL, dialect VARCHAR,
            method VARCHAR NOT NULL, path TEXT NOT NULL, model VARCHAR, upstream VARCHAR NOT NULL,
            credential VARCHAR NOT NULL, outcome VARCHAR NOT NULL, status INTEGER,
            started_at {real} NOT NULL, first_byte_at {real}, ended_at {real} NOT NULL,
            completion_id VARCHAR, prompt_tokens INTEGER, completion_tokens INTEGER, parent VARCHAR,
            choices INTEGER NOT NULL, retry BOOLEAN NOT NULL, truncated BOOLEAN NOT NULL, note TEXT NOT NULL)""",
        "CREATE INDEX exchanges_completion ON exchanges (completion_id) WHERE completion_id IS NOT NULL",
        "CREATE INDEX exchanges_trajectory ON exchanges (app, trajectory, started_at)",
        'CREATE INDEX exchanges_set ON exchanges ("set", started_at)',
        "CREATE INDEX exchanges_started ON exchanges (started_at)",
        """CREATE TABLE bodies (
            exchange VARCHAR PRIMARY KEY, request {blob} NOT NULL, response {blob} NOT NULL,
            request_encoding VARCHAR NOT NULL, response_encoding VARCHAR NOT NULL,
            response_type VARCHAR NOT NULL, created_at {real} NOT NULL)""",
        """CREATE TABLE trajectories (
            app VARCHAR NOT NULL, trajectory VARCHAR NOT NULL, "set" VARCHAR, version INTEGER NOT NULL,
            arm VARCHAR NOT NULL, probability {real}, revision INTEGER NOT NULL, "group" VARCHAR NOT NULL,
            model VARCHAR, started_at {real} NOT NULL, PRIMARY KEY (app, trajectory))""",
        'CREATE INDEX trajectories_set ON trajectories ("set", started_at)',
        """CREATE TABLE links (
            key VARCHAR NOT NULL, exchange VARCHAR NOT NULL, app VARCHAR NOT NULL, trajectory VARCHAR NOT NULL,
            created_at {real} NOT NULL, taken_by VARCHAR, PRIMARY KEY (key, exchange))""",
        "CREATE INDEX links_exchange ON links (exchange)",
        """CREATE TABLE labels (
            app VARCHAR NOT NULL, feedback_id VARCHAR NOT NULL, exchange VARCHAR, trajectory VARCHAR,
            choice INTEGER NOT NULL, metric VARCHAR NOT NULL, value {real} NOT NULL, source VARCHAR NOT NULL,
            credential VARCHAR NOT NULL, created_at {real} NOT NULL, comment TEXT, reference TEXT,
            PRIMARY KEY (app, feedback_id))""",
        "CREATE INDEX labels_exchange ON labels (exchange)",
        "CREATE INDEX labels_trajectory ON labels (app, trajectory)",
        """CREATE TABLE versions (
            "set" VARCHAR NOT NULL, version INTEGER NOT NULL, library TEXT NOT NULL, status VARCHAR NOT NULL,
            created_at {real} NOT NULL, parent INTEGER, policy_model VARCHAR, run VARCHAR, note TEXT NOT NULL,
            PRIMARY KEY ("set", version))""",
        """CREATE TABLE deployments (
            "set" VARCHAR NOT NULL, revision INTEGER NOT NULL, live INTEGER, candidate INTEGER,
            shares TEXT NOT NULL, action VARCHAR NOT NULL, reason TEXT NOT NULL, actor VARCHAR NOT NULL,
            created_at {real} NOT NULL, effective INTEGER NOT NULL, undone INTEGER, PRIMARY KEY ("set", revision))""",
        """CREATE TABLE runs (
            id VARCHAR PRIMARY KEY, "set" VARCHAR NOT NULL, status VARCHAR NOT NULL, arguments TEXT NOT NULL,
            progress TEXT NOT NULL, result TEXT NOT NULL, started_at {real} NOT NULL, ended_at {real})""",
        """CREATE TABLE learned_from (
            run VARCHAR NOT NULL, trajectory VARCHAR NOT NULL, "set" VARCHAR NOT NULL,
            PRIMARY KEY (run, trajectory))""",
        'CREATE INDEX learned_from_set ON learned_from ("set")',
        """CREATE TABLE leases (
            name VARCHAR PRIMARY KEY, holder VARCHAR NOT NULL, expires_at {real} NOT NULL)""",
    ),
    (
        """CREATE TABLE evidence (
            key VARCHAR NOT NULL, "set" VARCHAR NOT NULL, kind VARCHAR NOT NULL, version INTEGER NOT NULL,
            split VARCHAR NOT NULL, model VARCHAR NOT NULL, "use" INTEGER, result TEXT NOT NULL,
            created_at {real} NOT NULL, PRIMARY KEY (key, "set"))""",
        'CREATE INDEX evidence_set ON evidence ("set", kind, created_at)',
    ),
    (
        "ALTER TABLE exchanges ADD COLUMN finish_reason VARCHAR",
        "CREATE INDEX labels_created ON labels (created_at)",
        """CREATE INDEX trajectories_candidate ON trajectories ("set", started_at) WHERE arm = 'candidate'""",
    ),
    (
        # Keys are random: only the smallest index may hold them. The digits that tell system texts apart go last.
        """CREATE TABLE new_links (
            key VARCHAR NOT NULL, exchange VARCHAR NOT NULL, app VARCHAR NOT NULL, trajectory VARCHAR NOT NULL,
            created_at {real} NOT NULL, taken_by VARCHAR, PRIMARY KEY (exchange, key))""",
        """INSERT INTO new_links (key, exchange, app, trajectory, created_at, taken_by)
            SELECT substr(key, 9) || substr(key, 1, 8), exchange, app, trajectory, created_at, taken_by
            FROM links ORDER BY exchange""",
        "DROP TABLE links",
        "ALTER TABLE new_links RENAME TO links",
        "CREATE INDEX links_key ON links (key)",
    ),
    ("ALTER TABLE trajectories ADD COLUMN chosen TEXT",),
    (
        """CREATE TABLE frozen (
            "set" VARCHAR NOT NULL, effective INTEGER NOT NULL, number INTEGER NOT NULL, kind VARCHAR NOT NULL,
            app VARCHAR NOT NULL, trajectory VARCHAR, arm VARCHAR NOT NULL, probability {real} NOT NULL,
            at {real} NOT NULL, reward {real}, fresh BOOLEAN NOT NULL, tokens INTEGER, seconds {real}, finish VARCHAR,
            failed BOOLEAN NOT NULL, PRIMARY KEY ("set", effective, number))""",
        # It also finds those of a trajectory that is erased. Where the name is gone, nothing is told apart any more.
        'CREATE UNIQUE INDEX frozen_once ON frozen (app, trajectory, "set", effective, kind)',
    ),
    (
        "ALTER TABLE exchanges ADD COLUMN record VARCHAR NOT NULL DEFAULT 'full'",
        "ALTER TABLE exchanges ADD COLUMN record_share {real} NOT NULL DEFAULT 1",
        "CREATE INDEX bodies_created ON bodies (created_at)",
    ),
    (
        """CREATE TABLE bypass (
            number INTEGER PRIMARY KEY, bypass BOOLEAN NOT NULL, reason TEXT NOT NULL, actor VARCHAR NOT NULL,
            created_at {real} NOT NULL)""",
    ),
    (
        """CREATE TABLE history (
            "set" VARCHAR NOT NULL, number INTEGER NOT NULL, action VARCHAR NOT NULL, reason TEXT NOT NULL,
            actor VARCHAR NOT NULL, created_at {real} NOT NULL, revision INTEGER, live INTEGER, candidate INTEGER,
            shares TEXT, effective INTEGER, undone INTEGER, version INTEGER, entries TEXT NOT NULL,
            contents TEXT NOT NULL, previous VARCHAR NOT NULL, hash VARCHAR NOT NULL, PRIMARY KEY ("set", number))""",
        _chain_deployments,
        "DROP TABLE deployments",
        'CREATE UNIQUE INDEX history_revision ON history ("set", revision) WHERE revision IS NOT NULL',
    ),
    (
        """CREATE TABLE withdrawals (
            kind VARCHAR NOT NULL, name VARCHAR NOT NULL, app VARCHAR NOT NULL, trajectory VARCHAR NOT NULL,
            reason TEXT NOT NULL, actor VARCHAR NOT NULL, created_at {real} NOT NULL, PRIMARY KEY (kind, name))""",
        """CREATE TABLE withdrawn_entries (
            "set" VARCHAR NOT NULL, entry VARCHAR NOT NULL, text TEXT NOT NULL, PRIMARY KEY ("set", entry, text))""",
    ),
    (
        # One row for both keys of an answer: they shared all but their last eight digits. Which of the two held the
        # mark of system texts is not known any more, so that these rows are found whatever those are.
        """DELETE FROM links WHERE EXISTS (
            SELECT 1 FROM links AS other WHERE other.exchange = links.exchange AND other.key < links.key
            AND substr(other.key, 1, 24) = substr(links.key, 1, 24))""",
        "UPDATE links SET key = substr(key, 1, 24)",
        "ALTER TABLE links ADD COLUMN system VARCHAR NOT NULL DEFAULT ''",
    ),
    (
        "ALTER TABLE exchanges ADD COLUMN sent_at {real}",
        """CREATE TABLE hours (
            hour INTEGER NOT NULL, fact VARCHAR NOT NULL, count BIGINT NOT NULL, PRIMARY KEY (hour, fact))""",
        "INSERT INTO hours SELECT {hour}, outcome, count(*) FROM exchanges GROUP BY 1, 2",
        """INSERT INTO hours SELECT {hour}, 'prompt tokens', sum(prompt_tokens) FROM exchanges
            WHERE prompt_tokens > 0 GROUP BY 1""",
        """INSERT INTO hours SELECT {hour}, 'completion tokens', sum(completion_tokens) FROM exchanges
            WHERE completion_tokens > 0 GROUP BY 1""",
        "INSERT INTO hours SELECT {hour}, 'begun', count(*) FROM trajectories GROUP BY 1",
        """CREATE TABLE reward_hours (
            "set" VARCHAR NOT NULL, hour INTEGER NOT NULL, arm VARCHAR NOT NULL, labelled INTEGER NOT NULL,
            rewards {real} NOT NULL, PRIMARY KEY ("set", hour, arm))""",
    ),
    (
        """CREATE TABLE pending (
            "set" VARCHAR NOT NULL, number INTEGER NOT NULL, lesson TEXT NOT NULL, PRIMARY KEY ("set", number))""",
    ),
    # Whoever looks through the trajectories of all sets looks from the newest on.
    ("CREATE INDEX trajectories_started ON trajectories (started_at)",),
    (
        """CREATE TABLE commits (
            "set" VARCHAR NOT NULL, number INTEGER NOT NULL, version INTEGER NOT NULL, digest VARCHAR NOT NULL,
            origin VARCHAR NOT NULL, previous VARCHAR NOT NULL, hash VARCHAR NOT NULL, PRIMARY KEY ("set", number))""",
        'CREATE UNIQUE INDEX commits_version ON commits ("set", version)',
        _commit_versions,
    ),
)


def current(connection: Connection) -> int:
    """Return how many steps the store has seen; 0 for a new one."""
    if not inspect(connection).has_table("meta"):
        return 0
    value = connection.execute(text("SELECT value FROM meta WHERE key = 'schema'")).scalar()
    return int(value or 0)


def check(connection: Connection) -> None:
    """Raise StoreError unless the store has exactly the steps this program knows."""
    found = current(connection)
    if found > len(STEPS):
        raise StoreError(f"the store has schema {found}, this program knows {len(STEPS)}: start a newer tfgrpo on it")
    if found < len(STEPS):
        raise StoreError(
            f"the store has schema {found}, this program needs {len(STEPS)}: start tfgrpo-proxy once, it migrates"
        )


def migrate(connection: Connection) -> None:
    """Take the steps that are missing, in the caller's transaction."""
    if not inspect(connection).has_table("meta"):
        connection.execute(text("CREATE TABLE meta (key VARCHAR PRIMARY KEY, value TEXT NOT NULL)"))
        connection.execute(text("INSERT INTO meta (key, value) VALUES ('schema', '0')"))
    for number, statements in enumerate(STEPS, start=1):
        if number > current(connection):
            for statement in statements:
                take(connection, statement)
            connection.execute(text("UPDATE meta SET value = :number WHERE key = 'schema'"), {"number": str(number)})


def take(connection: Connection, statement: Statement) -> None:
    """Do one statement of a step, in the caller's transaction."""
    if callable(statement):
        statement(connection)
    else:
        connection.execute(text(statement.format(**TYPES[connection.dialect.name])))
