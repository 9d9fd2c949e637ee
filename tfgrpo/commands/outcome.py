"""What a training run leaves behind: its result as JSON, a version of the set, and a deployment where asked.

The JSON's names are stable: the report of a run is made from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from tfgrpo import library
from tfgrpo.commands import memory, quorums
from tfgrpo.commands.job import Job
from tfgrpo.commands.learning import Result
from tfgrpo.commands.material import Material
from tfgrpo.commands.output import note, of_operation, of_version, say
from tfgrpo.commands.session import mode
from tfgrpo.errors import Conflict, UsageError
from tfgrpo.safety.redaction import redact
from tfgrpo.store import Store
from tfgrpo.store.policies import foreign
from tfgrpo.trainer import Learned, Step
from tfgrpo.types import Deployment, Group, Library, Refusal, Version, VersionStatus
from tfgrpo.usage import Usage, money
from tfgrpo.usage import as_json as usage_as_json

ACTOR = "tfgrpo train"
MOST_SHOWN = 200
"""Characters of a task that the result of a run tells."""
MOST_OF_ANSWER = 600
"""Characters of a fresh answer that it tells: a run has thousands."""
JSON: TypeAlias = dict[str, Any]


def unusable(learned: Learned) -> str | None:
    """Return what to say when groups contrasted, and of no answer of the optimizer could anything be made."""
    faults = [fault for step in learned.steps for fault in step.faults]
    if not faults or any(step.lessons for step in learned.steps):
        return None
    return f"none of the optimizer's answers could be used ({len(faults)} faults); the first: {faults[0]}"


def stored(job: Job, material: Material, result: Result) -> JSON:
    """Store what a run leaves, deploy its version where asked and allowed; return the run's result.

    It is one transaction, so that a kill leaves all or nothing. Were the version there and the run not ended, the same
    run begun again would give other ids, and so make its calls anew.
    """
    told = {**as_json(job, material, result), "usage": spent(job)}
    told, notes = job.store.together(lambda: _stored(job, material, result, told))
    for said in notes:
        note(said)
    return told


def _stored(job: Job, material: Material, result: Result, told: JSON) -> tuple[JSON, list[str]]:
    """Store what a run leaves; return its result, and what is to be said once all that is so."""
    store, notes = job.store, list[str]()
    if material.quorum is not None:
        store.pending.replace(job.arguments.set, result.pending)
    if _texts(result.learned.library) != _texts(material.library):
        version = _known(job, material, result, notes) or store.sets.add_version(
            job.arguments.set,
            result.learned.library,
            status=result.verdict,
            parent=material.parent,
            policy_model=_models(result.learned),
            run=job.id,
            note=_proof(result),
        )
        deployed = job.arguments.deploy and _deployed(job, material, result, version, notes)
        told = {**told, **of_version(version), "deployed": deployed}
    # Groups that changed nothing may be learned from again.
    changed = told["version"] is not None or result.pending != material.waiting
    store.runs.finish(job.id, status="finished", result=told, used=_used(result.learned) if changed else ())
    return told, notes


def _used(learned: Learned) -> tuple[str, ...]:
    """Return the trajectories learned from: of a rollout `ID.k`, one of several choices, also ID."""
    names = {rollout.trajectory for group in _telling(learned) for rollout in group.rollouts}
    whole = {name.rpartition(".")[0] for name in names if name.rpartition(".")[2].isdigit()}
    return tuple(sorted(names | (whole - {""})))


def spent(job: Job) -> JSON:
    """Return what the run's calls took, by stage."""
    stages = {stage: usage_as_json(usage) for stage, usage in job.ledger.stages().items()}
    return {**stages, "total": usage_as_json(job.ledger.total())}


def as_json(job: Job, material: Material, result: Result) -> JSON:
    """Return the run's result, without a version."""
    learned = result.learned
    steps = learned.steps
    return {
        "run": job.id,
        "set": job.arguments.set,
        "version": None,
        "parent": material.parent,
        "deployed": False,
        "recipe": job.arguments.recipe or job.settings.training.recipe,
        "splits": None
        if material.splits is None
        else {
            "train": len(material.splits.train),
            "validation": len(material.splits.validation),
            "held_out": len(material.splits.held_out),
        },
        "ground_truth": mode(job.arguments, job.settings),
        "groups": sum(step.groups for step in steps),
        "contrasting": sum(len(step.telling) for step in steps),
        "lessons": sum(step.lessons for step in steps),
        "proposals": sum(step.proposals for step in steps),
        "applied": [of_operation(one) for step in steps for one in step.applied],
        "refused": [_refusal(one) for one in (*(one for step in steps for one in step.refused), *result.held)],
        "taken_back": [_refusal(one) for step in steps for one in step.taken_back],
        "pending": quorums.told(result.pending, material.quorum),
        "quorum": None if material.quorum is None else str(material.quorum),
        "one_principal": material.quorum is not None and material.quorum.alone,
        "harmful": memory.kept(learned),
        "inherited": len(material.inherited),
        "not_teaching": dict(material.not_teaching),
        "policy_model": _models(learned),
        "faults": [fault for step in steps for fault in step.faults],
        "steps": [_step(number, step, fresh=material.splits is not None) for number, step in enumerate(steps, 1)],
        "epochs": [{"experiences": len(end.library), "validation": end.score} for end in learned.epochs],
        "library_before": _entries(material.library),
        "library_after": _entries(learned.library),
        "gate": {**result.gate.as_json(), "verdict": result.verdict} if result.gate else None,
    }


def report(result: JSON, total: Usage) -> None:
    """Say what came of it."""
    again = f", {total.replayed} replayed" if total.replayed else ""
    say(
        f"{result['contrasting']} groups contrasted, {result['lessons']} lessons, {result['proposals']} proposals, "
        f"{len(result['applied'])} edits applied, {len(result['refused'])} refused, "
        f"{len(result['taken_back'])} taken back, {len(result['faults'])} answers not used"
    )
    if result["inherited"]:
        say(f"{result['inherited']} edits that did harm in earlier runs were shown to the optimizer as rejected before")
    say(f"{total.calls} calls{again}, {total.tokens} tokens, {money(total.usd)}")
    say(f"the whole report: `tfgrpo runs report {result['run']} --output report.html`")
    if not result["contrasting"]:
        say(_alike(result))
        return
    for said in quorums.explain(result):
        say(said)
    if result["version"] is None:
        say("the library did not change, so there is no new version; `tfgrpo runs show` says what was refused and why")
        return
    name = f"{result['set']}@{result['version']}"
    for one in result["experiences"]:
        say(f"[{one['id']}] {one['text']}")
    if gate := result["gate"]:
        low, high = gate["interval"]
        say(
            f"gate: {gate['verdict']} on {gate['n']} held-out tasks x {gate['k']}: {gate['mean_against']:.3f} before, "
            f"{gate['mean']:.3f} now, difference {gate['difference']:+.3f} [{low:+.3f}, {high:+.3f}]; an effect of "
            f"{gate['smallest_detectable']:.3f} would likely have been seen"
        )
    elif result["deployed"]:
        say(f"{name} is deployed, unproven: no held-out comparison has said that it helps")
        return
    if result["deployed"]:
        say(f"{name} is deployed")
        return
    proof = f"test it with `tfgrpo evaluate --set {name}`, or " if not gate else ""
    say(f"{name} is stored, {result['status']}: {proof}`tfgrpo sets deploy {name}`")


def _alike(result: JSON) -> str:
    """Return why nothing was there to learn from, and what may be behind it."""
    rewards = [step["reward"] for step in result["steps"] if step["reward"] is not None]
    said = "no group contrasts: the rollouts of each task were judged alike, so there was nothing to learn from"
    if not rewards:
        return said
    mean = sum(rewards) / len(rewards)
    hints = {
        0.0: ", so the tasks are too hard for the model, or the grader does not fit them",
        1.0: ", so the model can do these tasks already, or the grader takes anything",
    }
    return f"{said}; the mean reward is {mean:.3f}{hints.get(mean, '')}"


def _deployed(job: Job, material: Material, result: Result, version: Version, notes: list[str]) -> bool:
    """Deploy the version, or say in `notes` what speaks against it."""
    refused = _unproven(job, material, result) or _too_large(job, version) or _not_approved(job, version)
    if refused is None:
        made_for = foreign(job.store, version)
        try:
            _deploy(job.store, version, result.verdict)
        except (Conflict, UsageError) as error:
            refused = str(error)
        else:
            notes += [made_for] if made_for else []
    notes += [f"not deployed: {refused}"] if refused else []
    return refused is None


def _unproven(job: Job, material: Material, result: Result) -> str | None:
    """Return why --deploy is not followed; for traffic, and without a gate by choice, it is the user's word."""
    if material.splits is None or not job.recipe.gate or result.verdict == "helps":
        return None
    said = result.verdict if result.gate else "no verdict"
    return f"the gate came to '{said}', and --deploy takes a data set's version only when it helps"


def _too_large(job: Job, version: Version) -> str | None:
    """Return why the deployment would be refused: without bounds (`recipe: paper`) a library may outgrow its budget."""
    limits = job.settings.training.deployable
    if limits is None or library.fits(version.library, limits):
        return None
    return (
        f"{len(version.library)} experiences, about {library.tokens(version.library)} tokens, are over the budget; "
        "raise training.max_entries and training.max_library_tokens, or set training.selection: lexical; "
        f"then run `tfgrpo sets deploy {version.set}@{version.version}`"
    )


def _not_approved(job: Job, version: Version) -> str | None:
    """Return whose word is missing: a deployment would be refused."""
    if not job.store.reviews.refuses(version):
        return None
    standing = job.store.reviews.standings(version.set)[version.version]
    said = "was rejected" if standing == "rejected" else "awaits approval"
    name = f"{version.set}@{version.version}"
    return f"{name} {said}; read it, then `tfgrpo sets approve {name}` and `tfgrpo sets deploy {name}`"


def _known(job: Job, material: Material, result: Result, notes: list[str]) -> Version | None:
    """Return the version that says the very same: the same groups learned from again, with nothing new beside them.

    A gate's word on it becomes its status, but what shows nothing does not undo what was shown.
    """
    sets, texts = job.store.sets, _texts(result.learned.library)
    for version in sets.versions(job.arguments.set):
        if version.parent != material.parent or _texts(version.library) != texts:
            continue
        notes.append(f"version {version.version} holds these experiences already, so no new one is made")
        shows = result.verdict in ("helps", "hurts")
        if result.gate and (shows or version.status in ("unproven", "by hand")):
            sets.set_status(version.set, version.version, result.verdict, note=_proof(result))
        return sets.version(version.set, version.version)
    return None


def _proof(result: Result) -> str:
    """Return what a version's note says of the gate."""
    if result.gate is None:
        return ""
    low, high = result.gate.comparison.interval
    return f"{result.gate.comparison.difference:+.3f} [{low:+.3f}, {high:+.3f}] against the parent on held-out tasks"


def _deploy(store: Store, version: Version, status: VersionStatus) -> Deployment:
    current = store.sets.deployment(version.set)
    # A control arm measures the live version, whichever it is: it stays. A candidate was for the version before.
    control = current.shares.get("control") if current else None
    return store.sets.deploy(
        version.set,
        live=version.version,
        shares={} if control is None else {"control": control},
        reason=f"learned by run {version.run}; {status}",
        actor=ACTOR,
    )


def _step(number: int, step: Step, *, fresh: bool) -> JSON:
    return {
        "step": number,
        "epoch": step.epoch,
        "stage": step.stage,
        "reward": step.reward,
        "groups": step.groups,
        "contrasting": len(step.telling),
        "contrasts": [_contrast(group, fresh=fresh) for group in step.telling],
        "lessons": step.lessons,
        "proposals": step.proposals,
        "applied": [of_operation(one) for one in step.applied],
        "refused": [_refusal(one) for one in step.refused],
        "taken_back": [_refusal(one) for one in step.taken_back],
        "trial": [
            {
                "id": one.change.id,
                "effect": one.effect,
                "upper": one.upper if one.tested else None,
                "tasks_with": one.tasks_with,
                "tasks_without": one.tasks_without,
                "harm": one.harms,
            }
            for one in step.findings
        ],
        "faults": list(step.faults),
        "library_before": _entries(step.before),
        "library_after": _entries(step.after),
        "tokens": step.tokens,
    }


def _contrast(group: Group, *, fresh: bool) -> JSON:
    """Return a group as its run remembers it. What rollouts of recorded traffic said stays in the traffic alone, where
    it is erased with the rest of it; of fresh ones the answers are kept, cut.
    """
    task = " ".join(group.task.question.split())
    told: JSON = {
        "key": group.key,
        "task": task[:MOST_SHOWN],
        "version": group.version,
        "rewards": [rollout.reward for rollout in group.rollouts],
    }
    if fresh:
        return told | {"answers": [redact(rollout.answer[:MOST_OF_ANSWER]) for rollout in group.rollouts]}
    return told | {"trajectories": [rollout.trajectory for rollout in group.rollouts]}


def _refusal(refusal: Refusal) -> JSON:
    return {**of_operation(refusal.operation), "reason": refusal.reason}


def _entries(library: Library) -> list[JSON]:
    return [{"id": one.id, "text": one.text} for one in library.experiences]


def _texts(library: Library) -> list[str]:
    return [one.text for one in library.experiences]


def _models(learned: Learned) -> str | None:
    names = sorted({group.model for group in _telling(learned) if group.model})
    return ", ".join(names) or None


def _telling(learned: Learned) -> Iterable[Group]:
    return (group for step in learned.steps for group in step.telling)
