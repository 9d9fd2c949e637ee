"""Runs the install and start steps of the Dockerfile without an engine, and says what the result weighs.

The build stage's RUN lines are run as they stand, with their absolute paths below a temporary folder. The program is
then started as the image starts it, without tini, and asked by the image's own health check. In the image the root file
system is read-only: here what was written is compared. `make container`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.dockerfile import ROOT, command, environment, of, stages

PATIENCE = 30
MIB = 1024 * 1024


def main() -> None:
    """Judge the files, install, weigh, start, check, stop."""
    _judge()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _install(folder)
        _weigh(folder / "app")
        before = _files(folder)
        with _started(folder) as proxy:
            _wait_healthy(folder)
            proxy.send_signal(signal.SIGTERM)
            status = proxy.wait(PATIENCE)
        written = sorted(str(path.relative_to(folder)) for path, stamp in _files(folder).items() - before.items())
    _say(f"healthy, then SIGTERM: exit {status}; it wrote {', '.join(written)}")
    if status or not all(name.startswith("data/") for name in written):
        sys.exit("it must end with 0 and write nowhere but in the data folder")


def _judge() -> None:
    """What needs no engine: hadolint, and for compose.yaml the program that reads it where it is there."""
    judges = [[str(ROOT / ".venv/bin/hadolint"), "Dockerfile"]]
    judges += [[*one, "--file", "compose.yaml", "config", "--quiet"] for one in _composers()[:1]]
    for words in judges:
        needed = {"TFGRPO_ADMIN_KEY": "k", "POSTGRES_PASSWORD": "p"}
        subprocess.run(words, cwd=ROOT, check=True, env={**os.environ, **needed})  # noqa: S603 - fixed words
        _say(f"nothing to say: {' '.join([Path(words[0]).name, *words[1:]])}")


def _composers() -> list[list[str]]:
    known = [one for one in (["docker", "compose"], ["docker-compose"]) if shutil.which(one[0])]
    asked = [subprocess.run([*one, "version"], capture_output=True, check=False) for one in known]  # noqa: S603 - fixed words
    return [one for one, told in zip(known, asked, strict=True) if told.returncode == 0]


def _files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def _install(folder: Path) -> None:
    build = stages()[0]
    source = folder / "src"
    source.mkdir()
    for line in of(build, "COPY"):
        *names, target = line.split()
        for name in names:
            _copy(ROOT / name, source / target)
    paths = {name: str(folder / name.strip("/")) for name in ("/app", "/build", "/wheel")}
    for line in of(build, "RUN"):
        moved = " ".join(_moved(word, paths) for word in line.split())
        _say(line)
        subprocess.run(  # noqa: S603 - our own Dockerfile
            ["/bin/sh", "-ec", moved],
            cwd=source,
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, **environment(build), "PIP_QUIET": "2"},
        )


def _copy(origin: Path, target: Path) -> None:
    if origin.is_dir():
        shutil.copytree(origin, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(origin, target if target.is_dir() else target / origin.name)


def _moved(word: str, paths: dict[str, str]) -> str:
    top = "/" + word.strip("/").split("/")[0]
    return word.replace(top, paths[top], 1) if word.startswith("/") and top in paths else word


def _weigh(app: Path) -> None:
    packages = next(app.glob("lib/python3*/site-packages"))
    sizes = {path.name: _size(path) for path in packages.iterdir()}
    largest = sorted(sizes.items(), key=lambda pair: -pair[1])[:8]
    compiled = sum(_size(one) for one in app.rglob("*.pyc"))
    _say(
        f"/app: {_size(app) / MIB:.0f} MiB, {compiled / MIB:.0f} of it compiled for a quick start; "
        + ", ".join(f"{name} {size / MIB:.0f}" for name, size in largest)
    )


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(one.lstat().st_size for one in files if one.is_file() and not one.is_symlink())


@contextmanager
def _started(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    for name in ("data", "home", "tmp"):
        (folder / name).mkdir()
    (program,) = command(stages()[1], "CMD")
    started = subprocess.Popen(  # noqa: S603 - our own Dockerfile
        [str(folder / "app/bin" / program)], cwd=folder / "data", env=_environment(folder)
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait(PATIENCE)


def _environment(folder: Path) -> dict[str, str]:
    given = environment(stages()[1])
    here = {
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "PATH": f"{folder / 'app/bin'}:{os.environ['PATH']}",
        "TFGRPO_STORE__URL": f"sqlite:///{folder / 'data/tfgrpo.db'}",
        # Upstreams of the default configuration are never asked; the port is one that is likely to be free.
        "TFGRPO_SERVER__PORT": os.environ.get("TFGRPO_SERVER__PORT", "18473"),
    }
    return {**given, **here}


def _wait_healthy(folder: Path) -> None:
    words = json.loads(of(stages()[1], "HEALTHCHECK")[0].partition("CMD ")[2])
    program = str(folder / "app/bin" / words[0])
    for _ in range(PATIENCE):
        checked = subprocess.run(  # noqa: S603 - our own Dockerfile
            [program, *words[1:]], env=_environment(folder), check=False, capture_output=True
        )
        if checked.returncode == 0:
            return
        time.sleep(1)
    raise SystemExit(f"not healthy within {PATIENCE} s: {checked.stderr.decode()[-500:]}")


def _say(text: str) -> None:
    sys.stdout.write(f"container: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
