"""`tfgrpo sets import` and `export`: versions out of files and into them."""

from __future__ import annotations

from argparse import Namespace

from tfgrpo import inheritance
from tfgrpo.commands.output import emit, note, of_version, say, write
from tfgrpo.errors import UsageError
from tfgrpo.inheritance import Inherited, admission
from tfgrpo.library import Limits
from tfgrpo.safety import outgoing
from tfgrpo.store import Store
from tfgrpo.types import Version

MOST_NAMED = 5
"""So many ids of long lessons are named."""


def take(store: Store, arguments: Namespace, limits: Limits) -> None:
    """Make the next version of a set from a file's lessons; nothing is stored when none can be taken."""
    inherited = inheritance.load(arguments.file)
    admitted = admission.admit(inherited, limits)
    for id_, reason in admitted.refused:
        note(f"{id_} is left out: {reason}")
    if not admitted.experiences:
        raise UsageError(f"{arguments.file} holds no lesson that can be taken; nothing is stored")
    if admitted.long:
        more = ", ..." if len(admitted.long) > MOST_NAMED else ""
        note(
            f"{len(admitted.long)} lessons are longer than the {limits.words} words of training.max_words, and taken "
            f"as they are: {', '.join(admitted.long[:MOST_NAMED])}{more}"
        )
    made = _stored(store, arguments.set, inherited, admitted)
    if arguments.json:
        refused = [{"id": id_, "reason": reason} for id_, reason in admitted.refused]
        emit({**of_version(made), "refused": refused, "long": list(admitted.long)})
        return
    name = f"{made.set}@{made.version}"
    left_out = f", {len(admitted.refused)} left out" if admitted.refused else ""
    say(f"{name} holds {len(made.library)} lessons of {inherited.name}{left_out}; status: {made.status}")
    say(f"it is not deployed: test it with `tfgrpo evaluate --set {name}`, or `tfgrpo sets deploy {name}`")


def give(version: Version, arguments: Namespace, secrets: tuple[str, ...]) -> None:
    """Write a version, without `secrets` and whatever else has the form of one."""
    plain, redacted = outgoing.version(version, secrets)
    text = inheritance.write(plain, arguments.format)
    write(text, arguments.output)
    if redacted:
        note(f"{redacted} lessons held a secret or a personal datum; a placeholder stands in its place")
    if arguments.output is not None:
        note(f"{version.set}@{version.version}: {len(version.library)} lessons are in {arguments.output}")


def _stored(store: Store, set_name: str, inherited: Inherited, admitted: admission.Admission) -> Version:
    status, parent, said = admission.standing(inherited, admitted, store.sets.versions(set_name), set_name=set_name)
    return store.sets.add_version(
        set_name,
        lambda versions: admission.numbered(inherited, admitted, versions, set_name=set_name),
        status=status,
        parent=parent,
        policy_model=inherited.policy_model,
        run=inherited.version.run if inherited.version is not None else None,
        note=said,
    )
