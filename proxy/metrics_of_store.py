"""What the store knows and Prometheus shall see: deployments, the reward of each arm, what training cost.

It is read when somebody asks for metrics, in a thread, and is the same on every worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from proxy.experiments import Experiments
from tfgrpo.store import Store
from tfgrpo.types import Deployment


class StoreMetrics(Collector):
    """Reads the store at each scrape."""

    def __init__(self, store: Store, experiments: Experiments) -> None:
        self._store = store
        self._experiments = experiments

    def collect(self) -> Iterable[Metric]:
        """Return the families of metrics."""
        deployments = self._store.sets.deployments()
        return [*_deployed(deployments), *self._arms(deployments), *self._training()]

    def describe(self) -> Iterable[Metric]:
        """Say nothing beforehand: registering must not read the store."""
        return []

    def _arms(self, deployments: Iterable[Deployment]) -> list[Metric]:
        labels = ["set", "arm"]
        reward = GaugeMetricFamily("tfgrpo_arm_reward", "Mean reward of an arm's labelled trajectories.", labels=labels)
        begun = GaugeMetricFamily("tfgrpo_arm_trajectories", "Trajectories of the running experiment.", labels=labels)
        labelled = GaugeMetricFamily("tfgrpo_arm_labelled", "Those that have a reward.", labels=labels)
        for deployment in deployments:
            books = self._experiments.look(deployment.set)
            for arm, tally in () if books is None else books.account.tallies.items():
                of = [deployment.set, arm]
                begun.add_metric(of, tally.n)
                labelled.add_metric(of, tally.labelled)
                if tally.labelled:
                    reward.add_metric(of, tally.rewards / tally.labelled)
        return [reward, begun, labelled]

    def _training(self) -> list[Metric]:
        runs = CounterMetricFamily("tfgrpo_training_runs", "Training runs by how they stand.", labels=["set", "status"])
        cost = CounterMetricFamily("tfgrpo_training_usd", "What training has cost, in US dollars.", labels=["set"])
        tokens = CounterMetricFamily("tfgrpo_training_tokens", "Tokens that training has used.", labels=["set"])
        counted: dict[tuple[str, str], int] = {}
        paid: dict[str, float] = {}
        used: dict[str, float] = {}
        for run in self._store.runs.list():
            counted[run.set, run.status] = counted.get((run.set, run.status), 0) + 1
            usage = _usage(run.result)
            paid[run.set] = paid.get(run.set, 0.0) + (usage.get("usd") or 0.0)
            spent = (usage.get("prompt_tokens") or 0) + (usage.get("completion_tokens") or 0)
            used[run.set] = used.get(run.set, 0) + spent
        for (name, status), count in counted.items():
            runs.add_metric([name, status], count)
        for name, usd in paid.items():
            cost.add_metric([name], usd)
            tokens.add_metric([name], used[name])
        return [runs, cost, tokens]


def _deployed(deployments: Iterable[Deployment]) -> list[Metric]:
    labels = ["set", "arm"]
    version = GaugeMetricFamily("tfgrpo_deployment_version", "Which version an arm gets.", labels=labels)
    share = GaugeMetricFamily("tfgrpo_deployment_share", "Its part of new trajectories.", labels=labels)
    for one in deployments:
        version.add_metric([one.set, "live"], one.live or 0)
        share.add_metric([one.set, "live"], max(0.0, 1 - sum(one.shares.values())))
        if one.candidate is not None:
            version.add_metric([one.set, "candidate"], one.candidate)
        for arm, part in one.shares.items():
            share.add_metric([one.set, arm], part)
    return [version, share]


def _usage(result: Mapping[str, Any] | None) -> Mapping[str, Any]:
    found = ((result or {}).get("usage") or {}).get("total")
    return found if isinstance(found, dict) else {}
