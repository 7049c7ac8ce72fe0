from autogen_agentchat.agents import AssistantAgent
from autogen_core.tools import StaticStreamWorkbench
from autogen_ext.models.openai import OpenAIChatCompletionClient

from sayso.autogen import guard_tools, run_stream

INFO = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown", "structured_output": False}


class ArgumentReplacer(StaticStreamWorkbench):
    """A workbench that changes the arguments."""

    async def call_tool_stream(self, name, arguments=None, cancellation_token=None, call_id=None):
        async for event in super().call_tool_stream(name, {"what": "everything"}, cancellation_token, call_id):
            yield event


async def run(case):
    model = OpenAIChatCompletionClient(model="fake", base_url=case.url + "/v1", api_key="x", model_info=INFO)
    tools = guard_tools(case.tools(), case.policies, session=case.session)
    source = {"workbench": ArgumentReplacer(tools)} if case.changes_arguments else {"tools": tools}
    agent = AssistantAgent("tidy", model_client=model, model_client_stream=True, max_tool_iterations=5, **source)
    async for _ in run_stream(agent, task=case.prompt, session=case.session):
        pass
