"""smolagents with a scripted model: `python examples/smolagents_agent.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio

from smolagents import LogLevel, OpenAIServerModel, ToolCallingAgent

import sayso
from sayso.smolagents import Gate
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model()
    async with sayso.session("Tidy up."):
        model_server.script[-1] = {"text": "", "calls": [("final_answer", {"answer": "All is tidy."})]}
        gate = Gate(POLICIES)
        model = OpenAIServerModel("scripted", api_base=model_server.url + "/v1", api_key="none")
        agent = ToolCallingAgent(tools=gate.tools(TOOLS), model=model, verbosity_level=LogLevel.OFF)
        await gate.run_async(agent, "Tidy up.")


asyncio.run(main())
