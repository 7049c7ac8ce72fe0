"""A server that speaks the agent API as a test tells it to, over WebSocket or HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

import sayso

TOKEN, SESSION = "rpl_1", "sess_1"
DEADLINE = "2030-01-01T00:00:00Z"

Message = dict[str, Any]


def opened(token: Any = TOKEN) -> Message:
    """The result of an honest hub that has asked."""
    return {"reply_token": token, "deadline": DEADLINE}


def yes(question: Message, token: str = TOKEN) -> Message:
    """An honest yes to a question."""
    receipt = {
        "type": "sayso:receipt",
        "agent_id": "agent",
        "session_id": SESSION,
        "reply_token": token,
        "action_digest": sayso.digest(question["tool"], question["arguments"]),
        "decision": "accept",
        "by": "reply",
    }
    return {"status": "resolved", "decision": "accept", "by": "reply", "receipt": receipt, "receipt_signature": "a..b"}


class Peer:
    """One connection of an agent to the hostile hub."""

    def __init__(self, socket: ServerConnection, stop: Callable[[], None]) -> None:
        self._socket = socket
        #: Ends the hub, so that nothing can be asked any more.
        self.stop = stop

    def send(self, message: Any) -> None:
        self._socket.send(message if isinstance(message, str) else json.dumps(message))

    def respond(self, call: Message, result: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": call["id"], "result": result})

    def resolve(self, members: Message, token: Any = TOKEN, session: Any = SESSION) -> None:
        params = {"session_id": session, "reply_token": token, **members}
        self.send({"jsonrpc": "2.0", "method": "session.resolved", "params": params})

    def close(self) -> None:
        self._socket.close()


class HostileHub:
    """A WebSocket server. `ask` handles the questions, `connect` new connections. Everything else is accepted."""

    def __init__(self, ask: Callable[[Peer, Message], None], connect: Callable[[Peer], None] = lambda peer: None) -> None:
        self._ask = ask
        self._connect = connect
        #: The methods of the calls, and the types of the events, in the order in which they arrived.
        self.received: list[str] = []
        self._connections: set[ServerConnection] = set()
        self._server: Server = serve(self._handle, "127.0.0.1", 0, compression=None)
        self.url = f"http://127.0.0.1:{self._server.socket.getsockname()[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _handle(self, socket: ServerConnection) -> None:
        self._connections.add(socket)
        try:
            self._connect(Peer(socket, self.close))
            for text in socket:
                call = json.loads(text)
                params = call.get("params", {})
                events = params.get("events") or [params.get("event", {})]
                self.received += [event.get("type", call["method"]) for event in events]
                if call["method"] == "session.ask":
                    self._ask(Peer(socket, self.close), call)
                else:
                    results = {"session.start": {"session_id": SESSION}, "session.withdraw": {"status": "resolved"}}
                    result = results.get(call["method"], {"event_ids": [], "session_id": SESSION})
                    Peer(socket, self.close).respond(call, result)
        except ConnectionClosed:
            pass

    def close(self) -> None:
        self._server.socket.close()
        for connection in list(self._connections):
            threading.Thread(target=connection.close, daemon=True).start()
        threading.Thread(target=self._server.shutdown, daemon=True).start()


class HostileHttpHub:
    """An HTTP server. `reply` returns the body of an answer to the question."""

    def __init__(self, reply: Callable[[Message], Any], result: Any = None) -> None:
        question: list[Message] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path.endswith("/confirmations"):
                    question.append(json.loads(body))
                    self._respond(opened() if result is None else result)
                else:
                    self._respond({"session_id": SESSION, "event_ids": []})

            def do_GET(self) -> None:
                self._respond(reply(question[0]))

            def do_DELETE(self) -> None:
                self._respond({"status": "resolved"})

            def _respond(self, value: Any) -> None:
                body = (value if isinstance(value, str) else json.dumps(value)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
