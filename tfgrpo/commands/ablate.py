"""`tfgrpo evaluate --ablate`: what each entry of a version is worth, kept with it; and pruning by that alone."""

from __future__ import annotations

import hashlib
from typing import Any

from tfgrpo.ablation import Ablation, ablate, pruned
from tfgrpo.commands.output import emit, say
from tfgrpo.commands.proving import Proof, asked, model_note
from tfgrpo.commands.session import opened
from tfgrpo.commands.sets import given
from tfgrpo.evaluation import key_of, split_of
from tfgrpo.rollouts import Prior
from tfgrpo.store import Finding, Store
from tfgrpo.types import Version
from tfgrpo.usage import as_json


def ablation(proof: Proof) -> int:
    """Measure, keep, prune where that was asked, print."""
    with opened(proof.settings) as store:
        version = given(store, *proof.arguments.set)
        prior = Prior(version.set, version.version, version.library)
        other_model = model_note(proof, version)
        found = asked(
            proof,
            len(proof.tasks) * proof.arguments.k,
            lambda runner: ablate(
                runner, proof.tasks, prior, samples=proof.arguments.k, sampling=proof.sampling, alpha=proof.alpha
            ),
        )
        store.evidence.keep(_finding(proof, version, prior, found))
        made = _prune(store, version, found) if proof.arguments.prune else None
    if proof.arguments.json:
        names: dict[str, Any] = {"set": version.set, "version": version.version, "model": proof.model_name}
        made_version = made.version if made else None
        usage = as_json(proof.ledger.total())
        emit({**found.as_json(), **names, "policy_model": version.policy_model, "pruned": made_version, "usage": usage})
    else:
        say(_explain(proof, version, found, made) + (f"\n{other_model.strip()}" if other_model else ""))
    return 0


def _prune(store: Store, version: Version, found: Ablation) -> Version | None:
    """Store a version without the entries shown to hurt; None when there are none."""
    if not found.hurting:
        return None
    return store.sets.add_version(
        version.set,
        pruned(version.library, found),
        status="unproven",
        parent=version.version,
        policy_model=version.policy_model,
        run=version.run,
        note=f"without {', '.join(found.hurting)}, shown to hurt by leaving random halves out",
    )


def _finding(proof: Proof, version: Version, prior: Prior, found: Ablation) -> Finding:
    compared = key_of(
        proof.tasks,
        [prior],
        model=proof.model_name,
        samples=found.samples,
        sampling=proof.sampling,
        grader=proof.grader_name,
        runner=proof.runner_name,
    )
    return Finding(
        key=hashlib.sha256(f"ablation:{version.version}:{compared}".encode()).hexdigest()[:32],
        kind="ablation",
        set=version.set,
        version=version.version,
        split=split_of(proof.tasks),
        model=proof.model_name,
        use=None,
        result=found.as_json(),
    )


def _explain(proof: Proof, version: Version, found: Ablation, made: Version | None) -> str:
    lines = [
        f"{version.set}@{version.version}: {len(found.effects)} entries, {found.tasks} tasks x {found.samples} samples "
        f"under random halves, mean reward {found.mean:.3f}; intervals hold together at {1 - found.alpha:.3g}"
        + (f"; {found.failed} rollouts gave no answer and count as 0" if found.failed else "")
    ]
    for one in found.effects:
        low, high = one.interval
        lines.append(f"[{one.id}] {one.effect:+.3f} ({low:+.3f} to {high:+.3f}), {one.verdict}: {one.text}")
    if made is not None:
        lines.append(f"{made.set}@{made.version} is stored without {', '.join(found.hurting)}, unproven")
    elif proof.arguments.prune:
        lines.append("nothing is pruned: no entry was shown to hurt")
    return "\n".join(lines)
