"""Google ADK with a scripted model: `python examples/google_adk_agent.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio
import os

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.genai import types

import sayso
from sayso.google_adk import guard_tools, narrate
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model()
    async with sayso.session("Tidy up."):
        os.environ.update(GOOGLE_API_KEY="none", GOOGLE_GEMINI_BASE_URL=model_server.url)
        agent = LlmAgent(name="tidy", model="gemini-2.5-flash", tools=guard_tools(TOOLS, POLICIES))
        runner = InMemoryRunner(agent=agent, app_name="tidy")
        session = await runner.session_service.create_session(app_name="tidy", user_id="ada")
        message = types.Content(role="user", parts=[types.Part(text="Tidy up.")])
        async for _ in narrate(runner.run_async(user_id="ada", session_id=session.id, new_message=message)):
            pass


asyncio.run(main())
