"""A run's result as `tfgrpo train` stores it."""

from __future__ import annotations

from typing import Any

from tfgrpo.store import Run

JSON = dict[str, Any]


def edit(operation: str, text: str | None, *ids: str, **more: str) -> JSON:
    return {"operation": operation, "ids": list(ids), "text": text, "why": "", "sources": [], **more}


def step(number: int, reward: float | None, **more: Any) -> JSON:
    return {"step": number, "epoch": (number - 1) // 2, "reward": reward, "groups": 9, "contrasting": 4, **more}


GATE: JSON = {
    "verdict": "helps",
    "difference": 0.2,
    "interval": [0.1, 0.3],
    "smallest_detectable": 0.08,
    "mean": 0.7,
    "mean_against": 0.5,
    "n": 48,
    "k": 8,
    "failed": 2,
}

RESULT: JSON = {
    "run": "r1",
    "set": "s",
    "version": 4,
    "status": "helps",
    "parent": 3,
    "deployed": True,
    "policy_model": "m",
    "splits": {"train": 90, "held_out": 48},
    "groups": 36,
    "contrasting": 16,
    "applied": [edit("add", "Say x.", why="It was right more often.")],
    "refused": [edit("update", "Say z.", "e9", reason="no entry has the id e9")],
    "taken_back": [edit("add", "Shout.", reason="tasks earned 0.2 less")],
    "faults": ["group g1: the answer holds no JSON"],
    "steps": [
        step(1, 0.4, contrasts=[{"task": "What is 1+1?", "rewards": [1.0, 0.25, None]}]),
        step(2, 0.5),
        step(3, 0.65),
        step(4, 0.7, stage="check"),
    ],
    "epochs": [{"experiences": 1, "validation": 0.45}, {"experiences": 2, "validation": 0.6}],
    "library_before": [{"id": "e1", "text": "Old."}, {"id": "e2", "text": "Gone."}, {"id": "e3", "text": "Kept."}],
    "library_after": [{"id": "e1", "text": "New."}, {"id": "e3", "text": "Kept."}, {"id": "e4", "text": "Say x."}],
    "gate": GATE,
    "usage": {
        "rollout": {"calls": 1800, "replayed": 3, "prompt_tokens": 10, "completion_tokens": 20, "usd": 0.25},
        "total": {"calls": 1800, "replayed": 3, "prompt_tokens": 10, "completion_tokens": 20, "usd": None},
    },
}


def run(result: JSON | None = None, **changes: Any) -> Run:
    values: JSON = {
        "id": "r1",
        "set": "s",
        "status": "finished",
        "arguments": {"from": "dataset", "seed": 7, "host": "machine-x", "pid": 4711, "api_key": "sk-secret"},
        "progress": {},
        "result": RESULT if result is None else result,
        "started_at": 0.0,
        "ended_at": 75.0,
    }
    return Run(**values | changes)
