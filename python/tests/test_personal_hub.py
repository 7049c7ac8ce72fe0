"""The personal hub of the user (`sayso serve --personal`), and sockets that are not used because another user may serve them."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import sayso
from sayso import _address
from support import TIMEOUT_SECONDS, HubProcess, Listener
from test_install import FIRST_PROGRAM


@pytest.fixture
def personal(monkeypatch):
    hub = HubProcess(is_personal=True)
    for name in ("SAYSO_URL", "SAYSO_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", hub.personal_environment["XDG_RUNTIME_DIR"])
    yield hub
    hub.close()


@pytest.mark.parametrize("answer", ["accept", "reject"])
def test_the_first_example_of_the_readme_finds_the_personal_hub(personal, answer):
    listener = Listener(personal, answer)
    assert FIRST_PROGRAM is not None
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SAYSO_")}
    command = [sys.executable, "-c", FIRST_PROGRAM[1]]
    result = subprocess.run(
        command, capture_output=True, text=True, env={**environment, **personal.personal_environment}, timeout=TIMEOUT_SECONDS
    )
    assert ("sent 5.00 to Ben" in result.stdout) == (answer == "accept"), result.stderr
    assert (result.returncode == 0) == (answer == "accept")
    listener.wait_for_end()
    assert listener.of_type("awaiting.confirmation")[0]["action"] == "Send 5.00 euros to Ben."
    assert len(listener.of_type("tool.invoked")) == (answer == "accept")
    listener.validate()
    listener.close()


@pytest.mark.parametrize("transport", ["websocket", "http"])
def test_a_question_through_the_socket_of_the_personal_hub(personal, transport):
    listener = Listener(personal, "accept")
    client = sayso.hub(transport=transport)
    assert client.address == f"unix:{personal.personal_environment['XDG_RUNTIME_DIR']}/aaep/sayso-hub.sock"
    ran = []

    async def wipe(what):
        ran.append(what)

    async def main():
        async with client.session("Tidy up.") as s:
            await s.call(await s.ask("wipe", {"what": "photos"}, action="Wipe {what}.", irreversible=True), wipe)

    asyncio.run(main())
    client.close()
    assert ran == ["photos"]
    listener.wait_for_end()
    listener.validate()
    listener.close()


def test_without_a_personal_hub_nothing_runs(monkeypatch, tmp_path):
    monkeypatch.delenv("SAYSO_URL", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    client = sayso.hub(connect_timeout=0.5)
    with pytest.raises(sayso.HubUnreachable, match=r"sayso-hub\.sock"), client.session("Hello."):
        pass


def refuse(path):
    client = sayso.hub(f"unix:{path}", connect_timeout=0.5)
    with pytest.raises(sayso.UntrustedHub) as refusal, client.session("Hello."):
        pass
    return str(refusal.value)


def test_a_path_that_is_not_a_socket_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    assert "is not a socket" in refuse(tmp_path / "file")


def test_a_link_to_a_socket_is_refused(hub, tmp_path):
    (tmp_path / "link").symlink_to(hub.socket_path)
    assert "is not a socket" in refuse(tmp_path / "link")


def test_a_folder_in_which_others_can_replace_the_socket_is_refused(hub):
    folder = Path(hub.socket_path).parent
    for mode in (0o770, 0o707, 0o777):
        folder.chmod(mode)
        assert "can replace" in refuse(hub.socket_path), oct(mode)
    # Others can create files in a folder with the sticky bit, but not replace ours.
    folder.chmod(0o1777)
    _address.check_owner(hub.socket_path)
    folder.chmod(0o700)


def test_a_socket_of_another_user_is_refused(hub, monkeypatch):
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert "belongs to another user" in refuse(hub.socket_path)


def test_a_socket_that_another_user_serves_is_refused(hub, monkeypatch):
    monkeypatch.setattr(_address, "peer_user", lambda connection: os.getuid() + 1)
    assert "is served by another user" in refuse(hub.socket_path)


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="the platform does not tell who serves a socket")
def test_the_platform_tells_who_serves_a_socket(hub):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(hub.socket_path)
        assert _address.peer_user(connection) == os.getuid()
