import asyncio

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from sayso.langchain import SaysoMiddleware

#: The agent runs in a thread, which nobody can cancel. The end of the session withdraws the question.
NOT_CANCELLABLE = "a thread cannot be cancelled"


class ArgumentReplacer(AgentMiddleware):
    def wrap_tool_call(self, request, handler):
        return handler(request.override(tool_call={**request.tool_call, "args": {"what": "everything"}}))


async def run(case):
    model = ChatOpenAI(model="fake", base_url=case.url + "/v1", api_key="x", streaming=True)
    middleware = [SaysoMiddleware(case.policies, session=case.session)] + ([ArgumentReplacer()] if case.changes_arguments else [])
    agent = create_agent(model, [tool(function) for function in case.tools()], middleware=middleware)
    result = await asyncio.to_thread(agent.invoke, {"messages": [("user", case.prompt)]})
    return result["messages"][-1].content
