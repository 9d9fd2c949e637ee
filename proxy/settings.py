"""`config.yaml` and the environment, read once and checked once, as frozen values.

The sections and keys are those of the documentation; an unknown one refuses the start and is named with its path.
Secrets are `SecretStr`, so that no log and no print shows them. How a setting is used is known elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FilePath,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from proxy.addresses import is_loopback
from proxy.experiment_settings import ExperimentSettings, PromotionSettings
from proxy.model_list import OPENAI_BASE_URL, Credentials, LitellmParams, ModelEntry, Parameters
from proxy.outage_settings import OutageSettings
from proxy.record_modes import Mode, Share
from proxy.telemetry_settings import TelemetrySettings
from tfgrpo.configuration import (
    Layered,
    SafetySettings,
    StoreSettings,
    Training,
    checked_url,
    explain,
    found,
    overlay,
    read,
    resolve,
    whence,
)
from tfgrpo.retention import RetentionSettings
from tfgrpo.trajectories import IGNORED_BY_DEFAULT

DEFAULT_APP: Final = "default"
MIB: Final = 1024 * 1024
SET_NAME: Final = re.compile(r"(?!none$)[a-z0-9][a-z0-9._-]{0,63}")
RESERVED_NAMES: Final = frozenset({"admin", "feedback", "health", "metrics", "session", "set", "status", "v1"})


_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@*\sA-Z]+")
HASHED_KEY: Final = "sha256:"
"""How a key begins that stands in the configuration as its SHA-256."""

_HASHED: Final = re.compile(HASHED_KEY + r"[0-9a-f]{64}")


def _patterns(value: tuple[str, ...]) -> tuple[str, ...]:
    if any(pattern.count("*") > 1 for pattern in value):
        raise ValueError("at most one `*` can stand in a model's pattern")
    return value


Patterns = Annotated[tuple[str, ...], AfterValidator(_patterns)]
"""Names of models; one `*` in each may stand for any text."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Server(_Section):
    """Where the proxy listens and what it takes."""

    host: str = "127.0.0.1"
    """Where the proxy listens."""
    port: int = Field(default=8000, ge=0, le=65535)
    """Its port; 0: any that is free."""
    workers: int = Field(default=1, ge=1, le=256)
    """How many processes serve; each takes one core."""
    admin_key: SecretStr | tuple[SecretStr, ...] | None = None
    """The key of `/admin`; a list of two while one takes the place of the other. Without it the control plane answers
    to this machine only."""
    bypass: bool = False
    """A pure relay: nothing is injected and nothing recorded. `PUT /admin/api/bypass` does the same without a restart,
    unless this is true."""
    max_in_flight: int | None = Field(default=None, ge=1)
    """Requests at once in one worker; one more is answered 503."""
    drain_seconds: int = Field(default=30, ge=0)
    """How long requests in flight may take to finish when the proxy is stopped."""
    pass_through: bool = False
    """With apps: let unknown keys through, as the app `default`, to upstreams that take the client's own key."""
    trust_env: bool = False
    """Honour HTTP_PROXY, HTTPS_PROXY and NO_PROXY on the way to upstreams."""
    ca_file: FilePath | None = None
    """Certificates to trust besides the usual ones."""
    max_body_bytes: int = Field(default=64 * MIB, ge=1024)
    """The largest request body of an API that is read; a larger one is answered 413."""

    cors_origins: tuple[str, ...] = ()
    """Pages that may call the proxy from a browser: exact origins (`https://app.example`), or `["*"]`, which allows no
    credentials. Empty: no headers for browsers, and OPTIONS is relayed like any other method. The control plane never
    gets any."""

    @property
    def admin_keys(self) -> tuple[SecretStr, ...]:
        """The admin keys that are valid now."""
        if self.admin_key is None:
            return ()
        return self.admin_key if isinstance(self.admin_key, tuple) else (self.admin_key,)

    @field_validator("cors_origins")
    @classmethod
    def _are_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ValueError(f"{origin!r} is no origin: scheme://host or scheme://host:port, in lower case, or '*'")
        if "*" in value and len(value) > 1:
            raise ValueError("'*' stands alone: it allows every origin")
        return value

    @field_validator("admin_key")
    @classmethod
    def _keys_fit(cls, value: SecretStr | tuple[SecretStr, ...] | None) -> SecretStr | tuple[SecretStr, ...] | None:
        keys = value if isinstance(value, tuple) else () if value is None else (value,)
        _at_most_two(keys)
        if any(not key.get_secret_value().strip() for key in keys):
            raise ValueError("an admin key must not be empty; leave it out to serve this machine only")
        return value


def _at_most_two(keys: tuple[SecretStr, ...]) -> None:
    if len(keys) > 2:  # noqa: PLR2004 - the old one and the new one
        raise ValueError("at most two keys can be valid at once: the old one and the one that takes its place")


def _filled(value: SecretStr | None) -> SecretStr | None:
    if value is not None and not value.get_secret_value().strip():
        raise ValueError("must not be empty; leave it out if there is none")
    return value


Key = Annotated[SecretStr, AfterValidator(_filled)]
"""A secret that is not empty: an unset variable in its place must not open or close anything."""


class Upstream(_Section):
    """A provider: requests whose model fits one of its patterns go there."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
    """Its name: in paths (`/NAME/v1`), records and metrics."""
    base_url: Annotated[
        str | None, BeforeValidator(lambda value: checked_url(value) if isinstance(value, str) else value)
    ] = None
    """Takes the place of `/v1`. Needed, but with `provider: litellm`: then it is the provider's address, where litellm
    does not know it."""
    models: Patterns = ("*",)
    """Patterns of the models that go there; one `*` in each stands for any text."""
    api_key: Key | None = None
    """Absent: the client's own credential passes through."""
    provider: Literal["litellm"] | None = None
    """`litellm`: translate for a provider that does not speak the OpenAI API. Absent: relay."""
    custom_llm_provider: str | None = None
    """With `provider: litellm`: the provider as litellm calls it (`anthropic`, `gemini`, `bedrock`, `vertex_ai`,
    `ollama_chat`, ...). No model's name can choose another."""
    params: Parameters
    """With `provider: litellm`: what else the provider needs (`api_version`, `aws_region_name`, `vertex_project`, ...):
    texts, numbers, true or false; texts are never shown."""
    credentials: Credentials = "client"
    """With `provider: litellm` and no `api_key`: `client` hands over the key that the client sent, and refuses with 401
    a request that has none; `environment` keeps the client's key here, and litellm uses `params`, its variables
    (`ANTHROPIC_API_KEY`) or the machine's role."""

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Upstream:
        if self.provider == "litellm":
            if self.custom_llm_provider is None:
                raise ValueError("needs `custom_llm_provider`, the provider as litellm calls it, such as anthropic")
            return self
        if self.base_url is None:
            raise ValueError("needs a `base_url`")
        if self.custom_llm_provider is not None or self.params or self.credentials != "client":
            raise ValueError("custom_llm_provider, params and credentials take `provider: litellm`")
        return self

    @field_validator("name")
    @classmethod
    def _is_free(cls, value: str) -> str:
        if value in RESERVED_NAMES:
            raise ValueError(f"{value!r} is the name of a path of the proxy's own; choose another")
        return value


class App(_Section):
    """A client application: its keys, and what it may use."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    """Its name, in records and metrics."""
    keys: tuple[Key, ...] = Field(min_length=1)
    """One, or two while one takes the place of the other. `sha256:HEX` stands for the key with that SHA-256 (`printf %s
    KEY | sha256sum`), so that the file holds no key."""
    feedback_key: Key | None = None
    """A key that may label this app's exchanges and do nothing else."""
    upstream: str | None = None
    """The upstream of its requests that name no model."""
    upstream_key: Key | None = None
    """What it pays upstreams with, in place of their `api_key`."""
    sets: tuple[str, ...] = ()
    """The experience sets it may use; the first is what its requests get when nobody names one."""
    teaches: bool = False
    """Whether its traffic may be learned from, for the sets it may use."""
    record: Mode | None = None
    """How much of its exchanges is recorded; None: as `recorder.record` says."""
    record_share: Share | None = None
    """Of how many of its trajectories the bodies are recorded; None: as `recorder.record_share` says."""

    @field_validator("name")
    @classmethod
    def _is_free(cls, value: str) -> str:
        if value == DEFAULT_APP:
            raise ValueError(f"{value!r} is the app of traffic without a key of ours; choose another name")
        return value

    @field_validator("keys")
    @classmethod
    def _keys_fit(cls, value: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        _at_most_two(value)
        for key in value:
            text = key.get_secret_value()
            if text.startswith(HASHED_KEY) and not _HASHED.fullmatch(text):
                raise ValueError("a hashed key is sha256: and 64 digits 0-9a-f")
        return value


class RouteRule(_Section):
    """Which requests get a set when nobody names one."""

    set: str
    """The set that these requests get."""
    models: Patterns = ("*",)
    """Patterns of their models; one `*` in each stands for any text."""


class Timeouts(_Section):
    """How long an upstream may take, in seconds."""

    connect: float = Field(default=10, gt=0)
    """For names, TCP and TLS."""
    first_byte: float = Field(default=600, gt=0)
    """From the whole request sent to the first byte of the answer, and while it takes nothing of a request; then the
    client gets a 504."""
    idle: float = Field(default=600, gt=0)
    """Between two pieces of an answer; then the client's stream is broken."""
    total: float | None = Field(default=None, gt=0)
    """The whole exchange from the request's arrival (of an API that is read: from the end of its body) to the answer's
    end, the client's own pace included. Without it as long as it takes: a stream may rightly take hours."""


class Grouping(_Section):
    """How first requests are recognised as the same task."""

    ignore: tuple[str, ...] = IGNORED_BY_DEFAULT
    """Regular expressions whose matches do not count: without the setting dates, times, UUIDs and epoch stamps."""
    system: bool = True
    """Whether the system text counts."""

    @property
    def patterns(self) -> tuple[re.Pattern[str], ...]:
        """`ignore`, compiled."""
        return tuple(re.compile(text) for text in self.ignore)

    @field_validator("ignore")
    @classmethod
    def _compiles(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            try:
                re.compile(text)
            except re.error as error:
                raise ValueError(f"{text!r} is no regular expression: {error}") from error
        return value


class RecorderSettings(_Section):
    """How much of the traffic may wait in memory for the store."""

    queue_bytes: int = Field(default=64 * MIB, ge=MIB)
    """How much may wait in memory for the store, with the copies of requests in flight (beyond the first 32 KiB of each
    body); what does not fit is cut or dropped."""
    body_bytes: int = Field(default=8 * MIB, ge=1024)
    """What is kept of each body; a longer one is marked as truncated and not learned from."""
    record: Mode = "full"
    """How much of an exchange is recorded: `off`, `metadata` (all but the bodies) or `full`."""
    record_share: Share = 1.0
    """Of how many trajectories the bodies are recorded, drawn for each; labels and metadata are kept of all."""


class Settings(Layered):
    """Everything that can be configured."""

    server: Server = Server()
    store: StoreSettings = StoreSettings()
    upstreams: tuple[Upstream, ...] = ()
    model_list: tuple[ModelEntry, ...] = ()
    apps: tuple[App, ...] = ()
    routes: tuple[RouteRule, ...] = ()
    timeouts: Timeouts = Timeouts()
    grouping: Grouping = Grouping()
    recorder: RecorderSettings = RecorderSettings()
    outage: OutageSettings = OutageSettings()
    training: Training = Field(default_factory=Training)
    experiment: ExperimentSettings = ExperimentSettings()
    promotion: PromotionSettings = PromotionSettings()
    retention: RetentionSettings = RetentionSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    safety: SafetySettings = SafetySettings()

    @model_validator(mode="before")
    @classmethod
    def _default_upstream(cls, values: Any) -> Any:
        # With a model_list alone, a model it does not name must not go out to an address nobody configured.
        if isinstance(values, dict) and not values.get("upstreams") and not values.get("model_list"):
            return {**values, "upstreams": [{"name": "openai", "base_url": OPENAI_BASE_URL}]}
        return values

    @model_validator(mode="after")
    def _fits_together(self) -> Settings:
        _unique("upstreams", [upstream.name for upstream in self.upstreams])
        _unique("apps", [app.name for app in self.apps])
        keys = [key for app in self.apps for key in (*app.keys, app.feedback_key) if key is not None]
        _unique("apps keys", [key.get_secret_value() for key in keys], secret=True)
        names = {upstream.name for upstream in self.upstreams}
        for app in self.apps:
            if app.upstream is not None and app.upstream not in names:
                raise ValueError(f"apps: {app.name!r} names the upstream {app.upstream!r}, which is not configured")
        sets = [("routes", rule.set) for rule in self.routes]
        sets += [("apps", name) for app in self.apps for name in app.sets]
        for where, name in sets:
            if not SET_NAME.fullmatch(name):
                raise ValueError(
                    f"{where}: {name!r} is no name of a set: lower-case letters, digits, '.', '_' and '-', at most 64"
                )
        self._guards_its_keys()
        return self

    def _guards_its_keys(self) -> None:
        paid = [u.name for u in self.upstreams if _pays(u)]
        paid += [entry.model_name for entry in self.model_list if _pays(entry.litellm_params)]
        if paid and not self.apps and not is_loopback(self.server.host):
            raise ValueError(
                f"server.host is {self.server.host!r} and {paid[0]!r} has an api_key or credentials of its own: anyone "
                "who reaches the proxy could spend them; configure `apps` with keys, or listen on 127.0.0.1"
            )


def load(config: Path | None, *, environ: Mapping[str, str]) -> Settings:
    """Read a configuration file (None: `config.yaml` where there is one) with the environment laid over it.

    Raises:
        UsageError: It cannot be read, or a key is unknown or unfit; the message names its path and place.
    """
    config = found(config)
    values = overlay(Settings, read(config), environ)
    resolved = resolve({key: value for key, value in values.items() if value is not None}, environ)
    try:
        return Settings.model_validate(resolved)
    except ValidationError as error:
        raise explain(error, Settings, whence(config, environ)) from error


def shown(settings: Settings) -> dict[str, Any]:
    """The settings as plain values for a person to read, with every secret masked."""
    values: dict[str, Any] = settings.model_dump(mode="json")
    values["store"]["url"] = without_password(settings.store.url)
    return values


def without_password(url: str) -> str:
    """A database's address as it may be shown."""
    masked = re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", url)
    return re.sub(r"([?&][^=&]*password)=[^&]*", r"\1=***", masked, flags=re.IGNORECASE)


def _pays(way: Upstream | LitellmParams) -> bool:
    """Whether requests may be paid with something that is not the client's."""
    secret = any(re.search("key|secret|token|credential|password", name) for name in way.params)
    return way.api_key is not None or way.credentials == "environment" or secret


def _unique(what: str, names: list[str], *, secret: bool = False) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{what}: the same {'key' if secret else repr(name)} stands there twice")
