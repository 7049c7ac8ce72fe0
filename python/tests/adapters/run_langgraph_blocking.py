import asyncio

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition

from sayso.langgraph import SaysoCallback, tool_node

#: The graph runs in a thread, which nobody can cancel. The end of the session withdraws the question.
NOT_CANCELLABLE = "a thread cannot be cancelled"


def change(request, execute):
    return execute(request.override(tool_call={**request.tool_call, "args": {"what": "everything"}}))


async def run(case):
    tools = [tool(function) for function in case.tools()]
    callbacks = [SaysoCallback(case.session)]
    model = ChatOpenAI(model="fake", base_url=case.url + "/v1", api_key="x", callbacks=callbacks).bind_tools(tools)
    graph = StateGraph(MessagesState)
    graph.add_node("think", lambda state: {"messages": [model.invoke(state["messages"])]})
    settings = {"wrap_tool_call": change} if case.changes_arguments else {}
    graph.add_node("tools", tool_node(tools, case.policies, session=case.session, handle_tool_errors=True, **settings))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition, {"tools": "tools", "__end__": END})
    graph.add_edge("tools", "think")
    result = await asyncio.to_thread(graph.compile().invoke, {"messages": [("user", case.prompt)]})
    return result["messages"][-1].content
