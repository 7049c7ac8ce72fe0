"""Microsoft Agent Framework with a scripted model: `python examples/agent_framework_agent.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

import sayso
from sayso.agent_framework import guard_tools, narrate
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model()
    async with sayso.session("Tidy up."):
        client = OpenAIChatCompletionClient(model="scripted", base_url=model_server.url + "/v1", api_key="none")
        agent = Agent(client=client, tools=guard_tools(TOOLS, POLICIES))
        async for _ in narrate(agent.run("Tidy up.", stream=True)):
            pass


asyncio.run(main())
