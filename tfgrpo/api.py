"""What a notebook calls: train on a list of tasks with a callable grader, compare, keep. `docs/python.md` shows it.

Each call blocks until it is done, in a script and in a notebook alike. Nothing here reads `config.yaml` or a store; a
saved library comes into a store with `tfgrpo sets import`.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from tfgrpo import assembly, blocking, datasets, evaluation, inheritance, sources
from tfgrpo.answering import Answering
from tfgrpo.commands.progress import Progress
from tfgrpo.commands.session import judging
from tfgrpo.configuration import Model, Training, explain
from tfgrpo.errors import UsageError
from tfgrpo.graders import Grader, by_name
from tfgrpo.graders.own import Own
from tfgrpo.graders.python import PythonGrader
from tfgrpo.inheritance import admission
from tfgrpo.library import Limits
from tfgrpo.llm import Llm
from tfgrpo.memo import Memo
from tfgrpo.recipe import RECIPES
from tfgrpo.rollouts import ChatRunner, Prior, Sampling
from tfgrpo.trainer import Learned, Listener
from tfgrpo.types import Library, Task, Version
from tfgrpo.usage import Ledger, Usage, money

Tasks: TypeAlias = Iterable[Task | Mapping[str, Any]]
"""Tasks, or rows as data sets have them: `{"question": "...", "answer": "..."}`."""

Grading: TypeAlias = Callable[..., Any] | Grader | str
"""`function(answer, reference, *, task, trajectory)` with what it names, a grader, or a grader's name."""

NAME: Final = "library"
"""The set that blocks name where there is none."""

_STAGE: Final = "evaluate"
_READ: Final = Limits(entries=None)


@dataclass(frozen=True, slots=True)
class Trained:
    """What training came to: the library, how it came about, and what was used. Prints as a short report."""

    learned: Learned
    usage: Usage
    policy_model: str

    @property
    def library(self) -> Library:
        """The library at the end."""
        return self.learned.library

    def __str__(self) -> str:
        steps = self.learned.steps
        told, all_ = sum(len(step.telling) for step in steps), sum(step.groups for step in steps)
        first = (
            f"{told} of {all_} groups contrasted, {self.learned.applied} edits applied, {len(self.library)} lessons; "
            f"{self.usage.calls} calls, {self.usage.tokens} tokens, {money(self.usage.usd)}"
        )
        return "\n".join([first, *(f"[{one.id}] {one.text}" for one in self.library.experiences)])

    def save(self, path: Path | str) -> None:
        """Write the library to a file; see `save_library`."""
        save_library(self.library, path, policy_model=self.policy_model)


def train(
    tasks: Tasks,
    *,
    grader: Grading | None = None,
    policy: Model | str,
    optimizer: Model | str | None = None,
    library: Library | None = None,
    seed: int = 0,
    max_usd: float | None = None,
    max_tokens: int | None = None,
    progress: bool = True,
    **settings: Any,
) -> Trained:
    """Learn a library from fresh rollouts of `tasks` by `policy`, judged by `grader`; start from `library`.

    Tasks of reasoning-gym bring their own checker and need no `grader`. `optimizer` writes the lessons (the policy,
    where none is named). `settings` are keys of `training` in
    `docs/configuration.md`, such as `objective`, `epochs`, `group_size`, `max_words`; with `cache`, a directory,
    a run that was interrupted goes on without paying twice.

    Raises:
        UsageError: a task or setting does not fit.
        GraderError: the grader could judge none of the rollouts.
        ModelError: a model cannot be reached, or gives nothing usable.
        BudgetExceeded: `max_usd` or `max_tokens` is used up.
    """
    training = _settings(policy, optimizer, settings)
    judge = _grader(grader)
    chosen = _tasks(tasks, judge)
    ledger = Ledger(max_usd=max_usd, max_tokens=max_tokens)

    async def work() -> Learned:
        with _memo(training) as memo, _listener(ledger, shown=progress) as listener:
            async with (
                _llm(training.policy, training, ledger, memo) as policy_llm,
                _llm(training.optimizer, training, ledger, memo) as optimizer_llm,
                judging(judge, training, ledger, memo) as judged,
            ):
                recipe = RECIPES[training.recipe]
                trainer = assembly.trainer(training, recipe, optimizer_llm, listener, seed=seed)
                runner = Answering(ChatRunner(policy_llm, judged, listener.advance, training.selected))
                practice = assembly.practice(training, recipe, runner, set_name=NAME, version=1, seed=seed)
                learned = await trainer.practise(chosen, library or Library(), practice)
                runner.check()
                return learned

    return Trained(blocking.run(work), ledger.total(), str(training.policy.model))


def evaluate(
    tasks: Tasks,
    *,
    grader: Grading | None = None,
    policy: Model | str,
    library: Library,
    against: Library | None = None,
    k: int = 32,
    seed: int = 0,
    max_usd: float | None = None,
    max_tokens: int | None = None,
    progress: bool = True,
    **settings: Any,
) -> evaluation.Evaluation:
    """Compare what `library` and `against` (nothing) do to `policy` on held-out tasks, `k` samples a task and side.

    `settings`, and the errors raised, are those of `train`.
    """
    training = _settings(policy, None, settings)
    judge = _grader(grader)
    chosen = _tasks(tasks, judge)
    ledger = Ledger(max_usd=max_usd, max_tokens=max_tokens)

    async def work() -> evaluation.Evaluation:
        with _memo(training) as memo, _listener(ledger, shown=progress) as listener:
            async with (
                _llm(training.policy, training, ledger, memo) as llm,
                judging(judge, training, ledger, memo) as judged,
            ):
                listener.begin(_STAGE, 2 * len(chosen) * k)
                return await evaluation.evaluate(
                    ChatRunner(llm, judged, listener.advance, training.selected),
                    chosen,
                    tested=Prior(NAME, 1, library),
                    against=Prior(NAME, 2, against or Library()),
                    samples=k,
                    sampling=Sampling(training.evaluation_temperature, seed, _STAGE),
                    alpha=round(1 - training.gate.confidence, 12),
                )

    return blocking.run(work)


def load_tasks(path: Path | str) -> tuple[Task, ...]:
    """Return the tasks of a JSONL file, or of `reasoning-gym:FAMILY?n=200&seed=1`, each once.

    Raises:
        UsageError: a line does not fit, or there is no such family.
    """
    return sources.load(path, need_reference=False).tasks


def load_library(path: Path | str) -> Library:
    """Return the lessons of a file: ours, or the reference implementation's flat JSON or agent YAML.

    What cannot be a lesson is left out with a warning. UsageError says what is wrong with the file.
    """
    inherited = inheritance.load(Path(path))
    admitted = admission.admit(inherited, _READ)
    for id_, reason in admitted.refused:
        warnings.warn(f"{path}: {id_} is left out: {reason}", stacklevel=2)
    return admission.numbered(inherited, admitted, (), set_name=NAME)


def save_library(library: Library, path: Path | str, *, policy_model: str | None = None) -> None:
    """Write a library as `tfgrpo sets import` and `load_library` read it; UsageError when it cannot be written."""
    version = Version(NAME, 1, library, "unproven", time.time(), policy_model=policy_model)
    try:
        Path(path).write_text(inheritance.write(version, "json"), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


class _Silent:
    """A listener that says nothing."""

    def begin(self, stage: str, total: int) -> None:
        """Pass over it."""

    def advance(self, stage: str) -> None:
        """Pass over it."""


def _settings(policy: Model | str, optimizer: Model | str | None, settings: Mapping[str, Any]) -> Training:
    models = {"policy": _model(policy), "optimizer": _model(policy if optimizer is None else optimizer)}
    try:
        return Training.model_validate({**settings, **models})
    except ValidationError as error:
        raise explain(error) from error


def _model(given: Model | str) -> Model:
    return Model(model=given) if isinstance(given, str) else given


def _grader(given: Grading | None) -> Grader:
    if given is None:
        return Own()
    if isinstance(given, str):
        return by_name(given)
    return PythonGrader.of(getattr(given, "__name__", "grader"), given) if callable(given) else given


def _tasks(given: Tasks, judge: Grader) -> tuple[Task, ...]:
    tasks: dict[str, Task] = {}
    for place, one in enumerate(given):
        task = one if isinstance(one, Task) else _task(one, f"tasks[{place}]", need_reference=judge.needs_reference)
        tasks.setdefault(task.key, task)
    if not tasks:
        raise UsageError("there is no task")
    return tuple(tasks.values())


def _task(row: Mapping[str, Any], name: str, *, need_reference: bool) -> Task:
    try:
        line = json.dumps(dict(row))
    except TypeError as error:
        raise UsageError(f"{name}: {error}; make it a Task, or a row of JSON values") from error
    return datasets.parse([line], name=name, need_reference=need_reference).tasks[0]


def _llm(model: Model, training: Training, ledger: Ledger, memo: Memo | None) -> Llm:
    return Llm(model, ledger=ledger, memo=memo, concurrency=training.concurrency)


def _memo(training: Training) -> closing[Memo] | nullcontext[None]:
    return nullcontext() if training.cache is None else closing(Memo(training.cache))


def _listener(ledger: Ledger, *, shown: bool) -> Progress | nullcontext[Listener]:
    return Progress(ledger) if shown else nullcontext(_Silent())
