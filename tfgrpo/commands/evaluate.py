"""`tfgrpo evaluate`: two versions of a set against each other on held-out tasks, with a verdict.

It plans aloud before it spends. `--ablate` is another question about the same version and tasks: see `ablate`.
"""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfgrpo import planning, significance
from tfgrpo.commands.ablate import ablation
from tfgrpo.commands.arguments import versioned
from tfgrpo.commands.output import emit, note, say
from tfgrpo.commands.proving import Proof, asked, model_note, proof_of
from tfgrpo.commands.session import opened
from tfgrpo.commands.sets import find
from tfgrpo.errors import UsageError
from tfgrpo.evaluation import Evaluation, Guard, Side, evaluate, key_of, split_of
from tfgrpo.planning import Plan, Variance
from tfgrpo.rollouts import Prior
from tfgrpo.sources import load
from tfgrpo.store import Finding, Store
from tfgrpo.types import EMPTY_VERSION, Version
from tfgrpo.usage import as_json, money

PLANNED_EFFECT = 0.05
"""What is planned for where neither --effect nor training.gate.minimum_effect says."""


@dataclass(frozen=True, slots=True)
class Versus:
    """What is compared. `gates` says whether the verdict decides the tested version's status."""

    tested: Version
    against: Version
    gates: bool
    withdrawn: Mapping[str, Sequence[str]]
    """The ids of the entries that were withdrawn and are left out, by the name of their version."""

    @property
    def priors(self) -> tuple[Prior, Prior]:
        """Both libraries as rollouts are given them."""
        return _prior(self.tested), _prior(self.against)


def run(arguments: Namespace) -> int:
    """Plan, compare, keep what was found, make the verdict the version's status where it decides, print it."""
    proof = proof_of(arguments)
    if arguments.ablate:
        return ablation(proof)
    guards = _guards(proof)
    with opened(proof.settings) as store:
        tested = find(store, *arguments.set)
        against, gates = _against(store, arguments.against, tested)
        versus = _without_withdrawn(store, tested, against, gates=gates)
        if versus.against.library.experiences == versus.tested.library.experiences:
            raise UsageError(
                f"{_name(tested)} and {_name(versus.against)} hold the same experiences; name another --against"
            )
        key = key_of(
            proof.tasks,
            versus.priors,
            model=proof.model_name,
            samples=arguments.k,
            sampling=proof.sampling,
            grader=proof.grader_name,
            runner=proof.runner_name,
        )
        plan = _plan(proof, store, versus, key)
        note(str(plan))
        if arguments.plan:
            emit(plan.as_json()) if arguments.json else say(str(plan))
            return 0
        _compared(proof, store, versus, guards, key)
    return 0


def _without_withdrawn(store: Store, tested: Version, against: Version, *, gates: bool) -> Versus:
    """Return what is compared as requests get it, and say at once what is left out."""
    (first, gone), (other, also) = store.withdrawals.remaining(tested), store.withdrawals.remaining(against)
    found = Versus(first, other, gates, {_name(one): ids for one, ids in ((first, gone), (other, also)) if ids})
    if found.withdrawn:
        note(_said(found).strip())
    return found


def _said(versus: Versus) -> str:
    lists = "; ".join(f"{', '.join(ids)} of {name}" for name, ids in versus.withdrawn.items())
    return f" Left out, for they were withdrawn: entries {lists}." if lists else ""


def _compared(proof: Proof, store: Store, versus: Versus, guards: list[Guard], key: str) -> None:
    tested, against = versus.priors
    other_model = model_note(proof, versus.tested)
    rollouts = 2 * proof.arguments.k * (len(proof.tasks) + sum(len(guard.tasks) for guard in guards))
    result = asked(
        proof,
        rollouts,
        lambda runner: evaluate(
            runner,
            proof.tasks,
            tested=tested,
            against=against,
            samples=proof.arguments.k,
            sampling=proof.sampling,
            guards=guards,
            margin=proof.gate.margin,
            alpha=proof.alpha,
            pass_at=proof.arguments.pass_at,
        ),
    )
    result, use = _kept(proof, store, versus, result, key)
    said = explain(result, versus.tested, versus.against, use=use, model=other_model + _said(versus))
    if versus.gates and _weighs(versus.tested, result):
        store.sets.set_status(versus.tested.set, versus.tested.version, result.verdict, note=said)
    if not proof.arguments.json:
        say(said)
        return
    names = {"set": versus.tested.set, "version": versus.tested.version, "against": _name(versus.against)}
    withdrawn = {name: list(ids) for name, ids in versus.withdrawn.items()}
    models = {"model": proof.model_name, "policy_model": versus.tested.policy_model}
    emit(
        {
            **result.as_json(),
            "use": use,
            **names,
            "withdrawn": withdrawn,
            **models,
            "usage": as_json(proof.ledger.total()),
        }
    )


def _kept(proof: Proof, store: Store, versus: Versus, result: Evaluation, key: str) -> tuple[Evaluation, int | None]:
    """Keep a comparison; return it as its use of the held-out tasks is judged, and which use that is."""
    variance = result.variance
    shown: dict[str, Any] = {"between": variance.between, "within": variance.within} if variance else {}
    finding = Finding(
        key=key,
        kind="comparison",
        set=versus.tested.set,
        version=versus.tested.version,
        split=split_of(proof.tasks),
        model=proof.model_name,
        use=None,
        result={**result.as_json(), "against": _name(versus.against), "variance": shown},
    )
    if not versus.gates:
        store.evidence.keep(finding)
        return result, None
    use = store.evidence.claim(finding)
    return result.at(significance.level(use, proof.alpha)), use


def _plan(proof: Proof, store: Store, versus: Versus, key: str) -> Plan:
    name, split = versus.tested.set, split_of(proof.tasks)
    use = store.evidence.uses(name, split, key=key)
    earlier = store.evidence.newest("comparison", name, split=split) or store.evidence.newest("comparison", name)
    found = earlier.result.get("variance") if earlier else None
    return planning.plan(
        proof.arguments.effect or proof.gate.minimum_effect or PLANNED_EFFECT,
        samples=proof.arguments.k,
        available=len(proof.tasks),
        level=significance.level(use, proof.alpha) if versus.gates else proof.alpha,
        variance=Variance(**found, source="as an earlier evaluation of this set varied") if found else planning.ASSUMED,
    )


def _guards(proof: Proof) -> list[Guard]:
    paths = proof.arguments.guard
    return [Guard(str(path), load(path, need_reference=proof.grader.needs_reference).tasks) for path in paths]


def explain(result: Evaluation, tested: Version, against: Version, *, use: int | None = None, model: str = "") -> str:
    """Return a comparison in words."""
    found = result.comparison
    low, high = found.interval
    failed = f" {result.failed} rollouts gave no answer and count as 0." if result.failed else ""
    guards = "".join(
        f" Guard {one.name}: {one.verdict}, difference {one.comparison.difference:+.3f} "
        f"({one.comparison.interval[0]:+.3f} to {one.comparison.interval[1]:+.3f})."
        for one in result.guards
    )
    used = "" if use is None else f" Use {use} of these tasks, tested at level {result.level:.3g}."
    return (
        f"{_name(tested)} against {_name(against)}: {result.verdict}. Mean reward {result.mean:.3f} against "
        f"{result.mean_against:.3f}, difference {found.difference:+.3f} ({1 - result.level:.3g} interval {low:+.3f} to "
        f"{high:+.3f}), {result.tasks} tasks x {result.samples} samples. An effect below "
        f"{found.smallest_detectable:.3f} would likely not have been seen.{failed}{used} "
        f"{_side(_name(tested), result.tested, result)} {_side(_name(against), result.against, result)} "
        f"Pass@{result.pass_at} differs by {result.passed.difference:+.3f} ({result.passed.interval[0]:+.3f} to "
        f"{result.passed.interval[1]:+.3f}).{guards}{model}"
    )


def _side(name: str, side: Side, result: Evaluation) -> str:
    tokens = "unknown" if side.prompt_tokens is None else f"{side.prompt_tokens}+{side.completion_tokens or 0}"
    return (
        f"{name}: Mean@{result.samples} {side.mean:.3f} ({side.mean_interval[0]:.3f} to {side.mean_interval[1]:.3f}), "
        f"Pass@{result.pass_at} {side.passed:.3f} ({side.passed_interval[0]:.3f} to {side.passed_interval[1]:.3f}), "
        f"{tokens} tokens, {money(side.usd)}, {side.tool_calls} tool calls."
    )


def _weighs(tested: Version, result: Evaluation) -> bool:
    """Say whether the verdict becomes the version's status: what shows nothing does not undo what was shown."""
    shows = result.verdict != "no effect shown"
    return tested.version != EMPTY_VERSION and (shows or tested.status in ("unproven", "by hand"))


def _against(store: Store, text: str, tested: Version) -> tuple[Version, bool]:
    """Return what to compare with, and whether that comparison decides the version's status."""
    deployment = store.sets.deployment(tested.set)
    live = (deployment.live if deployment else None) or EMPTY_VERSION
    if text in ("none", "live"):
        chosen = live if text == "live" else EMPTY_VERSION
        return store.sets.version(tested.set, chosen), True
    try:
        name, version = versioned(text)
    except ArgumentTypeError as error:
        raise UsageError(f"--against: {error}", field="against") from error
    found = find(store, name, version)
    return found, name == tested.set and found.version == live


def _prior(version: Version) -> Prior:
    return Prior(version.set, version.version, version.library)


def _name(version: Version) -> str:
    return f"{version.set}@{version.version}" if version.version != EMPTY_VERSION else "none"
