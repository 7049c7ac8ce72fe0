"""Pydantic AI with a scripted model: `python examples/pydantic_ai_agent.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import sayso
from sayso.pydantic_ai import Sayso, narrate
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model()
    async with sayso.session("Tidy up."):
        model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=model_server.url + "/v1", api_key="none"))
        agent = Agent(model, tools=TOOLS, capabilities=[Sayso(POLICIES)])
        async with agent.run_stream_events("Tidy up.") as events:
            async for _ in narrate(events):
                pass


asyncio.run(main())
