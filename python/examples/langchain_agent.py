"""LangChain with a scripted model: `python examples/langchain_agent.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

import sayso
from sayso.langchain import SaysoMiddleware
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model()
    async with sayso.session("Tidy up."):
        model = ChatOpenAI(model="scripted", base_url=model_server.url + "/v1", api_key="none", streaming=True)
        agent = create_agent(model, TOOLS, middleware=[SaysoMiddleware(POLICIES)])
        await agent.ainvoke({"messages": [("user", "Tidy up.")]})


asyncio.run(main())
