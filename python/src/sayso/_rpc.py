"""The calls of the agent API, independent of the transport."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from .errors import (
    AccessDenied,
    Finding,
    HubUnreachable,
    InvalidRequest,
    LimitReached,
    RuleViolations,
    SaysoError,
    SessionStopped,
    StorageFailed,
)

Params = Mapping[str, Any]
Result = dict[str, Any]

#: Calls that open a question. Over HTTP their answer is polled.
QUESTION_METHODS = {"session.ask": "confirmations", "session.clarify": "clarifications", "session.hand_off": "handoffs"}

#: Calls without an idempotency key.
_WITHOUT_KEY = frozenset({"session.withdraw", "session.follow", "agent.manifest"})


@dataclass(frozen=True)
class HttpRequest:
    """A call as an HTTP request."""

    method: str
    path: str
    body: bytes | None
    content_type: str = "application/json"


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encode_rpc(number: int, method: str, params: Params, key: str) -> str:
    """Encodes a call as JSON-RPC 2.0."""
    if method not in _WITHOUT_KEY:
        params = {**params, "idempotency_key": key}
    return dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def to_http(method: str, params: Params) -> HttpRequest | None:
    """Translates a call to an HTTP request. Returns None for a call that HTTP does not need."""
    if method == "session.follow":
        return None
    if method == "agent.manifest":
        manifest = params["manifest"]
        body = manifest if isinstance(manifest, str) else dumps(manifest)
        content_type = "application/jose" if isinstance(manifest, str) else "application/json"
        return HttpRequest("PUT", "/agent/v1/manifest", body.encode(), content_type)
    body_members = {name: value for name, value in params.items() if name != "session_id"}
    if method == "session.start":
        return HttpRequest("POST", "/agent/v1/sessions", dumps(body_members).encode())
    path = "/agent/v1/sessions/" + quote(str(params["session_id"]), safe="")
    if method == "session.event":
        events = params.get("events")
        if events is None:
            return HttpRequest("POST", path + "/events", dumps(params["event"]).encode())
        lines = "\n".join(map(dumps, events))
        return HttpRequest("POST", path + "/events", lines.encode(), "application/x-ndjson")
    if method == "session.output":
        query = {
            name: ("true" if value is True else str(value))
            for name, value in body_members.items()
            if name != "text" and value not in (None, False)
        }
        suffix = "?" + urlencode(query) if query else ""
        return HttpRequest("POST", path + "/output" + suffix, str(params["text"]).encode(), "text/plain; charset=utf-8")
    if method == "session.withdraw":
        return HttpRequest("DELETE", reply_path(params["session_id"], params["reply_token"]), None)
    routes = {**QUESTION_METHODS, "session.invite": "invitations", "session.join": "join"}
    return HttpRequest("POST", f"{path}/{routes[method]}", dumps(body_members).encode())


def reply_path(session_id: str, token: str) -> str:
    return f"/agent/v1/sessions/{quote(session_id, safe='')}/replies/{quote(token, safe='')}"


def problem_to_error(status: int, problem: Mapping[str, Any]) -> SaysoError:
    """Converts a problem document to an exception."""
    title = str(problem.get("title") or f"the hub answered with status {status}")
    if status == 422:
        findings = problem.get("findings")
        return RuleViolations(
            [
                Finding(str(item.get("rule", "")), str(item.get("pointer", "")), str(item.get("message", "")))
                for item in (findings if isinstance(findings, list) else [])
                if isinstance(item, Mapping)
            ]
            or [Finding("", "", title)]
        )
    if status in (401, 403):
        return AccessDenied(title)
    if status == 404:
        return SessionStopped("ended")
    if status in (413, 429):
        return LimitReached(title)
    if status == 503:
        return StorageFailed(title)
    if status >= 500:
        return HubUnreachable(title)
    return InvalidRequest(title)


_STATUS_BY_CODE = {
    -32700: 400, -32600: 400, -32601: 400, -32602: 400, -32603: 500,
    -32003: 403, -32004: 404, -32009: 409, -32022: 422, -32029: 429, -32053: 503,
}  # fmt: skip


def rpc_error(error: Mapping[str, Any]) -> SaysoError:
    """Converts a JSON-RPC error to an exception."""
    data = error.get("data")
    problem = data if isinstance(data, Mapping) else {"title": error.get("message")}
    status = problem.get("status")
    if not isinstance(status, int):
        code = error.get("code")
        status = _STATUS_BY_CODE.get(code, 400) if isinstance(code, int) else 400
    return problem_to_error(status, problem)
