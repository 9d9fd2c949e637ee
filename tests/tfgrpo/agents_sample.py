"""Agents as a user would write them. Processes of their own import this module: nothing that takes long."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, cast

from tfgrpo.types import Task

Headers = Mapping[str, str]


def complete(base_url: str, headers: Headers, messages: list[Any], **more: Any) -> dict[str, Any]:
    """Return the message that a model answers with."""
    body = json.dumps({"model": "m", "messages": messages, **more}).encode()
    sent = {**headers, "content-type": "application/json"}
    request = urllib.request.Request(f"{base_url}/chat/completions", body, sent)  # noqa: S310 - of the test's own proxy
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - as above
        return cast("dict[str, Any]", json.load(answer)["choices"][0]["message"])


def ask(task: Task, base_url: str, headers: Headers) -> str:
    return str(complete(base_url, headers, [{"role": "user", "content": task.question}])["content"])


def ask_by_sdk(task: Task, base_url: str, headers: Headers) -> str:
    import openai  # noqa: PLC0415 - the other agents do not wait for it

    with openai.OpenAI(base_url=base_url, api_key="sk-x", default_headers=dict(headers), max_retries=0) as client:
        asked: Any = [{"role": "user", "content": task.question}]
        return str(client.chat.completions.create(model="m", messages=asked).choices[0].message.content)


async def ask_awaited(task: Task, base_url: str, headers: Headers) -> str:
    return await asyncio.to_thread(ask, task, base_url, headers)


def ask_handing_on(task: Task, base_url: str, headers: Headers) -> Awaitable[str]:
    return ask_awaited(task, base_url, headers)


def look(task: Task, base_url: str, headers: Headers) -> str:
    """Calls a tool, and sends its result."""
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    asked: list[Any] = [{"role": "user", "content": task.question}]
    asked.append(complete(base_url, headers, asked, tools=tools))
    asked.append({"role": "tool", "tool_call_id": "call_1", "content": "it rains"})
    return str(complete(base_url, headers, asked, tools=tools)["content"])


def peeking(task: Task, base_url: str, headers: Headers) -> str:
    return f"{ask(task, base_url, headers)} {task.reference}"


def adding(task: Task, base_url: str, headers: Headers) -> str:
    return ask(task, base_url, headers) + " and no"


def broken(_task: Task, _base_url: str, _headers: Headers) -> str:
    raise ValueError("no such\nroom")


def leaving(_task: Task, _base_url: str, _headers: Headers) -> str:
    sys.exit(3)


def late(task: Task, base_url: str, headers: Headers) -> str:
    ask(task, base_url, headers)
    raise ValueError("too late")


def hanging(_task: Task, _base_url: str, _headers: Headers) -> str:
    threading.Event().wait()
    return ""


async def hanging_awaited(_task: Task, _base_url: str, _headers: Headers) -> str:
    await asyncio.Event().wait()
    return ""


def seven(_task: Task, _base_url: str, _headers: Headers) -> int:
    return 7


def forgetful(task: Task, base_url: str, _headers: Headers) -> str:
    return ask(task, base_url, {})


def wilful(task: Task, base_url: str, headers: Headers) -> str:
    return ask(task, base_url, {**headers, "x-tfgrpo-set": "s@0"})


def exiting_late(task: Task, base_url: str, headers: Headers) -> str:
    ask(task, base_url, headers)
    os._exit(3)


def crashing(_task: Task, _base_url: str, _headers: Headers) -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return ""


def exiting_at_odds(task: Task, _base_url: str, _headers: Headers) -> str:
    return task.question if task.metadata["row"] != "odd" else os._exit(3)


def talking(task: Task, _base_url: str, _headers: Headers) -> str:
    """Prints where answers go, and reads where questions come from."""
    print('{"result": "no"}')  # noqa: T201 - what is tested
    os.write(1, b'{"result": "no"}\n')
    return f"{task.question}{sys.stdin.read()}"


def shown(task: Task, base_url: str, headers: Headers) -> str:
    """Says all that it was given."""
    said = [
        type(task).__name__,
        task.key,
        task.messages[0].text,
        task.metadata,
        base_url,
        type(headers).__name__,
        headers,
    ]
    return json.dumps([*said, sorted(task.tools or ())])


def meeting(_task: Task, base_url: str, _headers: Headers) -> str:
    """Says what process it is once whoever answers at `base_url` lets it."""
    with urllib.request.urlopen(base_url):  # noqa: S310 - of the test
        return str(os.getpid())


def starting(task: Task, _base_url: str, _headers: Headers) -> str:
    """Hangs, and a program that it has started does as well."""
    with subprocess.Popen([sys.executable, "-S", "-c", "import threading; threading.Event().wait()"]) as started:
        Path(task.question).write_text(f"{os.getpid()} {started.pid}")
        threading.Event().wait()
    return ""


def elsewhere(_task: Task, _base_url: str, _headers: Headers) -> str:
    """Says which of our folders another Python would look in that it starts."""
    return os.environ.get("PYTHONPATH", "")
