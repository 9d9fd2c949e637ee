# ruff: noqa: S602, S603 - the Dockerfile's own commands are run
"""The image and its composition. No engine is needed: the files are checked as they stand, and the very install and
start steps of the Dockerfile run in folders of their own (`make container`)."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from proxy.settings import Server
from tests.raw_client import posted, read_until
from tests.upstreams import RawUpstream, chat

ROOT: Final = Path(__file__).parent.parent
NOBODY: Final = 10001


class Instruction(NamedTuple):
    name: str
    text: str


def instructions() -> list[Instruction]:
    """Return the Dockerfile's instructions, each on one line."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [Instruction(*line.split(maxsplit=1)) for line in whole if line]


def stages() -> tuple[list[Instruction], list[Instruction]]:
    """Return the instructions of the stage that builds and of the one that runs."""
    found = instructions()
    second = max(at for at, one in enumerate(found) if one.name == "FROM")
    return found[:second], found[second:]


def only(name: str) -> str:
    """Return the text of the running stage's one instruction of this name."""
    (found,) = [one.text for one in stages()[1] if one.name == name]
    return found


def test_hadolint_has_nothing_to_say_of_the_dockerfile() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    said = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout) == (0, "")


def test_the_image_runs_as_nobody_with_tini_first() -> None:
    assert (only("USER"), json.loads(only("ENTRYPOINT")), json.loads(only("CMD"))) == (
        str(NOBODY),
        ["tini", "--"],
        ["tfgrpo-proxy"],
    )
    assert f"--uid {NOBODY} " in next(one.text for one in stages()[1] if one.name == "RUN")


def test_what_comes_from_an_index_is_checked_by_its_hash() -> None:
    installs = [part for one in stages()[0] if one.name == "RUN" for part in one.text.split("&&") if "pip inst" in part]
    assert len(installs) == 3
    assert all("--require-hashes" in one or "--no-index" in one for one in installs)


def test_all_that_the_image_copies_gets_past_dockerignore() -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {name for one in stages()[0] if one.name == "COPY" for name in one.text.split()[:-1]}
    assert copied == let_in
    assert all((ROOT / name).exists() for name in copied)


def test_the_composition_needs_its_secrets_and_waits_longer_than_the_drain() -> None:
    written = (ROOT / "compose.yaml").read_text()
    services = yaml.safe_load(written)["services"]
    assert services["proxy"]["read_only"] is True
    assert int(services["proxy"]["stop_grace_period"].removesuffix("s")) > Server().drain_seconds
    secrets = re.findall(r"\$\{(\w+)(:\?)?", written)
    assert {name for name, needed in secrets if not needed} == set()
    assert {name for name, _ in secrets} == {"POSTGRES_PASSWORD", "TFGRPO_ADMIN_KEY"}


@pytest.fixture(scope="module")
def image() -> Iterator[Path]:
    """The folders `app`, `src`, `wheel` and `data`, as the Dockerfile's first stage leaves them."""
    root = Path(tempfile.mkdtemp(prefix="image-"))
    (root / "src").mkdir()
    for kind, text in stages()[0]:
        if kind == "COPY":
            *names, to = text.split()
            for name in names:
                copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
                copy(ROOT / name, root / "src" / to / (name if to == "./" else ""), **_existing(copy))
        elif kind == "RUN" and "apt-get" not in text:
            _run(root, text)
    (root / "data").mkdir()
    subprocess.run(["chmod", "-R", "a-w", root / "app"], check=True)  # noqa: S607 - the system's
    yield root
    subprocess.run(["chmod", "-R", "u+w", root / "app"], check=True)  # noqa: S607
    shutil.rmtree(root)


def _existing(copy: Any) -> dict[str, Any]:
    return {"dirs_exist_ok": True} if copy is shutil.copytree else {}


def _run(root: Path, text: str) -> None:
    """Run one RUN; `python` and its packages are those of a fresh environment, as in the base image."""
    base = root / "base"
    if not base.exists():
        subprocess.run([sys.executable, "-m", "venv", base], check=True)
    placed = re.sub(r"(?<![\w/.])/(app|wheel)\b", rf"{root}/\1", text)
    environment = {**os.environ, "PATH": f"{base}/bin:{os.environ['PATH']}", "PIP_ROOT_USER_ACTION": "ignore"}
    done = subprocess.run(
        placed, shell=True, cwd=root / "src", env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{placed}\n{done.stderr}"


def environment(root: Path, **more: str) -> dict[str, str]:
    """Return the ENV of the running stage, with its folders placed below `root`."""
    found = dict(word.split("=", 1) for word in shlex.split(only("ENV")))
    path = found.pop("PATH").replace("/app", f"{root}/app").replace("$PATH", os.environ["PATH"])
    found["TFGRPO_STORE__URL"] = found["TFGRPO_STORE__URL"].replace("/data", f"{root}/data")
    return {**found, "PATH": path, "HOME": str(root / "data"), **more}


def powerless(command: list[str]) -> list[str]:
    """Return the command as one that modes of files hold for, which they do not for root."""
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command] if os.geteuid() == 0 else command


def files(root: Path) -> set[tuple[str, int]]:
    return {(str(path), path.lstat().st_mtime_ns) for path in root.rglob("*")}


@pytest.mark.container
def test_the_images_own_steps_make_a_proxy_that_serves_without_powers_and_writes_to_data_alone(image: Path) -> None:
    before = files(image / "app")
    with RawUpstream(chat) as upstream:
        (image / "data" / "config.yaml").write_text(
            json.dumps({"upstreams": [{"name": "up", "base_url": upstream.base_url}]})
        )
        running = subprocess.Popen(
            powerless(json.loads(only("CMD"))),
            cwd=image / "data",
            env=environment(image, TFGRPO_SERVER__PORT="0"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert running.stdout is not None
            first = running.stdout.readline()
            port = int(re.findall(r":(\d+)/v1", first)[0])
            with posted(port) as line:
                assert b"200" in read_until(line, b"\r\n\r\n").splitlines()[0]
            check = json.loads(only("HEALTHCHECK").split("CMD", 1)[1])
            healthy = subprocess.run(check, env=environment(image, TFGRPO_SERVER__PORT=str(port)), check=False)
            assert healthy.returncode == 0
        finally:
            running.send_signal(signal.SIGTERM)
            _, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (0, "")
    assert files(image / "app") == before
    assert (image / "data" / "tfgrpo.db").exists()
