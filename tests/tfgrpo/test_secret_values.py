from __future__ import annotations

from pathlib import Path

from proxy.settings import Settings
from tfgrpo import secret_values
from tfgrpo.configuration import load

WRITTEN = """
server: {admin_key: adm-in-key-1}
upstreams: [{name: up, base_url: "https://up.example/v1", api_key: os.environ/UP_KEY}]
apps: [{name: a, keys: [app-key-one], feedback_key: feed-key-one}]
training: {policy: {api_key: policy-key-1}}
store: {url: "postgresql+psycopg://me:pass-word-1@host/db"}
"""


def test_a_command_knows_the_secrets_of_sections_that_it_does_not_check(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(WRITTEN)
    found = load(path, environ={"UP_KEY": "up-key-12345", "TFGRPO_SERVER__ADMIN_KEY": "adm-in-key-2"})
    wanted = {"up-key-12345", "app-key-one", "feed-key-one", "policy-key-1", "pass-word-1", "adm-in-key-2"}
    assert wanted <= set(found.secrets)
    assert not [secret for secret in found.secrets if secret in repr(found)]


def test_the_proxy_knows_every_secret_of_its_settings() -> None:
    settings = Settings.model_validate(
        {
            "server": {"admin_key": ["adm-in-key-1", "adm-in-key-2"]},
            "upstreams": [{"name": "up", "base_url": "https://up.example/v1", "api_key": "up-key-12345"}],
            "apps": [{"name": "a", "keys": ["app-key-one"], "feedback_key": "feed-key-one"}],
        }
    )
    found = secret_values.of(settings, store="postgresql+psycopg://me:pass-word-1@host/db")
    assert set(found) == {"pass-word-1", "adm-in-key-1", "adm-in-key-2", "up-key-12345", "app-key-one", "feed-key-one"}
