"""Runs one example with a hub of its own and a listener that answers.

    python examples/run.py NAME [--answer accept|reject|none] [ARGUMENT...]

NAME is a file of this folder without `.py`, such as `langchain_agent` or `patterns`. Prints what the listener hears. `SAYSO_BIN`
names the command `sayso`; the default is the debug build of this checkout.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "tests"))

from support import Event, HubProcess, Listener  # noqa: E402


def main() -> int:
    names = sorted(file.stem for file in FOLDER.glob("*.py") if "sayso.session(" in file.read_text() and file.stem != "run")
    parser = argparse.ArgumentParser(usage="python examples/run.py NAME [--answer accept|reject|none] [ARGUMENT...]")
    parser.add_argument("name", choices=names)
    parser.add_argument("--answer", choices=["accept", "reject", "none"], default="accept")
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_intermixed_args()

    def answer(question: Event) -> str | None:
        return None if options.answer == "none" else str(options.answer)

    hub = HubProcess()
    listener = Listener(hub, answer)
    environment = {**os.environ, "SAYSO_URL": hub.url}
    command = [sys.executable, str(FOLDER / f"{options.name}.py"), *options.arguments]
    code = subprocess.run(command, env=environment).returncode
    if code == 0:
        listener.wait_for_end()
    for event in listener.of_sessions():
        text = event.get("action") or event.get("summary_normal") or event.get("chunk")
        if text and text.strip():
            print(f"heard: {text.strip()}")
    listener.close()
    hub.close()
    return code


if __name__ == "__main__":
    sys.exit(main())
