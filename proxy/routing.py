"""From a request's path, headers and model to where it goes: app, experience set, pin, upstream, model sent.

Everything is prepared when the proxy starts; deciding reads dictionaries. It does not read bodies (the model is given
to it), does not know what a set holds, and opens no connection. Nothing a client sends can choose an address: it can
only name what the configuration holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec
from pydantic import SecretStr

from proxy.auth import Identity
from proxy.errors import ProxyError
from proxy.model_list import Credentials
from proxy.paths import ID, Address, locate
from proxy.record_modes import HEADER, RecordMode, lowered
from proxy.settings import SET_NAME, Settings
from proxy.settings import Upstream as UpstreamSettings

Pin = int | Literal["none"] | None
Fields = Mapping[bytes, bytes]

SESSION_HEADERS: Final = (
    b"x-session-id",
    b"agent-session-id",
    b"x-litellm-session-id",
    b"x-litellm-trace-id",
    b"helicone-session-id",
)
_SESSION_HEADERS: Final = frozenset(SESSION_HEADERS)
_MOST_REMEMBERED: Final = 1024
_LONGEST_VERSION: Final = 9


@dataclass(frozen=True, slots=True)
class Translated:
    """How litellm reaches a provider. `params` may hold secrets; `environment`: it may pay with what it finds there."""

    provider: str
    params: Mapping[str, Any] = field(compare=False, repr=False)
    environment: bool = False


@dataclass(frozen=True, slots=True)
class Upstream:
    """A provider as the live path knows it. `base_url` has no slash at its end; `api_key` None: the client's own.

    `translated` None: it speaks the API it is called with. Else `base_url` may be empty, and litellm knows it.
    """

    name: str
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    translated: Translated | None = None


class Route(msgspec.Struct, frozen=True):
    """Where a request goes. `model` is the name to send where an alias stands for another, else None."""

    set_name: str | None
    pin: Pin
    upstream: Upstream
    credential: str | None
    """What to pay the upstream with; None: the client's own credential, where `own` allows it."""
    own: bool
    """Whether the client's credential may go to the upstream. A key of ours never does."""
    model: str | None
    trajectory: str | None
    session: str | None
    group: str | None
    retry: bool
    record: RecordMode = "full"
    record_share: float = 1.0
    """The part of trajectories whose bodies are recorded."""

    def __repr__(self) -> str:
        """Without the credential."""
        return f"Route({self.upstream.name}, {self.set_name})"


@dataclass(frozen=True, slots=True)
class _Rule:
    """A model pattern, split at its `*`; without one, `suffix` is None and the whole name must fit."""

    prefix: str
    suffix: str | None
    upstream: Upstream
    target: str | None = None

    def sent(self, model: str) -> str | None:
        """The name to send for a model that fits; None: as it came."""
        if self.target is None:
            return None
        if "*" not in self.target:
            return None if self.target == model else self.target
        middle = model[len(self.prefix) : len(model) - len(self.suffix or "")]
        return None if (named := self.target.replace("*", middle)) == model else named

    def fits(self, model: str) -> bool:
        """Whether the pattern takes the model."""
        if self.suffix is None:
            return model == self.prefix
        long_enough = len(model) >= len(self.prefix) + len(self.suffix)
        return long_enough and model.startswith(self.prefix) and model.endswith(self.suffix)


@dataclass(frozen=True, slots=True)
class _App:
    """What the configuration lets an app use. `sets` None: any."""

    sets: tuple[str, ...] | None
    upstream: Upstream | None
    upstream_key: str | None = field(repr=False)
    record: RecordMode
    record_share: float


class Router:
    """The configuration's upstreams, apps and routes, ready to decide."""

    def __init__(self, settings: Settings) -> None:
        named = {one.name: _configured(one) for one in settings.upstreams}
        self._named = named
        self._rules = [*_aliases(settings), *_patterns(settings, named)]
        self._first = next(iter(named.values())) if named else self._rules[0].upstream
        self._set_rules = [(_fitting(rule.models), rule.set) for rule in settings.routes]
        kept = settings.recorder
        self._apps = {
            app.name: _App(
                app.sets,
                named.get(app.upstream or ""),
                _secret(app.upstream_key),
                kept.record if app.record is None else app.record,
                kept.record_share if app.record_share is None else app.record_share,
            )
            for app in settings.apps
        }
        self._anyone = _App(None if not settings.apps else (), None, None, kept.record, kept.record_share)
        self._by_name = {one.name: one for one in reversed(self.upstreams)}
        self._remembered: dict[str, tuple[Upstream, str | None]] = {}
        self.needs_model = self._rules != [_rule("*", self._first)] or self.translates
        """Whether a body must be held for its model: not with a single upstream that takes all, and as it is."""

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """Every upstream, named ones and those of the model list."""
        return tuple(dict.fromkeys([*self._named.values(), *(rule.upstream for rule in self._rules)]))

    @property
    def models(self) -> Mapping[str, str]:
        """The models that the configuration names, patterns left out, with who has them: a provider or an upstream."""
        found: dict[str, str] = {}
        for rule in self._rules:
            if rule.suffix is None:
                found.setdefault(rule.prefix, _owner(rule.upstream))
        return found

    @property
    def translates(self) -> bool:
        """Whether any upstream is reached through litellm."""
        return any(one.translated is not None for one in self.upstreams)

    def locate(self, path: str) -> Address | None:
        """Return what a raw path addresses; None when it is none that is relayed."""
        return locate(path, self._named)

    def taking(self, model: str) -> str | None:
        """Return the name of the first upstream that takes a model."""
        return next((rule.upstream.name for rule in self._rules if rule.fits(model)), None)

    def leaves_open(self, address: Address, model: str | None) -> bool:
        """Whether path and model leave a choice between upstreams to what else a request names."""
        if address.upstream is not None:
            return False
        return model is None or len({rule.upstream for rule in self._rules if rule.fits(model)}) > 1

    def route(
        self, identity: Identity, address: Address, fields: Fields, model: str | None, *, home: str | None = None
    ) -> Route:
        """Return where a request goes. `fields` are its headers by name, `model` what its body names.

        `home` is the upstream that made what the request names: it goes there, unless its model is not served there.

        Raises:
            ProxyError: 404 for a set the app may not use or a model nobody serves, 400 for a header that is unfit.
        """
        app = self._apps.get(identity.app, self._anyone) if identity.known else self._anyone
        set_name, pin = self._choose_set(app, address, fields, model)
        upstream, sent = self._choose_upstream(app, address, model, home)
        ours = app.upstream_key or upstream.api_key
        return Route(
            set_name=set_name,
            pin=pin,
            upstream=upstream,
            credential=ours if identity.known else None,
            own=not self._apps or not identity.known,
            model=sent,
            trajectory=_client_id(fields.get(b"x-tfgrpo-trajectory")),
            session=address.session or _session(fields),
            group=_client_id(fields.get(b"x-tfgrpo-group")),
            retry=fields.get(b"x-stainless-retry-count", b"0") != b"0",
            record=lowered(app.record, fields.get(HEADER)),
            record_share=app.record_share,
        )

    def _choose_set(self, app: _App, address: Address, fields: Fields, model: str | None) -> tuple[str | None, Pin]:
        asked = fields.get(b"x-tfgrpo-set")
        name, pin = _asked(asked) if asked is not None else (None, None)
        name = name or address.set_name
        if name is not None:
            if app.sets is not None and name not in app.sets:
                raise ProxyError(404, f"there is no experience set {name!r} for this app", code="set_not_found")
            return name, pin
        if app.sets:
            return app.sets[0], pin
        if app.sets is None:
            name = next((name for fits, name in self._set_rules if fits(model or "")), None)
        return name, pin

    def _choose_upstream(
        self, app: _App, address: Address, model: str | None, home: str | None
    ) -> tuple[Upstream, str | None]:
        if address.upstream is not None:
            return self._named[address.upstream], None
        if home is not None and (found := self._at(home, model)) is not None:
            return found
        if model is None:
            return app.upstream or self._first, None
        known = self._remembered.get(model)
        if known is None:
            known = self._serving(model)
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[model] = known
        return known

    def _at(self, home: str, model: str | None) -> tuple[Upstream, str | None] | None:
        upstream = self._by_name.get(home)
        if upstream is None or model is None:
            return None if upstream is None else (upstream, None)
        fits = (rule for rule in self._rules if rule.upstream == upstream and rule.fits(model))
        return next(((upstream, rule.sent(model)) for rule in fits), None)

    def _serving(self, model: str) -> tuple[Upstream, str | None]:
        for rule in self._rules:
            if rule.fits(model):
                return rule.upstream, rule.sent(model)
        raise ProxyError(
            404, f"no upstream of this proxy serves the model {model[:200]!r}", code="model_not_found", param="model"
        )


def _configured(one: UpstreamSettings) -> Upstream:
    way = _translated(one.custom_llm_provider, one.params, one.credentials)
    return Upstream(one.name, one.base_url or "", _secret(one.api_key), way)


def _owner(upstream: Upstream) -> str:
    return upstream.name if upstream.translated is None else upstream.translated.provider


def _translated(provider: str | None, params: Mapping[str, Any], credentials: Credentials) -> Translated | None:
    if provider is None:
        return None
    plain = {name: _secret(value) if isinstance(value, SecretStr) else value for name, value in params.items()}
    return Translated(provider, plain, credentials == "environment")


def _aliases(settings: Settings) -> list[_Rule]:
    rules = []
    for entry in settings.model_list:
        how = entry.litellm_params
        way = _translated(how.litellm_provider, how.params, how.credentials)
        upstream = Upstream(f"model_list:{entry.model_name}", how.address, _secret(how.api_key), way)
        rules.append(_rule(entry.model_name, upstream, how.target))
    return rules


def _patterns(settings: Settings, named: Mapping[str, Upstream]) -> list[_Rule]:
    return [_rule(pattern, named[one.name]) for one in settings.upstreams for pattern in one.models]


def _rule(pattern: str, upstream: Upstream, target: str | None = None) -> _Rule:
    prefix, star, suffix = pattern.partition("*")
    return _Rule(prefix, suffix if star else None, upstream, target)


def _fitting(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    nowhere = Upstream("", "")
    rules = [_rule(pattern, nowhere) for pattern in patterns]
    return lambda model: any(rule.fits(model) for rule in rules)


def _asked(value: bytes) -> tuple[str | None, Pin]:
    """Read `x-tfgrpo-set`: `NAME`, `NAME@VERSION` or `none`."""
    text = value.decode("latin-1").strip()
    if text == "none":
        return None, "none"
    name, at, version = text.partition("@")
    number_fits = not at or (version.isascii() and version.isdecimal() and len(version) <= _LONGEST_VERSION)
    if not SET_NAME.fullmatch(name) or not number_fits:
        raise ProxyError(400, "x-tfgrpo-set takes NAME, NAME@VERSION or none", code="invalid_set", param="x-tfgrpo-set")
    return name, int(version) if at else None


def _session(fields: Fields) -> str | None:
    if _SESSION_HEADERS.isdisjoint(fields):
        return None
    return next((found for name in SESSION_HEADERS if (found := _client_id(fields.get(name))) is not None), None)


def _client_id(value: bytes | None) -> str | None:
    """An id that a client made up; one that does not fit the grammar is as good as none."""
    if value is None:
        return None
    text = value.decode("latin-1")
    return text if ID.fullmatch(text) else None


def _secret(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()
