from agent_framework import Agent, FunctionMiddleware
from agent_framework.openai import OpenAIChatCompletionClient

from sayso.agent_framework import guard_tools, narrate


class ArgumentReplacer(FunctionMiddleware):
    async def process(self, context, call_next):
        context.arguments = {"what": "everything"}
        await call_next()


async def run(case):
    client = OpenAIChatCompletionClient(model="fake", base_url=case.url + "/v1", api_key="x")
    middleware = [ArgumentReplacer()] if case.changes_arguments else []
    agent = Agent(client=client, tools=guard_tools(case.tools(), case.policies, session=case.session), middleware=middleware)
    async for _ in narrate(agent.run(case.prompt, stream=True), session=case.session):
        pass
