"""The page under `/admin`: what the admin API does, for a person with a browser.

Rendered here, from templates, with the admin API's own functions and rules. It needs no build step and nothing from
another host: the policy that each answer carries (CSP) forbids that, and any script or style within a page. The scripts
that it serves itself (`assets`) make pages quicker; nothing needs them.
"""

from __future__ import annotations

from proxy.dashboard.door import create
from proxy.dashboard.overview import Budget, OverviewPages
from proxy.dashboard.pages import prepare
from proxy.dashboard.training import TrainingPages

__all__ = ["Budget", "OverviewPages", "TrainingPages", "create", "prepare"]
