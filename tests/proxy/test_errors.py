from __future__ import annotations

import json

import pytest

from proxy.errors import ProxyError, envelope, from_tfgrpo
from tfgrpo.errors import Conflict, ModelError, NotFound, StoreError, TfgrpoError, UsageError


def test_an_error_takes_openais_form() -> None:
    _, _, body = envelope(ProxyError(404, "no such set", code="set_not_found", param="x"), None, "ex-1")
    assert json.loads(body) == {
        "error": {
            "message": "no such set",
            "type": "proxy_error",
            "param": "x",
            "code": "set_not_found",
            "exchange_id": "ex-1",
        }
    }


def test_an_error_of_the_messages_api_takes_its_form() -> None:
    _, _, body = envelope(ProxyError(502, "down"), "messages", "ex-1")
    assert json.loads(body) == {
        "type": "error",
        "error": {"type": "proxy_error", "message": "down"},
        "request_id": "ex-1",
    }


def test_the_exchange_stands_in_a_header_too() -> None:
    _, headers, _ = envelope(ProxyError(502, "down"), None, "ex-1")
    assert (b"x-tfgrpo-exchange", b"ex-1") in headers


def test_the_length_fits_a_message_that_is_not_ascii() -> None:
    _, headers, body = envelope(ProxyError(400, "größer \ud83d"))
    assert dict(headers)[b"content-length"] == str(len(body)).encode()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotFound("x"), 404),
        (Conflict("x"), 409),
        (UsageError("x"), 400),
        (StoreError("x"), 503),
        (ModelError("x"), 500),
    ],
)
def test_an_error_of_the_library_has_its_status(error: TfgrpoError, status: int) -> None:
    assert from_tfgrpo(error).status == status


def test_the_field_of_a_usage_error_is_named() -> None:
    assert from_tfgrpo(UsageError("bad", field="shares")).param == "shares"
