"""The cost of an event and of a token through the client, compared with a bare WebSocket that sends the same calls to the same hub.

`python benches/bench_client.py [COUNT]` starts a hub (SAYSO_BIN, or target/release/sayso, or target/debug/sayso) and prints microseconds
per item and the ratio to the bare WebSocket. Each event waits for its response; tokens are sent as they arrive.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from pathlib import Path

from websockets.asyncio.client import connect

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python/tests"))
for build in ("release", "debug"):
    if (ROOT / "target" / build / "sayso").exists():
        os.environ.setdefault("SAYSO_BIN", str(ROOT / "target" / build / "sayso"))

import sayso  # noqa: E402
from support import HubProcess  # noqa: E402

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
ROUNDS = 3
WORDS = ["The ", "bill ", "of ", "March ", "is ", "5 ", "euro. "]
EVENT = {"type": "aaep:agent.state.changed", "to_state": "thinking", "summary_normal": "Looking at the bills."}


async def bare_events(url: str) -> float:
    async with connect(url.replace("http", "ws") + "/agent/v1/ws", compression=None, proxy=None) as socket:
        session = await start(socket)
        begin = time.perf_counter()
        for number in range(COUNT):
            params = {"session_id": session, "event": EVENT}
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": "session.event", "params": params}))
            await socket.recv()
        return time.perf_counter() - begin


async def bare_tokens(url: str) -> float:
    async with connect(url.replace("http", "ws") + "/agent/v1/ws", compression=None, proxy=None) as socket:
        session = await start(socket)
        begin = time.perf_counter()

        async def drain() -> None:
            for _ in range(COUNT):
                await socket.recv()

        reader = asyncio.create_task(drain())
        for number in range(COUNT):
            params = {"session_id": session, "text": WORDS[number % len(WORDS)]}
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": "session.output", "params": params}))
        await reader
        return time.perf_counter() - begin


async def start(socket) -> str:
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": "start", "method": "session.start", "params": {"summary_normal": "Bench."}}))
    return json.loads(await socket.recv())["result"]["session_id"]


async def client_events(url: str) -> float:
    hub = sayso.hub(url)
    async with hub.session("Bench.") as s:
        begin = time.perf_counter()
        for _ in range(COUNT):
            await s.think("Looking at the bills.")
        seconds = time.perf_counter() - begin
    await hub.aclose()
    return seconds


async def client_tokens(url: str) -> float:
    hub = sayso.hub(url)
    async with hub.session("Bench.") as s:
        begin = time.perf_counter()
        await s.say(WORDS[number % len(WORDS)] for number in range(COUNT))
        seconds = time.perf_counter() - begin
    await hub.aclose()
    return seconds


def client_events_blocking(url: str) -> float:
    hub = sayso.hub(url)
    with hub.session("Bench.") as s:
        begin = time.perf_counter()
        for _ in range(COUNT):
            s.think("Looking at the bills.")
        seconds = time.perf_counter() - begin
    hub.close()
    return seconds


def main() -> None:
    hub = HubProcess()
    results: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, work in (
            ("bare WebSocket, event", lambda: asyncio.run(bare_events(hub.url))),
            ("client async, event", lambda: asyncio.run(client_events(hub.url))),
            ("client blocking, event", lambda: client_events_blocking(hub.url)),
            ("bare WebSocket, token", lambda: asyncio.run(bare_tokens(hub.url))),
            ("client async, token", lambda: asyncio.run(client_tokens(hub.url))),
        ):
            results.setdefault(name, []).append(work() / COUNT * 1e6)
    hub.close()
    for name, values in results.items():
        floor = statistics.median(results["bare WebSocket, " + name.rsplit(" ", 1)[1]])
        middle = statistics.median(values)
        print(f"{name:26} {middle:8.1f} us  {middle / floor:5.2f}x")


main()
