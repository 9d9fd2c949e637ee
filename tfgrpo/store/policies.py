"""Whether a version was learned for the models that its set's traffic goes to: lessons for one may hurt another."""

from __future__ import annotations

from typing import Final

from tfgrpo.store import Store
from tfgrpo.types import Version

RECENT: Final = 200
"""Exchanges of the set that are looked at."""


def foreign(store: Store, version: Version) -> str | None:
    """Return a warning when recent traffic of the set goes to other models than the version's policy model."""
    if version.policy_model is None:
        return None
    learned = {name.strip() for name in version.policy_model.split(",")}
    recent = store.traffic.page(set_name=version.set, limit=RECENT)
    others = sorted({exchange.model for exchange in recent if exchange.model} - learned)
    if not others:
        return None
    return (
        f"{version.set}@{version.version} was learned for {version.policy_model}, and the set's traffic goes to "
        f"{', '.join(others)}: what helps one model may hurt another; prove it with `tfgrpo evaluate` for each"
    )
