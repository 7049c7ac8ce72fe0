import os

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false")

from crewai import LLM, Agent
from crewai.hooks import register_before_tool_call_hook, unregister_before_tool_call_hook

from sayso.crewai import Gate


def change(context):
    context.tool_input["what"] = "everything"


async def run(case):
    gate = Gate(case.policies, session=case.session)
    llm = LLM(model="openai/gpt-4o", base_url=case.url + "/v1", api_key="x", stream=True)
    agent = Agent(role="r", goal="g", backstory="b", llm=llm, tools=gate.tools(case.tools()))
    if case.changes_arguments:
        register_before_tool_call_hook(change)
    try:
        return (await gate.kickoff_async(agent, case.prompt)).raw
    finally:
        if case.changes_arguments:
            unregister_before_tool_call_hook(change)
