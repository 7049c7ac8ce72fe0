from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition

from sayso.langgraph import SaysoCallback, tool_node

#: The only wrapper that `ToolNode` takes is the gate, and callbacks get a copy of the arguments.
NO_HOOK = "ToolNode has no hook after its wrapper"


async def run(case):
    tools = [tool(function) for function in case.tools()]
    model = ChatOpenAI(model="fake", base_url=case.url + "/v1", api_key="x", callbacks=[SaysoCallback(case.session)]).bind_tools(
        tools
    )

    async def think(state):
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", tool_node(tools, case.policies, session=case.session, handle_tool_errors=True))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition, {"tools": "tools", "__end__": END})
    graph.add_edge("tools", "think")
    result = await graph.compile().ainvoke({"messages": [("user", case.prompt)]})
    return result["messages"][-1].content
