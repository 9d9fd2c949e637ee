"""The files that pages load: our style and script, and the vendored libraries, each with its version in its name.

They are read once, served from memory, and addressed by their content: an address never serves another file, so a
browser may keep it. Licences lie beside the libraries they are of.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

ROOT: Final = "/admin/static"
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEADERS: Final = {"x-content-type-options": "nosniff", "cache-control": "public, max-age=31536000, immutable"}


@dataclass(frozen=True, slots=True)
class _Asset:
    body: bytes
    media_type: str
    mark: str


def _read() -> dict[str, _Asset]:
    found = {}
    for file in (resources.files("proxy.dashboard") / "static").iterdir():
        media_type = _TYPES.get(file.name[file.name.rfind(".") :])
        if media_type is not None:
            body = file.read_bytes()
            found[file.name] = _Asset(body, media_type, hashlib.blake2b(body, digest_size=6).hexdigest())
    return found


_ASSETS: Final = _read()


def address(name: str) -> str:
    """Return the address of a file; KeyError for one that is not there."""
    return f"{ROOT}/{_ASSETS[name].mark}/{name}"


async def serve(request: Request) -> Response:
    """Return a file; 404 for one that is not there as addressed."""
    found = _ASSETS.get(request.path_params["name"])
    if found is None or found.mark != request.path_params["mark"]:
        raise HTTPException(404)
    return Response(found.body, media_type=found.media_type, headers=_HEADERS)
