"""The tables, as queries see them. How they come to be stands in `migrations`; a test holds the two together."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, LargeBinary, MetaData, String, Table, Text

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("key", String, primary_key=True),
    Column("value", Text, nullable=False),
)

exchanges = Table(
    "exchanges",
    metadata,
    Column("id", String, primary_key=True),
    Column("app", String, nullable=False),
    Column("set", String),
    Column("version", Integer, nullable=False),
    Column("arm", String, nullable=False),
    Column("trajectory", String, nullable=False),
    Column("group", String, nullable=False),
    Column("dialect", String),
    Column("method", String, nullable=False),
    Column("path", Text, nullable=False),
    Column("model", String),
    Column("upstream", String, nullable=False),
    Column("credential", String, nullable=False),
    Column("outcome", String, nullable=False),
    Column("status", Integer),
    Column("started_at", Float, nullable=False),
    Column("first_byte_at", Float),
    Column("ended_at", Float, nullable=False),
    Column("completion_id", String),
    Column("prompt_tokens", Integer),
    Column("completion_tokens", Integer),
    Column("parent", String),
    Column("choices", Integer, nullable=False),
    Column("retry", Boolean, nullable=False),
    Column("truncated", Boolean, nullable=False),
    Column("note", Text, nullable=False),
    Column("finish_reason", String),
    Column("record", String, nullable=False),
    Column("record_share", Float, nullable=False),
    Column("sent_at", Float),
)

bodies = Table(
    "bodies",
    metadata,
    Column("exchange", String, primary_key=True),
    Column("request", LargeBinary, nullable=False),
    Column("response", LargeBinary, nullable=False),
    Column("request_encoding", String, nullable=False),
    Column("response_encoding", String, nullable=False),
    Column("response_type", String, nullable=False),
    Column("created_at", Float, nullable=False),
)

trajectories = Table(
    "trajectories",
    metadata,
    Column("app", String, primary_key=True),
    Column("trajectory", String, primary_key=True),
    Column("set", String),
    Column("version", Integer, nullable=False),
    Column("arm", String, nullable=False),
    Column("probability", Float),
    Column("revision", Integer, nullable=False),
    Column("group", String, nullable=False),
    Column("model", String),
    Column("started_at", Float, nullable=False),
    Column("chosen", Text),
)

links = Table(
    "links",
    metadata,
    Column("exchange", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("app", String, nullable=False),
    Column("trajectory", String, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("taken_by", String),
    Column("system", String, nullable=False),
)

labels = Table(
    "labels",
    metadata,
    Column("app", String, primary_key=True),
    Column("feedback_id", String, primary_key=True),
    Column("exchange", String),
    Column("trajectory", String),
    Column("choice", Integer, nullable=False),
    Column("metric", String, nullable=False),
    Column("value", Float, nullable=False),
    Column("source", String, nullable=False),
    Column("credential", String, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("comment", Text),
    Column("reference", Text),
)

frozen = Table(
    "frozen",
    metadata,
    Column("set", String, primary_key=True),
    Column("effective", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("kind", String, nullable=False),
    Column("app", String, nullable=False),
    Column("trajectory", String),
    Column("arm", String, nullable=False),
    Column("probability", Float, nullable=False),
    Column("at", Float, nullable=False),
    Column("reward", Float),
    Column("fresh", Boolean, nullable=False),
    Column("tokens", Integer),
    Column("seconds", Float),
    Column("finish", String),
    Column("failed", Boolean, nullable=False),
)

hours = Table(
    "hours",
    metadata,
    Column("hour", Integer, primary_key=True),
    Column("fact", String, primary_key=True),
    Column("count", BigInteger, nullable=False),
)

reward_hours = Table(
    "reward_hours",
    metadata,
    Column("set", String, primary_key=True),
    Column("hour", Integer, primary_key=True),
    Column("arm", String, primary_key=True),
    Column("labelled", Integer, nullable=False),
    Column("rewards", Float, nullable=False),
)

bypass = Table(
    "bypass",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("bypass", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("actor", String, nullable=False),
    Column("created_at", Float, nullable=False),
)

versions = Table(
    "versions",
    metadata,
    Column("set", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("library", Text, nullable=False),
    Column("status", String, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("parent", Integer),
    Column("policy_model", String),
    Column("run", String),
    Column("note", Text, nullable=False),
)

history = Table(
    "history",
    metadata,
    Column("set", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("action", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("actor", String, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("revision", Integer),
    Column("live", Integer),
    Column("candidate", Integer),
    Column("shares", Text),
    Column("effective", Integer),
    Column("undone", Integer),
    Column("version", Integer),
    Column("entries", Text, nullable=False),
    Column("contents", Text, nullable=False),
    Column("previous", String, nullable=False),
    Column("hash", String, nullable=False),
)

withdrawals = Table(
    "withdrawals",
    metadata,
    Column("kind", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("app", String, nullable=False),
    Column("trajectory", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("actor", String, nullable=False),
    Column("created_at", Float, nullable=False),
)

commits = Table(
    "commits",
    metadata,
    Column("set", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("digest", String, nullable=False),
    Column("origin", String, nullable=False),
    Column("previous", String, nullable=False),
    Column("hash", String, nullable=False),
)

withdrawn_entries = Table(
    "withdrawn_entries",
    metadata,
    Column("set", String, primary_key=True),
    Column("entry", String, primary_key=True),
    Column("text", Text, primary_key=True),
)

pending = Table(
    "pending",
    metadata,
    Column("set", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("lesson", Text, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", String, primary_key=True),
    Column("set", String, nullable=False),
    Column("status", String, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("progress", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float),
)

learned_from = Table(
    "learned_from",
    metadata,
    Column("run", String, primary_key=True),
    Column("trajectory", String, primary_key=True),
    Column("set", String, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("name", String, primary_key=True),
    Column("holder", String, nullable=False),
    Column("expires_at", Float, nullable=False),
)

evidence = Table(
    "evidence",
    metadata,
    Column("key", String, primary_key=True),
    Column("set", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("split", String, nullable=False),
    Column("model", String, nullable=False),
    Column("use", Integer),
    Column("result", Text, nullable=False),
    Column("created_at", Float, nullable=False),
)
