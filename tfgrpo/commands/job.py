"""One training run as its commands hand it on: what was asked, and what it works with."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass

from tfgrpo.configuration import Configuration
from tfgrpo.recipe import RECIPES, Recipe
from tfgrpo.store import Store
from tfgrpo.usage import Ledger


@dataclass(frozen=True, slots=True)
class Job:
    """One training run: what was asked, and what it works with."""

    id: str
    store: Store
    arguments: Namespace
    settings: Configuration
    ledger: Ledger

    @property
    def recipe(self) -> Recipe:
        """The switches, as the command line or else the configuration names them."""
        return RECIPES[self.arguments.recipe or self.settings.training.recipe]
