"""The configuration that training and evaluation need: the sections `store` and `training` of `config.yaml`.

It reads YAML, lays `TFGRPO_SECTION__KEY` variables over it and resolves strings `os.environ/NAME`; the proxy's settings
use the same three helpers. It does not know the proxy's sections and does not judge them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError
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
from tfgrpo.complaints import explain as explain
from tfgrpo.errors import UsageError
from tfgrpo.retention import RetentionSettings
from tfgrpo.safety_settings import USUAL as USUAL
from tfgrpo.safety_settings import SafetySettings as SafetySettings
from tfgrpo.safety_settings import TeachingApp as TeachingApp
from tfgrpo.training_settings import Gate as Gate
from tfgrpo.training_settings import GraderSettings as GraderSettings
from tfgrpo.training_settings import MetricSettings as MetricSettings
from tfgrpo.training_settings import Model as Model
from tfgrpo.training_settings import Price as Price
from tfgrpo.training_settings import Splits as Splits
from tfgrpo.training_settings import Training as Training
from tfgrpo.training_settings import checked_url as checked_url

PREFIX: Final = "TFGRPO_"
DEFAULT_FILE: Final = Path("config.yaml")
REFERENCE: Final = "os.environ/"

Section: TypeAlias = Literal["store", "training", "metrics", "retention", "safety", "apps"]
"""What a command reads; `metrics` is that key of `training` alone, `apps` what they say of teaching."""


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


class StoreSettings(BaseModel):
    """Where everything is kept."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(default="sqlite:///data/tfgrpo.db", repr=False)
    """Where everything is kept: SQLite (in WAL mode, on a local disk), or PostgreSQL for proxies on several machines:
    `postgresql+psycopg://USER:PASSWORD@HOST/NAME`. The database must exist; its tables are made at the first start. The
    address is shown without its password."""


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
    safety: SafetySettings = SafetySettings()
    apps: tuple[TeachingApp, ...] = ()
    _elsewhere: tuple[str, ...] = PrivateAttr(default=())

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret of the whole configuration, the sections of the proxy among them, that could be found."""
        return (*secret_values.of(self, store=self.store.url), *self._elsewhere)

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
    config = found(config)
    values = read(config)
    wanted = {"training" if name == "metrics" else name for name in sections}
    chosen: dict[str, Any] = {name: values[name] for name in wanted if values.get(name) is not None}
    chosen = overlay(Configuration, chosen, {k: v for k, v in environ.items() if _section(k) in wanted})
    if "training" not in sections and isinstance(chosen.get("training"), dict):
        chosen["training"] = {k: v for k, v in chosen["training"].items() if k == "metrics"}
    if isinstance(chosen.get("apps"), list):
        chosen["apps"] = [_taught_by(app) for app in chosen["apps"]]
    try:
        made = Configuration.model_validate(resolve(chosen, environ))
    except ValidationError as error:
        raise explain(error, Configuration, whence(config, environ)) from error
    mine = {name: text for name, text in environ.items() if _section(name)}
    return made.knowing((*secret_values.unchecked(values, environ), *secret_values.unchecked(mine, environ)))


def found(config: Path | None) -> Path | None:
    """Return the file to read: the one that was named, else `config.yaml` where there is one."""
    return config if config is not None or not DEFAULT_FILE.exists() else DEFAULT_FILE


def whence(config: Path | None, environ: Mapping[str, str]) -> Callable[[str], str]:
    """Return what says of a path where it was set: in the file, or by which variable."""

    def said(path: str) -> str:
        names = [path.upper().split("[")[0].replace(".", "__")]
        while "__" in names[-1]:
            names.append(names[-1].rpartition("__")[0])
        by = {name.upper(): name for name, text in environ.items() if text}
        variable = next((by[PREFIX + name] for name in names if PREFIX + name in by), None)
        if variable is not None:
            return f" (from {variable})"
        return "" if config is None else f" in {config.name}"

    return said


def read(config: Path | None) -> dict[str, Any]:
    """Return the mapping that a YAML file holds, {} for None or an empty file; UsageError when it cannot be read."""
    if config is None:
        return {}
    try:
        values = yaml.load(config.read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a safe loader
        json.dumps(values, default=str, skipkeys=True)
    except OSError as error:
        said = f"{config} cannot be read: {error.strerror}; name another with --config"
        raise UsageError(said, field="config") from error
    except UnicodeDecodeError as error:
        said = f"{config} cannot be read: byte {error.start} is no UTF-8; save it as UTF-8"
        raise UsageError(said, field="config") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{config} is not YAML: {_fault(error)}", field="config") from error
    except (ValueError, RecursionError) as error:
        said = f"{config} is nested too deeply, or an alias (`*name`) in it holds itself"
        raise UsageError(said, field="config") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UsageError(f"{config} must hold sections such as 'store:' and 'training:'", field="config")
    return values


def _fault(error: yaml.YAMLError) -> str:
    """What YAML's reader says, with the line and column in front."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return " ".join(str(error).split())
    said = f"line {mark.line + 1}, column {mark.column + 1}: {getattr(error, 'problem', None)}"
    began = getattr(error, "context_mark", None)
    return said if began is None else f"{said} ({getattr(error, 'context', '')} that begins in line {began.line + 1})"


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
        raise _no_json(mine, str(error)) from error


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


def _no_json(variables: Mapping[str, str], told: str) -> UsageError:
    """Which variable it is; pydantic names its section or last part, and no value."""
    field = re.search(r'field "(\w+)"', told)
    part = "" if field is None else field[1]
    near = [one for one in variables if _section(one) == part or one.lower().endswith(f"_{part}")]
    name = next((one for one in near if variables[one][0] in "[{"), next(iter(near), PREFIX))
    return UsageError(f"{name} is no JSON, and lists and mappings are written as JSON; correct it", field=name)


def _taught_by(app: Any) -> Any:
    """An app without its keys: a variable that holds one need not be set where a set is trained."""
    return {k: v for k, v in app.items() if k in TeachingApp.model_fields} if isinstance(app, dict) else app


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
