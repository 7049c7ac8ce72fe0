"""Fixtures: a hub for each test, and listeners that are closed afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sayso
from support import HubProcess, Listener, Script


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    process = HubProcess()
    yield process
    process.close()


@pytest.fixture
def listen(hub: HubProcess) -> Iterator[Callable[..., Listener]]:
    listeners: list[Listener] = []

    def start(script: Script | str | None = "accept", languages: tuple[str, ...] = ("en",), **capabilities: Any) -> Listener:
        listeners.append(Listener(hub, script, languages, **capabilities))
        return listeners[-1]

    yield start
    for listener in listeners:
        listener.close()


@pytest.fixture
def client(hub: HubProcess) -> Iterator[sayso.Hub]:
    """A client with a short timeout, so that tests of an unreachable hub end."""
    client = sayso.hub(hub.url, connect_timeout=2.0)
    yield client
    client.close()
