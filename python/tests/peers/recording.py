"""The recordings of `recordings/`: what AAEP's producers and our adapters report, with the same model and the same tool.

A test runs the producer again and compares what it reports with the recording. `REWRITE_RECORDINGS=1` writes the recordings; read the
diff before you commit it, and update docs/interop.md.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from support import ROOT, SAYSO, TIMEOUT_SECONDS

FOLDER = Path(__file__).resolve().parent / "recordings"
PAGE = ROOT / "docs/interop.md"


def compare(name, events, has_run):
    """Compares what was reported with the recording of this name. Returns the kinds of the events, in order."""
    path = FOLDER / f"{name}.jsonl"
    if os.environ.get("REWRITE_RECORDINGS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events))
    recorded = [json.loads(line) for line in path.read_text().splitlines()]
    assert outline(events) == outline(recorded)
    # The page shows what the recording contains, in one row.
    order = " → ".join(f"`{kind}`" for kind in kinds(recorded))
    assert f"| [{path.name}](../python/tests/peers/recordings/{path.name}) | {order} | {'yes' if has_run else 'no'} |" in PAGE.read_text()
    return kinds(events)


def outline(events):
    """Returns what must be the same in each run. An output can be in any number of pieces."""
    members = ("tool", "risk_level", "irreversible", "action", "status", "to_state")
    steps = [(kind_of(event), {name: event[name] for name in members if name in event}) for event in events]
    return [step for index, step in enumerate(steps) if index == 0 or step != steps[index - 1] or step[0] != "output.streaming"]


def kinds(events):
    return [kind for kind, _ in outline(events) if kind != "state.changed"]


def kind_of(event):
    return event["type"].removeprefix("aaep:agent.")


def findings(name):
    """Returns what `sayso validate` says about a recording: its exit code and its output."""
    command = [SAYSO, "validate", str(FOLDER / f"{name}.jsonl")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    return result.returncode, result.stdout


def dangerous_call(events, kind):
    """Returns the event of this kind about the tool `wipe`. It says that the call cannot be undone."""
    event = next(event for event in events if kind_of(event) == kind)
    assert (event["risk_level"], event["irreversible"]) == ("high", True), event
    return event
