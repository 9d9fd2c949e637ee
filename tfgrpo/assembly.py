"""The algorithm's parts as configuration and recipe have them: the one place where a setting becomes a dial.

The command line, its estimate, the Python API and the comparison of learners all learn by what is put together here.
It knows no store and no command, and calls no model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from tfgrpo.configuration import Training
from tfgrpo.library import Limits
from tfgrpo.llm import Llm
from tfgrpo.modes import Mode
from tfgrpo.optimizer import Optimizer
from tfgrpo.quorum import Quorum
from tfgrpo.recipe import Recipe
from tfgrpo.rollouts import Runner
from tfgrpo.safety import grammar
from tfgrpo.trainer import Listener, Practice, Trainer
from tfgrpo.types import Library, Refusal, Task

BATCH: Final = 50
"""Groups of a batch where no size is set."""
PAPER_BATCH: Final = 100
"""The same with the paper's batches: its runs have 100 tasks, and all of them are one batch."""


def batch_size(training: Training, recipe: Recipe) -> int:
    """Return how many groups a step learns from."""
    return training.batch_size or (BATCH if recipe.batches else PAPER_BATCH)


def optimizer(llm: Llm, training: Training, recipe: Recipe, seed: int, secrets: tuple[str, ...] = ()) -> Optimizer:
    """Return the optimizer of a run, which is shown no key of its models and none of `secrets`."""
    return Optimizer(
        llm,
        training.objective,
        training.optimizer_temperature,
        seed,
        training.max_words,
        most_lessons=training.lessons,
        repair=recipe.repair,
        reserve=training.rollout_tokens if recipe.economy else None,
        ours=(*_keys(training), *secrets),
    )


def limits(training: Training, recipe: Recipe, secrets: tuple[str, ...] = ()) -> Limits:
    """Return the bounds of library and edit; no entry may hold one of `secrets`."""
    return replace(_bounds(training, recipe), fault=partial(grammar.fault, ours=(*_keys(training), *secrets)))


def _keys(training: Training) -> tuple[str, ...]:
    models = (training.policy, training.optimizer)
    return tuple(model.api_key.get_secret_value() for model in models if model.api_key)


def _bounds(training: Training, recipe: Recipe) -> Limits:
    if not recipe.bounds:
        return Limits(entries=None, words=training.max_words)
    if training.selection:
        # The budget bounds what a request is given, not the library it is chosen from.
        return Limits(entries=None, words=training.max_words, edits=training.edits)
    return Limits(training.max_entries, training.max_words, training.edits, training.max_library_tokens)


def trainer(
    training: Training,
    recipe: Recipe,
    llm: Llm,
    listener: Listener,
    *,
    seed: int,
    given: Mapping[int, Library] | None = None,
    mode: Mode = "reward and reference",
    inherited: tuple[Refusal, ...] = (),
    quorum: Quorum | None = None,
    secrets: tuple[str, ...] = (),
) -> Trainer:
    """Return the trainer of a run; `given` are the libraries that logged rollouts ran with, by version, `inherited` the
    refusals of earlier runs. `quorum`: what lessons need before they may be active. `secrets`: values of the
    configuration that nothing may show.
    """
    return Trainer(
        optimizer=optimizer(llm, training, recipe, seed, secrets),
        limits=limits(training, recipe, secrets),
        listener=listener,
        batch_size=batch_size(training, recipe),
        given=dict(given or {}),
        memory=recipe.memory,
        mode=mode,
        inherited=inherited,
        quorum=quorum,
    )


def practice(
    training: Training,
    recipe: Recipe,
    runner: Runner,
    *,
    set_name: str,
    version: int,
    seed: int,
    validation: tuple[Task, ...] = (),
) -> Practice:
    """Return how a run makes fresh rollouts and what it does with them beyond learning."""
    return Practice(
        runner=runner,
        set_name=set_name,
        version=version,
        group_size=training.group_size,
        epochs=training.epochs,
        temperature=training.temperature,
        seed=seed,
        trial=training.harm_confidence if recipe.trial else None,
        support=training.support if recipe.voting and recipe.trial else None,
        validation=validation if recipe.selection else (),
        validation_temperature=training.evaluation_temperature,
    )
