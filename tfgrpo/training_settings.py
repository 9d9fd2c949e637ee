"""The section `training` of the configuration, with the models and graders it names. How a setting is used is known
elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from tfgrpo.library import Limits
from tfgrpo.modes import Mode


def checked_url(value: str) -> str:
    """Return an http(s) base URL without a slash at its end; ValueError for anything else, or one with a secret."""
    scheme, _, rest = value.partition("://")
    if scheme not in ("http", "https") or not rest.split("/", 1)[0]:
        raise ValueError("is no http:// or https:// address; write it with its scheme, as in http://127.0.0.1:9000/v1")
    if "@" in rest.split("/", 1)[0]:
        raise ValueError("must not hold a user or password; use `api_key`")
    if "?" in rest or "#" in rest:
        raise ValueError("must not hold a query or fragment")
    return value.rstrip("/")


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class Price(_Settings):
    """What a model costs, in US dollars for a million tokens.

    `cached` is for prompt tokens that the provider had in its cache, `reasoning` for tokens of thought; without them
    they cost what the others do.
    """

    prompt: float = Field(ge=0)
    """Of the prompt."""
    completion: float = Field(ge=0)
    """Of the answer."""
    cached: float | None = Field(default=None, ge=0)
    """Of prompt tokens that the provider had in its cache; without it they cost what the others do."""
    reasoning: float | None = Field(default=None, ge=0)
    """Of tokens of thought; without it they cost what the others do."""


class Model(_Settings):
    """One model and where it is served.

    With a `base_url` it is asked as an OpenAI-compatible endpoint, without one through litellm; `provider` says
    otherwise. `price` takes the place of the published price.
    """

    model: str | None = None
    """Its name, as the endpoint or litellm knows it (`anthropic/claude-sonnet-4`)."""
    base_url: str | None = None
    """With it the model is asked as an OpenAI-compatible endpoint, without it through litellm."""
    api_key: SecretStr | None = None
    """What the endpoint wants."""
    provider: Literal["openai", "litellm"] | None = None
    """Says otherwise than `base_url` would."""
    price: Price | None = None
    """Takes the place of the published price, in US dollars for a million tokens; an unknown price is shown as
    unknown."""

    @field_validator("base_url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        return None if value is None else checked_url(value)


class Splits(_Settings):
    """Shares of a data set's tasks that are kept out of training. Validation: from 100 tasks on."""

    held_out: float = Field(default=0.3, ge=0, lt=1)
    """Share of a data set's tasks that only the gate sees."""
    validation: float = Field(default=0.0, ge=0, lt=1)
    """Share by which the best epoch-end library is chosen, from 100 tasks on."""

    @model_validator(mode="after")
    def _leave_some(self) -> Self:
        if self.held_out + self.validation >= 1:
            raise ValueError("held_out and validation leave no task to train on")
        return self


class Gate(_Settings):
    """The held-out comparison of what a run learned with what is deployed."""

    samples: int = Field(default=7, ge=1)
    """Samples a task and side, for the gate of a run."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """How sure a verdict's interval is."""
    margin: float = Field(default=0.02, ge=0, le=1)
    """How much worse guarded tasks may be."""
    minimum_effect: float = Field(default=0.0, ge=0, le=1)
    """What a comparison is planned for (0: 0.05); a run's gate says `helps` only of a difference of at least this."""


class GraderSettings(_Settings):
    """A grader by name, with its arguments; None is what the grader does without one.

    `pattern` is for `regex`; `json_schema` (in the file `schema`: a mapping, or the path of a file) for `json_schema`;
    `rubric`, `model` (the optimizer's) and `temperature` for `judge`.
    """

    name: str
    """Its name, or `python:module:function`."""
    pattern: str | None = None
    """For `regex`."""
    json_schema: dict[str, Any] | Path | None = Field(default=None, alias="schema")
    """For `json_schema`: a mapping, or the path of a file."""
    rubric: str | None = None
    """For `judge`: what makes an answer good."""
    model: Model | None = None
    """For `judge`: the optimizer's, where it is left out."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """For `judge`."""


class MetricSettings(_Settings):
    """How the labels of one metric count: their weight, and the values that stand for 0 and 1."""

    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """How much it counts beside the others."""
    worst: float = Field(default=0.0, allow_inf_nan=False)
    """The value that stands for 0."""
    best: float = Field(default=1.0, allow_inf_nan=False)
    """The value that stands for 1."""

    @model_validator(mode="after")
    def _spans(self) -> Self:
        if self.worst == self.best:
            raise ValueError("worst and best must differ")
        return self


class Training(_Settings):
    """How a set is trained and evaluated."""

    policy: Model = Model()
    """The model that answers tasks, for evaluation and for data sets."""
    optimizer: Model = Model()
    """The model that summarises, contrasts and edits, the strongest you can reach; without it the policy."""
    objective: str = ""
    """One or two sentences: what the agent does, what to learn."""
    schedule: str | None = None
    """`every 6h`, `every 30m`, or a cron line (local time): train beside the proxy, one run at a time for a store."""
    cache: Path | None = None
    """Where finished model calls are kept, so that a run that was interrupted goes on without paying again; without it
    in `memo` beside the store."""
    runner: str = "chat"
    """What makes a fresh rollout: one completion, or your agent as `python:module:function`."""
    proxy: str | None = None
    """The base URL, such as `http://127.0.0.1:8000/v1`, of a running proxy on the same store, for your agent."""
    rollout_seconds: float = Field(default=600, gt=0)
    """The longest a rollout of your agent may take."""
    ground_truth: Mode = "reward and reference"
    """What the optimizer is shown of how rollouts were judged; also `reward only`, `neither`."""
    grader: GraderSettings | None = None
    """The default of `--grader`: a name, or `name` with arguments, of which `pattern`, `schema`, `rubric`, `model` and
    `temperature` are there."""
    grader_seconds: float = Field(default=60.0, gt=0)
    """The longest a grader may take for one rollout; the rollout is then left unjudged."""
    metrics: dict[str, MetricSettings] = Field(default={"reward": MetricSettings()}, min_length=1)
    """Which metrics of labels make the reward of logged rollouts: each its `weight`, or `{weight, worst, best}` with
    the values that stand for 0 and 1."""
    group_size: int = Field(default=5, ge=2, le=64)
    """Rollouts of a task, for data sets."""
    epochs: int = Field(default=3, ge=1)
    """How often a data set is gone through."""
    batch_size: int | None = Field(default=None, ge=1)
    """Groups that one consolidating call sees; none: 50, with `recipe: paper` 100."""
    concurrency: int = Field(default=8, ge=1, le=1024)
    """Model calls at once, at most; fewer after a 429, which pauses all calls of the model."""
    temperature: float = Field(default=0.7, ge=0, le=2)
    """Of rollouts that are learned from."""
    evaluation_temperature: float = Field(default=0.3, ge=0, le=2)
    """Of rollouts that are compared."""
    optimizer_temperature: float = Field(default=0.3, ge=0, le=2)
    """Of the optimizer's calls."""
    max_words: int = Field(default=32, ge=1)
    """The longest a lesson may be."""
    max_entries: int = Field(default=50, ge=1)
    """The most entries of a library."""
    max_library_tokens: int = Field(default=2_000, ge=1)
    """The longest a library may be, counted roughly (4 characters a token). One that is over this or `max_entries` is
    not deployed."""
    selection: Literal["lexical"] | None = None
    """`lexical`: a larger library may be deployed; each trajectory gets the entries most relevant to its first request
    (BM25) within `max_entries` and `max_library_tokens`, and keeps them. Training, evaluation and serving choose
    alike."""
    lessons: int = Field(default=1, ge=1)
    """The most lessons of one group."""
    edits: int | None = Field(default=10, ge=1)
    """The most edits of one step, and at most half of the entries are deleted; null: no bound."""
    rollout_tokens: int = Field(default=8_000, ge=100)
    """The longest a rollout may be in a prompt; of longer ones head and tail are kept, tool results are cut first."""
    harm_confidence: float | None = Field(default=0.7, gt=0.5, lt=1)
    """How sure harm must be for a change to be taken back inside a run, one-sided; none: no trial."""
    support: float = Field(default=0.017, ge=0, lt=1)
    """Share of the groups whose lessons must speak of an entry that a run made, and at least 3, or it is taken back."""
    recipe: Literal["ours", "paper"] = "ours"
    """`paper` turns every departure from the paper back."""
    approval: Literal["required"] | None = None
    """`required`: a version that a run made is deployed, as live or as candidate, only after `tfgrpo sets approve` or
    the admin API's `approve`; until then 409."""
    splits: Splits = Splits()
    """How a data set is split."""
    gate: Gate = Gate()
    """How what was learned is compared with what is deployed."""

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
