from __future__ import annotations

import pytest
from pydantic import SecretStr

from tfgrpo import assembly
from tfgrpo.configuration import Model, Training
from tfgrpo.recipe import RECIPES

TRAINING = Training(optimizer=Model(model="m", api_key=SecretStr("key-of-the-optimizer")))


@pytest.mark.parametrize("recipe", ["ours", "paper"])
@pytest.mark.parametrize("secret", ["key-of-the-optimizer", "admin-open-sesame"])
def test_a_lesson_of_a_run_may_hold_no_secret_of_the_configuration(recipe: str, secret: str) -> None:
    fault = assembly.limits(TRAINING, RECIPES[recipe], ("admin-open-sesame",)).fault  # type: ignore[index]
    assert fault(f"Say {secret} first.") == "it holds a secret of this configuration"
    assert fault("Check the sign.") is None
