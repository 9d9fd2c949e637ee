"""LiteLLM's `model_list`, understood as it is: which name a client uses, and which model of which endpoint it means.

An entry is taken or refused at the start, with the reason; no request ever finds out. An entry of a provider that does
not speak the OpenAI API is one for `litellm_upstream`; which parameters that may be given is said here.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from tfgrpo.configuration import checked_url

OPENAI_BASE_URL: Final = "https://api.openai.com/v1"

_OPENAI_LIKE: Final = frozenset({"openai", "custom_openai", "openai_like", "hosted_vllm", "lm_studio", "llamafile"})
"""Provider prefixes for endpoints that speak the OpenAI API: cut off, the rest is the model's name."""

_OTHER_PROVIDERS: Final = frozenset(
    """
    ai21 anthropic azure azure_ai azure_text baseten bedrock cerebras cloudflare codestral cohere cohere_chat databricks
    deepinfra deepseek fireworks_ai friendliai galadriel gemini github github_copilot gradient_ai groq huggingface
    infinity jina_ai litellm_proxy mistral nebius nlp_cloud nvidia_nim oci ollama ollama_chat openrouter perplexity
    petals predibase replicate sagemaker sagemaker_chat sambanova snowflake text-completion-openai together_ai triton
    vertex_ai vertex_ai_beta volcengine voyage watsonx watsonx_text xai xinference
    """.split()  # noqa: SIM905 - sixty words read best as text
)
"""Provider prefixes that LiteLLM reaches through an API or an address of their own."""

_NEVER_PARAMETERS: Final = frozenset(
    """
    api_base api_key base_url cache callbacks context_window_fallback_dict custom_llm_provider drop_params
    additional_drop_params allowed_openai_params caching failure_callback fallbacks input messages mock_response
    mock_timeout mock_tool_calls model model_list modify_params num_retries prompt retry_policy retry_strategy stream
    stream_options success_callback system timeout logger_fn litellm_system_prompt prompt_id guardrails
    """.split()  # noqa: SIM905 - as above
)
"""What litellm obeys and the proxy decides, or must not be: each has a setting of its own, or breaks a promise."""

_NOT_ACTED_ON: Final = frozenset(
    {"rpm", "tpm", "weight", "order", "tags", "timeout", "stream_timeout", "max_retries", "max_parallel_requests"}
    | {"input_cost_per_token", "output_cost_per_token"}
)
"""Parameters that never change what is sent: accepted, so that a LiteLLM file works, and reported as without effect."""


def _hidden(value: Any) -> Any:
    """Take any text for a secret: which parameters of a provider are keys is the provider's business."""
    return SecretStr(value) if isinstance(value, str) else value


def _passable(value: dict[str, Any]) -> dict[str, Any]:
    for name, one in value.items():
        if name in _NEVER_PARAMETERS:
            raise ValueError(f"{name} is not supported as a parameter of litellm: it would change requests; remove it")
        if not isinstance(one, SecretStr | bool | int | float):
            raise ValueError(f"{name} must be a text, a number, true or false")  # noqa: TRY004 - what pydantic reads
    return value


Parameters: TypeAlias = Annotated[
    dict[str, Annotated[Any, BeforeValidator(_hidden)]], AfterValidator(_passable), Field(default_factory=dict)
]
"""What a provider needs beside an address and a key (`api_version`, `aws_region_name`, ...): texts are secrets."""

Credentials: TypeAlias = Literal["client", "environment"]
"""Who pays where there is no `api_key`: the client's own key, or what litellm finds in parameters and environment."""


class LitellmParams(BaseModel):
    """How a model is reached."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, Annotated[Any, BeforeValidator(_hidden)]]

    model: str
    """The provider's prefix and the model's name, in LiteLLM's spelling."""
    api_base: str | None = None
    """The endpoint's address."""
    base_url: str | None = None
    """The same, by its other name."""
    api_key: SecretStr | None = None
    """What the endpoint wants; without it the client's own credential passes through."""
    custom_llm_provider: str | None = None
    """The provider, where the name's prefix does not say it."""
    credentials: Credentials = "client"
    """As in `upstreams`, for providers behind litellm."""

    @field_validator("api_base", "base_url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        return None if value is None else checked_url(value)

    @model_validator(mode="after")
    def _can_be_reached(self) -> LitellmParams:
        if self.litellm_provider is not None:
            _passable(self.params)
            return self
        if self.api_base is None and self.base_url is None and not self._is_openai():
            raise ValueError(f"{self.model!r} needs an `api_base`: the address of an OpenAI-compatible endpoint")
        if self.credentials != "client":
            raise ValueError("credentials is for providers that litellm reaches; give an `api_key`")
        if self.params:
            name = min(self.params)
            raise ValueError(f"{name} is not supported in litellm_params: it would change requests; remove it")
        return self

    @property
    def litellm_provider(self) -> str | None:
        """The provider that litellm translates for; None: the endpoint speaks the OpenAI API and is relayed to."""
        if self.custom_llm_provider is not None:
            return None if self.custom_llm_provider in _OPENAI_LIKE else self.custom_llm_provider
        prefix, slash, _ = self.model.partition("/")
        return prefix if slash and prefix in _OTHER_PROVIDERS else None

    @property
    def params(self) -> dict[str, Any]:
        """What else the provider needs."""
        return {name: value for name, value in (self.model_extra or {}).items() if name not in _NOT_ACTED_ON}

    @property
    def target(self) -> str:
        """The model's name as the endpoint knows it; it may hold the `*` of a pattern."""
        prefix, slash, rest = self.model.partition("/")
        return rest if slash and (prefix in _OPENAI_LIKE or prefix == self.litellm_provider) else self.model

    @property
    def address(self) -> str:
        """The base URL, without a slash at its end; empty: the one that litellm knows."""
        known = OPENAI_BASE_URL if self.litellm_provider is None else ""
        return self.api_base or self.base_url or known

    @property
    def without_effect(self) -> list[str]:
        """The parameters that are accepted and do nothing here."""
        return sorted(_NOT_ACTED_ON.intersection(self.model_extra or ()))

    def _is_openai(self) -> bool:
        if self.custom_llm_provider is not None:
            return True
        prefix, slash, _ = self.model.partition("/")
        return not slash or prefix == "openai"


class ModelEntry(BaseModel):
    """One entry: the name clients use (`*` stands for any text) and what it means."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    model_name: str
    """What clients ask for; `*` stands for any text."""
    litellm_params: LitellmParams
    """What it means; other parameters of a provider behind litellm are its `params`."""
    model_info: dict[str, Any] | None = None
    """LiteLLM's notes on a model; they change nothing here."""

    @model_validator(mode="after")
    def _patterns_fit(self) -> ModelEntry:
        if self.litellm_params.target.count("*") > 1 or self.model_name.count("*") > 1:
            raise ValueError("at most one `*` can stand in a model's name")
        if "*" in self.litellm_params.target and "*" not in self.model_name:
            raise ValueError("litellm_params.model holds a `*` but model_name does not: there is nothing to put there")
        return self
