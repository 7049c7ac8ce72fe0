"""Networks that block WebSocket: the client uses HTTP instead, and asks as before."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

import sayso
from sayso import _connection

#: Decides what happens to the nth WebSocket upgrade: "pass", "swallow", "cut", or the bytes of a response.
Upgrade = Callable[[int], str | bytes]


class Proxy:
    """A proxy that forwards connections, except for those that it blocks."""

    def __init__(self, url: str, upgrade: Upgrade) -> None:
        parts = urlsplit(url)
        self._target = (str(parts.hostname), int(parts.port or 80))
        self._upgrade = upgrade
        self.upgrades = 0
        self._sockets: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._sockets.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                data = client.recv(4096)
                if not data:
                    return
                head += data
            if b"upgrade: websocket" in head.lower():
                self.upgrades += 1
                decision = self._upgrade(self.upgrades)
                if decision == "swallow":
                    return
                if decision != "pass":
                    client.sendall(decision if isinstance(decision, bytes) else b"")
                    client.shutdown(socket.SHUT_RDWR)
                    return
            hub = socket.create_connection(self._target)
            self._sockets.append(hub)
            # The hub refuses requests with the name of another server.
            hub.sendall(re.sub(rb"(?im)^host: [^\r]+", b"Host: %s:%d" % (self._target[0].encode(), self._target[1]), head))
            threading.Thread(target=self._pump, args=(hub, client), daemon=True).start()
            self._pump(client, hub)

    @staticmethod
    def _pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """Ends all connections."""
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._server.close()
        self.cut()


@pytest.fixture
def proxy(hub) -> Iterator[Callable[[Upgrade], Proxy]]:
    proxies: list[Proxy] = []

    def start(upgrade: Upgrade) -> Proxy:
        proxies.append(Proxy(hub.url, upgrade))
        return proxies[-1]

    yield start
    for started in proxies:
        started.close()


def wipe(client: sayso.Hub) -> list[str]:
    """Asks for a dangerous function in a session. Returns what it did."""
    wiped: list[str] = []

    @sayso.tool(irreversible=True, action="Wipe {what}.", consequence="It is gone.")
    def wipe(what: str) -> None:
        wiped.append(what)

    with contextlib.suppress(sayso.Refused), client.session("Tidy up."):
        wipe("photos")
    return wiped


BLOCKED = {
    "swallowed": "swallow",
    "cut": "cut",
    "refused": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "answered": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "broken": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\n\r\n",
}


@pytest.mark.parametrize("answer", ["accept", "reject"])
@pytest.mark.parametrize("blocked", BLOCKED.values(), ids=BLOCKED)
def test_where_websocket_is_blocked_http_is_used(monkeypatch, listen, proxy, blocked, answer):
    monkeypatch.setattr(_connection, "_UPGRADE_SECONDS", 0.2)
    listener = listen(answer)
    between = proxy(lambda number: blocked)
    client = sayso.hub(between.url)
    assert wipe(client) == (["photos"] if answer == "accept" else [])
    assert between.upgrades == 1, "it is not tried again"
    listener.wait_for_end()
    listener.validate()
    client.close()


def test_where_websocket_is_required_http_is_not_used(hub, proxy):
    client = sayso.hub(proxy(lambda number: BLOCKED["refused"]).url, transport="websocket", connect_timeout=0.5)
    with pytest.raises(sayso.HubUnreachable, match="status 400"), client.session("Tidy up."):
        pass
    client.close()


def test_a_websocket_that_fails_later_is_reopened(listen, proxy):
    """A proxy answers upgrades with 502 while the hub behind it restarts. The answer arrives on the next connection."""
    listener = listen(None)
    between = proxy(lambda number: b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n" if number == 2 else "pass")
    client = sayso.hub(between.url)
    wiped: list[list[str]] = []
    worker = threading.Thread(target=lambda: wiped.append(wipe(client)))
    worker.start()
    question = listener.wait_for("awaiting.confirmation")
    between.cut()
    listener.answer(question, "accept")
    worker.join()
    assert wiped == [["photos"]]
    assert between.upgrades == 3
    listener.wait_for_end()
    listener.validate()
    client.close()


def test_without_a_hub_behind_the_proxy_nothing_runs(hub, proxy):
    between = proxy(lambda number: "swallow")
    hub.kill()
    client = sayso.hub(between.url, connect_timeout=0.5)
    with pytest.raises(sayso.HubUnreachable):
        wipe(client)
    client.close()
