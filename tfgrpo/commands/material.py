"""What a training run learns from: logged groups or a split data set, and where the set stands."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from msgspec import structs

from tfgrpo.commands import groups as census
from tfgrpo.commands import memory, quorums
from tfgrpo.commands.output import note
from tfgrpo.commands.runner import is_agent
from tfgrpo.commands.session import grader, metrics, mode, teaching
from tfgrpo.configuration import Configuration, Training
from tfgrpo.errors import Conflict, DatasetError, UsageError
from tfgrpo.evaluation import Guard
from tfgrpo.quorum import Quorum
from tfgrpo.recipe import RECIPES
from tfgrpo.replay import Logged, logged_tasks
from tfgrpo.sources import load
from tfgrpo.splits import Splits, split
from tfgrpo.store import Store
from tfgrpo.teaching import Teaching, bounded, left_out
from tfgrpo.traffic import Census, answered_groups, labelled_groups
from tfgrpo.types import EMPTY_VERSION, Group, Library, Pending, Refusal, Task
from tfgrpo.weighing import Metrics


@dataclass(frozen=True, slots=True)
class Material:
    """Logged `groups` or the `splits` of a data set; the deployed version is the `parent`, `library` what it says.

    `given` holds the libraries that logged rollouts ran with, by version, `inherited` what did harm in earlier runs.
    """

    groups: tuple[Group, ...]
    splits: Splits | None
    parent: int
    library: Library
    given: dict[int, Library]
    guards: tuple[Guard, ...] = ()
    inherited: tuple[Refusal, ...] = ()
    not_teaching: Mapping[str, int] = field(default_factory=dict)
    """Exchanges that are left out because their app does not teach the set, by app."""
    quorum: Quorum | None = None
    """What its lessons need before they may be active; None: nothing, as for a data set."""
    waiting: tuple[Pending, ...] = ()
    """The lessons of earlier runs that are below the quorum."""


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The census of what teaches the set; `unnamed`: the set has no traffic, so that is traffic under none."""

    counted: Census
    unnamed: bool
    taught: Teaching
    quorum: Quorum


def gathered(store: Store, arguments: Namespace, settings: Configuration) -> Material:
    """Return what `arguments` ask to learn from; an error of ours, with what to do, when there is nothing."""
    material = _found(store, arguments, settings)
    if not RECIPES[arguments.recipe or settings.training.recipe].memory:
        return material
    return replace(material, inherited=memory.inherited(store, arguments.set, material.library))


def _found(store: Store, arguments: Namespace, settings: Configuration) -> Material:
    deployment = store.sets.deployment(arguments.set)
    parent = (deployment.live if deployment else None) or EMPTY_VERSION
    # As requests get it: a version made from what was withdrawn could not be deployed.
    library = store.withdrawals.remaining(store.sets.version(arguments.set, parent))[0].library
    library = structs.replace(library, next_id=max(library.next_id, store.sets.next_id(arguments.set)))
    if arguments.source == "dataset":
        return Material((), _dataset(store, arguments, settings), parent, library, {}, _guards(arguments, settings))
    recorded = _recorded(store, arguments, settings)
    left_out = recorded.counted.not_teaching
    if arguments.source == "replay":
        tasks = _logged(store, arguments, settings, recorded)
        splits = _split(tasks.tasks, f"the traffic of {arguments.set}", arguments, settings.training)
        quorum = quorums.asked(recorded.quorum, tasks.principals, library)
        guards = _guards(arguments, settings)
        waiting = quorums.waiting(store, arguments.set, library)
        return Material((), splits, parent, library, {}, guards, not_teaching=left_out, quorum=quorum, waiting=waiting)
    blind = mode(arguments, settings) == "neither"
    groups = _groups(store, arguments, parent, recorded, blind=blind, weighed_by=metrics(settings))
    given = {group.version: store.sets.version(arguments.set, group.version).library for group in groups}
    quorum = quorums.asked(recorded.quorum, {one.key: one.principals for one in groups}, library)
    waiting = quorums.waiting(store, arguments.set, library)
    return Material(tuple(groups), None, parent, library, given, not_teaching=left_out, quorum=quorum, waiting=waiting)


def _recorded(store: Store, arguments: Namespace, settings: Configuration) -> _Recorded:
    """Return how the traffic that teaches the set falls into groups, and say what is left out of it."""
    taught = teaching(settings, arguments.set)
    counted, unnamed = census.of_set(store, arguments.set, metrics(settings), taught)
    if unnamed:
        note(census.unrecorded(arguments.set))
    if counted.not_teaching:
        note(left_out(counted.not_teaching, arguments.set))
    set_name = None if unnamed else arguments.set
    quorum = quorums.needed(store, settings, set_name, taught)
    return _Recorded(counted, unnamed, taught, quorum)


def _dataset(store: Store, arguments: Namespace, settings: Configuration) -> Splits:
    if arguments.data is None:
        raise UsageError("--from dataset needs --data FILE", field="data")
    data = load(arguments.data, need_reference=grader(arguments, settings).needs_reference)
    if said := data.report():
        note(said)
    withdrawn = store.withdrawals.groups()
    return _split(
        [task for task in data.tasks if task.key not in withdrawn], str(arguments.data), arguments, settings.training
    )


def _logged(store: Store, arguments: Namespace, settings: Configuration, recorded: _Recorded) -> Logged:
    """Return the logged tasks of the set, or of the traffic under no set where it has none of its own."""
    found = logged_tasks(
        store,
        set_name=None if recorded.unnamed else arguments.set,
        unnamed=recorded.unnamed,
        need_reference=grader(arguments, settings).needs_reference,
        tools=is_agent(arguments, settings.training),
        teaching=recorded.taught,
    )
    if found.skipped:
        note(f"left out: {found.explain()}")
    return found


def _of_several(groups: Sequence[Group], share: float) -> list[Group]:
    """Return the groups of a run: of several principals none makes more than `share` of them."""
    makers = {group.key: group.principals[0] if len(group.principals) == 1 else None for group in groups}
    taken = set(bounded(makers, share))
    if len(taken) < len(groups):
        note(
            f"{len(groups) - len(taken)} groups are left out of this run: where several keys take part, none makes "
            f"more than {share:.0%} of a run's groups (safety.max_share)"
        )
    return [group for group in groups if group.key in taken]


def _split(tasks: Sequence[Task], name: str, arguments: Namespace, training: Training) -> Splits:
    if (arguments.recipe or training.recipe) == "paper":
        return Splits(tuple(tasks), (), ())
    splits = split(tasks, held_out=training.splits.held_out, validation=training.splits.validation)
    if not splits.train:
        raise DatasetError(
            f"{name}: all {len(tasks)} tasks fall into the held-out split, so there is none to learn "
            "from; give more tasks, or set training.splits.held_out to 0 and prove it with `tfgrpo evaluate`",
            field="data",
        )
    return splits


def _guards(arguments: Namespace, settings: Configuration) -> tuple[Guard, ...]:
    needs = grader(arguments, settings).needs_reference
    return tuple(Guard(str(path), load(path, need_reference=needs).tasks) for path in arguments.guard)


def _groups(
    store: Store, arguments: Namespace, parent: int, recorded: _Recorded, *, blind: bool, weighed_by: Metrics
) -> list[Group]:
    """Return the groups to learn from; Conflict, with the reasons, when there is none.

    Left out is what the parent library has learned from already. What went into a version that was never deployed is
    taken again: its lessons are not in the parent.
    """
    counted, unnamed, taught = recorded.counted, recorded.unnamed, recorded.taught
    if counted.without_bodies:
        note(census.without_bodies(counted))
    runs = [version.run for version in store.sets.lineage(arguments.set, parent) if version.run]
    waits = store.pending.of(arguments.set)
    skip = set() if arguments.reuse else store.runs.learned_from([*runs, *quorums.unversioned(store, arguments.set)])
    set_name = None if unnamed else arguments.set
    found = (
        answered_groups(store, set_name=set_name, unnamed=unnamed, skip=skip, teaching=taught)
        if blind
        else labelled_groups(store, set_name=set_name, unnamed=unnamed, skip=skip, metrics=weighed_by, teaching=taught)
    )
    found = _of_several(found, recorded.taught.max_share)
    if found or quorums.completed(recorded.quorum, waits):
        return found
    if blind:
        raise Conflict("no group holds rollouts that answer differently, so there is nothing to contrast")
    if counted.contrasting:
        raise Conflict(
            f"version {parent} has learned from all {counted.contrasting} groups that contrast: label new traffic, or "
            "take them again with --reuse"
        )
    raise Conflict(
        "no group contrasts, so there is nothing to learn from: "
        + "; ".join(census.explain(counted, arguments.set).split("\n"))
    )
