"""The admin API's view of a live experiment: its arms, the differences between them, and the decision."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from proxy.errors import ProxyError
from proxy.experiments import Books, Experiments
from tfgrpo import experiment
from tfgrpo.experiment import Levels
from tfgrpo.experiment.account import Pair, Tally
from tfgrpo.experiment.effect import Effect
from tfgrpo.types import EMPTY_VERSION, Deployment

ALPHA = 0.05
"""Each interval that is shown holds what it should at all looks but with this probability."""

_MOST_DIGITS = 9


class ExperimentApi:
    """The endpoint `/admin/api/sets/{set}/experiment`. `mode`: who acts on the decision."""

    def __init__(self, experiments: Experiments, mode: str) -> None:
        self._experiments = experiments
        self._mode = mode

    async def experiment(self, request: Request) -> Response:
        """The experiment that a set's deployment is; `?revision=` asks for an earlier one."""
        name, revision = request.path_params["set"], _revision(request)

        def work() -> dict[str, Any]:
            books = self._experiments.look(name, revision)
            if books is None:
                return _nothing(name, self._mode)
            return _shown(books, self._experiments.levels(books.deployment), self._mode, self._experiments.window)

        return JSONResponse(await asyncio.to_thread(work))


def _revision(request: Request) -> int | None:
    text = request.query_params.get("revision")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise ProxyError(
            400, f"revision is {text!r}; it is a number of the set's history", code="invalid_value", param="revision"
        )
    return int(text)


def _nothing(name: str, mode: str) -> dict[str, Any]:
    decision: dict[str, Any] = {
        "action": "none",
        "reason": f"set {name!r} has no deployment",
        "blocked": None,
        "alerts": [],
    }
    return {"set": name, "revision": None, "promotion": mode, "arms": [], "differences": [], "decision": decision}


def _shown(books: Books, levels: Levels, mode: str, window: float) -> dict[str, Any]:
    deployment, account = books.deployment, books.account
    decision = experiment.decide(account, levels)
    return {
        "set": deployment.set,
        "revision": deployment.revision,
        "promotion": mode,
        "label_window": window,
        "arms": [
            {"arm": arm, "version": _version(deployment, arm), "probability": account.shares[arm], **_tally(tally)}
            for arm, tally in account.tallies.items()
        ],
        "differences": [_pair(pair) for pair in account],
        "early": None if account.early is None else _effect(account.early),
        "errors": None if account.failed is None else _effect(account.failed),
        "decision": {
            "action": decision.action,
            "reason": decision.reason,
            "blocked": decision.blocked,
            "alerts": list(decision.alerts),
            "candidate": levels.candidate,
            "level_better": levels.promotion,
            "level_worse": levels.worse,
        },
    }


def _version(deployment: Deployment, arm: str) -> int:
    return {"live": deployment.live, "candidate": deployment.candidate}.get(arm) or EMPTY_VERSION


def _tally(tally: Tally) -> dict[str, Any]:
    return {
        "n": tally.n,
        "labelled": tally.labelled,
        "label_rate": _ratio(tally.labelled, tally.n),
        "mean_reward": _ratio(tally.rewards, tally.labelled),
        "mean_tokens": _ratio(tally.tokens, tally.counted),
        "mean_seconds": _ratio(tally.seconds, tally.timed),
    }


def _pair(pair: Pair) -> dict[str, Any]:
    worst, best = _effect(pair.worst), _effect(pair.best)
    return {
        "arm": pair.arm,
        "other": pair.other,
        "reward": _effect(pair.reward),
        "missing_as_0": _effect(pair.missing_as_0),
        "missing_as_1": _effect(pair.missing_as_1),
        "worst_case": [worst["interval"][0], best["interval"][1]],
        "label_rate": _effect(pair.labelled),
        "new_groups": _effect(pair.fresh),
        "longer": _effect(pair.longer),
        "slower": _effect(pair.slower),
        "unusual_finish": _effect(pair.unusual),
    }


def _effect(effect: Effect) -> dict[str, Any]:
    sequence = effect.sequence
    bounds = [bound if math.isfinite(bound) else None for bound in sequence.interval(ALPHA)]
    return {"n": sequence.count, "effect": sequence.mean, "interval": bounds}


def _ratio(total: float, count: int) -> float | None:
    return total / count if count else None
