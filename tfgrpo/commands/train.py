"""`tfgrpo train`: learn a new version of a set, and say what came of it.

The algorithm is `trainer`'s. Here a run is taken through its life: what it learns from (`material`), learning and the
gate (`learning`), what it leaves behind (`outcome`).
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any, TypeAlias

from tfgrpo.commands import lease, outcome
from tfgrpo.commands.job import Job
from tfgrpo.commands.learning import learn
from tfgrpo.commands.material import Material, gathered
from tfgrpo.commands.output import emit, note
from tfgrpo.commands.session import configuration, interruptible, named, opened
from tfgrpo.errors import BudgetExceeded, ModelError, TfgrpoError
from tfgrpo.store.runs import RunStatus
from tfgrpo.usage import Ledger

JSON: TypeAlias = dict[str, Any]


def run(arguments: Namespace) -> int:
    """Train, store the version, deploy it where asked."""
    settings = configuration(arguments, "store", "training", "apps", "safety")
    named(settings.training.optimizer, settings.training.policy, "training.optimizer")
    ledger = Ledger(max_usd=arguments.max_usd, max_tokens=arguments.max_tokens)
    with opened(settings, migrate=arguments.source == "dataset") as store:
        material = gathered(store, arguments, settings)
        asked = {
            "from": arguments.source,
            "seed": arguments.seed,
            "deploy": arguments.deploy,
            "recipe": arguments.recipe or settings.training.recipe,
            "data": None if arguments.data is None else str(arguments.data),
            "grader": arguments.grader,
            "max_usd": arguments.max_usd,
            "max_tokens": arguments.max_tokens,
        }
        run_id = lease.take(store.runs, set_name=arguments.set, arguments=asked)
        try:
            result = _finished(Job(run_id, store, arguments, settings, ledger), material)
        finally:
            lease.release(store.runs, run_id)
            if said := ledger.total().remark:
                note(said)
    if arguments.json:
        emit(result)
    else:
        outcome.report(result, ledger.total())
    return 0


def _finished(job: Job, material: Material) -> JSON:
    """Learn, store the version and the run's result. However it ends, the run's row says how."""
    runs, ledger = job.store.runs, job.ledger
    try:
        result = interruptible(lambda: learn(job, material))
    except KeyboardInterrupt:
        runs.finish(job.id, status="stopped", result={"error": "interrupted"})
        kept = f"interrupted: {ledger.total().calls} finished calls are kept in {job.settings.memo}"
        raise KeyboardInterrupt(f"{kept}; the same command goes on from there") from None
    except TfgrpoError as error:
        ended: RunStatus = "stopped" if isinstance(error, BudgetExceeded) else "failed"
        runs.finish(job.id, status=ended, result={"error": str(error)})
        raise
    if unusable := outcome.unusable(result.learned):
        told = outcome.as_json(job, material, result)
        runs.finish(job.id, status="failed", result={"error": unusable, **told})
        raise ModelError(unusable)
    return outcome.stored(job, material, result)
