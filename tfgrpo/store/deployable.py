"""What may be stored and deployed: the rules that need no look into the store."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from tfgrpo import library as libraries
from tfgrpo.errors import UsageError
from tfgrpo.library import Limits
from tfgrpo.safety import grammar
from tfgrpo.types import EMPTY_VERSION, Library, Version

ARMS = ("candidate", "control")
"""The arms that take a share; what is left over is live."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the configuration at hand asks of every version, whoever stores or deploys it.

    `secrets` are values of the configuration that no lesson may hold; with `approval` a learned version is deployed
    only after a person approved it.
    """

    secrets: tuple[str, ...] = field(default=(), repr=False)
    approval: bool = False


NO_RULES = Rules()


def check_shares(live: int | None, candidate: int | None, shares: Mapping[str, float]) -> None:
    """Raise UsageError, `field` names what is wrong, unless the shares can be given beside these versions."""
    for arm, share in shares.items():
        if arm not in ARMS:
            raise UsageError(f"shares has no arm {arm!r}; it takes {' and '.join(ARMS)}", field="shares")
        if not math.isfinite(share) or not 0 <= share <= 1:
            raise UsageError(f"shares.{arm} is {share}; a share lies in [0, 1]", field=f"shares.{arm}")
    if sum(shares.values()) > 1:
        raise UsageError(f"the shares sum to {sum(shares.values()):g}; at most 1 is there", field="shares")
    if candidate is None and shares.get("candidate", 0) > 0:
        raise UsageError("shares.candidate is set, but no candidate is", field="candidate")
    if candidate is not None and candidate == (live or EMPTY_VERSION):
        raise UsageError(f"candidate {candidate} is the live version; name another", field="candidate")


def check_size(version: Version, limits: Limits | None, arm: str) -> None:
    """Raise UsageError unless the library of `version` is within `limits`; None: it need not be."""
    if limits is None or libraries.fits(version.library, limits):
        return
    raise UsageError(
        f"version {version.version} of {version.set!r} is over its budget: {len(version.library)} entries (at most "
        f"{limits.entries}), about {libraries.tokens(version.library)} tokens (at most {limits.tokens}); raise "
        "training.max_entries and training.max_library_tokens, or set training.selection: lexical",
        field=arm,
    )


def check_entries(library: Library, *, but: Collection[str] = (), ours: Iterable[str] = ()) -> None:
    """Raise UsageError, `field` names the first, when an entry whose text is not in `but` cannot be a lesson."""
    for place, entry in enumerate(library.experiences):
        if entry.text not in but and (reason := grammar.fault(entry.text, ours)) is not None:
            field = f"experiences[{place}].text"
            raise UsageError(f"{field}: entry {entry.id} cannot be a lesson: {reason}", field=field)
