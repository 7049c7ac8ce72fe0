"""AAEP's own producer for LangChain (aaep-langchain-producer), beside our adapter, with the same model and the same tool.

It reports a dangerous call when the call already runs, and never asks, because a callback of LangChain cannot stop a tool.
"""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("aaep_langchain")

from aaep_langchain.callback_handler import LangChainAAEPHandler
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from recording import compare, dangerous_call, findings

import sayso
from sayso.langchain import SaysoMiddleware
from scripted_model import ScriptedModel

SCRIPT = [{"text": "I will tidy up. ", "calls": [("wipe", {"what": "photos"})]}, {"text": "All is tidy.", "calls": []}]


def make_agent(ran, middleware=()):
    model_server = ScriptedModel(SCRIPT)

    def wipe(what: str) -> str:
        """Wipes something."""
        ran.append(what)
        return f"wiped {what}"

    model = ChatOpenAI(model="scripted", base_url=model_server.url + "/v1", api_key="none")
    return create_agent(model, [wipe], middleware=list(middleware))


def test_the_peer_announces_the_call_and_asks_nobody():
    events, ran = [], []
    handler = LangChainAAEPHandler(send_event=events.append, tool_risk_overrides={"wipe": "high"})
    make_agent(ran).invoke({"messages": [("user", "Tidy up.")]}, config={"callbacks": [handler]})
    assert ran == ["photos"], "it ran without a question"
    order = compare("langchain-peer", events, bool(ran))
    assert "tool.invoked" in order and "awaiting.confirmation" not in order
    dangerous_call(events, "tool.invoked")
    code, output = findings("langchain-peer")
    assert code == 1 and "AAEP-4.3.1-3 /tool: nobody was asked" in output


@pytest.mark.parametrize("answer", ["accept", "reject"])
def test_ours_asks_first(hub, listen, answer):
    listener, ran = listen(answer), []

    async def main():
        async with sayso.hub(hub.url).session("Tidy up."):
            policies = {"wipe": sayso.Policy(irreversible=True, action="Wipe {what}.")}
            agent = make_agent(ran, [SaysoMiddleware(policies)])
            await agent.ainvoke({"messages": [("user", "Tidy up.")]})

    asyncio.run(main())
    assert ran == (["photos"] if answer == "accept" else [])
    events = listener.wait_for_end()
    order = compare(f"langchain-sayso-{answer}", events, bool(ran))
    dangerous_call(events, "awaiting.confirmation")
    if answer == "accept":
        assert order.index("awaiting.confirmation") < order.index("tool.invoked")
        dangerous_call(events, "tool.invoked")
    else:
        assert "tool.invoked" not in order
    assert findings(f"langchain-sayso-{answer}")[0] == 0
    listener.validate()
