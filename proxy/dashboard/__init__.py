"""The page under `/admin`: what the admin API does, for a person with a browser.

Rendered here, from templates, with the admin API's own functions and rules. It needs no build step, no script and
nothing from another host; the policy that each answer carries (CSP) forbids all of that.
"""

from __future__ import annotations

from proxy.dashboard.door import create

__all__ = ["create"]
