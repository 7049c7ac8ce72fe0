"""LangGraph with a scripted model: `python examples/langgraph_graph.py`. Uses the hub in SAYSO_URL, or the personal hub."""

import asyncio

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition

import sayso
from sayso.langgraph import SaysoCallback, tool_node
from scripted_model import start_tidy_up_model
from tidy_tools import POLICIES, TOOLS


async def main() -> None:
    model_server = start_tidy_up_model()
    async with sayso.session("Tidy up."):
        chat = ChatOpenAI(model="scripted", base_url=model_server.url + "/v1", api_key="none", callbacks=[SaysoCallback()])
        model = chat.bind_tools(TOOLS)

        async def think(state: MessagesState) -> dict[str, list]:
            return {"messages": [await model.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("think", think)
        graph.add_node("tools", tool_node(TOOLS, POLICIES))
        graph.add_edge(START, "think")
        graph.add_conditional_edges("think", tools_condition)
        graph.add_edge("tools", "think")
        await graph.compile().ainvoke({"messages": [("user", "Tidy up.")]})


asyncio.run(main())
