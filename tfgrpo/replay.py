"""Logged tasks, to be run afresh: the first requests of trajectories, one for each group of them.

It calls no model and makes nothing up: what cannot be asked again as it was (tools that must answer, pictures of which
only a note is kept, a conversation that began elsewhere) is left out and counted, with the reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tfgrpo import dialects
from tfgrpo.dialects import parameters, parts
from tfgrpo.dialects.tools import offered
from tfgrpo.errors import Conflict
from tfgrpo.principals import Principals
from tfgrpo.rewards import Placed
from tfgrpo.store import Attempt, Store
from tfgrpo.teaching import EVERYONE, Teaching, speakers
from tfgrpo.trajectories import Turn, opening
from tfgrpo.types import Bodies, Exchange, Message, Request, Task

NO_BODY = "have no request that can be read: its body is gone"
CONTINUES = "continue a conversation that the provider keeps, so their messages are not whole"
NOTES = "hold an image, a sound or a file, of which only a note is kept"
TOOLS = "hold tool calls, which only your agent can answer: name it with --runner python:module:function"
NO_REFERENCE = "have no right answer, which the grader needs: send one as `reference` with a label"


@dataclass(frozen=True, slots=True)
class Logged:
    """The tasks of a set's traffic by their groups' keys, and how many were left out, by reason."""

    tasks: tuple[Task, ...]
    skipped: Mapping[str, int]
    principals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Whom each task counts for: those whose keys asked it, as keyed hashes."""

    def explain(self) -> str:
        """Say what was left out and why, "" for nothing."""
        return "; ".join(f"{count} logged tasks {reason}" for reason, count in self.skipped.items())


def logged_tasks(
    store: Store,
    *,
    set_name: str | None = None,
    unnamed: bool = False,
    need_reference: bool = False,
    tools: bool = False,
    teaching: Teaching = EVERYONE,
) -> Logged:
    """Return the tasks of a set's traffic, or of the traffic under no set (`unnamed`), each with its own parameters.

    The oldest trajectory by name speaks for its group; the newest reference among the labels of all is the right
    answer. `tools`: the runner can answer tool calls. `teaching` says of which apps.

    Raises:
        Conflict: none can be run afresh; the message says why.
    """
    groups: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in store.learnable.attempts(set_name=set_name, unnamed=unnamed, apps=teaching.apps):
        groups[attempt.group].append(attempt)
    placed = store.labels.placed(set_name=set_name, unnamed=unnamed)
    references = _references(placed if teaching.own_labels else _of_others(store, placed), groups)
    tasks, skipped = [], Counter[str]()
    for key in sorted(groups):
        found = _task(store, key, groups[key], references.get(key), tools=tools)
        if isinstance(found, str):
            skipped[found] += 1
        elif need_reference and found.reference is None:
            skipped[NO_REFERENCE] += 1
        else:
            tasks.append(found)
    principals = Principals(store, teaching)
    asked_by = {task.key: _askers(store, groups[task.key], principals) for task in tasks}
    logged = Logged(tuple(tasks), dict(skipped), asked_by)
    if not tasks:
        why = logged.explain() or "nothing is recorded: send requests through the proxy first"
        raise Conflict(f"there is no logged task to run afresh: {why}")
    return logged


def _of_others(store: Store, placed: Iterable[tuple[str, Placed]]) -> Iterator[tuple[str, Placed]]:
    """Yield the labels with a reference that were not given by the key that made what they speak of."""
    by_app: dict[str, list[Placed]] = defaultdict(list)
    for app, one in placed:
        if one.label.reference is not None:
            by_app[app].append(one)
    for app, some in by_app.items():
        keys = store.makers.keys_of(app, sorted({one.trajectory for one in some}))
        yield from ((app, one) for one in some if one.label.credential not in keys[one.trajectory])


def _references(labels: Iterable[tuple[str, Placed]], groups: Mapping[str, Iterable[Attempt]]) -> dict[str, str]:
    """Return the newest reference that labels give the trajectories of each group."""
    group_of = {(one.app, one.trajectory): key for key, attempts in groups.items() for one in attempts}
    newest: dict[str, tuple[float, str]] = {}
    for app, placed in labels:
        key, label = group_of.get((app, placed.trajectory)), placed.label
        if key is not None and label.reference is not None:
            newest[key] = max(newest.get(key, (0.0, "")), (label.created_at, label.reference))
    return {key: reference for key, (_, reference) in newest.items()}


def _task(store: Store, key: str, attempts: Sequence[Attempt], reference: str | None, *, tools: bool) -> Task | str:
    """Return the task of a group, or why it cannot be run afresh."""
    exchanges = store.traffic.of_trajectories(attempts[0].app, [one.trajectory for one in attempts])
    bodies = store.traffic.bodies([one.id for some in exchanges.values() for one in some])
    first = next((found for one in exchanges.values() for found in _first(one, bodies)), None)
    if first is None:
        return NO_BODY
    dialect, body, request = first
    if request.previous_response_id is not None or request.references:
        return CONTINUES
    asked = opening([Turn(request.messages, Message("assistant"))])
    if any(parts.holds_note(message.text) for message in asked):
        return NOTES
    if not tools and any(_calls(message) for message in _messages(exchanges, bodies)):
        return TOOLS
    return Task(key, asked, reference, parameters=parameters.of_request(dialect, body), tools=offered(body))


def _askers(store: Store, attempts: Sequence[Attempt], principals: Principals) -> tuple[str, ...]:
    exchanges = store.traffic.of_trajectories(attempts[0].app, [one.trajectory for one in attempts])
    first = [some[0] for some in exchanges.values()]
    bodies = store.traffic.bodies([one.id for one in first])
    return speakers(Counter(principals.of(one, bodies.get(one.id)) for one in first))


def _first(exchanges: Iterable[Exchange], bodies: Mapping[str, Bodies]) -> Iterator[tuple[str, bytes, Request]]:
    """Yield the first complete request of a trajectory, where its body can be read."""
    for exchange in exchanges:
        if exchange.outcome != "complete" or exchange.dialect is None:
            continue
        kept, dialect = bodies.get(exchange.id), dialects.by_name(exchange.dialect)
        body = dialects.decoded(kept.request, kept.request_encoding) if kept is not None else None
        request = dialect.read_request(body) if dialect is not None and body is not None else None
        if body is not None and request is not None:
            yield exchange.dialect, body, request
        return


def _messages(exchanges: Mapping[str, Iterable[Exchange]], bodies: Mapping[str, Bodies]) -> Iterator[Message]:
    """Yield what the exchanges of all trajectories said."""
    for exchange in (one for some in exchanges.values() for one in some):
        kept, dialect = bodies.get(exchange.id), dialects.by_name(exchange.dialect)
        if kept is None or dialect is None:
            continue
        asked = dialects.decoded(kept.request, kept.request_encoding)
        answered = dialects.decoded(kept.response, kept.response_encoding)
        request = None if asked is None else dialect.read_request(asked)
        response = None if answered is None else dialect.read_response(answered, kept.response_type)
        yield from request.messages if request else ()
        yield from (choice.message for choice in response.choices) if response else ()


def _calls(message: Message) -> bool:
    return bool(message.tool_calls) or message.tool_call_id is not None or message.role == "tool"
