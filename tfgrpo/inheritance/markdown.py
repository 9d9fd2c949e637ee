"""A version as Markdown, for people. Lessons come from models and users: nothing in them acts as Markdown or HTML."""

from __future__ import annotations

import re
import time
from typing import Final

from tfgrpo.types import Version

_ACTS: Final = re.compile(r"[\\`*_\[\]<>|~#$!]")


def escape(text: str) -> str:
    """Return `text` as one line that a Markdown reader shows as it is."""
    return _ACTS.sub(r"\\\g<0>", " ".join(text.split()).replace("&", "&amp;"))


def write(version: Version) -> str:
    """Return the lessons as a list, under what is known of the version."""
    facts = [
        ("status", version.status),
        ("policy model", version.policy_model or "not known"),
        ("parent", str(version.parent) if version.parent is not None else "none"),
        ("run", version.run or "none"),
        ("made", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(version.created_at))),
    ]
    lines = [f"# {version.set}@{version.version}", ""]
    lines += [f"- {name}: {escape(value)}" for name, value in facts]
    lines += ["", escape(version.note), ""] if version.note else [""]
    lines += [
        f"- **{escape(one.id)}** {escape(one.text)} (support {one.support}, from {len(one.sources)} groups)"
        for one in version.library.experiences
    ]
    return "\n".join(lines) + "\n"
