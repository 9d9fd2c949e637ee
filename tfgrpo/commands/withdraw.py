"""`tfgrpo withdraw`: take back what was learned from an exchange, an app or a source, and say what that changes.

What rests on it is found and taken out by the store (`store.withdrawals`). Live requests get the new version where
`--deploy` asks for it; else the command that does so is named.
"""

from __future__ import annotations

from argparse import Namespace

from tfgrpo.commands import lease
from tfgrpo.commands.output import emit, note, say
from tfgrpo.commands.reviews import actor
from tfgrpo.commands.session import configuration, opened
from tfgrpo.errors import UsageError
from tfgrpo.store import Done, Store, Withdrawable


def run(arguments: Namespace) -> int:
    """Withdraw, or with `--dry-run` say what would change."""
    kind, name = _named(arguments)
    with opened(configuration(arguments, "store")) as store:
        if arguments.dry_run:
            done = [Done(plan) for plan in store.withdrawals.plan(kind, name)]
        else:
            who = actor(arguments.by, "tfgrpo withdraw")
            done = store.withdrawals.withdraw(kind, name, reason=arguments.reason, actor=who, deploy=arguments.deploy)
        _warn_of_run(store)
    if arguments.json:
        sets = [one.as_json() for one in done]
        emit({"dry_run": arguments.dry_run, "withdrawn": {"kind": kind, "name": name}, "sets": sets})
        return 0
    for one in done:
        _show(one, arguments)
    if not done:
        say(f"no entry rests on the {kind} {name}")
    if not arguments.dry_run:
        say(f"the {kind} {name} teaches no more: later runs leave it out")
    return 0


def _named(arguments: Namespace) -> tuple[Withdrawable, str]:
    named: dict[Withdrawable, str | None] = {
        "exchange": arguments.exchange,
        "app": arguments.app,
        "source": arguments.source,
    }
    for kind, name in named.items():
        if name:
            return kind, name
    raise UsageError("name what to withdraw: --exchange ID, --app A or --source NAME", field="exchange")


def _show(done: Done, arguments: Namespace) -> None:
    plan, would = done.plan, "would " if arguments.dry_run else ""
    for gone in plan.gone:
        say(
            f"{plan.set}: {would}lose [{gone.id}] {gone.text}" if would else f"{plan.set}: lost [{gone.id}] {gone.text}"
        )
    for before, after in plan.restored:
        say(f"{plan.set}: [{before.id}] {'would go' if would else 'went'} back to its text before: {after.text}")
    versions = ", ".join(f"{plan.set}@{number}" for number in plan.versions)
    say(f"{plan.set}: {'would be ' if would else ''}deployed no more, for they rest on it: {versions}")
    given = f"requests {'would ' if would else ''}get them without these entries, live ones and those that pin one"
    say(f"{plan.set}: {given}, within a second")
    say(f"{plan.set}: {_next(done, arguments)}")


def _next(done: Done, arguments: Namespace) -> str:
    """Say what live requests get, and what to run where that is not settled."""
    plan = done.plan
    rests = "the live version" if plan.live else "the candidate" if plan.candidate else None
    if arguments.dry_run:
        entries = f"a new version of {len(plan.library)} entries would be made from {plan.base}"
        made = "no version in use rests on it" if plan.base is None else entries
        asked = f"; {rests} rests on it: add --deploy to replace it at once" if rests and not arguments.deploy else ""
        return made + (f", and {rests} replaced" if rests and arguments.deploy else asked)
    if done.deployment is not None:
        live = done.deployment.live or "nothing"
        over = "; the candidate is taken out" if plan.candidate else ""
        return f"live {live} (revision {done.deployment.revision}), from the next request on{over}"
    if done.version is None:
        return "no version in use rests on it"
    made = f"version {done.version.version}, of {len(plan.library)} entries, is stored"
    if rests is None:
        return f"{made}; what is deployed does not rest on it"
    kept = "is still deployed, and given without these entries"
    return f"{made}, but {rests} rests on it; it {kept}: run the same with --deploy to replace it"


def _warn_of_run(store: Store) -> None:
    if (holder := store.runs.holder(lease.NAME)) is not None:
        note(f"training run {holder} is under way and may have read it already: stop it, or look at what it learns")
