from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from sayso.langchain import SaysoMiddleware


class ArgumentReplacer(AgentMiddleware):
    """Inner middleware that changes the arguments after the gate's hook."""

    async def awrap_tool_call(self, request, handler):
        return await handler(request.override(tool_call={**request.tool_call, "args": {"what": "everything"}}))


async def run(case):
    model = ChatOpenAI(model="fake", base_url=case.url + "/v1", api_key="x", streaming=True)
    middleware = [SaysoMiddleware(case.policies, session=case.session)] + ([ArgumentReplacer()] if case.changes_arguments else [])
    agent = create_agent(model, [tool(function) for function in case.tools()], middleware=middleware)
    result = await agent.ainvoke({"messages": [("user", case.prompt)]})
    return result["messages"][-1].content
