from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

from sayso.autogen import guard_tools, run_stream

CAN_CHANGE_ARGUMENTS = False
INFO = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown", "structured_output": False}


async def run(case):
    model = OpenAIChatCompletionClient(model="fake", base_url=case.url + "/v1", api_key="x", model_info=INFO)
    tools = guard_tools(case.tools(), case.policies, session=case.session)
    agent = AssistantAgent("tidy", model_client=model, tools=tools, model_client_stream=True, max_tool_iterations=5)
    async for _ in run_stream(agent, task=case.prompt, session=case.session):
        pass
