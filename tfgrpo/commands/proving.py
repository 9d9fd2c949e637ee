"""What comparing and ablating have in common: the tasks and the grader, and asking the policy model within a budget."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from tfgrpo.commands.output import note
from tfgrpo.commands.progress import Progress
from tfgrpo.commands.runner import name_of, running
from tfgrpo.commands.session import configuration, grader, interruptible, judging, named, opened, spelt
from tfgrpo.configuration import Configuration, Gate
from tfgrpo.errors import UsageError
from tfgrpo.graders import Grader
from tfgrpo.llm import Llm
from tfgrpo.memo import Memo
from tfgrpo.rollouts import Runner, Sampling
from tfgrpo.sources import load
from tfgrpo.types import Task, Version
from tfgrpo.usage import Ledger

T = TypeVar("T")
STAGE = "evaluate"


@dataclass(frozen=True, slots=True)
class Proof:
    """What was asked for, checked before anything is spent."""

    arguments: Namespace
    settings: Configuration
    grader: Grader
    tasks: tuple[Task, ...]
    ledger: Ledger

    @property
    def gate(self) -> Gate:
        """The settings of the gate."""
        return self.settings.training.gate

    @property
    def alpha(self) -> float:
        """The level of one test."""
        return round(1 - self.gate.confidence, 12)

    @property
    def sampling(self) -> Sampling:
        """How rollouts are drawn."""
        return Sampling(self.settings.training.evaluation_temperature, self.arguments.seed, STAGE)

    @property
    def model_name(self) -> str:
        """The policy model's name."""
        training = self.settings.training
        return named(training.policy, training.optimizer, "training.policy").model or ""

    @property
    def grader_name(self) -> str:
        """The grader's name with its arguments."""
        return spelt(self.arguments, self.settings)

    @property
    def runner_name(self) -> str:
        """The runner's name."""
        return name_of(self.arguments, self.settings.training)


def proof_of(arguments: Namespace) -> Proof:
    """Read what a proof takes; UsageError for what does not go together."""
    if arguments.prune and not arguments.ablate:
        raise UsageError("--prune goes by what --ablate measures; give both", field="prune")
    if arguments.ablate and (arguments.guard or arguments.plan):
        raise UsageError("--ablate compares no versions: leave out --guard and --plan", field="ablate")
    if arguments.pass_at is not None and arguments.pass_at > arguments.k:
        raise UsageError(f"--pass-at {arguments.pass_at} needs as many samples; --k is {arguments.k}", field="pass_at")
    settings = configuration(arguments, "store", "training")
    judge = grader(arguments, settings)
    data = load(arguments.data, need_reference=judge.needs_reference)
    if said := data.report():
        note(said)
    return Proof(
        arguments, settings, judge, data.tasks, Ledger(max_usd=arguments.max_usd, max_tokens=arguments.max_tokens)
    )


def asked(proof: Proof, rollouts: int, work: Callable[[Runner], Awaitable[T]]) -> T:
    """Do `work` with a runner of the policy model; an interruption keeps what is finished and says so."""
    try:
        return interruptible(lambda: _asked(proof, rollouts, work))
    except KeyboardInterrupt:
        kept = f"interrupted: {proof.ledger.total().calls} finished calls are kept in {proof.settings.memo}"
        raise KeyboardInterrupt(f"{kept}; the same command goes on from there") from None
    finally:
        if said := proof.ledger.total().remark:
            note(said)


def model_note(proof: Proof, version: Version) -> str:
    """Return, and tell at once, that a version was learned on another model; "" where it was not, or nobody knows."""
    learned = version.policy_model
    if learned is None or learned == proof.model_name:
        return ""
    said = f"{version.set}@{version.version} was learned on {learned}, and is tested on {proof.model_name}"
    note(said)
    return f" {said}."


async def _asked(proof: Proof, rollouts: int, work: Callable[[Runner], Awaitable[T]]) -> T:
    training = proof.settings.training
    model = named(training.policy, training.optimizer, "training.policy")
    with (
        opened(proof.settings) as store,
        closing(Memo(proof.settings.memo)) as memo,
        Progress(proof.ledger) as progress,
    ):
        async with (
            Llm(model, ledger=proof.ledger, memo=memo, concurrency=training.concurrency) as llm,
            judging(proof.grader, training, proof.ledger, memo) as judge,
            running(
                proof.arguments,
                proof.settings,
                store,
                policy=llm,
                judge=judge,
                ledger=proof.ledger,
                advance=progress.advance,
            ) as runner,
        ):
            progress.begin(STAGE, rollouts)
            return await work(runner)
