"""The models and the trainer of a run, put together from configuration and recipe; and the gate behind it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

from tfgrpo import assembly
from tfgrpo.answering import Answering
from tfgrpo.commands import lease
from tfgrpo.commands.gate import FEWEST, judged
from tfgrpo.commands.job import Job
from tfgrpo.commands.material import Material
from tfgrpo.commands.output import note
from tfgrpo.commands.progress import Progress
from tfgrpo.commands.runner import running
from tfgrpo.commands.session import grader, judging, mode, named
from tfgrpo.evaluation import Evaluation
from tfgrpo.llm import Llm
from tfgrpo.memo import Memo
from tfgrpo.quorum import carrying, settle
from tfgrpo.rollouts import Runner
from tfgrpo.splits import Splits
from tfgrpo.trainer import Learned, Listener, Practice, Trainer
from tfgrpo.types import Library, Pending, Refusal, VersionStatus


@dataclass(frozen=True, slots=True)
class Result:
    """What was learned, and what the gate says of it: None when it was not asked."""

    learned: Learned
    pending: tuple[Pending, ...] = ()
    held: tuple[Refusal, ...] = ()
    gate: Evaluation | None = None
    verdict: VersionStatus = "unproven"


async def learn(job: Job, material: Material) -> Result:
    """Learn, and have a data set's result judged by the gate."""
    training = job.settings.training
    model = named(training.optimizer, training.policy, "training.optimizer")
    with closing(Memo(job.settings.memo)) as memo, Progress(job.ledger) as progress:
        async with (
            Llm(model, ledger=job.ledger, memo=memo, concurrency=training.concurrency) as llm,
            lease.kept(job.store.runs, job.id, progress.snapshot),
        ):
            trainer = trainer_of(job, material, llm, progress)
            if material.splits is None:
                return settled(job, material, await trainer.learn(material.groups, _start(job, material)))
            return await _practised(job, trainer, material, material.splits, memo)


def settled(job: Job, material: Material, learned: Learned) -> Result:
    """Divide what was learned into what may be active and what is pending, where a quorum is asked for."""
    if material.quorum is None:
        return Result(learned)
    limits = assembly.limits(job.settings.training, job.recipe, job.settings.secrets)
    found = settle(material.library, learned, material.quorum, waiting=material.waiting, run=job.id, limits=limits)
    return Result(replace(learned, library=found.library), found.pending, found.held)


def _start(job: Job, material: Material) -> Library:
    """Return the library that logged groups are held against: what is pending stands in it, to be confirmed."""
    return carrying(
        material.library, material.waiting, assembly.limits(job.settings.training, job.recipe, job.settings.secrets)
    )


def trainer_of(job: Job, material: Material, llm: Llm, listener: Listener) -> Trainer:
    """Return the trainer of a run or of its rehearsal."""
    return assembly.trainer(
        job.settings.training,
        job.recipe,
        llm,
        listener,
        seed=job.arguments.seed,
        given=material.given,
        mode=mode(job.arguments, job.settings),
        inherited=material.inherited,
        quorum=material.quorum,
        secrets=job.settings.secrets,
    )


def practice_of(job: Job, material: Material, splits: Splits, runner: Runner) -> Practice:
    """Return how a run, or its rehearsal, makes fresh rollouts."""
    return assembly.practice(
        job.settings.training,
        job.recipe,
        runner,
        set_name=job.arguments.set,
        version=material.parent,
        seed=job.arguments.seed,
        validation=splits.validation,
    )


async def _practised(job: Job, trainer: Trainer, material: Material, splits: Splits, memo: Memo) -> Result:
    training, recipe = job.settings.training, job.recipe
    model = named(training.policy, training.optimizer, "training.policy")
    chosen = grader(job.arguments, job.settings)
    advance, ledger = trainer.listener.advance, job.ledger
    async with (
        Llm(model, ledger=ledger, memo=memo, concurrency=training.concurrency) as policy,
        judging(chosen, training, ledger, memo) as judge,
        running(
            job.arguments, job.settings, job.store, policy=policy, judge=judge, ledger=ledger, advance=advance
        ) as runner,
    ):
        answering = Answering(runner)
        practised = await trainer.practise(
            splits.train, material.library, practice_of(job, material, splits, answering)
        )
        result = settled(job, material, practised)
        learned = result.learned
        answering.check()
        if said := answering.report():
            note(said)
        if not recipe.gate or learned.library.experiences == material.library.experiences:
            return result
        if len(splits.held_out) < FEWEST:
            note(
                f"{len(splits.held_out)} tasks are held out, and under {FEWEST} none can show anything: no gate; test "
                "the version with `tfgrpo evaluate`"
            )
            return result
        found = await judged(job, runner, trainer.listener, material, learned.library)
        return replace(result, gate=found, verdict=found.word(training.gate.minimum_effect))
