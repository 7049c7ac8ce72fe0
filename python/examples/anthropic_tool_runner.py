"""Anthropic SDK with a scripted model: `python examples/anthropic_tool_runner.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio

from anthropic import AsyncAnthropic

import sayso
from sayso.anthropic import guard_tools, narrate
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model()
    async with sayso.session("Tidy up."):
        client = AsyncAnthropic(base_url=model_server.url, api_key="none")
        messages = [{"role": "user", "content": "Tidy up."}]
        tools = guard_tools(TOOLS, POLICIES)
        runner = client.beta.messages.tool_runner(
            model="scripted", max_tokens=99, tools=tools, messages=messages, stream=True, thread=False
        )
        async for _ in narrate(runner):
            pass


asyncio.run(main())
