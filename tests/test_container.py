"""The Dockerfile and compose.yaml, as far as they can be judged without an engine. `make container` runs the steps."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from proxy.settings import Settings, load
from tests.dockerfile import ROOT, command, environment, of, stages

HADOLINT = ROOT / ".venv/bin/hadolint"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
BUILD, FINAL = stages()


@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint comes as a wheel for Linux only")
def test_hadolint_has_nothing_to_say() -> None:
    told = subprocess.run(  # noqa: S603 - a linter of the environment
        [HADOLINT, "--format", "json", ROOT / "Dockerfile"], capture_output=True, check=False
    )
    assert json.loads(told.stdout) == []


def test_every_package_is_installed_from_a_lock_file_and_hash_checked() -> None:
    installs = [step for line in of(BUILD, "RUN") for step in line.split("&&") if "pip install" in step]
    assert installs
    assert [one for one in installs if "--require-hashes" not in one and "/wheel/" not in one] == []


def test_the_last_stage_installs_no_python_package_and_takes_the_environment_alone() -> None:
    assert not [line for line in of(FINAL, "RUN") if "pip" in line]
    assert of(FINAL, "COPY") == ["--from=build /app /app"]


def test_it_runs_as_a_numbered_user_who_is_not_root() -> None:
    assert [int(part) > 0 for part in of(FINAL, "USER")[-1].split(":")] == [True, True]


def test_tini_starts_the_program_and_no_shell_stands_between() -> None:
    assert (command(FINAL, "ENTRYPOINT"), command(FINAL, "CMD")) == (["tini", "--"], ["tfgrpo-proxy"])


def test_what_is_written_lies_in_the_volume() -> None:
    settings = load(None, environ={k: v for k, v in environment(FINAL).items() if k.startswith("TFGRPO_")})
    (volume,) = of(FINAL, "VOLUME")
    assert settings.store.url.startswith(f"sqlite:///{volume}/")
    assert environment(FINAL)["PYTHONDONTWRITEBYTECODE"] == "1"
    assert of(FINAL, "WORKDIR") == [volume]


@pytest.mark.parametrize("name", [name for line in of(BUILD, "COPY") for name in line.split()[:-1]])
def test_what_is_copied_is_there_and_reaches_the_engine(name: str) -> None:
    assert (ROOT / name).exists()
    assert f"!{name}" in (ROOT / ".dockerignore").read_text().splitlines()


def test_the_health_check_asks_for_readiness_on_the_port_that_is_set() -> None:
    words = command(FINAL, "HEALTHCHECK")
    assert "/health/readiness" in words[-1]
    assert environment(FINAL)["TFGRPO_SERVER__PORT"] == of(FINAL, "EXPOSE")[0]


def test_compose_runs_the_proxy_with_a_read_only_root_and_no_privilege() -> None:
    proxy = COMPOSE["services"]["proxy"]
    assert (proxy["read_only"], proxy["cap_drop"], proxy["tmpfs"]) == (True, ["ALL"], ["/tmp"])  # noqa: S108 - in a container


def test_compose_gives_streams_longer_than_the_drain() -> None:
    grace = int(COMPOSE["services"]["proxy"]["stop_grace_period"].removesuffix("s"))
    assert grace > Settings().server.drain_seconds


def test_compose_names_services_and_volumes_that_are_there() -> None:
    services, volumes = COMPOSE["services"], COMPOSE["volumes"]
    assert set(services["proxy"]["depends_on"]) <= set(services)
    named = [one.split(":")[0] for service in services.values() for one in service["volumes"]]
    assert {one for one in named if not one.startswith(".")} == set(volumes)
    assert f"@{next(iter(services['proxy']['depends_on']))}/" in services["proxy"]["environment"]["TFGRPO_STORE__URL"]


def test_the_environment_that_compose_sets_is_a_configuration(tmp_path: Path) -> None:
    given = {k: v.partition("${")[0] or "key" for k, v in COMPOSE["services"]["proxy"]["environment"].items()}
    empty = tmp_path / "c.yaml"
    empty.write_text("")
    assert load(empty, environ=given).server.admin_keys


def test_no_secret_stands_in_compose() -> None:
    written = [
        v for one in COMPOSE["services"].values() for k, v in one["environment"].items() if "KEY" in k or "PASS" in k
    ]
    assert [value for value in written if not value.startswith("${")] == []
