"""A small HTTP client on the standard library, for networks that block WebSocket.

Each request runs on a daemon thread of its own, so an open question never delays the end of the interpreter.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import threading
from typing import Any

from ._address import Address
from ._rpc import HttpRequest
from .errors import HubUnreachable, UntrustedHub

#: The maximum size of a response, in bytes.
MAX_RESPONSE_BYTES = 64 * 1024 * 1024


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, address: Address, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._address = address

    def connect(self) -> None:
        self.sock = self._address.open_unix_socket(self.timeout or 30.0)


class HttpClient:
    """Sends requests to the agent API."""

    def __init__(self, address: Address, token: str | None, tls: ssl.SSLContext | None) -> None:
        self._address = address
        self._token = token
        self._tls = tls

    async def send(self, request: HttpRequest, key: str | None, timeout: float) -> tuple[int, dict[str, Any]]:
        """Sends a request. Returns the status and the JSON body."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[int, dict[str, Any]]] = loop.create_future()

        def run() -> None:
            result: tuple[int, dict[str, Any]] | None = None
            failure: BaseException | None = None
            try:
                result = self._send(request, key, timeout)
            except BaseException as error:
                failure = error

            def deliver() -> None:
                if future.done():
                    return
                if failure is not None:
                    future.set_exception(failure)
                elif result is not None:
                    future.set_result(result)

            try:
                loop.call_soon_threadsafe(deliver)
            except RuntimeError:
                pass  # The loop has ended, so nobody waits for the response.

        threading.Thread(target=run, name="sayso-http", daemon=True).start()
        return await future

    def _send(self, request: HttpRequest, key: str | None, timeout: float) -> tuple[int, dict[str, Any]]:
        connection = self._connect(timeout)
        try:
            headers = {"Content-Type": request.content_type, "Host": self._address.http_host, "Connection": "close"}
            if self._token:
                headers["Authorization"] = f"Bearer {self._token}"
            if key and request.method == "POST":
                headers["Idempotency-Key"] = key
            connection.request(request.method, request.path, request.body, headers)
            response = connection.getresponse()
            body = response.read(MAX_RESPONSE_BYTES + 1)
            if len(body) > MAX_RESPONSE_BYTES:
                raise HubUnreachable("the hub's response is too large")
            try:
                value = json.loads(body) if body else {}
            except (ValueError, RecursionError):
                value = {}
            return response.status, value if isinstance(value, dict) else {}
        except ssl.SSLError as error:
            raise UntrustedHub(f"the hub's certificate is not trusted: {error}") from error
        except (OSError, http.client.HTTPException) as error:
            raise HubUnreachable(f"the hub at {self._address} cannot be reached: {error}") from error
        finally:
            connection.close()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        if self._address.socket_path is not None:
            return _UnixConnection(self._address, timeout)
        if self._address.tls:
            return http.client.HTTPSConnection(self._address.host, self._address.port, timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(self._address.host, self._address.port, timeout=timeout)
