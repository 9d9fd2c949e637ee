"""The API is what its document says: compared with the routes, and asked by schemathesis.

`FUZZ_EXAMPLES` says how many requests each call gets; `make fuzz` sets it high.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from starlette.routing import Route

from proxy import admin, openapi
from tests.conftest import RunningProxy, StartProxy, StartUpstream
from tests.upstreams import chat

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "12"))
KEY = {"authorization": "Bearer root-key"}
WANTED = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)


@pytest.fixture
def proxy(start_proxy: StartProxy, start_upstream: StartUpstream) -> RunningProxy:
    made = start_proxy(start_upstream(chat).base_url, server={"admin_key": "root-key"})
    for _ in range(2):
        lessons = {"experiences": [{"text": "Check the sign."}]}
        assert made.request("POST", "/admin/api/sets/math/versions", lessons, KEY).status == 201
    made.chat(prefix="/set/math")
    return made


def described(proxy: RunningProxy) -> dict[str, Any]:
    answered = proxy.request("GET", "/admin/openapi.json", None, KEY)
    assert answered.status == 200
    found: dict[str, Any] = answered.json
    return found


def test_the_document_needs_the_admin_key(proxy: RunningProxy) -> None:
    assert proxy.request("GET", "/admin/openapi.json").status == 401


def test_each_call_says_what_it_does_under_a_name_of_its_own(proxy: RunningProxy) -> None:
    calls = [call for methods in described(proxy)["paths"].values() for call in methods.values()]
    assert all(call["summary"] for call in calls)
    assert len({call["operationId"] for call in calls}) == len(calls)


def test_each_call_that_changes_something_says_what_it_takes(proxy: RunningProxy) -> None:
    for path, methods in described(proxy)["paths"].items():
        assert all("requestBody" in call for method, call in methods.items() if method in ("post", "put")), path


def test_each_entry_of_the_tables_belongs_to_a_call(proxy: RunningProxy) -> None:
    names = {call["operationId"] for methods in described(proxy)["paths"].values() for call in methods.values()}
    assert {*openapi.BODIES, *openapi.OPTIONAL, *openapi.QUERIES, *openapi.ANSWERS} <= names


def test_the_admin_app_serves_nothing_that_is_not_described() -> None:
    source = Path(admin.__file__).read_text()
    # Every route is made by `_route`, whose calls are described; the one other is the document itself.
    assert source.count("Route(") == 1
    assert issubclass(openapi.Calls, Route)


@pytest.mark.parametrize(("query", "named"), [("limit=1&limit=2", "limit"), ("limti=1", "limti"), ("=1", "")])
def test_a_query_parameter_that_is_unknown_or_there_twice_is_a_400_that_names_it(
    proxy: RunningProxy, query: str, named: str
) -> None:
    answered = proxy.request("GET", f"/admin/api/exchanges?{query}", None, KEY)
    assert (answered.status, answered.json["error"]["param"]) == (400, named)


def operations(document: dict[str, Any]) -> Iterator[Any]:
    schema = schemathesis.openapi.from_dict(document)
    for found in schema.get_all_operations():
        yield found.ok()  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: f"{mode.value} data")
def test_no_request_makes_it_fail_or_say_what_it_does_not_promise(proxy: RunningProxy, mode: GenerationMode) -> None:
    load_all_checks()
    checks = [CHECKS.get_one(name) for name in WANTED]

    for operation in operations(described(proxy)):

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=EXAMPLES < 100,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def asks(case: Any) -> None:
            # Lists and objects are other parameters, or none, once they are written into a URL.
            assume(not any(isinstance(value, list | dict) for value in (case.query or {}).values()))
            case.call_and_validate(base_url=f"http://127.0.0.1:{proxy.port}", headers=KEY, checks=checks)

        asks()
    # With a wrong key among the requests all that follow would be refused, and nothing would have been asked.
    assert proxy.request("GET", "/admin/api/sets", None, KEY).status == 200
