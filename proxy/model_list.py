"""LiteLLM's `model_list`, understood as it is: which name a client uses, and which model of which endpoint it means.

An entry is taken or refused at the start, with the reason; no request ever finds out. Only endpoints that speak the
OpenAI API are reached from here.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, SecretStr, field_validator, model_validator

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

_NOT_ACTED_ON: Final = frozenset(
    {"rpm", "tpm", "weight", "order", "tags", "timeout", "stream_timeout", "max_retries", "max_parallel_requests"}
    | {"input_cost_per_token", "output_cost_per_token"}
)
"""Parameters that never change what is sent: accepted, so that a LiteLLM file works, and reported as without effect."""


class LitellmParams(BaseModel):
    """How a model is reached."""

    model_config = ConfigDict(frozen=True, extra="allow")

    model: str
    api_base: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    custom_llm_provider: str | None = None

    @field_validator("api_base", "base_url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        return None if value is None else checked_url(value)

    @model_validator(mode="after")
    def _is_openai_like(self) -> LitellmParams:
        if self.api_base is None and self.base_url is None and self._provider() != "openai":
            raise ValueError(f"{self.model!r} needs an `api_base`: the address of an OpenAI-compatible endpoint")
        if self._provider() in _OTHER_PROVIDERS:
            raise ValueError(
                f"provider {self._provider()!r} is not reached by this version; name an OpenAI-compatible endpoint "
                "with `api_base` and write the model as `openai/NAME`"
            )
        unknown = sorted(set(self.model_extra or ()) - _NOT_ACTED_ON)
        if unknown:
            raise ValueError(f"{unknown[0]} is not supported in litellm_params: it would change requests; remove it")
        return self

    @property
    def target(self) -> str:
        """The model's name as the endpoint knows it; it may hold the `*` of a pattern."""
        prefix, slash, rest = self.model.partition("/")
        return rest if slash and prefix in _OPENAI_LIKE else self.model

    @property
    def address(self) -> str:
        """The base URL, without a slash at its end."""
        return self.api_base or self.base_url or OPENAI_BASE_URL

    @property
    def without_effect(self) -> list[str]:
        """The parameters that are accepted and do nothing here."""
        return sorted(self.model_extra or ())

    def _provider(self) -> str:
        if self.custom_llm_provider is not None:
            return "openai" if self.custom_llm_provider in _OPENAI_LIKE else self.custom_llm_provider
        prefix, slash, _ = self.model.partition("/")
        if slash and prefix in _OTHER_PROVIDERS:
            return prefix
        return "openai" if not slash or prefix == "openai" else ""


class ModelEntry(BaseModel):
    """One entry: the name clients use (`*` stands for any text) and what it means."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    model_name: str
    litellm_params: LitellmParams
    model_info: dict[str, Any] | None = None
    """LiteLLM's notes on a model; they change nothing here."""

    @model_validator(mode="after")
    def _patterns_fit(self) -> ModelEntry:
        if self.litellm_params.target.count("*") > 1 or self.model_name.count("*") > 1:
            raise ValueError("at most one `*` can stand in a model's name")
        if "*" in self.litellm_params.target and "*" not in self.model_name:
            raise ValueError("litellm_params.model holds a `*` but model_name does not: there is nothing to put there")
        return self
