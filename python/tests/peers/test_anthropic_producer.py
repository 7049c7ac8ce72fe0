"""AAEP's own producer for the Anthropic SDK (aaep-anthropic-sdk-producer), beside our adapter, with the same model and the same tool.

It asks only about tools that its configuration names, and announces the call before it asks.
"""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("aaep_anthropic_sdk")

from aaep_anthropic_sdk import AnthropicAAEPAdapter
from anthropic import AsyncAnthropic
from recording import compare, dangerous_call, findings

import sayso
from sayso.anthropic import guard_tools, narrate
from scripted_model import ScriptedModel

SCRIPT = [{"text": "I will tidy up. ", "calls": [("wipe", {"what": "photos"})]}, {"text": "All is tidy.", "calls": []}]
TOOL = {
    "name": "wipe",
    "description": "Wipes something.",
    "input_schema": {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
}


def run_peer(monkeypatch, answer, dangerous_tools):
    """Runs the peer. Returns its events, and the events before the tool ran, if it ran."""
    model = ScriptedModel(SCRIPT)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
    events, ran = [], []

    def send(event):
        events.append(event)
        if event["type"] == "aaep:agent.awaiting.confirmation":
            # The person answers as soon as the peer waits.
            loop.call_soon(peer.emitter.submit_reply, event["reply_token"], answer)

    def wipe(what):
        ran.append([event["type"].removeprefix("aaep:agent.") for event in events])
        return f"wiped {what}"

    async def main():
        nonlocal loop, peer
        loop = asyncio.get_running_loop()
        peer = AnthropicAAEPAdapter(send_event=send, model="scripted", api_key="none")
        names = {"irreversible_tools": dangerous_tools, "high_risk_tools": dangerous_tools}
        await peer.run_session("Tidy up.", tools=[TOOL], tool_handlers={"wipe": wipe}, **names)

    loop = peer = None
    asyncio.run(main())
    model.close()
    return events, ran


@pytest.mark.parametrize("answer", ["accept", "reject"])
def test_the_peer_announces_the_call_before_it_asks(monkeypatch, answer):
    events, ran = run_peer(monkeypatch, answer, {"wipe"})
    assert len(ran) == (answer == "accept")
    order = compare(f"anthropic-peer-{answer}", events, bool(ran))
    assert order.index("tool.invoked") < order.index("awaiting.confirmation")
    dangerous_call(events, "tool.invoked")
    code, output = findings(f"anthropic-peer-{answer}")
    assert code == 1 and "AAEP-4.3.1-3 /tool: nobody was asked" in output, output


def test_the_peer_does_not_ask_about_a_tool_it_does_not_know(monkeypatch):
    events, ran = run_peer(monkeypatch, "reject", {"transfer_funds"})
    assert len(ran) == 1, "it ran without a question"
    assert "aaep:agent.awaiting.confirmation" not in [event["type"] for event in events]


@pytest.mark.parametrize("answer", ["accept", "reject"])
def test_ours_asks_first(hub, listen, answer):
    listener, ran = listen(answer), []
    model = ScriptedModel(SCRIPT)

    def wipe(what: str) -> str:
        """Wipes something."""
        ran.append(what)
        return f"wiped {what}"

    async def main():
        async with sayso.hub(hub.url).session("Tidy up."):
            client = AsyncAnthropic(base_url=model.url, api_key="none", max_retries=0)
            tools = guard_tools([wipe], {"wipe": sayso.Policy(irreversible=True, action="Wipe {what}.")})
            message = {"role": "user", "content": "Tidy up."}
            runner = client.beta.messages.tool_runner(
                model="scripted", max_tokens=99, tools=tools, messages=[message], stream=True, thread=False
            )
            async for _ in narrate(runner):
                pass

    asyncio.run(main())
    assert ran == (["photos"] if answer == "accept" else [])
    events = listener.wait_for_end()
    order = compare(f"anthropic-sayso-{answer}", events, bool(ran))
    dangerous_call(events, "awaiting.confirmation")
    if answer == "accept":
        assert order.index("awaiting.confirmation") < order.index("tool.invoked")
        dangerous_call(events, "tool.invoked")
    else:
        assert "tool.invoked" not in order
    assert findings(f"anthropic-sayso-{answer}")[0] == 0
    listener.validate()
