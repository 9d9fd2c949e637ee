"""A person at the dashboard without a browser: keeps the cookie, sends the forms that a page holds."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from urllib.parse import urlencode

from tests.conftest import Answered, RunningProxy

FORM = "application/x-www-form-urlencoded"


@dataclass
class Browser:
    """`cookie` is what the dashboard gave last."""

    proxy: RunningProxy
    cookie: str = ""

    def get(self, path: str) -> Answered:
        return self._keep(self.proxy.request("GET", path, headers=self._headers()))

    def post(self, path: str, fields: dict[str, str] | list[tuple[str, str]] | bytes) -> Answered:
        body = fields if isinstance(fields, bytes) else urlencode(fields).encode()
        return self._keep(self.proxy.request("POST", path, body, self._headers() | {"content-type": FORM}))

    def token(self) -> str:
        found = re.search(r'name="token" value="([0-9a-f]+)"', self.get("/admin/sets").body.decode())
        assert found
        return found[1]

    def send(self, path: str, **fields: str) -> Answered:
        return self.post(path, {"token": self.token(), **fields})

    def confirm(self, page: Answered, path: str) -> Answered:
        """Send the hidden fields of a page's own form."""
        main = page.body.decode().partition("<main")[2]
        found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', main)
        return self.post(path, [(name, html.unescape(value)) for name, value in found])

    def _headers(self) -> dict[str, str]:
        return {"host": f"127.0.0.1:{self.proxy.port}"} | ({"cookie": self.cookie} if self.cookie else {})

    def _keep(self, answer: Answered) -> Answered:
        given = answer.headers.get("set-cookie")
        self.cookie = given.partition(";")[0] if given else self.cookie
        return answer


def text(answer: Answered) -> str:
    """The page in one line."""
    return " ".join(answer.body.decode().split())
