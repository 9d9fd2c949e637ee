"""`tfgrpo traffic export`: rewarded trajectories as training data."""

from __future__ import annotations

from argparse import Namespace

from tfgrpo.commands import groups as census
from tfgrpo.commands.output import note, write
from tfgrpo.commands.session import configuration, opened
from tfgrpo.errors import Conflict
from tfgrpo.fine_tuning import examples


def run(arguments: Namespace) -> int:
    """Write the examples; what is left out is counted on stderr."""
    with opened(configuration(arguments, "store")) as store:
        _, unnamed = census.of_set(store, arguments.set)
        if unnamed:
            note(census.unrecorded(arguments.set))
        found = examples(
            store,
            set_name=None if unnamed else arguments.set,
            unnamed=unnamed,
            min_reward=arguments.min_reward,
        )
    left = "; ".join(f"{count} {reason}" for reason, count in found.left_out.items())
    if not found.lines:
        raise Conflict(f"no rollout can be training data: {left or 'none is labelled; POST /v1/feedback labels one'}")
    write("".join(f"{line}\n" for line in found.lines), arguments.output)
    where = f" in {arguments.output}" if arguments.output else ""
    note(f"{len(found.lines)} examples{where}" + (f"; left out: {left}" if left else ""))
    return 0
