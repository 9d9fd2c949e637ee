"""Who is logged in: signed cookies that expire, and the tokens of their forms.

Nothing is stored: a cookie carries its end and a MAC that is keyed with the store's secret and the admin keys as they
are, so every worker knows it, and changing a key ends all sessions.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

COOKIE = "tfgrpo_session"
SECONDS = 12 * 3600
"""How long a login lasts."""


class Sessions:
    """Makes and reads cookies. `secret` keys them."""

    def __init__(self, secret: bytes, *, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret
        self._clock = clock

    def begin(self) -> str:
        """Return the cookie of a new session."""
        body = f"{int(self._clock()) + SECONDS}.{secrets.token_hex(16)}"
        return f"{body}.{self._mac('session', body)}"

    def holds(self, cookie: str) -> bool:
        """Whether a cookie is one of ours that has not expired."""
        body, _, mac = cookie.rpartition(".")
        if not hmac.compare_digest(mac.encode(), self._mac("session", body).encode()):
            return False
        return int(body.partition(".")[0]) > self._clock()

    def token(self, cookie: str) -> str:
        """Return what each form of this session carries, so that no other page can send one."""
        return self._mac("form", cookie)

    def fits(self, token: str, cookie: str) -> bool:
        """Whether a form's token is the session's."""
        return hmac.compare_digest(token.encode(), self.token(cookie).encode())

    def _mac(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"dashboard {purpose} {text}".encode(), hashlib.sha256).hexdigest()
