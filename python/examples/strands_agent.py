"""Strands with a scripted model: `python examples/strands_agent.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio

from strands import Agent
from strands.models.openai import OpenAIModel

import sayso
from sayso.strands import guard_tools, narrate
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model()
    async with sayso.session("Tidy up."):
        model = OpenAIModel(client_args={"api_key": "none", "base_url": model_server.url + "/v1"}, model_id="scripted")
        agent = Agent(model=model, tools=guard_tools(TOOLS, POLICIES), callback_handler=None)
        async for _ in narrate(agent.stream_async("Tidy up.")):
            pass


asyncio.run(main())
