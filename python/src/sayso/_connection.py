"""The connection to a hub: one WebSocket that is reopened when it is lost, or HTTP where WebSocket is blocked.

Calls that have no response yet are sent again on a new connection. Each has an idempotency key, so the hub applies it once.
Everything in this module runs on the background loop.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException

from ._address import Address
from ._check import check, check_notification, check_result
from ._http import HttpClient
from ._rpc import (
    QUESTION_METHODS,
    HttpRequest,
    Params,
    Result,
    encode_rpc,
    problem_to_error,
    reply_path,
    rpc_error,
    to_http,
)
from ._runtime import runtime
from .errors import AccessDenied, HubUnreachable, MalformedResponse, SaysoError, UntrustedHub

Transport = Literal["auto", "websocket", "http"]
NotificationHandler = Callable[[str, dict[str, Any]], None]

#: The maximum size of a message from the hub, in bytes.
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
_FIRST_BACKOFF_SECONDS = 0.05
_MAX_BACKOFF_SECONDS = 2.0
#: How long one HTTP request waits for an answer, in seconds.
_POLL_SECONDS = 20
_HTTP_TIMEOUT_SECONDS = 30.0
#: How long the upgrade to WebSocket may take before the client tries HTTP, in seconds. Some proxies never answer an upgrade.
_UPGRADE_SECONDS = 5.0
#: After a silence of this length the client sends a ping, and after another one the connection counts as lost.
_PING_SECONDS = 20.0


class _WebSocketBlocked(Exception):
    """WebSocket is blocked on the way to the hub, so HTTP is used instead."""


@dataclass
class _Call:
    method: str
    message: str
    future: asyncio.Future[Result]

    @property
    def is_follow(self) -> bool:
        """A follow call is not repeated on a new connection, because a new connection follows all sessions anyway."""
        return self.method == "session.follow"


class Connection:
    """Calls the hub, and passes on its notifications."""

    def __init__(
        self,
        address: Address,
        token: str | None,
        tls: ssl.SSLContext | None,
        connect_timeout: float,
        transport: Transport,
        on_notification: NotificationHandler,
        followed_sessions: Callable[[], list[str]],
    ) -> None:
        self._address = address
        self._token = token
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._transport: Transport = transport
        self._on_notification = on_notification
        self._followed_sessions = followed_sessions
        self._http = HttpClient(address, token, tls)
        self._key_prefix = uuid.uuid4().hex
        self._next_number = 0
        self._pending: dict[int, _Call] = {}
        self._socket: ClientConnection | None = None
        self._task: asyncio.Task[None] | None = None
        #: Whether a WebSocket was open before. Then later failures are the hub's, for example while it restarts.
        self._has_connected = False
        self._is_closed = False
        #: Called with the JSON-RPC messages of the `agent.manifest` call on every new connection.
        self.on_connect: Callable[[], list[tuple[str, Params]]] = list

    @property
    def uses_http(self) -> bool:
        return self._transport == "http"

    async def call(self, method: str, params: Params) -> Result:
        """Calls the hub. Raises a :class:`SaysoError` if the hub refuses, or cannot be reached before the connect timeout."""
        if self._is_closed:
            raise HubUnreachable("the connection to the hub is closed")
        self._next_number += 1
        number = self._next_number
        key = f"{self._key_prefix}-{number}"
        if self._transport == "http":
            return await self._call_http(method, params, key)
        message = encode_rpc(number, method, params, key)
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._pending[number] = _Call(method, message, future)
        try:
            if self._socket is not None:
                await self._send(message)
            elif self._task is None or self._task.done():
                self._task = asyncio.get_running_loop().create_task(self._run())
            return await future
        except _WebSocketBlocked:
            return await self._call_http(method, params, key)
        finally:
            self._pending.pop(number, None)

    async def close(self) -> None:
        """Closes the connection. Calls without a response fail."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._fail_pending(HubUnreachable("the connection to the hub is closed"))

    async def _send(self, message: str) -> None:
        try:
            assert self._socket is not None
            await self._socket.send(message)
        except (WebSocketException, OSError):
            pass  # The reader notices the loss, connects again and repeats the call.

    # WebSocket

    async def _run(self) -> None:
        try:
            while True:
                socket = await self._open_with_retry()
                try:
                    await self._serve(socket)
                finally:
                    self._socket = None
                    await socket.close()
                if not self._pending and not self._followed_sessions():
                    return
        except asyncio.CancelledError:
            raise
        except _WebSocketBlocked as error:
            self._transport = "http"
            self._fail_pending(error)
        except SaysoError as error:
            self._fail_pending(error)
            self._on_notification("connection.lost", {"error": error})
        except BaseException as error:
            failure = HubUnreachable(f"the connection to the hub failed: {error}")
            self._fail_pending(failure)
            self._on_notification("connection.lost", {"error": failure})

    def _fail_pending(self, error: Exception) -> None:
        for call in list(self._pending.values()):
            if not call.future.done():
                call.future.set_exception(error)

    async def _open_with_retry(self) -> ClientConnection:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._connect_timeout
        backoff = _FIRST_BACKOFF_SECONDS
        can_fall_back = self._transport == "auto" and not self._has_connected
        while True:
            remaining = max(deadline - loop.time(), 0.01)
            try:
                limit = min(_UPGRADE_SECONDS, self._connect_timeout / 2) if can_fall_back else remaining
                socket = await asyncio.wait_for(self._open(), min(limit, remaining))
                self._has_connected = True
                return socket
            except HubUnreachable as error:
                failure = error
            except asyncio.TimeoutError:
                failure = HubUnreachable(f"the hub at {self._address} did not answer in time")
            if can_fall_back and await self._answers_http(deadline):
                raise _WebSocketBlocked
            if loop.time() + backoff >= deadline:
                raise failure
            await asyncio.sleep(backoff * random.uniform(0.75, 1.0))
            backoff = min(backoff * 2, _MAX_BACKOFF_SECONDS)

    async def _answers_http(self, deadline: float) -> bool:
        """Returns whether the hub answers over HTTP before the deadline."""
        remaining = deadline - asyncio.get_running_loop().time()
        if remaining <= 0:
            return False
        try:
            request = self._http.send(HttpRequest("GET", "/healthz", None), None, remaining)
            status, _ = await asyncio.wait_for(request, remaining)
        except (HubUnreachable, asyncio.TimeoutError):
            return False
        return status == 200

    async def _open(self) -> ClientConnection:
        options: dict[str, Any] = {
            "max_size": MAX_MESSAGE_BYTES,
            "compression": None,
            "proxy": None,
            "ping_interval": _PING_SECONDS,
            "ping_timeout": _PING_SECONDS,
            "close_timeout": 1,
            "user_agent_header": None,
        }
        if self._token:
            options["additional_headers"] = {"Authorization": f"Bearer {self._token}"}
        if self._address.tls:
            options["ssl"] = self._tls
        try:
            if self._address.socket_path is not None:
                options["sock"] = self._address.open_unix_socket(self._connect_timeout)
                options["sock"].setblocking(False)
            return await connect(self._address.websocket_url, **options)
        except InvalidStatus as error:
            status = error.response.status_code
            if status in (401, 403):
                raise AccessDenied("the token is missing or does not permit this") from error
            raise HubUnreachable(f"the hub at {self._address} refused the WebSocket with status {status}") from error
        except ssl.SSLError as error:
            raise UntrustedHub(f"the hub's certificate is not trusted: {error}") from error
        except (OSError, InvalidHandshake, WebSocketException, EOFError) as error:
            raise HubUnreachable(f"the hub at {self._address} cannot be reached: {error}") from error

    async def _serve(self, socket: ClientConnection) -> None:
        """Sends what is pending and handles messages until the connection is lost."""
        for method, params in self.on_connect():
            await socket.send(encode_rpc(0, method, params, ""))
        for session in self._followed_sessions():
            runtime().spawn(self._follow(session))
        for call in list(self._pending.values()):
            if not call.is_follow:
                await socket.send(call.message)
        self._socket = socket
        try:
            async for message in socket:
                self._handle(message)
        except (WebSocketException, OSError):
            pass

    async def _follow(self, session: str) -> None:
        # If the session is over, the first call fails, and the hub then sends the reason, if it knows one. When the second call
        # fails, no reason will follow.
        for is_last in (False, True):
            try:
                await self.call("session.follow", {"session_id": session})
                return
            except HubUnreachable:
                return
            except SaysoError:
                if is_last:
                    self._on_notification("session.stopped", {"session_id": session, "reason": "ended"})

    def _handle(self, message: str | bytes) -> None:
        try:
            value = json.loads(message)
        except (ValueError, RecursionError) as error:
            raise MalformedResponse("the hub sent something that is not JSON") from error
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, dict):
                raise MalformedResponse("the hub sent something that is not JSON-RPC")
            method = item.get("method")
            if isinstance(method, str):
                params = check_notification(method, item.get("params"))
                if params is not None:
                    self._on_notification(method, params)
            else:
                self._handle_response(item)

    def _handle_response(self, response: dict[str, Any]) -> None:
        number = response.get("id")
        call = self._pending.get(number) if type(number) is int else None
        if call is None or call.future.done():
            return
        error = response.get("error")
        if isinstance(error, dict):
            call.future.set_exception(rpc_error(error))
            return
        try:
            call.future.set_result(check_result(call.method, response.get("result")))
        except MalformedResponse as malformed:
            call.future.set_exception(malformed)

    # HTTP

    async def _call_http(self, method: str, params: Params, key: str) -> Result:
        request = to_http(method, params)
        if request is None:
            return {}
        result = check_result(method, await self._request(request, key))
        if method in QUESTION_METHODS:
            runtime().spawn(self._poll(str(params["session_id"]), result["reply_token"]))
        return result

    async def _request(self, request: HttpRequest, key: str | None, timeout: float = _HTTP_TIMEOUT_SECONDS) -> Result:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._connect_timeout
        backoff = _FIRST_BACKOFF_SECONDS
        while True:
            try:
                status, body = await self._http.send(request, key, timeout)
                break
            except HubUnreachable:
                if loop.time() + backoff >= deadline or self._is_closed:
                    raise
            await asyncio.sleep(backoff * random.uniform(0.75, 1.0))
            backoff = min(backoff * 2, _MAX_BACKOFF_SECONDS)
        if status >= 400:
            raise problem_to_error(status, body)
        return body

    async def _poll(self, session: str, token: str) -> None:
        """Waits for the answer to a question, and delivers it like the notification of a WebSocket."""
        path = f"{reply_path(session, token)}?wait={_POLL_SECONDS}"
        while not self._is_closed:
            try:
                body = await self._request(HttpRequest("GET", path, None), None, _POLL_SECONDS + _HTTP_TIMEOUT_SECONDS)
                result = check("Reply", body, "the answer to a question")
            except SaysoError as error:
                self._on_notification("question.lost", {"session_id": session, "reply_token": token, "error": error})
                return
            if result["status"] != "pending":
                params = {**result, "session_id": session, "reply_token": token}
                self._on_notification("session.resolved", params)
                if result["status"] == "stopped":
                    self._on_notification("session.stopped", {"session_id": session, "reason": "user"})
                return
