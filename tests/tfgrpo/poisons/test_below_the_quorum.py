"""What is below the quorum at deployment: in no version, and so in no request, over HTTP, on both stores."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conftest import RunningProxy
from tests.tfgrpo.poisons.drive import SET, configured, echo, headers, serving_clients
from tests.tfgrpo.poisons.test_floods import BAD, GOOD, obedient, send
from tests.tfgrpo.scripted import Endpoint, serving
from tests.tfgrpo.test_main import ROOT, ended
from tests.upstreams import RawUpstream

AS_JSON: Final = {"content-type": "application/json"}


async def told(home: Path, *arguments: str, endpoint: Endpoint | None = None) -> Any:
    """What a command says of the store that the configuration names."""
    own = {"PYTHONPATH": str(ROOT)}
    for role in ("POLICY", "OPTIMIZER") if endpoint is not None else ():
        own |= {f"TFGRPO_TRAINING__{role}__MODEL": role.lower(), f"TFGRPO_TRAINING__{role}__BASE_URL": endpoint.url}  # type: ignore[union-attr]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TFGRPO_")}
    words = [sys.executable, "-m", "tfgrpo", *arguments, "--json"]
    code, out, err = await ended(
        await asyncio.create_subprocess_exec(*words, cwd=home, env=inherited | own, stdout=-1, stderr=-1)
    )
    assert code == 0, err
    return json.loads(out)


def deploy(proxy: RunningProxy, version: int) -> int:
    wanted = {"live": version, "reason": "test"}
    return proxy.request("PUT", f"/admin/api/sets/{SET}/deployment", wanted, AS_JSON).status


@pytest.mark.parametrize("others", [True, False], ids=["beside lessons that have it", "alone"])
async def test_a_lesson_below_the_quorum_is_pending_and_no_deployment_gives_it_to_anybody(
    tmp_path: Path, url: str, others: bool
) -> None:
    with RawUpstream(echo) as upstream:
        settings = configured(tmp_path, upstream, ["mallory", "ann", "ben"], store={"url": url})
        with serving_clients(settings) as proxy:
            send(proxy, "mallory", "shop", 3, labels=30)
            for app in ("ann", "ben") if others else ():
                send(proxy, app, "date", 2)
        async with serving(obedient) as endpoint:
            made = await told(tmp_path, "train", "--set", SET, endpoint=endpoint)
        active = [GOOD] if others else []
        assert [one["text"] for one in made.get("experiences", ())] == active
        assert [one["text"] for one in await told(tmp_path, "sets", "pending", SET)] == [BAD]
        with serving_clients(settings) as proxy:
            assert deploy(proxy, 1) == (200 if others else 404)
            assert deploy(proxy, 2) == 404
            assert proxy.chat("Hello?", headers("ben")).headers["x-tfgrpo-set"] == (f"{SET}@1" if others else "none")
        body = upstream.seen[-1].body.decode()
        assert (GOOD in body, BAD in body) == (others, False)
