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

from tfgrpo import assembly, blocking, datasets, evaluation, inheritance, sources, splits
from tfgrpo.answering import Answering
from tfgrpo.commands.gate import FEWEST
from tfgrpo.commands.progress import Progress
from tfgrpo.commands.session import judging
from tfgrpo.configuration import Model, Training, explain
from tfgrpo.errors import UsageError
from tfgrpo.graders import Grader, by_name
from tfgrpo.graders.python import PythonGrader
from tfgrpo.inheritance import admission
from tfgrpo.library import Limits
from tfgrpo.llm import Llm
from tfgrpo.memo import Memo
from tfgrpo.own_checkers import Own
from tfgrpo.recipe import RECIPES
from tfgrpo.rollouts import ChatRunner, Prior, Runner, Sampling
from tfgrpo.significance import Verdict
from tfgrpo.splits import Splits
from tfgrpo.trainer import Learned, Listener
from tfgrpo.types import Library, Task, Version
from tfgrpo.usage import Ledger, Usage, money

Tasks: TypeAlias = Iterable[Task | Mapping[str, Any]]
"""Tasks, or rows as data sets have them: `{"question": "...", "answer": "..."}`."""

Grading: TypeAlias = Callable[..., Any] | Grader | str
"""`function(answer, reference, *, task, trajectory)` with what it names, a grader, or a grader's name."""

Guards: TypeAlias = Mapping[str, Tasks]
"""Tasks that a library was not made for and must not harm, by the name that a report gives them."""

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
    minimum_effect: float = 0.0
    gate: evaluation.Evaluation | None = None
    """The comparison with the library at the start, on the tasks held out; None where there were none."""

    @property
    def verdict(self) -> Verdict | None:
        """What the gate says: an effect below `gate.minimum_effect` is none."""
        return None if self.gate is None else self.gate.word(self.minimum_effect)

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
        lines = [first, *(f"[{one.id}] {one.text}" for one in self.library.experiences)]
        if self.gate is not None:
            low, high = self.gate.comparison.interval
            shown = f"{self.gate.comparison.difference:+.3f} [{low:+.3f}, {high:+.3f}]"
            lines.append(f"gate: {self.verdict} on {self.gate.tasks} held-out tasks x {self.gate.samples}: {shown}")
        return "\n".join(lines)

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
    validation: Tasks = (),
    held_out: Tasks = (),
    guards: Guards | None = None,
    seed: int = 0,
    max_usd: float | None = None,
    max_tokens: int | None = None,
    progress: bool = True,
    **settings: Any,
) -> Trained:
    """Learn a library from fresh rollouts of `tasks` by `policy`, judged by `grader`; start from `library`.

    On `validation` tasks the best epoch-end library is chosen. With `held_out` tasks the gate compares the result with
    the library at the start, `gate.samples` rollouts a task and side, and `guards` are part of it; nothing is learned
    from either. `split` makes all three of one list.

    Tasks of reasoning-gym bring their own checker and need no `grader`. `optimizer` writes the lessons (the policy,
    where none is named). `settings` are keys of `training` in `docs/configuration.md`, such as `objective`, `epochs`,
    `max_words`; with `cache`, a directory, a run that was interrupted goes on without paying twice.

    Raises:
        UsageError: a task or setting does not fit.
        GraderError: the grader could judge none of the rollouts.
        ModelError: a model cannot be reached, or gives nothing usable.
        BudgetExceeded: `max_usd` or `max_tokens` is used up.
    """
    training = _settings(policy, optimizer, settings)
    judge = _grader(grader)
    chosen = _tasks(tasks, judge)
    start, choosing = library or Library(), _several(validation, judge, "validation")
    proving = _several(held_out, judge, "held_out")
    _apart(chosen, choosing, proving)
    gate = _Gate(training, seed, proving, _guards(guards, judge))
    ledger = Ledger(max_usd=max_usd, max_tokens=max_tokens)

    async def work() -> tuple[Learned, evaluation.Evaluation | None]:
        with _memo(training) as memo, _listener(ledger, shown=progress) as listener:
            async with (
                _llm(training.policy, training, ledger, memo) as policy_llm,
                _llm(training.optimizer, training, ledger, memo) as optimizer_llm,
                judging(judge, training, ledger, memo) as judged,
            ):
                recipe = RECIPES[training.recipe]
                trainer = assembly.trainer(training, recipe, optimizer_llm, listener, seed=seed)
                runner = Answering(ChatRunner(policy_llm, judged, listener.advance, training.selected))
                practice = assembly.practice(
                    training, recipe, runner, set_name=NAME, version=1, seed=seed, validation=choosing
                )
                learned = await trainer.practise(chosen, start, practice)
                runner.check()
                return learned, await gate.judged(runner, listener, learned.library, start)

    learned, found = blocking.run(work)
    return Trained(learned, ledger.total(), str(training.policy.model), training.gate.minimum_effect, found)


def evaluate(
    tasks: Tasks,
    *,
    grader: Grading | None = None,
    policy: Model | str,
    library: Library,
    against: Library | None = None,
    guards: Guards | None = None,
    k: int = 32,
    seed: int = 0,
    max_usd: float | None = None,
    max_tokens: int | None = None,
    progress: bool = True,
    **settings: Any,
) -> evaluation.Evaluation:
    """Compare what `library` and `against` (nothing) do to `policy` on held-out tasks, `k` samples a task and side.

    With `guards` nothing is shown to help while harm beyond `gate.margin` to one of them cannot be ruled out.
    `settings`, and the errors raised, are those of `train`.
    """
    training = _settings(policy, None, settings)
    judge = _grader(grader)
    chosen, guarding = _tasks(tasks, judge), _guards(guards, judge)
    ledger = Ledger(max_usd=max_usd, max_tokens=max_tokens)

    async def work() -> evaluation.Evaluation:
        with _memo(training) as memo, _listener(ledger, shown=progress) as listener:
            async with (
                _llm(training.policy, training, ledger, memo) as llm,
                judging(judge, training, ledger, memo) as judged,
            ):
                listener.begin(_STAGE, 2 * k * (len(chosen) + sum(len(one.tasks) for one in guarding)))
                return await evaluation.evaluate(
                    ChatRunner(llm, judged, listener.advance, training.selected),
                    chosen,
                    tested=Prior(NAME, 1, library),
                    against=Prior(NAME, 2, against or Library()),
                    samples=k,
                    sampling=Sampling(training.evaluation_temperature, seed, _STAGE),
                    guards=guarding,
                    margin=training.gate.margin,
                    alpha=round(1 - training.gate.confidence, 12),
                )

    return blocking.run(work)


def split(tasks: Tasks, *, held_out: float = 0.3, validation: float = 0.0) -> Splits:
    """Return `tasks` as `train`, `validation` and `held_out`, each once, by a hash of what they ask.

    A task is in the same split in every run, whatever the order and the other tasks. Under 100 tasks there is no
    validation. UsageError when the shares leave nothing to learn from.
    """
    if held_out < 0 or validation < 0 or held_out + validation >= 1:
        raise UsageError(
            f"held_out {held_out} and validation {validation} must be shares that leave some to learn from"
        )
    return splits.split(_tasks(tasks, Own()), held_out=held_out, validation=validation)


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


@dataclass(frozen=True, slots=True)
class _Gate:
    """What compares a result with the library at the start: tasks held out, and guards."""

    training: Training
    seed: int
    tasks: tuple[Task, ...]
    guards: tuple[evaluation.Guard, ...]

    def __post_init__(self) -> None:
        """UsageError when there are guards and nothing that they are part of."""
        if self.guards and not self.tasks:
            raise UsageError("guards are part of the gate, which needs held_out tasks", field="guards")
        if 0 < len(self.tasks) < FEWEST:
            warnings.warn(
                f"{len(self.tasks)} tasks are held out, and under {FEWEST} none can show anything", stacklevel=4
            )

    async def judged(
        self, runner: Runner, listener: Listener, library: Library, start: Library
    ) -> evaluation.Evaluation | None:
        """Return the comparison; None where there is nothing to compare, or nothing to compare on."""
        if not self.tasks or library.experiences == start.experiences:
            return None
        gate = self.training.gate
        listener.begin("gate", 2 * gate.samples * (len(self.tasks) + sum(len(one.tasks) for one in self.guards)))
        return await evaluation.evaluate(
            runner,
            self.tasks,
            tested=Prior(NAME, 2, library),
            against=Prior(NAME, 1, start),
            samples=gate.samples,
            sampling=Sampling(self.training.evaluation_temperature, self.seed, "gate"),
            guards=self.guards,
            margin=gate.margin,
            alpha=round(1 - gate.confidence, 12),
        )


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
    tasks = _several(given, judge, "tasks")
    if not tasks:
        raise UsageError("there is no task")
    return tasks


def _several(given: Tasks, judge: Grader, name: str) -> tuple[Task, ...]:
    tasks: dict[str, Task] = {}
    for place, one in enumerate(given):
        task = one if isinstance(one, Task) else _task(one, f"{name}[{place}]", need_reference=judge.needs_reference)
        tasks.setdefault(task.key, task)
    return tuple(tasks.values())


def _apart(*parts: tuple[Task, ...]) -> None:
    seen: set[str] = set()
    for part in parts:
        keys = {task.key for task in part}
        if again := sorted(keys & seen):
            raise UsageError(
                f"{len(again)} tasks are in two of tasks, validation and held_out, the first of them {again[0]}: "
                "what was learned from can prove nothing; see `split`"
            )
        seen |= keys


def _guards(given: Guards | None, judge: Grader) -> tuple[evaluation.Guard, ...]:
    guards = tuple(evaluation.Guard(name, _several(tasks, judge, name)) for name, tasks in (given or {}).items())
    for guard in guards:
        if not guard.tasks:
            raise UsageError(f"the guard {guard.name} has no task", field="guards")
    return guards


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
