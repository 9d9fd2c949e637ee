"""The configuration that training and evaluation need: the sections `store` and `training` of `config.yaml`.

It reads YAML, lays `TFGRPO_SECTION__KEY` variables over it and resolves strings `os.environ/NAME`; the proxy's settings
use the same three helpers. It does not know the proxy's sections and does not judge them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from tfgrpo import secret_values
from tfgrpo.errors import UsageError
from tfgrpo.library import Limits
from tfgrpo.modes import Mode
from tfgrpo.retention import RetentionSettings

PREFIX: Final = "TFGRPO_"
DEFAULT_FILE: Final = Path("config.yaml")
REFERENCE: Final = "os.environ/"

Section: TypeAlias = Literal["store", "training", "metrics", "retention"]
"""What a command reads; `metrics` is that key of `training` alone."""


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, but a key that stands in a mapping twice is an error: one of the two would be lost."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; ConstructorError that names a key which is there twice."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {twice!r} stands there twice", node.start_mark
            )
        return super().construct_mapping(node, deep)


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class Price(_Settings):
    """What a model costs, in US dollars for a million tokens.

    `cached` is for prompt tokens that the provider had in its cache, `reasoning` for tokens of thought; without them
    they cost what the others do.
    """

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    reasoning: float | None = Field(default=None, ge=0)


class Model(_Settings):
    """One model and where it is served.

    With a `base_url` it is asked as an OpenAI-compatible endpoint, without one through litellm; `provider` says
    otherwise. `price` takes the place of the published price.
    """

    model: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    provider: Literal["openai", "litellm"] | None = None
    price: Price | None = None

    @field_validator("base_url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        return None if value is None else checked_url(value)


class Splits(_Settings):
    """Shares of a data set's tasks that are kept out of training. Validation: from 100 tasks on."""

    held_out: float = Field(default=0.3, ge=0, lt=1)
    validation: float = Field(default=0.0, ge=0, lt=1)

    @model_validator(mode="after")
    def _leave_some(self) -> Self:
        if self.held_out + self.validation >= 1:
            raise ValueError("held_out and validation leave no task to train on")
        return self


class Gate(_Settings):
    """The held-out comparison of what a run learned with what is deployed."""

    samples: int = Field(default=7, ge=1)
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    margin: float = Field(default=0.02, ge=0, le=1)
    minimum_effect: float = Field(default=0.0, ge=0, le=1)


class GraderSettings(_Settings):
    """A grader by name, with its arguments; None is what the grader does without one.

    `pattern` is for `regex`; `json_schema` (in the file `schema`: a mapping, or the path of a file) for `json_schema`;
    `rubric`, `model` (the optimizer's) and `temperature` for `judge`.
    """

    name: str
    pattern: str | None = None
    json_schema: dict[str, Any] | Path | None = Field(default=None, alias="schema")
    rubric: str | None = None
    model: Model | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)


class MetricSettings(_Settings):
    """How the labels of one metric count: their weight, and the values that stand for 0 and 1."""

    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    worst: float = Field(default=0.0, allow_inf_nan=False)
    best: float = Field(default=1.0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _spans(self) -> Self:
        if self.worst == self.best:
            raise ValueError("worst and best must differ")
        return self


class Training(_Settings):
    """How a set is trained and evaluated."""

    policy: Model = Model()
    optimizer: Model = Model()
    objective: str = ""
    schedule: str | None = None
    cache: Path | None = None
    runner: str = "chat"
    proxy: str | None = None
    rollout_seconds: float = Field(default=600, gt=0)
    ground_truth: Mode = "reward and reference"
    grader: GraderSettings | None = None
    grader_seconds: float = Field(default=60.0, gt=0)
    metrics: dict[str, MetricSettings] = Field(default={"reward": MetricSettings()}, min_length=1)
    group_size: int = Field(default=5, ge=2, le=64)
    epochs: int = Field(default=3, ge=1)
    batch_size: int | None = Field(default=None, ge=1)
    concurrency: int = Field(default=8, ge=1, le=1024)
    temperature: float = Field(default=0.7, ge=0, le=2)
    evaluation_temperature: float = Field(default=0.3, ge=0, le=2)
    optimizer_temperature: float = Field(default=0.3, ge=0, le=2)
    max_words: int = Field(default=32, ge=1)
    max_entries: int = Field(default=50, ge=1)
    max_library_tokens: int = Field(default=2_000, ge=1)
    selection: Literal["lexical"] | None = None
    lessons: int = Field(default=1, ge=1)
    edits: int | None = Field(default=10, ge=1)
    rollout_tokens: int = Field(default=8_000, ge=100)
    harm_confidence: float | None = Field(default=0.7, gt=0.5, lt=1)
    support: float = Field(default=0.017, ge=0, lt=1)
    recipe: Literal["ours", "paper"] = "ours"
    approval: Literal["required"] | None = None
    splits: Splits = Splits()
    gate: Gate = Gate()

    @property
    def budget(self) -> Limits:
        """What one request may be given of a library."""
        return Limits(entries=self.max_entries, words=self.max_words, tokens=self.max_library_tokens)

    @property
    def deployable(self) -> Limits | None:
        """The bound of a library that is deployed; None where each trajectory gets a choice of it."""
        return None if self.selection else self.budget

    @property
    def selected(self) -> Limits | None:
        """The bound that entries are chosen within; None where a library is given whole."""
        return self.budget if self.selection else None

    @field_validator("proxy")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        return None if value is None else checked_url(value)

    @field_validator("grader", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @field_validator("metrics", mode="before")
    @classmethod
    def _weighed(cls, value: Any) -> Any:
        """Take a number for a metric as its weight."""
        if not isinstance(value, dict):
            return value
        return {k: {"weight": v} if isinstance(v, int | float) else v for k, v in value.items()}


class StoreSettings(_Settings):
    """Where everything is kept."""

    url: str = Field(default="sqlite:///data/tfgrpo.db", repr=False)
    """SQLite's file, or a PostgreSQL database; with a password in it, it is shown nowhere."""


class Layered(BaseSettings):
    """A whole configuration. Its layers, file and environment, are laid by `load`; making one reads neither."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the library's signature
        init_settings: PydanticBaseSettingsSource,
        *_: PydanticBaseSettingsSource,
        **__: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take what is passed, and nothing from elsewhere."""
        return (init_settings,)


class Configuration(Layered):
    """The sections of this package."""

    store: StoreSettings = StoreSettings()
    training: Training = Training()
    retention: RetentionSettings = RetentionSettings()
    _elsewhere: tuple[str, ...] = PrivateAttr(default=())

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret of the whole configuration, the sections of the proxy among them, that could be found."""
        return (*secret_values.checked(self), *secret_values.of_url(self.store.url), *self._elsewhere)

    def knowing(self, secrets: tuple[str, ...]) -> Self:
        """Remember the secrets of sections that were not read."""
        self._elsewhere = secrets
        return self

    @property
    def memo(self) -> Path:
        """The directory of the memo of finished calls: `training.cache`, else `memo` beside the store."""
        if self.training.cache is not None:
            return self.training.cache
        try:
            url = make_url(self.store.url)
        except ArgumentError as error:
            raise UsageError("store.url is no database address", field="store.url") from error
        in_file = url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")
        return (Path(str(url.database)).parent if in_file else Path("data")) / "memo"


def load(
    config: Path | None,
    *,
    environ: Mapping[str, str],
    sections: tuple[Section, ...] = ("store", "training"),
) -> Configuration:
    """Return the named sections of `config` (None: `config.yaml` where there is one, else the defaults).

    A section that is not named is neither read nor judged, so that a command without a model needs no key of one.

    Raises:
        UsageError: the file cannot be read, or a key is unknown or unfit; the message names its path.
    """
    values = read(config if config is not None or not DEFAULT_FILE.exists() else DEFAULT_FILE)
    wanted = {"training" if name == "metrics" else name for name in sections}
    chosen: dict[str, Any] = {name: values[name] for name in wanted if values.get(name) is not None}
    chosen = overlay(Configuration, chosen, {k: v for k, v in environ.items() if _section(k) in wanted})
    if "training" not in sections and isinstance(chosen.get("training"), dict):
        chosen["training"] = {k: v for k, v in chosen["training"].items() if k == "metrics"}
    try:
        made = Configuration.model_validate(resolve(chosen, environ))
    except ValidationError as error:
        raise explain(error) from error
    mine = {name: text for name, text in environ.items() if _section(name)}
    return made.knowing((*secret_values.unchecked(values, environ), *secret_values.unchecked(mine, environ)))


def read(config: Path | None) -> dict[str, Any]:
    """Return the mapping that a YAML file holds, {} for None or an empty file; UsageError when it cannot be read."""
    if config is None:
        return {}
    try:
        values = yaml.load(config.read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a safe loader
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{config} cannot be read: {error}", field="config") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{config} is not YAML: {' '.join(str(error).split())}", field="config") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UsageError(f"{config} must hold sections such as 'store:' and 'training:'", field="config")
    return values


def overlay(model: type[BaseSettings], values: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return `values` with each variable `TFGRPO_SECTION__KEY` of the model's sections put in its place.

    Lists and mappings are JSON, a whole section too: `TFGRPO_ROUTES`. An empty variable counts as not set.

    Raises:
        UsageError: a variable names no section, or holds broken JSON.
    """
    mine = {name: text for name, text in environ.items() if _section(name) and text}
    for name in mine:
        if "__" in name and _section(name) not in model.model_fields:
            raise UsageError(f"{name} names the section {_section(name)!r}, which is not known; unset it", field=name)
    source = EnvSettingsSource(model, env_prefix=PREFIX, env_nested_delimiter="__")
    source.env_vars = {name.lower(): text for name, text in mine.items()}
    try:
        return _merged(values, source())
    except SettingsError as error:
        raise UsageError(f"{' '.join(str(error).split())}; lists and mappings are written as JSON") from error


def resolve(value: Any, environ: Mapping[str, str], *, path: str = "") -> Any:
    """Return `value` with every string `os.environ/NAME` in it replaced by that variable.

    Raises:
        UsageError: the variable is not set; the message names it and the path of the key.
    """
    if isinstance(value, dict):
        return {k: resolve(v, environ, path=f"{path}.{k}" if path else str(k)) for k, v in value.items()}
    if isinstance(value, list):
        return [resolve(v, environ, path=f"{path}[{i}]") for i, v in enumerate(value)]
    if not isinstance(value, str) or not value.startswith(REFERENCE):
        return value
    name = value.removeprefix(REFERENCE)
    if name not in environ:
        raise UsageError(f"{path}: the environment variable {name} is not set; export it first", field=path)
    return environ[name]


def checked_url(value: str) -> str:
    """Return an http(s) base URL without a slash at its end; ValueError for anything else, or one with a secret."""
    scheme, _, rest = value.partition("://")
    if scheme not in ("http", "https") or not rest.split("/", 1)[0]:
        raise ValueError("is no http:// or https:// address")
    if "@" in rest.split("/", 1)[0]:
        raise ValueError("must not hold a user or password; use `api_key`")
    if "?" in rest or "#" in rest:
        raise ValueError("must not hold a query or fragment")
    return value.rstrip("/")


def explain(error: ValidationError) -> UsageError:
    """Return the first of a pydantic error's complaints as ours. Never shows a value: it may be a secret."""
    first = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return UsageError(f"{path} is not a known setting; correct or remove it", field=path)
    return UsageError(f"{path}: {first['msg']}", field=path)


def _section(variable: str) -> str:
    """The section that an environment variable names, "" when it does not have the form of ours."""
    name = variable.upper()
    return name.removeprefix(PREFIX).split("__")[0].lower() if name.startswith(PREFIX) else ""


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        known = result.get(key)
        result[key] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return result
