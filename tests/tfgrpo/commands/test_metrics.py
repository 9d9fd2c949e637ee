"""Labels of several metrics, weighed as `training.metrics` says, from the store to what the optimizer reads."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.tfgrpo.scripted import sections, serving, stage
from tests.tfgrpo.test_main import home as home
from tests.tfgrpo.test_main import record, result, run, url
from tests.tfgrpo.test_trainer import optimizer
from tfgrpo.store import Store
from tfgrpo.types import Label


def toned(home: Path) -> None:
    """Label what `record` logged by a second metric, on a scale from 0 to 10 that says the opposite."""
    store = Store.open(url(home))
    labels = [
        Label(f"tone-{n}-{i}", "default", f"x-t{n}-{i}", None, 0, "tone", tone, "user", "", time.time())
        for n in range(2)
        for i, tone in enumerate((0.0, 10.0))
    ]
    store.labels.add(labels)
    store.close()


@pytest.mark.parametrize(
    ("metrics", "rewards"),
    [
        ({"reward": 3, "tone": {"weight": 1, "worst": 0, "best": 10}}, [0.75, 0.25]),
        ({"tone": {"weight": 1, "worst": 0, "best": 10}}, [0.0, 1.0]),
        ({"reward": 1}, [1.0, 0.0]),
    ],
)
async def test_the_reward_is_what_the_configured_weights_make_of_the_labels(
    home: Path, metrics: dict[str, object], rewards: list[float]
) -> None:
    (home / "config.yaml").write_text(json.dumps({"training": {"metrics": metrics}}))
    record(home, tasks=2)
    toned(home)
    async with serving(optimizer) as endpoint:
        made = await result(home, "train", "--set", "s", "--from", "traffic", endpoint=endpoint)
    assert [one["rewards"] for one in made["steps"][0]["contrasts"]] == [rewards, rewards]
    contrast = next(one for one in endpoint.requests if stage(one) == "contrast")
    assert all(f'reward="{reward}"' in sections(contrast) for reward in rewards)


async def test_metrics_that_cancel_leave_nothing_to_contrast(home: Path) -> None:
    metrics = {"reward": 1, "tone": {"weight": 1, "worst": 0, "best": 10}}
    (home / "config.yaml").write_text(json.dumps({"training": {"metrics": metrics}}))
    record(home, tasks=2)
    toned(home)
    async with serving(optimizer) as endpoint:
        code, _, err = await run(home, "train", "--set", "s", "--from", "traffic", endpoint=endpoint)
    assert (code, "no group contrasts" in err, err.count("Traceback")) == (1, True, 0)
