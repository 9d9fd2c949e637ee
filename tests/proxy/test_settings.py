from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from proxy.routing import Router
from proxy.settings import Settings, load, shown
from tfgrpo.errors import UsageError

PARAMS = {"model": "openai/gpt-4o", "api_base": "http://127.0.0.1:9/v1"}


def written(folder: Path, **sections: Any) -> Path:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(sections))
    return path


def refused(folder: Path, environ: dict[str, str] | None = None, **sections: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        load(written(folder, **sections), environ=environ or {})
    return caught.value


def test_without_a_file_the_upstream_is_openai(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load(None, environ={})
    assert [(one.base_url, one.api_key) for one in settings.upstreams] == [("https://api.openai.com/v1", None)]


def test_by_default_an_upstream_may_take_as_long_as_an_sdk_waits() -> None:
    waits = Settings().timeouts
    assert min(waits.first_byte, waits.idle) >= 600
    assert waits.total is None


def test_the_shipped_file_says_what_the_defaults_are() -> None:
    shipped = Path(__file__).parent.parent.parent / "config.yaml"
    assert load(shipped, environ={}) == Settings()


@pytest.mark.parametrize(
    ("sections", "path"),
    [
        ({"server": {"prot": 1}}, "server.prot"),
        ({"servre": {}}, "servre"),
        ({"upstreams": [{"name": "a", "base_url": "http://x", "modles": []}]}, "upstreams[0].modles"),
        ({"server": {"port": "many"}}, "server.port"),
        ({"training": {"epochs": 0}}, "training.epochs"),
        ({"upstreams": [{"name": "a", "base_url": "ftp://x"}]}, "upstreams[0].base_url"),
        ({"grouping": {"ignore": ["("]}}, "grouping.ignore"),
    ],
)
def test_a_key_that_is_unfit_is_named_with_its_path(tmp_path: Path, sections: dict[str, Any], path: str) -> None:
    error = refused(tmp_path, **sections)
    assert error.field == path
    assert path in str(error)


def test_an_unknown_variable_is_refused_like_a_key(tmp_path: Path) -> None:
    assert "server.prot" in str(refused(tmp_path, {"TFGRPO_SERVER__PROT": "1"}))


def test_a_variable_overrides_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, server={"port": 1, "host": "::1"})
    server = load(path, environ={"TFGRPO_SERVER__PORT": "2"}).server
    assert (server.port, server.host) == (2, "::1")


def test_a_string_may_come_from_the_environment(tmp_path: Path) -> None:
    path = written(tmp_path, apps=[{"name": "shop", "keys": ["os.environ/SHOP"]}])
    assert load(path, environ={"SHOP": "sk-shop"}).apps[0].keys[0].get_secret_value() == "sk-shop"


def test_a_missing_variable_is_named_with_its_key(tmp_path: Path) -> None:
    said = str(refused(tmp_path, apps=[{"name": "shop", "keys": ["os.environ/SHOP"]}]))
    assert "apps[0].keys[0]" in said
    assert "SHOP" in said


def test_no_secret_is_shown(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        server={"admin_key": "CANARY1"},
        store={"url": "postgresql+psycopg://u:CANARY2@db/x"},
        apps=[{"name": "a", "keys": ["CANARY3"], "feedback_key": "CANARY4", "upstream_key": "CANARY5"}],
        upstreams=[{"name": "up", "base_url": "http://x/v1", "api_key": "CANARY6"}],
        model_list=[{"model_name": "m", "litellm_params": {**PARAMS, "api_key": "CANARY7"}}],
        training={"optimizer": {"api_key": "CANARY8"}},
    )
    assert "CANARY" not in json.dumps(shown(load(path, environ={})))


def test_no_parameter_of_a_provider_is_shown(tmp_path: Path) -> None:
    aws = {"name": "aws", "provider": "litellm", "custom_llm_provider": "bedrock"}
    params = {"model": "azure/gpt", "api_version": "1", "client_secret": "CANARY2", "credentials": "environment"}
    path = written(
        tmp_path,
        upstreams=[{**aws, "params": {"aws_secret_access_key": "CANARY1", "aws_region_name": "here"}}],
        model_list=[{"model_name": "m", "litellm_params": params}],
    )
    settings = load(path, environ={})
    assert "CANARY" not in json.dumps(shown(settings))
    assert "CANARY" not in repr(settings)
    assert "CANARY" not in repr(Router(settings).upstreams)


@pytest.mark.parametrize(
    ("upstream", "said"),
    [
        ({"provider": "litellm"}, "custom_llm_provider"),
        ({}, "base_url"),
        ({"base_url": "http://x", "params": {"api_version": "1"}}, "provider: litellm"),
        ({"provider": "litellm", "custom_llm_provider": "azure", "params": {"api_base": "http://x"}}, "api_base"),
        ({"provider": "litellm", "custom_llm_provider": "azure", "params": {"extra": {"a": 1}}}, "extra"),
    ],
)
def test_an_upstream_that_does_not_fit_its_kind_refuses_the_start(
    tmp_path: Path, upstream: dict[str, Any], said: str
) -> None:
    assert said in str(refused(tmp_path, upstreams=[{"name": "up", **upstream}]))


@pytest.mark.parametrize("paid", [{"credentials": "environment"}, {"params": {"aws_secret_access_key": "k"}}])
def test_credentials_of_the_environment_need_a_loopback_host_too(tmp_path: Path, paid: dict[str, Any]) -> None:
    upstreams = [{"name": "aws", "provider": "litellm", "custom_llm_provider": "bedrock", **paid}]
    assert "credentials" in str(refused(tmp_path, server={"host": "0.0.0.0"}, upstreams=upstreams))  # noqa: S104 - is refused


def test_an_error_shows_no_value(tmp_path: Path) -> None:
    assert "CANARY" not in str(refused(tmp_path, server={"admin_key": {"key": "CANARY"}}))


def test_a_provider_key_without_apps_needs_a_loopback_host(tmp_path: Path) -> None:
    paid = [{"name": "up", "base_url": "http://x/v1", "api_key": "k"}]
    assert "api_key" in str(refused(tmp_path, server={"host": "0.0.0.0"}, upstreams=paid))  # noqa: S104 - is refused


def test_a_provider_key_behind_app_keys_may_listen_anywhere(tmp_path: Path) -> None:
    paid = [{"name": "up", "base_url": "http://x/v1", "api_key": "k"}]
    path = written(tmp_path, server={"host": "::"}, upstreams=paid, apps=[{"name": "a", "keys": ["k"]}])
    assert load(path, environ={}).server.host == "::"


def test_a_model_list_alone_leaves_no_other_upstream(tmp_path: Path) -> None:
    path = written(tmp_path, model_list=[{"model_name": "m", "litellm_params": PARAMS}])
    assert load(path, environ={}).upstreams == ()


@pytest.mark.parametrize(
    ("model", "target"),
    [
        ("openai/gpt-4o", "gpt-4o"),
        ("hosted_vllm/org/name", "org/name"),
        ("gpt-4o", "gpt-4o"),
        ("meta-llama/Llama-3", "meta-llama/Llama-3"),
    ],
)
def test_a_provider_prefix_is_not_part_of_the_model(tmp_path: Path, model: str, target: str) -> None:
    path = written(tmp_path, model_list=[{"model_name": "m", "litellm_params": {**PARAMS, "model": model}}])
    assert load(path, environ={}).model_list[0].litellm_params.target == target


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"model": "anthropic/claude", "fallbacks": ["openai/gpt"]}, "fallbacks"),
        ({"model": "bedrock/x", "mock_response": "hi"}, "mock_response"),
        ({"model": "gpt", "custom_llm_provider": "azure", "extra_headers": {"a": "b"}}, "extra_headers"),
        ({"model": "gpt-4o", "credentials": "environment"}, "credentials"),
        ({"model": "hosted_vllm/x"}, "api_base"),
        ({"model": "gpt-4o", "temperature": 0}, "temperature"),
    ],
)
def test_an_entry_that_cannot_be_served_refuses_the_start(tmp_path: Path, params: dict[str, Any], said: str) -> None:
    assert said in str(refused(tmp_path, model_list=[{"model_name": "m", "litellm_params": params}]))


@pytest.mark.parametrize(
    "sections",
    [
        {"upstreams": [{"name": "a", "base_url": "http://x"}, {"name": "a", "base_url": "http://y"}]},
        {"apps": [{"name": "a", "keys": ["k"]}, {"name": "b", "keys": ["k"]}]},
        {"apps": [{"name": "a", "keys": ["k"], "upstream": "nowhere"}]},
        {"routes": [{"set": "No Such Name"}]},
        {"apps": [{"name": "a", "keys": ["k1", "k2", "k3"]}]},
        {"apps": [{"name": "a", "keys": [""]}]},
        {"apps": [{"name": "a", "keys": [" "]}]},
        {"apps": [{"name": "a", "keys": ["k"], "feedback_key": ""}]},
        {"apps": [{"name": "a", "keys": ["k"], "upstream_key": ""}]},
        {"apps": [{"name": "a", "keys": ["k"], "feedback_key": "k"}]},
        {"apps": [{"name": "a", "keys": ["sha256:abc"]}]},
        {"apps": [{"name": "default", "keys": ["k"]}]},
        {"upstreams": [{"name": "a", "base_url": "http://x", "api_key": ""}]},
        {"server": {"cors_origins": ["app.example"]}},
        {"server": {"cors_origins": ["https://app.example/"]}},
        {"server": {"cors_origins": ["*", "https://app.example"]}},
        {"timeouts": {"total": 0}},
        {"upstreams": [{"name": "admin", "base_url": "http://x"}]},
        {"upstreams": [{"name": "a", "base_url": "http://user:pw@x"}]},
        {"upstreams": [{"name": "a", "base_url": "http://x", "models": ["*a*"]}]},
    ],
)
def test_what_does_not_fit_together_refuses_the_start(tmp_path: Path, sections: dict[str, Any]) -> None:
    assert "\n" not in str(refused(tmp_path, **sections))


def test_a_variable_that_names_an_unknown_section_is_refused(tmp_path: Path) -> None:
    assert "TFGRPO_SERVR__PORT" in str(refused(tmp_path, {"TFGRPO_SERVR__PORT": "1"}))


def test_a_list_may_come_from_the_environment_as_json(tmp_path: Path) -> None:
    settings = load(written(tmp_path), environ={"TFGRPO_ROUTES": '[{"set": "math", "models": ["a*"]}]'})
    assert settings.routes[0].set == "math"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("server: {port: 1}\nserver: {port: 2}", "server"),
        ("server:\n  port: 1\n  host: '::1'\n  port: 2", "port"),
        ("apps:\n- {name: a, keys: [k], name: b}", "name"),
    ],
)
def test_a_key_that_stands_in_the_file_twice_is_refused_and_named(tmp_path: Path, text: str, key: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load(path, environ={})
    assert f"the key {key!r} stands there twice" in str(caught.value)


def test_a_mapping_may_still_be_merged(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "upstreams:\n- &a {name: a, base_url: 'http://x/v1', models: ['a*']}\n- {<<: *a, name: b, models: ['*']}\n"
    )
    assert [one.base_url for one in load(path, environ={}).upstreams] == ["http://x/v1"] * 2


def test_promotion_may_be_one_word_and_a_duration_a_text() -> None:
    made = Settings.model_validate({"promotion": "auto", "experiment": {"label_window": "2d", "early_window": 90}})
    assert made.promotion.mode == "auto"
    assert (made.experiment.label_window, made.experiment.early_window) == (172_800, 90)


@pytest.mark.parametrize("value", ["soon", "0h", -1, "nan", "1w"])
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="label_window"):
        Settings.model_validate({"experiment": {"label_window": value}})
