"""How a page is made: its template, the headers that every one carries, how values read.

It knows no store and no session; what a template shows comes in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import jinja2
from starlette.responses import HTMLResponse, RedirectResponse, Response

from proxy.dashboard import assets, texts

PLACES: Final = (
    ("/admin", "Overview"),
    ("/admin/traffic", "Traffic"),
    ("/admin/groups", "Groups"),
    ("/admin/sets", "Experience sets"),
    ("/admin/training", "Training"),
)
"""What the navigation shows: paths and names. A template says where it stands with `{% set place = PATH %}`."""

POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}

_ENGINE: Final = jinja2.Environment(
    loader=jinja2.PackageLoader("proxy.dashboard"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def prepare() -> None:
    """Read and compile every template, so that no page does it while others wait."""
    for name in _ENGINE.list_templates():
        _ENGINE.get_template(name)


def page(template: str, *, status: int = 200, **values: object) -> Response:
    """Return a page of a template."""
    said = _ENGINE.get_template(template).render(**values)
    # Recorded text may hold half a character, which UTF-8 has no bytes for.
    return HTMLResponse(said.encode("utf-8", "replace"), status, HEADERS)


def piece(template: str, **values: object) -> str:
    """Return a part of a page, rendered alone."""
    return _ENGINE.get_template(template).render(**values)


def plain(text: str) -> Response:
    """Return a text as nothing but text."""
    headers = {**HEADERS, "content-type": "text/plain; charset=utf-8"}
    return Response(text.encode("utf-8", "replace"), headers=headers)


def file(body: bytes, name: str) -> Response:
    """Return bytes for a person to keep: a browser shows none of them."""
    said = f'attachment; filename="{re.sub("[^A-Za-z0-9._-]", "_", name)}"'
    return Response(body, headers={**HEADERS, "content-type": "application/octet-stream", "content-disposition": said})


def see(path: str) -> Response:
    """Send the browser to another page of ours."""
    return RedirectResponse(path, 303, HEADERS)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _age(seconds: float) -> str:
    minutes = int(seconds // 60)
    hours, days = minutes // 60, minutes // 1440
    return f"{days} days" if days > 1 else f"{hours} h" if hours > 1 else f"{minutes} min" if minutes else "seconds"


def _short(count: int) -> str:
    """Return a number from a million on in three digits and a unit."""
    for unit, size in (("G", 10**9), ("M", 10**6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:,}"


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.3g} %"


def _milliseconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{float(f'{seconds * 1000:.2g}'):,g} ms"


def _percent(share: float) -> str:
    return f"{share * 100:g} %"


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _lasting(seconds: float) -> str:
    """A time span as people say it."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"  # noqa: PLR2004 - two minutes


_ENGINE.globals |= {"places": PLACES, "asset": assets.address}


def _usd(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 1 or not value else f"${value:.4f}"


def _span(both: Sequence[float]) -> str:
    """Return a low and a high number as one, or as a span."""
    return " to ".join(dict.fromkeys(f"{one:,}" for one in both))


def _usd_span(both: Sequence[float] | None) -> str:
    return "unknown" if both is None else " to ".join(dict.fromkeys(_usd(one) for one in both))


def _seconds(took: float) -> str:
    minutes, rest = divmod(round(took), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


_ENGINE.filters |= {
    "age": _age,
    "milliseconds": _milliseconds,
    "instant": _instant,
    "lasting": _lasting,
    "moment": _moment,
    "percent": _percent,
    "seconds": _seconds,
    "share": _share,
    "short": _short,
    "seen": texts.shown,
    "span": _span,
    "usd": _usd,
    "usd_span": _usd_span,
}
