"""AutoGen with a scripted model: `python examples/autogen_agent.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

import sayso
from sayso.autogen import guard_tools, run_stream
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model()
    async with sayso.session("Tidy up."):
        info = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown", "structured_output": False}
        model = OpenAIChatCompletionClient(model="scripted", base_url=model_server.url + "/v1", api_key="none", model_info=info)
        tools = guard_tools(TOOLS, POLICIES)
        agent = AssistantAgent("tidy", model_client=model, tools=tools, model_client_stream=True, max_tool_iterations=5)
        async for _ in run_stream(agent, task="Tidy up."):
            pass


asyncio.run(main())
