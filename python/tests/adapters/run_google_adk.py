import os

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import InMemoryRunner
from google.genai import types

from sayso.google_adk import guard_tools, narrate


async def run(case):
    os.environ.update(GOOGLE_API_KEY="x", GOOGLE_GEMINI_BASE_URL=case.url)

    def change(tool, args, tool_context):
        args["what"] = "everything"

    agent = LlmAgent(
        name="tidy",
        model="gemini-2.5-flash",
        tools=guard_tools(case.tools(), case.policies, session=case.session),
        before_tool_callback=change if case.changes_arguments else None,
    )
    runner = InMemoryRunner(agent=agent, app_name="tidy")
    session = await runner.session_service.create_session(app_name="tidy", user_id="ada")
    message = types.Content(role="user", parts=[types.Part(text=case.prompt)])
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    events = runner.run_async(user_id="ada", session_id=session.id, new_message=message, run_config=config)
    async for _ in narrate(events, session=case.session):
        pass
