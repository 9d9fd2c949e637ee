"""How uvicorn serves the proxy: its options and its log. It knows no endpoint."""

from __future__ import annotations

import contextlib
import logging
import socket
from typing import Any, Final

import uvicorn
from uvicorn.supervisors import Multiprocess

from proxy.connections import Connection
from proxy.settings import Server

KEEP_ALIVE_SECONDS: Final = 75
"""Above what HTTP clients keep an idle connection for, so that it is they who close it."""

_log = logging.getLogger(__name__)

_QUIET: Final = (
    # Said whenever an upstream breaks off and we break off with it; the record and our own log say it better.
    "ASGI callable returned without completing response.",
    # Said by each worker behind the reason, which is enough.
    "Application startup failed. Exiting.",
    "Child process [",
)


class Quiet(logging.Filter):
    """Keeps lines of uvicorn's out of the log that say what is no event here."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is worth reading."""
        return not record.getMessage().startswith(_QUIET)


LOGGING: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "filters": {"quiet": {"()": "proxy.server.Quiet"}},
    "handlers": {"stderr": {"class": "proxy.standard_error.Handler", "formatter": "line", "filters": ["quiet"]}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {"uvicorn": {"level": "WARNING"}, "uvicorn.error": {"level": "WARNING"}},
}


class Workers(Multiprocess):
    """Several processes on one socket."""

    def keep_subprocess_alive(self) -> None:
        """Have others take the place of those that ended, and leave those alone that are slow.

        uvicorn kills a worker that gives no sign for five seconds. On a busy machine one takes longer than that to
        start, or is stopped for as long; it holds streams and records, which would be lost.
        """
        ended = [one for one in self.processes if not one.process.is_alive()]
        if not ended:
            return
        running = [one for one in self.processes if one not in ended]
        self.processes = ended
        super().keep_subprocess_alive()
        self.processes = running + ended
        if not self.should_exit.is_set():
            _log.warning("%d worker(s) ended unasked, and were replaced", len(ended))

    def terminate_all(self) -> None:
        """Stop them all. Who comes now is refused at once, and does not wait in line until the last stream ends."""
        for listening in self.sockets:
            # The parent's own copy keeps the line open, whatever the workers do with theirs.
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
        super().terminate_all()


def configured(
    app: Any, server: Server, *, factory: bool = False, log: dict[str, Any] | None = LOGGING
) -> uvicorn.Config:
    """The one way the proxy is served. `app` is an ASGI application, or with `factory` where one is made.

    `log` None leaves logging to whoever embeds it.
    """
    return uvicorn.Config(
        app,
        factory=factory,
        host=server.host,
        port=server.port,
        workers=server.workers,
        loop="uvloop",
        http=Connection,
        ws="none",
        lifespan="on",
        interface="asgi3",
        access_log=False,
        log_config=log,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=server.drain_seconds,
    )


def bind(server: Server) -> socket.socket:
    """Take the port; OSError when it cannot be had."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    listening = socket.create_server((server.host, server.port), family=family, backlog=2048)
    listening.set_inheritable(True)
    return listening
