"""`tfgrpo evaluate`: two versions of a set against each other on held-out tasks, with a verdict."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

from tfgrpo.commands.arguments import versioned
from tfgrpo.commands.output import emit, note, say
from tfgrpo.commands.progress import Progress
from tfgrpo.commands.session import configuration, grader, interruptible, named, opened
from tfgrpo.commands.sets import find
from tfgrpo.configuration import Configuration
from tfgrpo.datasets import Dataset, load
from tfgrpo.errors import UsageError
from tfgrpo.evaluation import Evaluation, evaluate
from tfgrpo.graders import Grader
from tfgrpo.llm import Llm
from tfgrpo.memo import Memo
from tfgrpo.rollouts import ChatRunner, Prior, Sampling
from tfgrpo.store import Store
from tfgrpo.types import EMPTY_VERSION, Version
from tfgrpo.usage import Ledger, as_json

STAGE = "evaluate"


def run(arguments: Namespace) -> int:
    """Compare, record the verdict as the version's status, print it."""
    settings = configuration(arguments, "store", "training")
    judge = grader(arguments, settings)
    data = load(arguments.data, need_reference=judge.needs_reference)
    if data.repeated:
        note(f"{data.repeated} rows repeat an earlier task and are left out")
    ledger = Ledger(max_usd=arguments.max_usd, max_tokens=arguments.max_tokens)
    with opened(settings) as store:
        tested = find(store, *arguments.set)
        against, gates = _against(store, arguments.against, tested)
        if against.library.experiences == tested.library.experiences:
            raise UsageError(f"{_name(tested)} and {_name(against)} hold the same experiences; name another --against")
        try:
            result = interruptible(
                lambda: _compare(arguments, settings, data, judge, versions=(tested, against), ledger=ledger)
            )
        except KeyboardInterrupt:
            kept = f"interrupted: {ledger.total().calls} finished calls are kept in {settings.memo}"
            raise KeyboardInterrupt(f"{kept}; the same command goes on from there") from None
        if gates and _weighs(tested, result):
            said = explain(result, tested, against)
            store.sets.set_status(tested.set, tested.version, result.comparison.verdict, note=said)
    if arguments.json:
        usage = as_json(ledger.total())
        names = {"set": tested.set, "version": tested.version, "against": _name(against)}
        emit({**result.as_json(), **names, "usage": usage})
    else:
        say(explain(result, tested, against))
    return 0


def explain(result: Evaluation, tested: Version, against: Version) -> str:
    """Return a comparison in words."""
    found = result.comparison
    low, high = found.interval
    failed = f" {result.failed} rollouts gave no answer and count as 0." if result.failed else ""
    return (
        f"{_name(tested)} against {_name(against)}: {found.verdict}. Mean reward {result.mean:.3f} against "
        f"{result.mean_against:.3f}, difference {found.difference:+.3f} (95% interval {low:+.3f} to {high:+.3f}), "
        f"{result.tasks} tasks x {result.samples} samples. An effect below {found.smallest_detectable:.3f} would "
        f"likely not have been seen.{failed}"
    )


def _weighs(tested: Version, result: Evaluation) -> bool:
    """Say whether the verdict becomes the version's status: what shows nothing does not undo what was shown."""
    shows = result.comparison.verdict != "no effect shown"
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


async def _compare(
    arguments: Namespace,
    settings: Configuration,
    data: Dataset,
    judge: Grader,
    *,
    versions: tuple[Version, Version],
    ledger: Ledger,
) -> Evaluation:
    training = settings.training
    model = named(training.policy, training.optimizer, "training.policy")
    memo = Memo(settings.memo)
    try:
        async with Llm(model, ledger=ledger, memo=memo, concurrency=training.concurrency) as llm:
            with Progress(ledger) as progress:
                progress.begin(STAGE, 2 * len(data.tasks) * arguments.k)
                tested, against = (Prior(version.set, version.version, version.library) for version in versions)
                return await evaluate(
                    ChatRunner(llm, judge, progress.advance),
                    data.tasks,
                    tested=tested,
                    against=against,
                    samples=arguments.k,
                    sampling=Sampling(training.evaluation_temperature, arguments.seed, STAGE),
                )
    finally:
        memo.close()


def _name(version: Version) -> str:
    return f"{version.set}@{version.version}" if version.version != EMPTY_VERSION else "none"
