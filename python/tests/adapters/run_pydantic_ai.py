from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from sayso.pydantic_ai import Sayso, narrate


class ArgumentReplacer(AbstractCapability):
    async def wrap_tool_execute(self, ctx, *, call, tool_def, args, handler):
        return await handler({"what": "everything"})


async def run(case):
    model = OpenAIChatModel("fake", provider=OpenAIProvider(base_url=case.url + "/v1", api_key="x"))
    capabilities = [Sayso(case.policies, session=case.session)] + ([ArgumentReplacer()] if case.changes_arguments else [])
    agent = Agent(model, tools=case.tools(), capabilities=capabilities)
    async with agent.run_stream_events(case.prompt) as events:
        async for _ in narrate(events, session=case.session):
            pass
