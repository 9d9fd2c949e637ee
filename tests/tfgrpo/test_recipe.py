"""The table of departures in docs/method.md is held to the switches that exist."""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from pathlib import Path

import pytest
from pydantic import BaseModel

from tfgrpo.assembly import batch_size
from tfgrpo.commands.arguments import parser
from tfgrpo.configuration import Training
from tfgrpo.recipe import RECIPES, Name, Recipe

METHOD = (Path(__file__).parents[2] / "docs/method.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in METHOD.partition("## Where this departs")[2].splitlines()
    if line.startswith("|") and not line.startswith(("| paper |", "|---"))
]
SWITCHES = [row[-1] for row in ROWS]
SETTINGS = sorted(set(re.findall(r"training\.[a-z_.]*[a-z]", METHOD)))


def has(model: type[BaseModel], path: list[str]) -> bool:
    field = model.model_fields.get(path[0])
    if field is None or len(path) == 1:
        return field is not None
    return isinstance(field.annotation, type) and has(field.annotation, path[1:])


def test_each_row_of_the_table_has_five_cells_and_names_a_switch() -> None:
    assert {len(row) for row in ROWS} == {5}
    assert all("`" in switch or switch == "none" for switch in SWITCHES)


def test_each_departure_has_a_row_and_each_row_a_departure_that_exists() -> None:
    named = [name for switch in SWITCHES for name in re.findall(r"recipe `(\w+)`", switch)]
    assert sorted(named) == sorted(field.name for field in fields(Recipe))


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting_that_the_method_names_exists(name: str) -> None:
    assert has(Training, name.split(".")[1:])


@pytest.mark.parametrize("name", sorted({one for switch in SWITCHES for one in re.findall(r"`(--[a-z]+)", switch)}))
def test_each_option_that_the_table_names_exists(name: str) -> None:
    assert parser().parse_args(["train", "--set", "s", name, "dataset"])


def test_the_paper_has_every_departure_off_and_ours_on() -> None:
    assert (set(asdict(RECIPES["paper"]).values()), set(asdict(RECIPES["ours"]).values())) == ({False}, {True})


@pytest.mark.parametrize(("recipe", "size"), [("ours", 50), ("paper", 100)])
def test_a_batch_has_the_size_that_the_recipe_says_where_none_is_set(recipe: Name, size: int) -> None:
    assert batch_size(Training(), RECIPES[recipe]) == size
    assert batch_size(Training(batch_size=7), RECIPES[recipe]) == 7
