"""Who is calling: the app behind a key, the administrator, whoever may label an exchange.

It knows keys and nothing of paths, sets or upstreams. Keys are kept and compared as keyed hashes of the whole value,
so that no comparison takes longer the nearer a guess comes, and two keys with a long common prefix stay two.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from pydantic import SecretStr

from proxy.addresses import is_loopback
from proxy.attempts import Attempts
from proxy.errors import ProxyError
from proxy.settings import DEFAULT_APP, HASHED_KEY, Settings

CREDENTIAL_HEADERS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
"""Where a client may show its key, the first one present counts."""

_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip")

Headers = Iterable[tuple[bytes, bytes]]
Scope = MutableMapping[str, Any]


class Identity(msgspec.Struct, frozen=True):
    """Who a request comes from. `credential` is a keyed hash of what the client showed, empty if it showed none.

    `known` is False for a client that passes through with a key of no app: it may use its own credential only.
    """

    app: str
    credential: str
    known: bool = True


class Keys:
    """Every key of the configuration, ready to be compared. `secret` keys the hashes and is the store's own."""

    def __init__(self, settings: Settings, secret: bytes) -> None:
        self._secret = secret
        self._pass_through = settings.server.pass_through
        named = [(key.get_secret_value(), app.name) for app in settings.apps for key in app.keys]
        self._app_of = {self.hashed(key.encode()): app for key, app in named if not key.startswith(HASHED_KEY)}
        self._app_of_digest = {key.removeprefix(HASHED_KEY): app for key, app in named if key.startswith(HASHED_KEY)}
        self._has_apps = bool(named)
        self._feedback_keys = {
            app.name: self._hash_text(app.feedback_key) for app in settings.apps if app.feedback_key is not None
        }
        self._attempts = Attempts()
        self._admin_keys = tuple(self._hash_text(key) for key in settings.server.admin_keys)

    def identify(self, fields: Mapping[bytes, bytes]) -> Identity:
        """The app of a request; ProxyError 401 when apps are configured and none has the key shown."""
        key = shown_key(fields)
        credential = self.hashed(key)
        if not self._has_apps:
            return Identity(DEFAULT_APP, credential)
        app = self._app_of.get(credential) or self._find_hashed(key, credential)
        if app is not None:
            return Identity(app, credential)
        if self._pass_through:
            return Identity(DEFAULT_APP, credential, known=False)
        said = "this key belongs to no app of this proxy" if credential else "no key was sent"
        raise ProxyError(
            401,
            f"{said}; send a key of one of the configured apps as `Authorization: Bearer KEY`",
            code="invalid_api_key",
        )

    def admit(self, scope: Scope) -> None:
        """Let an administrator pass.

        Raises:
            ProxyError: 401, it is none; 429, too many wrong keys came from this address.
        """
        client = scope.get("client")
        address = client[0] if client else ""
        wait = self._attempts.wait(address) if self._admin_keys else 0.0
        if wait > 0:
            raise ProxyError(
                429,
                "too many wrong admin keys came from this address; wait before the next one",
                code="too_many_attempts",
                headers=((b"retry-after", str(math.ceil(wait)).encode()),),
            )
        if self.is_admin(scope):
            return
        if self._admin_keys and b"authorization" in dict(scope["headers"]):
            self._attempts.failed(address)
        raise ProxyError(
            401,
            "this needs the admin key: `Authorization: Bearer KEY`; where none is configured it answers to this "
            "machine alone, asked as localhost",
            code="invalid_admin_key",
            headers=((b"www-authenticate", b"Bearer"),),
        )

    def is_admin(self, scope: Scope) -> bool:
        """Whether a request may use the control plane.

        With an admin key configured, that key as a bearer decides. Without one, only a local person on this machine
        may: a loopback peer that also asked for a loopback host, not through another proxy, not from a foreign page.
        """
        headers = dict(scope["headers"])
        if self._admin_keys:
            return self._shows_admin_key(headers)
        return _is_local(headers, scope.get("client"))

    @property
    def needs_admin_key(self) -> bool:
        """Whether an admin key is configured."""
        return bool(self._admin_keys)

    @property
    def admin_mark(self) -> bytes:
        """Bytes that change whenever an admin key does, and tell nothing of it."""
        return hashlib.blake2b("".join(self._admin_keys).encode(), key=self._secret).digest()

    def is_admin_key(self, key: str) -> bool:
        """Whether a person typed an admin key."""
        return self._fits_admin_key(key.encode())

    def may_label(self, headers: Headers, *, app: str, credential: str) -> bool:
        """Whether a request may label an exchange of `app` that was made with `credential` (its keyed hash)."""
        fields = dict(headers)
        if self._shows_admin_key(fields):
            return True
        key = shown_key(fields)
        shown = self.hashed(key)
        if app == DEFAULT_APP:
            return hmac.compare_digest(shown.encode(), credential.encode())
        feedback_key = self._feedback_keys.get(app)
        if feedback_key is not None and hmac.compare_digest(shown.encode(), feedback_key.encode()):
            return True
        return (self._app_of.get(shown) or self._find_hashed(key, shown)) == app

    def labels_for(self, headers: Headers) -> Identity:
        """Who wants to label: like `identify`, but a feedback key is as good as an app's own, and the admin key
        stands for the app `default`, since it may label anything.
        """
        fields = dict(headers)
        shown = self.hashed(shown_key(fields))
        for app, feedback_key in self._feedback_keys.items():
            if hmac.compare_digest(shown.encode(), feedback_key.encode()):
                return Identity(app, shown)
        if self._shows_admin_key(fields):
            return Identity(DEFAULT_APP, shown)
        return self.identify(fields)

    def hashed(self, key: bytes) -> str:
        """The keyed hash under which a credential is kept; empty for none."""
        # BLAKE2 with a key is a MAC like HMAC, at a third of its cost, and it never gives up the interpreter's lock:
        # with a busy writer thread beside, an HMAC of OpenSSL waited 30 microseconds to get that back.
        return hashlib.blake2b(key, key=self._secret, digest_size=16).hexdigest() if key else ""

    def _find_hashed(self, key: bytes, credential: str) -> str | None:
        """The app of a key that the configuration holds as its SHA-256; from then on its keyed hash is known."""
        if not self._app_of_digest or not key:
            return None
        app = self._app_of_digest.get(hashlib.sha256(key).hexdigest())
        if app is not None:
            self._app_of[credential] = app
        return app

    def _hash_text(self, key: SecretStr) -> str:
        return self.hashed(key.get_secret_value().encode())

    def _shows_admin_key(self, headers: Mapping[bytes, bytes]) -> bool:
        return self._fits_admin_key(bearer(headers.get(b"authorization", b"")))

    def _fits_admin_key(self, key: bytes) -> bool:
        shown = self.hashed(key).encode()
        # No early end: how many keys there are and which one fits is nobody's business.
        return bool(sum([hmac.compare_digest(shown, key.encode()) for key in self._admin_keys]))


def shown_key(headers: Mapping[bytes, bytes]) -> bytes:
    """The credential a client shows, without its `Bearer`; empty if it shows none."""
    for name in CREDENTIAL_HEADERS:
        value = headers.get(name)
        if value:
            return bearer(value)
    return b""


def bearer(value: bytes) -> bytes:
    """The token of an `Authorization: Bearer` value; any other value stands for itself."""
    return value[7:].strip() if value[:7].lower() == b"bearer " else value.strip()


def _is_local(headers: Mapping[bytes, bytes], client: tuple[str, int] | None) -> bool:
    if client is None or not is_loopback(client[0]) or any(name in headers for name in _FORWARDED):
        return False
    host = headers.get(b"host", b"").decode("latin-1")
    return _host_is_loopback(f"//{host}") and _same_origin(headers.get(b"origin"), host)


def _same_origin(origin: bytes | None, host: str) -> bool:
    """A browser sends the page's origin; only pages that this very proxy served may act for the person."""
    if origin is None:
        return True
    return urlsplit(origin.decode("latin-1")).netloc == host


def _host_is_loopback(url: str) -> bool:
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False
