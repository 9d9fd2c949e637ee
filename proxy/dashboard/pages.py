"""How a page is made: its template, the headers that every one carries, how values read.

It knows no store and no session; what a template shows comes in.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import jinja2
from starlette.responses import HTMLResponse, RedirectResponse, Response

from proxy.dashboard import assets

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


def page(template: str, *, status: int = 200, **values: object) -> Response:
    """Return a page of a template."""
    return HTMLResponse(_ENGINE.get_template(template).render(**values), status, HEADERS)


def see(path: str) -> Response:
    """Send the browser to another page of ours."""
    return RedirectResponse(path, 303, HEADERS)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _percent(share: float) -> str:
    return f"{share * 100:g} %"


_ENGINE.globals |= {"places": PLACES, "asset": assets.address}
_ENGINE.filters |= {"moment": _moment, "percent": _percent}
