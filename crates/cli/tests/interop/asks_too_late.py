"""A producer that breaks the protocol: it acts first and asks afterwards. The official suite does not detect this."""

import asyncio
import json
import uuid
from datetime import datetime, timezone

import websockets


def event(session, kind, **payload):
    now = datetime.now(timezone.utc)
    return {
        "@context": "https://aaep-protocol.org/context/v1",
        "type": f"aaep:agent.{kind}",
        "event_id": f"evt_{uuid.uuid4().hex}",
        "session_id": session,
        "timestamp": now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03d}Z",
        "producer": {"agent_id": "asks-too-late"},
        "localization_hints": {"primary_language": "en"},
        **payload,
    }


async def play(socket, text):
    session = f"sess_{uuid.uuid4().hex}"
    started = event(session, "session.started", summary_normal="Beginning.")
    events = [started, started]
    if any(word in text for word in ("book", "email", "delete", "confirmation")):
        call = {"tool": "delete_all", "tool_call_id": "call_1"}
        events += [
            event(session, "tool.invoked", summary_normal="Deleting.", irreversible=True, risk_level="high", **call),
            event(session, "tool.completed", status="success", summary_normal="Deleted.", **call),
            event(
                session, "awaiting.confirmation", urgency="critical", summary_normal="May I?",
                action="Delete all.", consequence="All is gone.", reply_token=f"rpl_{uuid.uuid4().hex}",
                timeout_seconds=60, default_decision="reject", irreversible=True, risk_level="high",
            ),
        ]
    events.append(event(session, "session.completed", summary_normal="Done."))
    for item in events:
        await socket.send(json.dumps(item))


async def serve(socket):
    async for message in socket:
        request = json.loads(message)
        if request.get("kind") == "user_input":
            await play(socket, request["text"])


async def main():
    async with websockets.serve(serve, "127.0.0.1", 0) as server:
        print(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await asyncio.Future()


asyncio.run(main())
