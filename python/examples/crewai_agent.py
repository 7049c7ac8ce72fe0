"""CrewAI with a scripted model: `python examples/crewai_agent.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio
import os

from crewai import LLM, Agent

import sayso
from sayso.crewai import Gate
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model()
    async with sayso.session("Tidy up."):
        os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true")
        gate = Gate(POLICIES)
        llm = LLM(model="openai/gpt-4o", base_url=model_server.url + "/v1", api_key="none", stream=True)
        agent = Agent(role="Tidier", goal="Tidy up.", backstory="You like order.", llm=llm, tools=gate.tools(TOOLS))
        await gate.kickoff_async(agent, "Tidy up.")


asyncio.run(main())
