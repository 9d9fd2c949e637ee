"""`tfgrpo train`: learn a new version of a set, and say what came of it.

The algorithm is `trainer`'s; this module gives it groups, a parent library and models, and stores what it learned.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias

from msgspec import structs

from tfgrpo.commands import groups as census
from tfgrpo.commands import lease
from tfgrpo.commands.output import emit, note, of_operation, of_version, say
from tfgrpo.commands.progress import Progress
from tfgrpo.commands.session import configuration, grader, interruptible, named, opened
from tfgrpo.configuration import Configuration
from tfgrpo.datasets import Dataset, load
from tfgrpo.errors import BudgetExceeded, Conflict, ModelError, TfgrpoError, UsageError
from tfgrpo.library import Limits
from tfgrpo.llm import Llm
from tfgrpo.memo import Memo
from tfgrpo.optimizer import Optimizer
from tfgrpo.rollouts import ChatRunner
from tfgrpo.store import Store
from tfgrpo.store.runs import RunStatus
from tfgrpo.traffic import labelled_groups
from tfgrpo.trainer import Learned, Practice, Trainer
from tfgrpo.types import EMPTY_VERSION, Group, Library, Version
from tfgrpo.usage import Ledger, Usage, as_json, money

ACTOR = "tfgrpo train"
JSON: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Material:
    """What is learned from (logged groups or a data set), and where the set stands."""

    groups: tuple[Group, ...]
    data: Dataset | None
    parent: int
    library: Library
    given: dict[int, Library]


@dataclass(frozen=True, slots=True)
class _Job:
    """One training run: what was asked, and what it works with."""

    id: str
    store: Store
    arguments: Namespace
    settings: Configuration
    ledger: Ledger


def run(arguments: Namespace) -> int:
    """Train, store the version, deploy it where asked."""
    settings = configuration(arguments, "store", "training")
    named(settings.training.optimizer, settings.training.policy, "training.optimizer")
    ledger = Ledger(max_usd=arguments.max_usd, max_tokens=arguments.max_tokens)
    with opened(settings, migrate=arguments.source == "dataset") as store:
        material = _material(store, arguments, settings)
        asked = {"from": arguments.source, "seed": arguments.seed, "deploy": arguments.deploy}
        run_id = lease.take(store.runs, set_name=arguments.set, arguments=asked)
        try:
            result = _finished(_Job(run_id, store, arguments, settings, ledger), material)
        finally:
            lease.release(store.runs, run_id)
    if arguments.json:
        emit(result)
    else:
        _report(result, ledger.total())
    return 0


def _finished(job: _Job, material: _Material) -> JSON:
    """Learn, store the version and the run's result. However it ends, the run's row says how."""
    runs, ledger = job.store.runs, job.ledger
    try:
        learned = interruptible(lambda: _learn(job, material))
    except KeyboardInterrupt:
        runs.finish(job.id, status="stopped", result={"error": "interrupted"})
        kept = f"interrupted: {ledger.total().calls} finished calls are kept in {job.settings.memo}"
        raise KeyboardInterrupt(f"{kept}; the same command goes on from there") from None
    except TfgrpoError as error:
        ended: RunStatus = "stopped" if isinstance(error, BudgetExceeded) else "failed"
        runs.finish(job.id, status=ended, result={"error": str(error)})
        raise
    if unusable := _unusable(learned):
        runs.finish(job.id, status="failed", result={"error": unusable, **_result(job, material, learned)})
        raise ModelError(unusable)
    result = _stored(job, material, learned)
    stages = {stage: as_json(usage) for stage, usage in ledger.stages().items()}
    result = {**result, "usage": {**stages, "total": as_json(ledger.total())}}
    # Groups that changed nothing may be learned from again.
    runs.finish(job.id, status="finished", result=result, used=_used(learned) if learned.applied else ())
    return result


async def _learn(job: _Job, material: _Material) -> Learned:
    training = job.settings.training
    model = named(training.optimizer, training.policy, "training.optimizer")
    with closing(Memo(job.settings.memo)) as memo, Progress(job.ledger) as progress:
        async with Llm(model, ledger=job.ledger, memo=memo, concurrency=training.concurrency) as llm:
            trainer = Trainer(
                optimizer=Optimizer(
                    llm, training.objective, training.optimizer_temperature, job.arguments.seed, training.max_words
                ),
                limits=Limits(training.max_entries, training.max_words),
                listener=progress,
                batch_size=training.batch_size,
                given=material.given,
            )
            async with lease.kept(job.store.runs, job.id, progress.snapshot):
                work = (
                    trainer.learn(material.groups, material.library)
                    if material.data is None
                    else _practise(job, trainer, material, material.data, memo)
                )
                return await work


async def _practise(job: _Job, trainer: Trainer, material: _Material, data: Dataset, memo: Memo) -> Learned:
    training = job.settings.training
    model = named(training.policy, training.optimizer, "training.policy")
    judge = grader(job.arguments, job.settings)
    async with Llm(model, ledger=job.ledger, memo=memo, concurrency=training.concurrency) as policy:
        practice = Practice(
            runner=ChatRunner(policy, judge, trainer.listener.advance),
            set_name=job.arguments.set,
            version=material.parent,
            group_size=training.group_size,
            epochs=training.epochs,
            temperature=training.temperature,
            seed=job.arguments.seed,
        )
        return await trainer.practise(data.tasks, material.library, practice)


def _material(store: Store, arguments: Namespace, settings: Configuration) -> _Material:
    deployment = store.sets.deployment(arguments.set)
    parent = (deployment.live if deployment else None) or EMPTY_VERSION
    library = store.sets.version(arguments.set, parent).library
    library = structs.replace(library, next_id=max(library.next_id, store.sets.next_id(arguments.set)))
    if arguments.source == "dataset":
        return _Material((), _dataset(arguments, settings), parent, library, {})
    groups = _groups(store, arguments, parent)
    given = {group.version: store.sets.version(arguments.set, group.version).library for group in groups}
    return _Material(tuple(groups), None, parent, library, given)


def _dataset(arguments: Namespace, settings: Configuration) -> Dataset:
    if arguments.data is None:
        raise UsageError("--from dataset needs --data FILE", field="data")
    data = load(arguments.data, need_reference=grader(arguments, settings).needs_reference)
    if data.repeated:
        note(f"{data.repeated} rows repeat an earlier task and are left out")
    return data


def _groups(store: Store, arguments: Namespace, parent: int) -> list[Group]:
    """Return the groups to learn from; Conflict, with the reasons, when there is none.

    Left out is what the parent library has learned from already. What went into a version that was never deployed is
    taken again: its lessons are not in the parent.
    """
    counted, unnamed = census.of_set(store, arguments.set)
    if unnamed:
        note(census.unrecorded(arguments.set))
    runs = [version.run for version in store.sets.lineage(arguments.set, parent) if version.run]
    skip = set() if arguments.reuse else store.runs.learned_from(runs)
    found = labelled_groups(store, set_name=None if unnamed else arguments.set, unnamed=unnamed, skip=skip)
    if found:
        return found
    if counted.contrasting:
        raise Conflict(
            f"version {parent} has learned from all {counted.contrasting} groups that contrast: label new traffic, or "
            "take them again with --reuse"
        )
    raise Conflict(
        "no group contrasts, so there is nothing to learn from: " + "; ".join(census.explain(counted).split("\n"))
    )


def _stored(job: _Job, material: _Material, learned: Learned) -> JSON:
    """Store the new version, deploy it where asked, and return the run's result."""
    result = _result(job, material, learned)
    if not learned.applied:
        return result
    version = _known(job, material, learned) or job.store.sets.add_version(
        job.arguments.set,
        learned.library,
        status="unproven",
        parent=material.parent,
        policy_model=_models(learned),
        run=job.id,
    )
    if job.arguments.deploy:
        _deploy(job.store, version)
    return {**result, **of_version(version), "deployed": job.arguments.deploy}


def _unusable(learned: Learned) -> str | None:
    """Return what to say when groups contrasted, and of no answer of the optimizer could anything be made."""
    faults = [fault for step in learned.steps for fault in step.faults]
    if not faults or any(step.lessons for step in learned.steps):
        return None
    return f"none of the optimizer's answers could be used ({len(faults)} faults); the first: {faults[0]}"


def _known(job: _Job, material: _Material, learned: Learned) -> Version | None:
    """Return the version that says the very same: the same groups learned from again, with nothing new beside them."""
    texts = [entry.text for entry in learned.library.experiences]
    for version in job.store.sets.versions(job.arguments.set):
        if version.parent == material.parent and [entry.text for entry in version.library.experiences] == texts:
            note(f"version {version.version} holds these experiences already, so no new one is made")
            return version
    return None


def _deploy(store: Store, version: Version) -> None:
    current = store.sets.deployment(version.set)
    # A control arm measures the live version, whichever it is: it stays. A candidate was for the version before.
    control = current.shares.get("control") if current else None
    store.sets.deploy(
        version.set,
        live=version.version,
        shares={} if control is None else {"control": control},
        reason=f"learned by run {version.run}; unproven",
        actor=ACTOR,
    )


def _result(job: _Job, material: _Material, learned: Learned) -> JSON:
    steps = learned.steps
    return {
        "run": job.id,
        "set": job.arguments.set,
        "version": None,
        "parent": material.parent,
        "deployed": False,
        "groups": sum(step.groups for step in steps),
        "contrasting": sum(len(step.telling) for step in steps),
        "lessons": sum(step.lessons for step in steps),
        "proposals": sum(step.proposals for step in steps),
        "applied": [of_operation(one) for step in steps for one in step.applied],
        "refused": [{**of_operation(one.operation), "reason": one.reason} for step in steps for one in step.refused],
        "faults": [fault for step in steps for fault in step.faults],
    }


def _models(learned: Learned) -> str | None:
    names = sorted({group.model for group in _telling(learned) if group.model})
    return ", ".join(names) or None


def _telling(learned: Learned) -> Iterable[Group]:
    return (group for step in learned.steps for group in step.telling)


def _used(learned: Learned) -> tuple[str, ...]:
    """Return the trajectories learned from: of a rollout `ID.k`, one of several choices, also ID."""
    names = {rollout.trajectory for group in _telling(learned) for rollout in group.rollouts}
    whole = {name.rpartition(".")[0] for name in names if name.rpartition(".")[2].isdigit()}
    return tuple(sorted(names | (whole - {""})))


def _report(result: JSON, total: Usage) -> None:
    again = f", {total.replayed} replayed" if total.replayed else ""
    say(
        f"{result['contrasting']} groups contrasted, {result['lessons']} lessons, {result['proposals']} proposals, "
        f"{len(result['applied'])} edits applied, {len(result['refused'])} refused, "
        f"{len(result['faults'])} answers not used"
    )
    say(f"{total.calls} calls{again}, {total.tokens} tokens, {money(total.usd)}")
    if result["version"] is None:
        say("no edit was applied, so there is no new version; `tfgrpo runs show` says what was refused and why")
        return
    name = f"{result['set']}@{result['version']}"
    for one in result["experiences"]:
        say(f"[{one['id']}] {one['text']}")
    if result["deployed"]:
        say(f"{name} is deployed, unproven: no held-out comparison has said that it helps")
    else:
        say(f"{name} is stored, unproven: test it with `tfgrpo evaluate --set {name}`, or `tfgrpo sets deploy {name}`")
