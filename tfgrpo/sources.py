"""Where tasks are had from by name: a file of rows, or a family of reasoning-gym."""

from __future__ import annotations

from pathlib import Path

from tfgrpo import datasets, gym
from tfgrpo.datasets import Dataset


def load(source: Path | str, *, need_reference: bool) -> Dataset:
    """Return the tasks of a file, or of `reasoning-gym:FAMILY?n=200&seed=1`, whose tasks need no right answer.

    The errors are those of `datasets.load` and `gym.made`.
    """
    family = gym.named(str(source))
    if family is None:
        return datasets.load(Path(source), need_reference=need_reference)
    return gym.made(family)
