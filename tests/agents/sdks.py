"""The OpenAI Agents SDK and LangChain, each with a tool and a further turn. Run where they are installed."""

# mypy: ignore-errors

from __future__ import annotations

import asyncio
import os

from agents import Agent, Runner, function_tool, set_default_openai_api, set_default_openai_client, set_tracing_disabled
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI

ROOT, KEY = os.environ["ROOT"], os.environ["KEY"]


def say(*what: object) -> None:
    print(*what, flush=True)  # noqa: T201 - its output is compared


async def agents() -> None:
    set_tracing_disabled(disabled=True)
    set_default_openai_client(AsyncOpenAI(base_url=f"{ROOT}/v1", api_key=KEY))

    @function_tool
    def add(a: int, b: int) -> str:
        """Add."""
        return str(a + b)

    for api in ("responses", "chat_completions"):
        set_default_openai_api(api)
        agent = Agent(name="agent", instructions="Be brief.", model="gpt-5", tools=[add])
        first = await Runner.run(agent, f"agents {api}")
        say(api, first.final_output)
        again = [*first.to_input_list(), {"role": "user", "content": "again"}]
        say((await Runner.run(agent, again)).final_output)
        streamed = Runner.run_streamed(agent, f"agents streamed {api}")
        async for _ in streamed.stream_events():
            pass
        say(streamed.final_output)


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def chain(name: str, model: object) -> None:
    # A streamed answer has no id there (but for Responses): a name of the conversation is what to label it by.
    named = {"extra_headers": {"x-tfgrpo-trajectory": name.replace(" ", "-")}}
    bound = model.bind_tools([add]).bind(**named)
    history = [SystemMessage("Be brief."), HumanMessage(f"chain {name}")]
    for _ in range(4):
        said = bound.invoke(history)
        history.append(said)
        history += [ToolMessage(str(add.invoke(one["args"])), tool_call_id=one["id"]) for one in said.tool_calls] or [
            HumanMessage("again")
        ]
    say(name, len(history), said.text)


asyncio.run(agents())
at = {"model": "gpt-5", "base_url": f"{ROOT}/v1", "api_key": KEY}
chain("chat", ChatOpenAI(**at))
chain("chat streamed", ChatOpenAI(**at, streaming=True))
chain("responses", ChatOpenAI(**at, use_responses_api=True))
chain("messages", ChatAnthropic(model="claude-x", base_url=ROOT, api_key=KEY))
chain("messages streamed", ChatAnthropic(model="claude-x", base_url=ROOT, api_key=KEY, streaming=True))
