"""The calls of the agent API, independent of the transport."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args
from urllib.parse import quote, urlencode

from ._agent_api import ROUTES
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
QuestionMethod = Literal["session.ask", "session.clarify", "session.hand_off"]

#: Calls that open a question. Over HTTP their answer is polled.
QUESTION_METHODS = frozenset(get_args(QuestionMethod))

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
    route = ROUTES.get(method)
    if route is None:
        return None
    path, members = route.path, dict(params)
    for name in ("session_id", "reply_token"):
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", quote(str(members.pop(name)), safe=""))
    if method == "agent.manifest":
        manifest = members["manifest"]
        if isinstance(manifest, str):
            return HttpRequest(route.verb, path, manifest.encode(), "application/jose")
        return HttpRequest(route.verb, path, dumps(manifest).encode())
    if method == "session.event":
        if "event" in members:
            return HttpRequest(route.verb, path, dumps(members["event"]).encode())
        lines = "\n".join(map(dumps, members["events"]))
        return HttpRequest(route.verb, path, lines.encode(), "application/x-ndjson")
    if method == "session.output":
        text = str(members.pop("text"))
        query = {name: "true" if value is True else str(value) for name, value in members.items() if value not in (None, False)}
        suffix = "?" + urlencode(query) if query else ""
        return HttpRequest(route.verb, path + suffix, text.encode(), "text/plain; charset=utf-8")
    return HttpRequest(route.verb, path, dumps(members).encode() if members else None)


def reply_path(session_id: str, token: str) -> str:
    path = ROUTES["session.withdraw"].path
    return path.replace("{session_id}", quote(session_id, safe="")).replace("{reply_token}", quote(token, safe=""))


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
