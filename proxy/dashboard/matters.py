"""What a person should see to: found in what the proxy and its store say of themselves, each in one sentence.

It decides nothing and changes nothing; where something can be done about it, it says where.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from proxy.deployments import Deployments
from tfgrpo import library
from tfgrpo.library import Limits
from tfgrpo.store import NewestVersion, RunGlance
from tfgrpo.types import Deployment


@dataclass(frozen=True, slots=True)
class Matter:
    """One thing to see to: a `fault` costs something now, a `choice` waits for a person. `path`: where to do it."""

    kind: Literal["fault", "choice"]
    about: str
    said: str
    path: str | None = None


def of_worker(status: Mapping[str, Any]) -> list[Matter]:
    """Return what one worker says of itself (`/status`)."""
    recorder, spill = status["recorder"], status["spill"]
    known = (
        (
            status["status"] != "ready",
            "Store",
            "it does not answer. Requests pass as ever, with the deployments known last; their records wait.",
        ),
        (status["bypass"], "Bypass", "it is on: nothing is injected, nothing is recorded."),
        (
            recorder["dropped"],
            "Records",
            f"{recorder['dropped']:,} were dropped since this worker began: its queue was full.",
        ),
        (spill["lost"], "Records", f"{spill['lost']:,} that had gone to disk were damaged, or not taken."),
        (
            spill["waiting_bytes"],
            "Records",
            f"{spill['waiting_bytes']:,} bytes wait on this worker's disk for the store to take them.",
        ),
        (
            status["faults"],
            "Faults",
            f"{status['faults']:,} times something went wrong beside a request; the log says what.",
        ),
        (
            status["log_lines_dropped"],
            "Log",
            f"{status['log_lines_dropped']:,} lines were dropped: nobody took them in time.",
        ),
    )
    return [Matter("fault", about, said) for there, about, said in known if there]


def of_libraries(deployments: Deployments, budget: Limits, *, chosen: bool) -> list[Matter]:
    """Return the deployed libraries that are over their budget. `chosen`: a trajectory gets a choice of such a one."""
    found = []
    for deployment in sorted(deployments.all(), key=lambda one: one.set):
        for arm, version in (("live", deployment.live), ("candidate", deployment.candidate)):
            block = deployments.block(deployment.set, version) if version else None
            if block is None or library.fits(block.library, budget):
                continue
            size = f"{len(block.library):,} entries, about {library.tokens(block.library):,} tokens"
            so = "each trajectory gets a choice of it" if chosen else "it is given whole"
            said = f"version {version}, {arm}, is over its budget ({size}): {so}."
            found.append(Matter("choice", deployment.set, said, f"{_path(deployment.set)}/versions/{version}"))
    return found


def of_versions(newest: Iterable[NewestVersion]) -> list[Matter]:
    """Return the newest versions that were never deployed, but for those that hurt or that a person rejected."""
    found = []
    for one in newest:
        if one.deployed or one.status == "hurts" or one.review == "reject":
            continue
        learned = one.run is not None and one.review is None
        so = "awaits your review" if learned else "was never deployed"
        said = f"version {one.version} ({one.status}) {so}. Read it, then deploy it or leave it."
        found.append(Matter("choice", one.set, said, f"{_path(one.set)}/versions/{one.version}"))
    return found


def of_runs(runs: Iterable[RunGlance], holder: str | None) -> list[Matter]:
    """Return the newest run where it ended without a word or failed. `holder`: the run that is alive."""
    for one in runs:
        said = None
        if one.status == "failed":
            said = f"the newest training run, {one.id}, failed."
        elif one.status == "running" and one.id != holder:
            said = f"the newest training run, {one.id}, ended without a word. Go on from there, at no second cost."
        return [Matter("fault", one.set, said, f"/admin/training/{quote(one.id, safe='')}")] if said else []
    return []


def with_candidates(deployments: Iterable[Deployment]) -> list[Deployment]:
    """Return the deployments whose candidate is being compared."""
    found = [one for one in deployments if one.candidate is not None and one.shares.get("candidate", 0) > 0]
    return sorted(found, key=lambda one: one.set)


def _path(set_name: str) -> str:
    return f"/admin/sets/{quote(set_name, safe='')}"
