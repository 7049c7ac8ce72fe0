from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI
from run_openai_agents import change

from sayso.openai_agents import SaysoHooks, guard_tools

TOOL_ERROR = "An error occurred while running the tool."


async def run(case):
    tools = [function_tool(function) for function in case.tools()]
    if case.changes_arguments:
        for tool in tools:
            tool.tool_input_guardrails = [change]
    model = OpenAIChatCompletionsModel("fake", AsyncOpenAI(base_url=case.url + "/v1", api_key="x"))
    agent = Agent("tidy", model=model, tools=guard_tools(tools, case.policies, session=case.session))
    with SaysoHooks(case.session) as hooks:
        return (await Runner.run(agent, case.prompt, hooks=hooks)).final_output
