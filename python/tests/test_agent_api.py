"""The client and docs/agent-api.json, from which the messages of the clients in all languages are generated."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys

import pytest

import sayso
from sayso import _agent_api, _text
from sayso._check import check_notification, check_result
from sayso._connection import Connection
from support import ROOT

API = json.loads((ROOT / "docs/agent-api.json").read_text())
SCHEMAS = API["components"]["schemas"]


def test_the_generated_file_is_current():
    script = ROOT / "python/scripts/generate_agent_api.py"
    result = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_texts_are_cut_below_the_limit_of_the_hub():
    assert _text.MAX_TEXT_CHARS < _agent_api.MAX_TEXT_LENGTH


def members_of(schema, prefix=""):
    """Returns the members of an object and of the objects in it, such as `progress.step`."""
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rsplit("/", 1)[1]]
    found = set()
    for name, member in schema.get("properties", {}).items():
        found |= {prefix + name, *members_of(member, f"{prefix}{name}."), *members_of(member.get("items", {}), f"{prefix}{name}.")}
    return found


def members_in(body, prefix=""):
    """Returns the members of a body and of the objects in it. Translations count as the member that they translate."""
    found = set()
    for member, value in body.items():
        name = prefix + re.sub("_es$", "", member)
        found.add(name)
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, dict):
                found |= members_in(part, f"{name}.")
    return found


def described_requests():
    """Returns the members of each request, by the event's type or the method."""
    by_id = {operation["operationId"]: operation for path in API["paths"].values() for operation in path.values()}
    requests = {}
    for method, operation_id in API["x-json-rpc"]["methods"].items():
        operation = by_id.get(operation_id, {"parameters": []})
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        query = {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "query"}
        special = {"session.output": {"text"}, "agent.manifest": {"manifest"}}
        requests[method] = query | (special.get(method) or members_of(body))
    for reference in SCHEMAS["AgentEvent"]["oneOf"]:
        schema = SCHEMAS[reference["$ref"].rsplit("/", 1)[1]]
        requests[schema["title"]] = {"type", *members_of(schema)}
    return requests


TEXT = sayso.text("Text.", terse="T.", detailed="A text.", es="Texto.")
EXTENSIONS = {"acme": ("https://acme.example/context", {"order": 17})}
#: The members that every event can have.
OPTIONS = {"urgency": "normal", "verbosity": "normal", "correlation_id": "c", "extensions": EXTENSIONS, "producer": "agent"}
#: Questions, hand-offs and errors are always critical.
CRITICAL_OPTIONS = {**OPTIONS, "urgency": "critical"}
START_OPTIONS = {name: value for name, value in OPTIONS.items() if name != "producer"}
HAND_OFF_OPTIONS = {**START_OPTIONS, "urgency": "critical"}
AGENT = {"agent_id": "agent", "agent_version": "1", "model": "m", "manifest_uri": "https://a.example/m.json", "agent_name": "Agent"}
MANIFEST = {
    "@context": "https://aaep-protocol.org/context/v1", "type": "aaep:producer.manifest", "agent_id": "agent", "agent_name": "Agent",
    "agent_version": "1", "aaep_versions_supported": ["1.0.0"], "conformance_levels_supported": [1, 2, 3],
    "transports_supported": ["sse", "websocket"], "contact": "https://a.example/", "default_verbosity": "normal",
    "event_types_emitted": ["agent.session.started"], "extensions_supported": [], "languages_supported": ["en"],
    "max_concurrent_subscriptions": 5,
}  # fmt: skip


async def do_everything(client, listener):
    async with client.session(
        "Everything", says=TEXT, person="ada", expected_duration=1.0, tools=["pay"], language="en", text_direction="ltr",
        available_languages=["en", "es"], fallback_languages=["en"], script="Latn", calendar="gregory",
        states={"comparing": sayso.text("Comparing.", es="Comparando.")},
        producers=[{"agent_id": "scout", "agent_name": "Scout"}, {"agent_id": "guide"}], **START_OPTIONS,
    ) as s:  # fmt: skip
        await s.change_state("comparing")
        await s.think(TEXT, expected_duration=1.0, **OPTIONS)
        await s.progress(TEXT, percent=50, step=1, total_steps=2, description="Half.", eta=1.0, **OPTIONS)
        await s.say(["**Hola.** ", "Adiós. "], output_id="out_x1", language="es", content_type="text/markdown", coalesce_hint="sentence")
        await s.say("Now I decide.", stays=True)
        await s.decide(TEXT)
        await s.as_producer("scout").say("A train.")
        granted = await s.ask(
            "pay", {"to": "Ben"}, action=TEXT, consequence=TEXT, question=TEXT, irreversible=True, allowed_replies=["accept", "reject"],
            extra_context={"balance": "10"}, tool_call_id="call_1", **CRITICAL_OPTIONS,
        )  # fmt: skip

        async def pay(to):
            return to

        await s.call(granted, pay, tool_call_id="call_1")
        async with s.tool("look", TEXT, description=TEXT, args_summary=TEXT, expected_duration=1.0, **OPTIONS) as look:
            await look.fail(TEXT, TEXT)
        await s.ask("rename", {}, action="Rename.", reversibility="reversible_with_effort")
        await s.clarify(TEXT, context=TEXT, choices={"a": TEXT, "b": TEXT}, accept=["yes_no"], default_response="a", **CRITICAL_OPTIONS)
        await s.hand_off(TEXT, says=TEXT, target="human", target_uri="https://a.example/", urgency_for_handoff="high",
                         context={"a": 1}, timeout=1.0, **HAND_OFF_OPTIONS)  # fmt: skip
        invitation = await s.invite("guide", expires_in=60)
        async with client.join(invitation, producer={"agent_name": "Guide"}):
            pass
        withdrawn = asyncio.create_task(s.ask("wipe", {}, action="Wait.", irreversible=True))
        await asyncio.to_thread(listener.wait_for, "awaiting.confirmation", 3)
        withdrawn.cancel()
        await asyncio.wait({withdrawn})
        # The hub has withdrawn the question when it leaves the state of waiting for the fourth time.
        await asyncio.to_thread(listener.wait, lambda events: sum(event.get("from_state") == "awaiting_input" for event in events) >= 4)
        await s.think("Going on.")
        await s.finish(TEXT, output_summary=TEXT, result_uri="https://a.example/r", **OPTIONS)
    async with client.session("Failing.", parent=s.id) as failing:
        await failing.fail(TEXT, category="transient", code="E1", help_uri="https://a.example/e", recoverable=True,
                           remediation_hint=TEXT, **CRITICAL_OPTIONS)  # fmt: skip
    async with client.session("Cancelled.") as cancelled:
        await cancelled.cancel(TEXT, by="producer", reason="no_time", partial_result=TEXT, **OPTIONS)


def answer(event):
    if event["type"].endswith("confirmation"):
        return None if event["action"].startswith("Wait.") else "accept"
    return "a" if event["type"].endswith("clarification") else None


#: What the description has and this client never sends: the hub knows the last state, and a hand-off always belongs to the main
#: producer.
NOT_SENT = {("aaep:agent.state.changed", "from_state"), ("session.hand_off", "producer")}

#: Sent by a method of its own, which the test demands instead.
SENT_BY_METHOD = {
    "aaep:agent.output.streaming": "session.output",
    "aaep:agent.awaiting.confirmation": "session.ask",
    "aaep:agent.awaiting.clarification": "session.clarify",
    "aaep:agent.handoff.requested": "session.hand_off",
}


def test_every_request_and_member_is_described_and_accepted(hub, listen, monkeypatch):
    listener = listen(answer)
    sent = {}
    original = Connection.call

    async def record(self, method, params):
        bodies = [(method, params)]
        if method == "session.event":
            events = params["events"] if "events" in params else [params["event"]]
            bodies = [(event["type"], event) for event in events]
        for name, body in bodies:
            sent.setdefault(name, set()).update(members_in(body) - {"session_id", "reply_token"})
        return await original(self, method, params)

    monkeypatch.setattr(Connection, "call", record)
    client = sayso.hub(hub.url, connect_timeout=10, agent=AGENT, manifest=MANIFEST)
    asyncio.run(do_everything(client, listener))
    client.close()
    listener.wait_for_end(3)
    described = described_requests()
    unknown = {(name, member) for name, members in sent.items() for member in members - described[name] if "." not in member}
    assert unknown == set()
    assert set(described) - set(sent) == {"session.event", "session.follow", *SENT_BY_METHOD}
    missing = {
        (name, member)
        for name, members in described.items()
        if name not in SENT_BY_METHOD
        for member in members - sent.get(name, set())
        # They are set for the session, and the hub repeats them in every event.
        if name == "session.start" or not member.startswith("localization_hints")
    }
    assert missing == NOT_SENT
    # What a method sends in place of an event has all members of the event.
    for event, method in SENT_BY_METHOD.items():
        if method != "session.output":
            assert described[event] - {"type"} <= described[method], event


@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("session.start", {"session_id": "sess_1"}),
        ("session.event", {"event_ids": ["evt_1"], "closed": [{"kind": "tool"}], "tool_call_ids": {"a": "call_1"}}),
        ("session.ask", {"reply_token": "rpl_1", "deadline": "2030-01-01T00:00:00Z", "new": 1}),
        ("session.follow", {"session_id": "sess_1", "state": "thinking"}),
    ],
)
def test_a_result_of_the_described_form_is_accepted(method, result):
    assert check_result(method, result) is result


@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("session.start", {"session_id": "s"}),
        ("session.start", {"session_id": "sess_1\n"}),
        ("session.event", {"event_ids": "evt_1"}),
        ("session.event", {"event_ids": [1]}),
        ("session.event", {"event_ids": [], "tool_call_ids": {"a": 1}}),
        ("session.invite", {"session_id": "sess_1"}),
        ("agent.manifest", {"agent_id": "a", "manifest_uri": "u", "verified": 1}),
    ],
)
def test_a_result_of_another_form_is_refused(method, result):
    with pytest.raises(sayso.MalformedResponse):
        check_result(method, result)


def test_notifications_of_newer_hubs_are_ignored():
    assert check_notification("session.sung", [1]) is None
    with pytest.raises(sayso.MalformedResponse):
        check_notification("session.stopped", {"session_id": "sess_1", "reason": "because"})
