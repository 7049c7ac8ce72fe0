from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent
from strands.models.openai import OpenAIModel

from sayso.strands import guard_tools, narrate


async def run(case):
    model = OpenAIModel(client_args={"api_key": "x", "base_url": case.url + "/v1", "max_retries": 0}, model_id="fake")
    tools = guard_tools([tool(function) for function in case.tools()], case.policies, session=case.session)
    agent = Agent(model=model, tools=tools, callback_handler=None)
    if case.changes_arguments:

        def change(event):
            event.tool_use["input"] = {"what": "everything"}

        agent.add_hook(change, BeforeToolCallEvent)
    async for _ in narrate(agent.stream_async(case.prompt), session=case.session):
        pass
