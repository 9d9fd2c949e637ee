"""`tfgrpo sets approve` and `reject`: a person's word on a learned version."""

from __future__ import annotations

import getpass
from argparse import Namespace

from tfgrpo.commands.output import emit, say
from tfgrpo.errors import UsageError
from tfgrpo.store import Store

ACTOR = "tfgrpo sets"


def run(store: Store, arguments: Namespace) -> None:
    """Write down what `arguments.action` says of a version."""
    set_name, version = arguments.version
    if version is None:
        raise UsageError(f"name the version, as in {set_name}@1")
    review = store.reviews.approve if arguments.action == "approve" else store.reviews.reject
    standing = review(set_name, version, reason=arguments.reason, actor=actor(arguments.by))
    if arguments.json:
        emit({"set": set_name, "version": version, "approval": standing})
        return
    next_step = f": `tfgrpo sets deploy {set_name}@{version}` gives it to live requests"
    say(f"{set_name}@{version} is {standing}{next_step if standing == 'approved' else ''}")


def actor(by: str | None) -> str:
    """Return who the history shall name: the name given, else the user that runs this."""
    try:
        return f"{by or getpass.getuser()} ({ACTOR})"
    except OSError:
        # A container's user may have no name.
        return ACTOR
