"""`tfgrpo estimate`: what `tfgrpo train` with the same arguments would cost, by stage. It calls no model.

The run is rehearsed twice, with low and with high assumptions of what models will say.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from tfgrpo.commands.gate import FEWEST
from tfgrpo.commands.job import Job
from tfgrpo.commands.learning import practice_of, trainer_of
from tfgrpo.commands.material import Material, gathered
from tfgrpo.commands.output import emit, say
from tfgrpo.commands.runner import is_agent
from tfgrpo.commands.session import configuration, grader, judge_of, named, opened
from tfgrpo.configuration import Configuration, Model
from tfgrpo.graders.judge import Judge
from tfgrpo.llm import Llm
from tfgrpo.rehearsal import HIGH, LOW, Assumed, Contrasting, Rehearsed
from tfgrpo.rollouts import ChatRunner, Prior, Sampling
from tfgrpo.store import Store
from tfgrpo.trainer import Trainer
from tfgrpo.types import Library
from tfgrpo.usage import Ledger, Usage, money, price_of

JSON: TypeAlias = dict[str, Any]
Ledgers: TypeAlias = Mapping[str, Ledger]

PRICE = "set it where the model is: training.policy.price, training.optimizer.price or training.grader.model.price"

RECENT = 200
"""Recorded answers whose lengths say how long rollouts are."""


class _Silent:
    """A listener to whom nothing is said: a rehearsal is over at once."""

    def begin(self, stage: str, total: int) -> None:
        """A stage begins."""

    def advance(self, stage: str) -> None:
        """A call ended."""


def run(arguments: Namespace) -> int:
    """Rehearse, and print what each stage would take."""
    settings = configuration(arguments, "store", "training", "apps", "safety")
    model = named(settings.training.optimizer, settings.training.policy, "training.optimizer")
    with opened(settings, migrate=arguments.source == "dataset") as store:
        material = gathered(store, arguments, settings)
        job = Job("estimate", store, arguments, settings, Ledger())
        low, high, measured = _assumptions(store, arguments.set)
        found = [asyncio.run(_rehearsed(job, material, assumed)) for assumed in (low, high)]
    models = {"optimizer": model}
    if material.splits is not None:
        models["policy"] = named(settings.training.policy, model, "training.policy")
        models["judge"] = judge_of(settings.training)
    told = _as_json(found, models)
    told["assumptions"] = _told(material, settings, (low, high), measured=measured, agent=_agent(arguments, settings))
    if arguments.json:
        emit(told)
    else:
        say(_explained(told, models))
    return 0


async def _rehearsed(job: Job, material: Material, assumed: Assumed) -> Ledgers:
    """Return what each role of a model would take."""
    training = job.settings.training
    ledgers = {role: Ledger() for role in ("policy", "judge", "optimizer")}
    model = named(training.optimizer, training.policy, "training.optimizer")
    stand_in = Rehearsed(assumed, words=training.max_words)
    async with Llm(model, ledger=ledgers["optimizer"], endpoint=stand_in, concurrency=training.concurrency) as llm:
        trainer = trainer_of(job, material, llm, _Silent())
        if material.splits is None:
            await trainer.learn(material.groups, material.library)
        else:
            await _practised(job, trainer, material, ledgers, assumed)
    return ledgers


async def _practised(job: Job, trainer: Trainer, material: Material, ledgers: Ledgers, assumed: Assumed) -> None:
    training, recipe, splits = job.settings.training, job.recipe, material.splits
    assert splits is not None
    model = named(training.policy, training.optimizer, "training.policy")
    stand_in = Rehearsed(assumed, words=training.max_words)
    chosen, most = grader(job.arguments, job.settings), training.concurrency
    async with (
        Llm(model, ledger=ledgers["policy"], endpoint=stand_in, concurrency=most) as llm,
        Llm(judge_of(job.settings.training), ledger=ledgers["judge"], endpoint=stand_in, concurrency=most) as judging,
    ):
        judge = replace(chosen, llm=judging) if isinstance(chosen, Judge) else None
        runner = ChatRunner(llm, Contrasting(assumed.contrasting, judge), trainer.listener.advance)
        learned = await trainer.practise(splits.train, material.library, practice_of(job, material, splits, runner))
        if recipe.gate and learned.library != material.library and len(splits.held_out) >= FEWEST:
            await _gated(job, runner, material, learned.library)


async def _gated(job: Job, runner: ChatRunner, material: Material, library: Library) -> None:
    assert material.splits is not None
    training = job.settings.training
    sampling = Sampling(training.evaluation_temperature, job.arguments.seed, "gate")
    for side in (library, material.library):
        prior = Prior(job.arguments.set, material.parent, side)
        for tasks in (material.splits.held_out, *(guard.tasks for guard in material.guards)):
            await runner.run(tasks, prior, samples=training.gate.samples, sampling=sampling)


def _assumptions(store: Store, set_name: str) -> tuple[Assumed, Assumed, bool]:
    """Return the low and the high assumption, and whether the length of rollouts is that of recorded answers."""
    recent = store.traffic.page(set_name=set_name, limit=RECENT)
    lengths = sorted(one.completion_tokens for one in recent if one.completion_tokens)
    if not lengths:
        return LOW, HIGH, False
    tenth = len(lengths) // 10
    return replace(LOW, rollout=lengths[tenth]), replace(HIGH, rollout=lengths[-1 - tenth]), True


def _as_json(found: Sequence[Ledgers], models: Mapping[str, Model]) -> JSON:
    stages: JSON = {}
    totals = [Usage(), Usage()]
    for role in ("policy", "judge", "optimizer"):
        low, high = (ledgers[role].stages() for ledgers in found)
        for stage in {**low, **high}:
            both = [low.get(stage, Usage()), high.get(stage, Usage())]
            stages[stage] = {"role": role, "model": models[role].model, **_range(both)}
            totals = [total + one for total, one in zip(totals, both, strict=True)]
    return {"stages": stages, "total": _range(totals)}


def _range(both: Sequence[Usage]) -> JSON:
    """Return two usages as low and high; which assumption takes less of something is for the numbers to say."""
    usd = [one.usd for one in both if one.usd is not None]
    return {
        "calls": sorted(one.calls for one in both),
        "prompt_tokens": sorted(one.prompt_tokens for one in both),
        "completion_tokens": sorted(one.completion_tokens for one in both),
        "usd": sorted(usd) if len(usd) == len(both) else None,
    }


def _told(
    material: Material, settings: Configuration, both: tuple[Assumed, Assumed], *, measured: bool, agent: bool
) -> list[str]:
    """Return what was assumed, in sentences."""
    low, high = both
    training = settings.training
    told = [
        "a token is 4 characters",
        f"a summary takes {low.summary} to {high.summary} tokens, a contrast {low.analysis} to {high.analysis}",
        f"a step makes {low.edits} to {high.edits} edits, of {low.words:.0%} to {high.words:.0%} of max_words",
        "every answer can be used at once: no repair turn, nothing asked again, nothing known from earlier runs",
    ]
    if material.splits is None:
        return [f"{len(material.groups)} recorded groups are learned from, with what they say", *told]
    splits = material.splits
    source = "as nine tenths of the recorded answers" if measured else "nothing is recorded to measure it by"
    told += [
        f"a rollout's answer takes {low.rollout} to {high.rollout} tokens ({source})",
        f"{low.contrasting:.0%} to {high.contrasting:.0%} of the groups contrast",
        f"{len(splits.train)} tasks x {training.group_size} rollouts x {training.epochs} epochs",
        f"{len(splits.validation)} tasks to validate, {len(splits.held_out)} held out (a gate needs {FEWEST})",
    ]
    return [*told, "your agent makes one call a rollout: what it does is not known"] if agent else told


def _agent(arguments: Namespace, settings: Configuration) -> bool:
    return is_agent(arguments, settings.training)


def _explained(told: JSON, models: Mapping[str, Model]) -> str:
    rows = [*told["stages"].items(), ("total", told["total"])]
    lines = [f"{'stage':<12}{'calls':>15}{'tokens in':>23}{'tokens out':>21}{'money':>23}"]
    for name, row in rows:
        usd = "unknown" if row["usd"] is None else _between([money(one) for one in row["usd"]])
        counts = [_between([f"{one:,}" for one in row[key]]) for key in ("calls", "prompt_tokens", "completion_tokens")]
        lines.append(f"{name:<12}{counts[0]:>15}{counts[1]:>23}{counts[2]:>21}{usd:>23}")
    used = {models[row["role"]].model: models[row["role"]] for row in told["stages"].values()}
    lines += [f"the price of {name} is unknown: {PRICE}" for name, model in used.items() if price_of(model) is None]
    return "\n".join([*lines, "assumed:", *(f"- {one}" for one in told["assumptions"])])


def _between(both: list[str]) -> str:
    return both[0] if both[0] == both[1] else f"{both[0]} to {both[1]}"
