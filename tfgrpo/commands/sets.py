"""`tfgrpo sets`: what sets there are, what stands in them, and which version live requests get."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import Any

from tfgrpo import library
from tfgrpo.commands import history, quorums, reviews, set_files
from tfgrpo.commands.output import emit, note, of_deployment, of_version, say
from tfgrpo.commands.session import configuration, opened
from tfgrpo.errors import NotFound, UsageError
from tfgrpo.library import Limits
from tfgrpo.safety import grammar
from tfgrpo.store import Store
from tfgrpo.store.policies import foreign
from tfgrpo.types import Deployment, Version

ACTOR = "tfgrpo sets"


def run(arguments: Namespace) -> int:
    """Do what `arguments.action` says."""
    # An import may be the first that the store is used for; it and a deployment need the limits of training.
    takes = arguments.action == "import"
    limited = takes or arguments.action == "deploy"
    judging = ("training",) if limited else ("apps", "safety") if arguments.action == "pending" else ()
    settings = configuration(arguments, "store", *judging)
    with opened(settings, migrate=takes) as store:
        match arguments.action:
            case "list":
                _list(store, as_json=arguments.json)
            case "show":
                _show(store, find(store, *arguments.version), as_json=arguments.json)
            case "diff":
                _diff(find(store, *arguments.before), find(store, *arguments.after), as_json=arguments.json)
            case "deploy":
                _deployed(_deploy(store, arguments, settings.training.deployable), as_json=arguments.json)
            case "import":
                fault = partial(grammar.fault, ours=settings.secrets)
                limits = Limits(settings.training.max_entries, settings.training.max_words, fault=fault)
                set_files.take(store, arguments, limits)
            case "pending":
                quorums.show(store, settings, arguments.set, as_json=arguments.json)
            case "export":
                set_files.give(given(store, *arguments.version), arguments, settings.secrets)
            case "approve" | "reject":
                reviews.run(store, arguments)
            case "history":
                return history.run(store, arguments)
            case _:
                made = store.sets.rollback(arguments.set, reason=arguments.reason, actor=ACTOR)
                _deployed(made, as_json=arguments.json)
    return 0


def find(store: Store, set_name: str, version: int | None) -> Version:
    """Return a version, the newest where none is named; NotFound when there is none."""
    if version is not None:
        return store.sets.version(set_name, version)
    newest = store.sets.latest(set_name)
    if newest is None:
        raise NotFound(f"the set {set_name} has no version yet; `tfgrpo train --set {set_name}` makes one")
    return newest


def given(store: Store, set_name: str, version: int | None) -> Version:
    """Return a version as requests get it, without what was withdrawn of it, and say what that is; as `find` else."""
    left, gone = store.withdrawals.remaining(find(store, set_name, version))
    if gone:
        note(f"{left.set}@{left.version}: left out, for they were withdrawn: entries {', '.join(gone)}")
    return left


def _list(store: Store, *, as_json: bool) -> None:
    rows = [_summary(store, name) for name in store.sets.names()]
    if as_json:
        emit(rows)
        return
    for row in rows:
        newest = f"newest {row['newest']} ({row['status']})" if row["newest"] else "no version yet"
        say(f"{row['set']}: {newest}, live {row['live'] or 'nothing'}")
    if not rows:
        say("there is no set yet: record traffic under one (/set/NAME/v1), or train one")


def _summary(store: Store, name: str) -> dict[str, Any]:
    versions = store.sets.versions(name)
    deployment = store.sets.deployment(name)
    return {
        "set": name,
        "versions": len(versions),
        "newest": versions[-1].version if versions else None,
        "status": versions[-1].status if versions else None,
        "live": deployment.live if deployment else None,
        "deployment": of_deployment(deployment) if deployment else None,
    }


def _show(store: Store, version: Version, *, as_json: bool) -> None:
    measured = store.evidence.newest("ablation", version.set, version.version)
    worth = {one["id"]: one for one in measured.result["entries"]} if measured else {}
    if as_json:
        emit({**of_version(version), "worth": worth, "worth_model": measured.model if measured else None})
        return
    made = f", learned by {version.run}" if version.run else ""
    model = f", policy model {version.policy_model}" if version.policy_model else ""
    say(f"{version.set}@{version.version}: {version.status}, {len(version.library)} experiences{made}{model}")
    if version.note:
        say(version.note)
    for one in version.library.experiences:
        found = worth.get(one.id)
        measure = f" (worth {found['effect']:+.3f}, {found['verdict']})" if found else ""
        say(f"[{one.id}] {one.text}" + (f" (from {len(one.sources)} groups)" if one.sources else "") + measure)


def _diff(before: Version, after: Version, *, as_json: bool) -> None:
    found = library.diff(before.library, after.library)
    if as_json:
        emit(
            {
                "added": [{"id": one.id, "text": one.text} for one in found.added],
                "removed": [{"id": one.id, "text": one.text} for one in found.removed],
                "changed": [{"id": a.id, "before": a.text, "after": b.text} for a, b in found.changed],
            }
        )
        return
    lines = [f"- [{one.id}] {one.text}" for one in found.removed]
    lines += [line for a, b in found.changed for line in (f"- [{a.id}] {a.text}", f"+ [{b.id}] {b.text}")]
    lines += [f"+ [{one.id}] {one.text}" for one in found.added]
    say("\n".join(lines) or "no difference")


def _deploy(store: Store, arguments: Namespace, limits: Limits | None) -> Deployment:
    set_name, version = arguments.version
    if version is None:
        raise UsageError(f"name the version to deploy, as in {set_name}@1 ({set_name}@0 injects nothing)")
    if arguments.candidate is not None and not arguments.share:
        raise UsageError(f"--candidate {arguments.candidate} gets no traffic without --share, as in --share 0.1")
    for number in {version, arguments.candidate} - {0, None}:
        if said := foreign(store, store.sets.version(set_name, number)):
            note(said)
    shares = {"candidate": arguments.share, "control": arguments.control}
    return store.sets.deploy(
        set_name,
        live=version or None,
        candidate=arguments.candidate,
        shares={arm: share for arm, share in shares.items() if share is not None},
        reason=arguments.reason,
        actor=ACTOR,
        limits=limits,
    )


def _deployed(made: Deployment, *, as_json: bool) -> None:
    if as_json:
        emit(of_deployment(made))
        return
    candidate = f", candidate {made.candidate}" if made.candidate is not None else ""
    shares = "".join(f", {share:.0%} {arm}" for arm, share in made.shares.items())
    say(f"{made.set}: live {made.live or 'nothing'}{candidate}{shares} (revision {made.revision})")
