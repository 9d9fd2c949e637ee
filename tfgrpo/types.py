"""The values that everything agrees on, one per word of the project's dictionary.

They are frozen and know nothing of where they come from: no store, no HTTP, no model. Times are seconds since
the epoch, rewards lie in [0, 1], token counts are `None` where the upstream gave none. They are msgspec structs, for
the live path makes a dozen for each request: a frozen dataclass takes eight times as long to make.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Arm = Literal["live", "candidate", "control", "pinned", "none", "unknown"]
"""How a trajectory is treated in an experiment; the last three stand outside it."""

Outcome = Literal["complete", "failed", "aborted", "broken"]
"""How an exchange ended: answered below 400, answered 400 and above or not at all, left by the client, cut by the
upstream. Only `complete` ones are learned from."""

OperationName = Literal["add", "update", "merge", "delete", "keep"]

VersionStatus = Literal["unproven", "helps", "hurts", "no effect shown", "by hand", "draft"]

HistoryAction = Literal["deploy", "rollback", "withdraw", "approve", "reject"]

Standing = Literal["awaiting", "approved", "rejected"]
"""What a person said of a learned version, or has not said yet."""

EMPTY_VERSION = 0
"""Version 0 of every set is the empty library."""

FIRST_DRAFT = 500_000_000
"""Versions from here on are drafts: libraries under test, which a request can pin and nothing else can name."""


class ToolCall(msgspec.Struct, frozen=True):
    """One call of a tool as an assistant message asks for it. `arguments` is the text, never parsed."""

    id: str
    name: str
    arguments: str


class Message(msgspec.Struct, frozen=True):
    """The normal form of a message: what linking, grouping and learning look at; all else is ignored."""

    role: str
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """One of the `n` answers of a response."""

    index: int
    message: Message
    finish_reason: str | None = None


class Request(msgspec.Struct, frozen=True):
    """What we read of a request of one of the APIs we know."""

    model: str | None
    messages: tuple[Message, ...]
    stream: bool = False
    n: int = 1
    previous_response_id: str | None = None
    references: tuple[str, ...] = ()
    """Ids that stand for what was said before, in order: of items of earlier answers, of a stored conversation."""
    session_id: str | None = None
    """`metadata.session_id`, as the client sent it."""


class Response(msgspec.Struct, frozen=True):
    """What we read of a response, assembled when it was a stream."""

    id: str | None
    choices: tuple[Choice, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    complete: bool = True
    """False when a stream lacks its end, or carries an error."""
    resumable: bool = False
    """Whether a later request may name `id` as the response it continues."""
    references: tuple[str, ...] = ()
    """Ids by which a later request may refer to this answer instead of repeating it."""


class Experience(msgspec.Struct, frozen=True):
    """One lesson of a library.

    `id` never changes while the lesson lives and is never given again within a set. `sources` are the keys of the
    groups the lesson rests on, `support` counts how often a proposal confirmed it.
    """

    id: str
    text: str
    sources: tuple[str, ...] = ()
    support: int = 1


class Library(msgspec.Struct, frozen=True):
    """The experiences of one version of a set, in order. `next_id` is the number of the next id to give."""

    experiences: tuple[Experience, ...] = ()
    next_id: int = 1

    def __len__(self) -> int:
        return len(self.experiences)


class Operation(msgspec.Struct, frozen=True):
    """A proposed edit of a library. `ids` names the entries meant: none for add, one for update and delete, two or
    more for merge.
    """

    operation: OperationName
    ids: tuple[str, ...] = ()
    text: str | None = None
    why: str = ""
    sources: tuple[str, ...] = ()


class Pending(msgspec.Struct, frozen=True):
    """A lesson that too few groups back to be active. `backing` holds the principals behind each group that does, by
    its key; `runs` those that came to it.
    """

    text: str
    sources: tuple[str, ...]
    support: int
    backing: Mapping[str, tuple[str, ...]]
    runs: tuple[str, ...]

    @property
    def principals(self) -> set[str]:
        """Who stands behind it."""
        return {one for makers in self.backing.values() for one in makers}


class Refusal(msgspec.Struct, frozen=True):
    """An operation that was not applied, and why."""

    operation: Operation
    reason: str


class Version(msgspec.Struct, frozen=True):
    """One version of an experience set, as stored."""

    set: str
    version: int
    library: Library
    status: VersionStatus
    created_at: float
    parent: int | None = None
    policy_model: str | None = None
    run: str | None = None
    note: str = ""


class Deployment(msgspec.Struct, frozen=True):
    """Which version of a set live requests get, as one entry of the set's history.

    `live` None means version 0. `shares` holds the parts of new trajectories that go to `candidate` and `control`;
    the rest is live. `effective` is the revision whose content this is: its own, or for a rollback the one it
    restored.
    """

    set: str
    revision: int
    live: int | None
    candidate: int | None
    shares: Mapping[str, float]
    action: HistoryAction
    reason: str
    actor: str
    created_at: float
    effective: int


class Change(msgspec.Struct, frozen=True):
    """One row of a set's history: a deployment (it has a `revision`), or what was done to `version`.

    `entries` are the ids that a withdrawal took out, `contents` the digests of the libraries named, by version.
    """

    set: str
    number: int
    action: HistoryAction
    reason: str
    actor: str
    created_at: float
    hash: str
    revision: int | None = None
    live: int | None = None
    candidate: int | None = None
    shares: Mapping[str, float] | None = None
    effective: int | None = None
    version: int | None = None
    entries: tuple[str, ...] = ()
    contents: Mapping[int, str] = msgspec.field(default_factory=dict)


class Assignment(msgspec.Struct, frozen=True):
    """What a trajectory was given at its first request and keeps: its set, arm and version, with the probability
    that the arm was drawn with (None when it was not drawn).
    """

    trajectory: str
    app: str
    set: str | None
    version: int
    arm: Arm
    probability: float | None
    revision: int
    """The deployment revision the arm was drawn under; 0 when there was none."""
    group: str
    model: str | None
    started_at: float
    chosen: str | None = None
    """The ids of the entries that it gets, with spaces between; None: all of them."""


class Link(msgspec.Struct, frozen=True):
    """Evidence that a later request continues an exchange. `key` carries its scope (app, set) in the hash.

    `system` is the mark of the exchange's system texts, by which those of one key are told apart.
    """

    key: str
    app: str
    trajectory: str
    exchange: str
    created_at: float
    system: str = ""


Record = Literal["full", "metadata", "expired"]
"""With bodies; without them from the start; without them since their age was reached."""


class Exchange(msgspec.Struct, frozen=True):
    """One proxied request with its response, without the bodies."""

    id: str
    app: str
    set: str | None
    version: int
    arm: Arm
    trajectory: str
    group: str
    dialect: str | None
    """`chat`, `responses`, `messages`, `completions`; None when the path is relayed without reading."""
    method: str
    path: str
    model: str | None
    upstream: str
    credential: str
    """A keyed hash of the client's credential; empty when it showed none."""
    outcome: Outcome
    status: int | None
    """What the client was answered; None when it left before."""
    started_at: float
    first_byte_at: float | None
    ended_at: float
    completion_id: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    parent: str | None = None
    """The exchange this one continues."""
    choices: int = 1
    """How many answers were asked for (`n`)."""
    retry: bool = False
    """The client's SDK says that it repeats a request which failed: no new rollout."""
    truncated: bool = False
    """A body was larger than what is kept of it; not learned from."""
    finish_reason: str | None = None
    """Why the first answer ended, in the words of its API; None where it did not say."""
    note: str = ""
    """What an operator should know: why a request was not injected, what broke."""
    record: Record = "full"
    """What is kept of it; nothing is learned from one without bodies."""
    record_share: float = 1.0
    """The probability that the bodies of its trajectory are kept, where they are sampled."""
    sent_at: float | None = None
    """When it went on to its upstream; from `started_at` to here is what the proxy added. None: it never did."""


class Bodies(msgspec.Struct, frozen=True):
    """The raw bytes of an exchange: the request as the client sent it (what was injected follows from the version)
    and the response as the upstream sent it, each with its content-encoding.
    """

    request: bytes = b""
    response: bytes = b""
    request_encoding: str = ""
    response_encoding: str = ""
    response_type: str = ""


class Label(msgspec.Struct, frozen=True):
    """One recorded judgement of an exchange (one of its choices) or of a whole trajectory."""

    feedback_id: str
    app: str
    exchange: str | None
    trajectory: str | None
    choice: int
    metric: str
    value: float
    source: str
    credential: str
    created_at: float
    comment: str | None = None
    reference: str | None = None


class Task(msgspec.Struct, frozen=True):
    """What was asked. `messages` start a rollout; `reference` is the right answer where there is one."""

    key: str
    messages: tuple[Message, ...]
    reference: str | None = None
    metadata: Mapping[str, object] = msgspec.field(default_factory=dict)
    parameters: Mapping[str, object] = msgspec.field(default_factory=dict)
    """What a chat completion of it is asked with besides messages: `max_tokens`, `response_format` and the like."""
    tools: frozenset[str] | None = None
    """The names in the tools that its requests offered, of tools and of their parameters; None: nobody knows."""

    @property
    def question(self) -> str:
        """The text of the last user message: what a person would call the task."""
        return next((m.text for m in reversed(self.messages) if m.role == "user"), "")


class Rollout(msgspec.Struct, frozen=True):
    """One attempt at a task: a trajectory with a reward. `reward` is None while nothing judged it.

    `messages` are what followed the task's own: answers, tool results, further turns.
    """

    trajectory: str
    messages: tuple[Message, ...]
    reward: float | None = None
    comments: tuple[str, ...] = ()
    error: str | None = None
    """Why the rollout failed; a failed rollout is a result like any other, with reward 0."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    usd: float | None = None
    """What it cost; None where nobody knows."""

    @property
    def answer(self) -> str:
        """The text of the last assistant message."""
        return next((m.text for m in reversed(self.messages) if m.role == "assistant"), "")


class Group(msgspec.Struct, frozen=True):
    """The rollouts of one task by one model under one version of a set."""

    key: str
    task: Task
    model: str | None
    set: str | None
    version: int
    rollouts: tuple[Rollout, ...]
    principals: tuple[str, ...] = ()
    """Whom it counts for, where it was logged: those whose keys made its rollouts, as keyed hashes."""
