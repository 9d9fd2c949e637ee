"""`tfgrpo-proxy`: checks the configuration and the store once, then serves with one or several workers.

Whatever refuses the start is one line on standard error that says what to do, never a traceback.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path
from socket import socket
from types import FrameType
from typing import Final, NoReturn

import uvicorn
import yaml
from uvicorn.config import STARTUP_FAILURE

from proxy.app import CONFIG_VARIABLE
from proxy.litellm_upstream import LitellmUpstream
from proxy.local_copy import known_secret
from proxy.routing import Router, Upstream
from proxy.scheduler import parse
from proxy.server import Workers, bind, configured
from proxy.settings import Settings, load, shown, without_password
from proxy.telemetry_settings import FOLDER_VARIABLE
from proxy.upstream import host_of
from tfgrpo.errors import StoreError, TfgrpoError, UsageError
from tfgrpo.store import Store, parsed

FAILED: Final = 1
WRONG_USAGE: Final = 2
INTERRUPTED: Final = 130

_OVERRIDES: Final = ("host", "port", "workers")

_EXAMPLES: Final = """\
examples:
  tfgrpo-proxy                                   serve with config.yaml, where there is one
  tfgrpo-proxy --config c.yaml --check-config    is it fine? exit 0, or 2 and one line that says what is not
  tfgrpo-proxy --print-config --json             all settings in force, secrets masked
  TFGRPO_SERVER__PORT=8080 tfgrpo-proxy          any setting can be a variable: TFGRPO_SECTION__KEY

exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted
"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        self.exit(WRONG_USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the program and return its exit status."""
    options = command_line().parse_args(arguments)
    for name in _OVERRIDES:
        value = getattr(options, name)
        if value is not None:
            # Workers read the settings again: this way they see the same.
            os.environ[f"TFGRPO_SERVER__{name.upper()}"] = str(value)
    try:
        return _run(options)
    except TfgrpoError as error:
        return _fail(str(error), WRONG_USAGE if isinstance(error, UsageError) else FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED


def command_line() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = _Parser(
        prog="tfgrpo-proxy",
        description="Serve the proxy.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tfgrpo-proxy {metadata.version('tfgrpo-proxy')}")
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration; default: config.yaml")
    parser.add_argument("--host", help="the address to listen on; default: server.host")
    parser.add_argument("--port", type=int, help="the port; default: server.port")
    parser.add_argument("--workers", type=int, help="how many processes serve; default: server.workers")
    parser.add_argument("--check-config", action="store_true", help="check the configuration and leave")
    parser.add_argument("--print-config", action="store_true", help="print all settings, secrets masked, and leave")
    parser.add_argument("--json", action="store_true", help="print them as JSON (with --print-config)")
    return parser


def _run(options: argparse.Namespace) -> int:
    settings = load(options.config, environ=os.environ)
    if options.config is not None:
        os.environ[CONFIG_VARIABLE] = str(options.config.resolve())
    router = Router(settings)
    _check_store(settings.store.url)
    if settings.training.schedule is not None:
        parse(settings.training.schedule)
    _warn(settings)
    if options.print_config:
        values = shown(settings)
        as_yaml = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
        sys.stdout.write(f"{json.dumps(values, indent=2)}\n" if options.json else as_yaml)
        return 0
    if options.check_config:
        _check_providers(settings, router)
        sys.stdout.write("the configuration is fine\n")
        return 0
    return _serve(settings, router)


def _serve(settings: Settings, router: Router) -> int:
    # First, for it sets up the log, and what comes next may have something to say.
    config = configured("proxy.app:create", settings.server, factory=True)
    # Once, before any worker: several at once would find the database locked.
    store = Store.open(settings.store.url, migrate=True, later=True)
    known_secret(store, settings.outage.folder_for(settings.store.url))
    store.close()
    try:
        listening = bind(settings.server)
    except OSError as error:
        where = f"{settings.server.host}:{settings.server.port}"
        return _fail(f"cannot listen on {where}: {error.strerror or error}; choose another with --host and --port")
    port = listening.getsockname()[1]
    sys.stdout.write(
        f"tfgrpo-proxy listens on http://{settings.server.host}:{port}/v1 with {settings.server.workers} worker(s)\n"
        f"  store      {without_password(settings.store.url)}\n"
        f"  upstreams  {', '.join(f'{one.name} ({_whereabouts(one)})' for one in router.upstreams)}\n"
    )
    sys.stdout.flush()
    if settings.server.workers > 1:
        return _serve_by_many(config, listening, metrics=settings.telemetry.metrics)
    # uvicorn raises the signal again when all is finished: then being told to stop and having stopped is success.
    signal.signal(signal.SIGTERM, _stopped)
    server = uvicorn.Server(config)
    server.run(sockets=[listening])
    return 0 if server.started else FAILED


def _serve_by_many(config: uvicorn.Config, listening: socket, *, metrics: bool) -> int:
    with tempfile.TemporaryDirectory(prefix="tfgrpo-metrics-") if metrics else nullcontext() as shared:
        if shared is not None:
            os.environ[FOLDER_VARIABLE] = shared
        workers = Workers(config, sockets=[listening])
        workers.run()
    return FAILED if any(one.exitcode == STARTUP_FAILURE for one in workers.processes) else 0


def _stopped(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _check_store(url: str) -> None:
    try:
        parsed(url)
    except StoreError as error:
        raise UsageError(str(error), field="store.url") from error


def _check_providers(settings: Settings, router: Router) -> None:
    translated = [one.translated.provider for one in router.upstreams if one.translated is not None]
    if translated:
        asyncio.run(LitellmUpstream(settings, {}).load(translated))


def _warn(settings: Settings) -> None:
    for number, entry in enumerate(settings.model_list):
        for name in entry.litellm_params.without_effect:
            sys.stderr.write(f"model_list.{number}.litellm_params.{name} has no effect here\n")


def _whereabouts(upstream: Upstream) -> str:
    way = upstream.translated
    return host_of(upstream.base_url) if way is None else f"{way.provider}, through litellm"


def _fail(message: str, code: int = FAILED) -> int:
    sys.stderr.write(f"tfgrpo-proxy: {' '.join(message.split())}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
