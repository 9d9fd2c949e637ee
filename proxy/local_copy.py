"""What a worker must know to begin while the store is away, beside it on this machine's disk.

Two files, each written whole: the deployments with the texts that are injected, and the key of our own exchange ids and
arms, readable by its owner alone: with another key a trajectory that is named would draw another arm. No credential is
in either. It does not know when the store is away.
"""

from __future__ import annotations

import logging
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from tfgrpo.errors import StoreError
from tfgrpo.store import Store

SECRET_BYTES: Final = 32

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


def known_secret(store: Store, folder: Path) -> bytes:
    """Return the secret of a store; one that others share may be away, and is asked through the copy in `folder`."""
    return LocalCopy(folder).secret(store) if store.shared else store.secret()


class LocalCopy:
    """The files of one store in a folder, shared by its workers on this machine."""

    def __init__(self, folder: Path) -> None:
        self._deployments = folder / "deployments.json"
        self._secret = folder / "exchange-ids.key"

    def secret(self, store: Store) -> bytes:
        """Return the store's secret, or while it is away the one last known, or a new one to propose to it."""
        known = self._known_secret()
        try:
            found = store.secret(known)
        except StoreError as error:
            _log.error("starting without the store: %s", error)
            found = known or secrets.token_bytes(SECRET_BYTES)
        if found != known:
            self._write(self._secret, found)
        return found

    def deployments(self, kind: type[_T]) -> _T | None:
        """Return what was kept last; None where nothing was, or it cannot be read."""
        try:
            return msgspec.json.decode(self._deployments.read_bytes(), type=kind)
        except (OSError, msgspec.MsgspecError):
            return None

    def keep(self, deployments: object) -> None:
        """Keep the deployments as they are now."""
        self._write(self._deployments, msgspec.json.encode(deployments))

    def _known_secret(self) -> bytes | None:
        with suppress(OSError):
            found = self._secret.read_bytes()
            return found if len(found) == SECRET_BYTES else None
        return None

    def _write(self, path: Path, content: bytes) -> None:
        """Put a file in the place of the one before it. Where that fails, the one before it stays."""
        fresh = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink()
            _log.error("%s could not be written: %s", path, error.strerror)
