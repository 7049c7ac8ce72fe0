"""OpenAI Agents with a scripted model: `python examples/openai_agents_agent.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio

from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI

import sayso
from sayso.openai_agents import guard_tools, narrate
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model()
    async with sayso.session("Tidy up."):
        set_tracing_disabled(True)
        model = OpenAIResponsesModel("scripted", AsyncOpenAI(base_url=model_server.url + "/v1", api_key="none"))
        agent = Agent("tidy", model=model, tools=guard_tools(TOOLS, POLICIES))
        async for _ in narrate(Runner.run_streamed(agent, "Tidy up.").stream_events()):
            pass


asyncio.run(main())
