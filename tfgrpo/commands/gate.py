"""The gate of a run: what was learned against what is deployed, on held-out tasks, with guards.

The comparison counts as a use of its held-out tasks, and the more often they are used, the stricter it is.
"""

from __future__ import annotations

from typing import Final

from tfgrpo import significance
from tfgrpo.commands.job import Job
from tfgrpo.commands.material import Material
from tfgrpo.commands.runner import name_of
from tfgrpo.commands.session import spelt
from tfgrpo.evaluation import Evaluation, evaluate, key_of, split_of
from tfgrpo.rollouts import Prior, Runner, Sampling
from tfgrpo.store.evidence import Finding
from tfgrpo.trainer import Listener
from tfgrpo.types import Library

FEWEST: Final = 6
"""Held-out tasks under which no comparison can come to a verdict (see `significance`)."""


async def judged(job: Job, runner: Runner, listener: Listener, material: Material, library: Library) -> Evaluation:
    """Compare `library` with the parent's, and keep the comparison as a use of the held-out tasks."""
    assert material.splits is not None
    training, tasks = job.settings.training, material.splits.held_out
    gate, name = training.gate, job.arguments.set
    listener.begin("gate", 2 * gate.samples * (len(tasks) + sum(len(guard.tasks) for guard in material.guards)))
    tested, against = Prior(name, material.parent + 1, library), Prior(name, material.parent, material.library)
    sampling = Sampling(training.evaluation_temperature, job.arguments.seed, "gate")
    found = await evaluate(
        runner,
        tasks,
        tested=tested,
        against=against,
        samples=gate.samples,
        sampling=sampling,
        guards=material.guards,
        margin=gate.margin,
        alpha=1 - gate.confidence,
    )
    newest = job.store.sets.latest(name)
    use = job.store.evidence.claim(
        Finding(
            key=key_of(
                tasks,
                (tested, against),
                model=runner.model,
                samples=gate.samples,
                sampling=sampling,
                grader=spelt(job.arguments, job.settings),
                runner=name_of(job.arguments, job.settings.training),
            ),
            kind="comparison",
            set=name,
            version=newest.version + 1 if newest else 1,
            split=split_of(tasks),
            model=runner.model,
            use=None,
            result=found.as_json(),
        )
    )
    return found.at(significance.level(use, 1 - gate.confidence))
