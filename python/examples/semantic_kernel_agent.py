"""Semantic Kernel with a scripted model: `python examples/semantic_kernel_agent.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio

from openai import AsyncOpenAI
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function

import sayso
from sayso.semantic_kernel import guard_kernel, narrate
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model("tidy-")
    async with sayso.session("Tidy up."):
        client = AsyncOpenAI(base_url=model_server.url + "/v1", api_key="none")
        kernel = Kernel()
        kernel.add_service(OpenAIChatCompletion(ai_model_id="scripted", async_client=client))
        for function in TOOLS:
            kernel.add_function("tidy", kernel_function(function))
        agent = ChatCompletionAgent(kernel=guard_kernel(kernel, POLICIES), name="tidy")
        async for _ in narrate(agent.invoke_stream("Tidy up.")):
            pass


asyncio.run(main())
