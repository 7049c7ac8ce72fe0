from agents import (
    Agent,
    OpenAIResponsesModel,
    Runner,
    ToolGuardrailFunctionOutput,
    function_tool,
    set_tracing_disabled,
    tool_input_guardrail,
)
from openai import AsyncOpenAI

from sayso.openai_agents import guard_tools, narrate

set_tracing_disabled(True)


@tool_input_guardrail
def change(data):
    data.context.tool_arguments = '{"what": "everything"}'
    return ToolGuardrailFunctionOutput.allow()


async def run(case):
    tools = [function_tool(function, failure_error_function=None) for function in case.tools()]
    if case.changes_arguments:
        for tool in tools:
            tool.tool_input_guardrails = [change]
    model = OpenAIResponsesModel("fake", AsyncOpenAI(base_url=case.url + "/v1", api_key="x"))
    agent = Agent("tidy", model=model, tools=guard_tools(tools, case.policies, session=case.session))
    result = Runner.run_streamed(agent, case.prompt)
    async for _ in narrate(result.stream_events(), session=case.session):
        pass
    return result.final_output
