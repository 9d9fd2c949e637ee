"""Which trajectory a request belongs to, with no help from the client, and what it is given because of that.

Placing has two steps: recall what this worker does not remember, then decide at once from memory alone, so that
requests that arrive together see each other. Nothing here fails a request: what cannot be found starts a trajectory
of its own, outside every experiment. It does not know HTTP, nor what is injected.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

import msgspec

from proxy import arms
from proxy.arms import Treatment
from proxy.clues import Clues, clues, task_number
from proxy.clues import Evidence as Evidence
from proxy.deployments import Deployments
from proxy.link_cache import LinkCache, Node
from proxy.outstanding import Outstanding
from proxy.randomness import RandomBytes
from proxy.recall import IDLE_SECONDS, PATIENCE, Recall
from proxy.recall import Stats as Stats
from proxy.recording import Recorder, Taken
from tfgrpo import trajectories
from tfgrpo.store import Store
from tfgrpo.trajectories import Chain
from tfgrpo.types import Arm, Assignment, Link, Outcome, Response


class Placement(msgspec.Struct, frozen=True):
    """Where a request belongs, and the arm and version that this request gets (0: nothing is injected).

    `assignment` is what its trajectory was given first, `said` the hashes of its conversation; `retry`: it repeats one
    of the trajectory that failed.
    """

    assignment: Assignment
    arm: Arm
    version: int
    parent: str | None
    said: Chain | None = None
    retry: bool = False


class _Spot(msgspec.Struct, frozen=True):
    """A trajectory that a request belongs to. `seen_at`: when it was last heard of."""

    assignment: Assignment
    seen_at: float
    parent: Node | None = None
    failed: Node | None = None


class _Beginning(msgspec.Struct, frozen=True):
    """A new trajectory. `lost`: it continues something unknown. `ours`: nobody has given the name an arm before."""

    name: str
    lost: bool = False
    ours: bool = True


class Linker:
    """Places requests and remembers their answers.

    `peers`: other workers write to the same store, so that a link may be there that this worker never saw;
    `patience` is how long, in seconds, a request waits for evidence of what it continues.
    """

    def __init__(
        self,
        store: Store,
        deployments: Deployments,
        recorder: Recorder,
        *,
        secret: bytes,
        ignore: Sequence[re.Pattern[str]] = (),
        system: bool = True,
        peers: bool = False,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.time,
        cache: LinkCache | None = None,
        outstanding: Outstanding | None = None,
    ) -> None:
        self._deployments = deployments
        self._outstanding = outstanding
        self._recorder = recorder
        self._secret = secret
        self._random = RandomBytes()
        self._ignore = tuple(ignore)
        self._system = system
        self._clock = clock
        self._cache = cache if cache is not None else LinkCache()
        self._recall = Recall(store, self._cache, peers=peers, patience=patience, clock=clock)
        self.unknown = 0

    @property
    def stats(self) -> Stats:
        """How often the store was asked, and how often in vain. `unknown` counts the arms of that name beside it."""
        return self._recall.stats

    def close(self) -> None:
        """Give up the threads."""
        self._recall.close()

    async def place(self, evidence: Evidence, exchange_id: str) -> Placement:
        """Return where the request belongs and what it is given, and let other workers know of it."""
        found = clues(evidence, self._ignore)
        certain = await self._recall.bring(found)
        spot = self._find(found)
        if spot is not None:
            return self._continue(spot, evidence, found, exchange_id)
        return self._start(self._beginning(found, certain=certain), evidence, found, exchange_id)

    async def look(self, evidence: Evidence) -> Treatment:
        """Return what a request gets that is no turn of its trajectory, and remember nothing of it.

        Before the first turn the arm is known of a trajectory that the client named; any other's is not drawn yet.
        """
        found = clues(evidence, self._ignore)
        certain = await self._recall.bring(found)
        spot = self._find(found)
        if spot is not None:
            return self._kept(spot, evidence)
        beginning = self._beginning(found, certain=certain)
        nameless = found.name is None and found.session is None
        return self._drawn(evidence, beginning.name, lost=beginning.lost or nameless)

    def settle(
        self, placement: Placement, exchange_id: str, evidence: Evidence, response: Response | None, outcome: Outcome
    ) -> None:
        """Remember what the exchange came to, so that a later request finds it."""
        keys: list[str] = []
        if placement.said is not None and response is not None:
            keys += trajectories.answer_keys(evidence.scope, placement.said, response)
        if outcome != "complete" and evidence.body:
            keys.append(evidence.retry_key)
        mark = placement.said.system if placement.said is not None else ""
        self._publish(keys, Node(exchange_id, placement.assignment, self._clock(), system=mark))

    def reading(self, evidence: Evidence) -> AbstractContextManager[None]:
        """Hold while an answer is read in a thread, until it is settled: a later request of its scope waits for it."""
        return self._recall.reading(evidence.scope)

    def _find(self, found: Clues) -> _Spot | None:
        """Return the trajectory that the request belongs to, by the strongest evidence there is."""
        if found.named is not None:
            return self._find_named(found, found.named)
        failed = self._failed(found)
        if failed is not None:
            parent = self._parent(found, failed.assignment.trajectory)
            return _Spot(failed.assignment, failed.at, parent, failed)
        parent = self._parent(found)
        if parent is not None:
            return _Spot(parent.assignment, parent.at, parent)
        newest = self._newest_task(found) if found.continues else None
        if newest is not None and found.allow(newest.assignment):
            return _Spot(newest.assignment, newest.at)
        return None

    def _find_named(self, found: Clues, key: str) -> _Spot | None:
        node = next((node for node in self._cache.find(key) if found.allow(node.assignment)), None)
        if node is None:
            return None
        name = node.assignment.trajectory
        return _Spot(node.assignment, node.at, self._parent(found, name), self._failed(found, name))

    def _failed(self, found: Clues, trajectory: str | None = None) -> Node | None:
        """Return the failed exchange that the request repeats: the oldest that nobody repeated yet."""
        if found.failed is None:
            return None
        return _oldest_free(self._allowed(found, found.failed, trajectory))

    def _parent(self, found: Clues, trajectory: str | None = None) -> Node | None:
        """Return the exchange that the request continues: of the strongest evidence, the oldest not taken yet.

        One of a trajectory that was begun for want of evidence is taken only where there is no other: some worker knew
        better, and the conversation goes on with what it had there.
        """
        begun_again = None
        for sought in found.chain:
            nodes = self._allowed(found, sought.key, trajectory)
            if nodes:
                same = [node for node in nodes if node.system == sought.system] if sought.system else nodes
                node = _oldest_free(same or nodes) or (same or nodes)[0]
                if not node.lost:
                    return node
                begun_again = begun_again or node
        return begun_again

    def _allowed(self, found: Clues, key: str, trajectory: str | None) -> list[Node]:
        return [
            node
            for node in self._cache.find(key)
            if found.allow(node.assignment) and trajectory in (None, node.assignment.trajectory)
        ]

    def _newest_task(self, found: Clues) -> Node | None:
        session = found.session
        if session is None or found.tasks is None:
            return None
        tasks = self._cache.find(found.tasks)
        return max(tasks, key=lambda node: task_number(node.assignment.trajectory, session), default=None)

    def _continue(self, spot: _Spot, evidence: Evidence, found: Clues, exchange_id: str) -> Placement:
        now, assignment = self._clock(), spot.assignment
        for node in (spot.parent, spot.failed):
            if node is not None and not node.taken:
                node.taken = True
                self._recorder.put_link(Taken(node.exchange, exchange_id))
        if found.named is not None:
            self._cache.replace(found.named, Node("", assignment, now))
        parent = spot.parent.exchange if spot.parent is not None else None
        self.unknown += (treatment := self._kept(spot, evidence)).arm == "unknown"
        return Placement(assignment, treatment.arm, treatment.version, parent, found.said, spot.failed is not None)

    def _kept(self, spot: _Spot, evidence: Evidence) -> Treatment:
        """What a further request of a trajectory is given."""
        set_name = spot.assignment.set or ""
        return arms.asked(evidence.pin, injectable=evidence.injectable) or arms.later(
            spot.assignment,
            self._deployments.current(set_name),
            rolled_back=self._deployments.newest_rollback(set_name),
            idle=self._clock() - spot.seen_at > IDLE_SECONDS,
        )

    def _drawn(self, evidence: Evidence, trajectory: str, *, lost: bool) -> Treatment:
        """What the first request of a trajectory is given."""
        deployment = self._deployments.current(evidence.set_name) if evidence.set_name is not None else None
        full = self._outstanding is not None and deployment is not None and self._outstanding.full(deployment)
        return arms.asked(evidence.pin, injectable=evidence.injectable) or arms.first(
            self._secret, trajectory, deployment, lost=lost, full=full
        )

    def _beginning(self, found: Clues, *, certain: bool) -> _Beginning:
        # Example answers in front of a question look like a conversation whose parent is lost, until they come again.
        lost = found.continues and not self._recall.is_example(found)
        if found.name is not None:
            # The name may stand in another set already: it is kept, but what it was given there does not count here.
            # Nor is it begun where the store did not say whether another worker has, with another version perhaps.
            ours = certain and not self._cache.find(found.named or "")
            return _Beginning(found.name, lost=not ours, ours=ours)
        if found.session is None or not certain:
            # The time in front keeps neighbours together in the store's indexes, which then change fewer pages.
            made = int(self._clock() * 1000).to_bytes(6) + self._random.take(9)
            return _Beginning(f"t-{made.hex()}", lost=lost or found.session is not None)
        newest = self._newest_task(found)
        number = 1 + task_number(newest.assignment.trajectory, found.session) if newest is not None else 1
        return _Beginning(found.session if number == 1 else f"{found.session}/{number}", lost=lost)

    def _start(self, beginning: _Beginning, evidence: Evidence, found: Clues, exchange_id: str) -> Placement:
        treatment = self._drawn(evidence, beginning.name, lost=beginning.lost)
        assignment = self._assignment(evidence, beginning.name, treatment)
        if self._outstanding is not None and treatment.arm == "candidate":
            self._outstanding.drew(evidence.set_name or "")
        node = Node(exchange_id, assignment, assignment.started_at)
        if beginning.ours:
            self._recorder.put_link(assignment)
            if found.named is not None:
                self._cache.replace(found.named, node)
        if found.tasks is not None and found.allow(assignment):
            self._publish([found.tasks], node)
        self.unknown += treatment.arm == "unknown"
        return Placement(assignment, treatment.arm, treatment.version, None, found.said)

    def _assignment(self, evidence: Evidence, trajectory: str, treatment: Treatment) -> Assignment:
        request = evidence.request
        return Assignment(
            trajectory=trajectory,
            app=evidence.app,
            set=evidence.set_name,
            version=treatment.version,
            arm=treatment.arm,
            probability=treatment.probability,
            revision=treatment.revision,
            group=evidence.group or self._group(evidence),
            model=request.model if request is not None else None,
            started_at=self._clock(),
            chosen=self._deployments.choose(evidence.set_name or "", treatment.version, request),
        )

    def _group(self, evidence: Evidence) -> str:
        request = evidence.request
        if request is None:
            return ""
        return trajectories.group_key(
            app=evidence.app,
            set_name=evidence.set_name,
            model=request.model,
            request=request,
            ignore=self._ignore,
            system=self._system,
        )

    def _publish(self, keys: Sequence[str], node: Node) -> None:
        """Make a node known under these keys: to this worker at once, to others through the store."""
        for key in keys:
            self._cache.add(key, node)
        app, trajectory = node.assignment.app, node.assignment.trajectory
        self._recorder.put_link(*(Link(key, app, trajectory, node.exchange, node.at, node.system) for key in keys))


def _oldest_free(nodes: Iterable[Node]) -> Node | None:
    return next((node for node in nodes if not node.taken), None)
