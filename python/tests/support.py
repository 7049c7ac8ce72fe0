"""A real hub, a scripted listener and helpers for tests."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

#: How long a test waits for something that must happen. It is only reached if the test fails.
TIMEOUT_SECONDS = 60.0

ROOT = Path(__file__).resolve().parents[2]
SAYSO = os.environ.get("SAYSO_BIN") or str(ROOT / "target/debug/sayso")

Event = dict[str, Any]
#: Decides how a question is answered: "accept", "reject", "modify", a response, or None for no answer.
Script = Callable[[Event], Any]


class HubProcess:
    """A `sayso serve` process. With `is_personal`, it is the personal hub of an environment in a temporary folder."""

    def __init__(self, *options: str, has_tokens: bool = False, is_personal: bool = False) -> None:
        self.has_tokens = has_tokens
        self.is_personal = is_personal
        self.folder = tempfile.TemporaryDirectory(prefix="sayso-test-")
        self.socket_path = str(Path(self.folder.name, "hub.sock"))
        self.token_file = str(Path(self.folder.name, "tokens"))
        self._options = options
        self.process: subprocess.Popen[str] | None = None
        self.url = ""
        if has_tokens:
            self.agent_token = self.new_token("agent", "--agent-id", "payer")
            self.listener_token = self.new_token("receiver")
        self.start()

    @property
    def personal_environment(self) -> dict[str, str]:
        """The variables by which programs find the personal hub, and by which the hub finds its folders."""
        if not self.is_personal:
            return {}
        variables = {"XDG_RUNTIME_DIR": "run", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config", "HOME": "home"}
        folders = {name: Path(self.folder.name, folder) for name, folder in variables.items()}
        for folder in folders.values():
            folder.mkdir(mode=0o700, exist_ok=True)
        return {name: str(folder) for name, folder in folders.items()}

    def new_token(self, role: str, *options: str) -> str:
        command = [
            SAYSO,
            "token",
            "new",
            "--role",
            role,
            "--name",
            "-".join([role, *options[1:]]),
            "--tokens",
            self.token_file,
            *options,
        ]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]

    def start(self, listen: str = "127.0.0.1:0") -> None:
        access = ["--tokens", self.token_file] if self.has_tokens else ["--open"]
        command = [SAYSO, "serve", *access, "--listen", listen, "--unix", self.socket_path]
        if self.is_personal:
            command = [SAYSO, "serve", "--personal"]
        elif "--data" not in self._options:
            command.append("--memory")
        # The hub reads its settings from variables that start with SAYSO_, and those of the tests are not for it.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SAYSO_")}
        environment |= self.personal_environment
        self.process = subprocess.Popen([*command, *self._options], stderr=subprocess.PIPE, text=True, env=environment)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.startswith("listening on http"):
                self.url = line.split()[-1]
                break
        else:
            raise RuntimeError("the hub did not start")
        threading.Thread(target=self._drain, args=(self.process.stderr,), daemon=True).start()

    @staticmethod
    def _drain(stream: Any) -> None:
        for _ in stream:
            pass

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """Starts the hub again at the same address."""
        Path(self.socket_path).unlink(missing_ok=True)
        self.start(self.url.removeprefix("http://"))

    def close(self) -> None:
        self.kill()
        self.folder.cleanup()


class Listener:
    """A listener that records every event and answers questions by a script."""

    def __init__(
        self,
        hub: HubProcess,
        script: Script | str | None = "accept",
        languages: tuple[str, ...] = ("en",),
        **more_capabilities: Any,
    ) -> None:
        self.events: list[Event] = []
        self.script: Script = script if callable(script) else (lambda event: script)
        self._changed = threading.Condition()
        self._languages = languages
        headers = {"Authorization": f"Bearer {hub.listener_token}"} if hub.has_tokens else {}
        url = hub.url.replace("http", "ws") + "/aaep/v1/ws"
        self._socket = connect(url, subprotocols=["aaep.v1"], additional_headers=headers, proxy=None).__enter__()
        self._subscription = ""
        capabilities = {
            "supports_confirmation_reply": True,
            "supports_clarification_reply": True,
            "preferred_verbosity": "detailed",
            "languages": list(languages),
            "supported_conformance_levels": [1, 2, 3],
            "sayso": {"handoffs": hub.has_tokens},
            **more_capabilities,
        }
        self._send(
            {"type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "person", "capabilities": capabilities}
        )
        accepted = json.loads(self._socket.recv())
        assert accepted["type"] == "subscription.accepted", accepted
        self._subscription = accepted["subscription_id"]
        threading.Thread(target=self._listen, daemon=True).start()

    def _send(self, message: dict[str, Any]) -> None:
        if self._subscription:
            now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            message = {**message, "timestamp": now, "subscription_id": self._subscription}
        self._socket.send(json.dumps(message))

    def _listen(self) -> None:
        try:
            for text in self._socket:
                event = json.loads(text)
                with self._changed:
                    self.events.append(event)
                    self._changed.notify_all()
                if (
                    str(event.get("type")).startswith("aaep:agent.awaiting.")
                    or event.get("type") == "aaep:agent.handoff.requested"
                ):
                    answer = self.script(event)
                    if answer is not None:
                        self.answer(event, answer)
        except (ConnectionClosed, OSError):
            pass

    def answer(self, event: Event, answer: Any) -> None:
        token = event.get("reply_token") or event.get("extensions", {}).get("sayso", {}).get("handoff", {}).get("reply_token")
        if event["type"] == "aaep:agent.awaiting.confirmation":
            message = {"type": "confirmation.reply", "reply_token": token, "decision": "accept" if answer == "modify" else answer}
            if answer == "modify":
                message["modified_action"] = {"amount": "1"}
            self._send(message)
        elif event["type"] == "aaep:agent.handoff.requested":
            kind = "acknowledge" if answer == "accept" else "reject"
            self._send({"type": f"sayso:handoff.{kind}", "reply_token": token, "note": "Understood."})
        else:
            self._send({"type": "clarification.reply", "reply_token": token, "response": answer})

    def stop(self, session_id: str) -> None:
        self._send({"type": "sayso:session.stop", "session_id": session_id})

    def wait(self, predicate: Callable[[list[Event]], Any]) -> Any:
        """Waits until the predicate is true of the recorded events, and returns its value."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        with self._changed:
            while not (value := predicate(self.events)):
                remaining = deadline - time.monotonic()
                if remaining <= 0 or not self._changed.wait(remaining):
                    raise AssertionError(f"did not happen; events: {[describe(event) for event in self.events]}")
            return value

    def wait_for(self, event_type: str, count: int = 1) -> Event:
        """Waits for the `count`th event of a type."""
        full = f"aaep:agent.{event_type}"

        def find(events: list[Event]) -> Event | None:
            found = [event for event in events if event.get("type") == full]
            return found[count - 1] if len(found) >= count else None

        event: Event = self.wait(find)
        return event

    def wait_for_end(self, count: int = 1) -> list[Event]:
        """Waits until this many sessions have ended, and returns all events."""
        self.wait(lambda events: sum(is_end(event) for event in events) >= count)
        return self.of_sessions()

    def of_sessions(self) -> list[Event]:
        with self._changed:
            return [event for event in self.events if str(event.get("type")).startswith("aaep:")]

    def of_type(self, event_type: str) -> list[Event]:
        return [event for event in self.of_sessions() if event["type"] == f"aaep:agent.{event_type}"]

    def text(self) -> str:
        """Returns all output."""
        return "".join(str(event.get("chunk", "")) for event in self.of_type("output.streaming"))

    def validate(self) -> None:
        """Checks all recorded events with `sayso validate`."""
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as file:
            for event in self.of_sessions():
                file.write(json.dumps(event) + "\n")
        result = subprocess.run([SAYSO, "validate", file.name], capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        Path(file.name).unlink()
        assert result.returncode == 0, result.stdout + result.stderr

    def close(self) -> None:
        self._socket.close()


def is_end(event: Event) -> bool:
    return event.get("type") in ("aaep:agent.session.completed", "aaep:agent.session.errored", "aaep:agent.session.cancelled")


def describe(event: Event) -> str:
    return f"{str(event.get('type')).removeprefix('aaep:agent.')}: {event.get('summary_normal') or event.get('chunk')}"
