"""The gate before tools that Claude Code runs itself."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

claude_agent_sdk = pytest.importorskip("claude_agent_sdk")
if "claude_agent" not in os.environ.get("TEST_ADAPTER", "claude_agent"):
    pytest.skip("another adapter is tested", allow_module_level=True)

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher

import sayso
from sayso.claude_agent import gate_options, narrate
from scripted_model import ScriptedModel


def play(hub, model, folder, matchers=(), **options):
    """Lets Claude Code run what the model says. `matchers` are hooks of the agent's author."""

    async def main():
        async with sayso.hub(hub.url).session("Tidy up."):
            own = ClaudeAgentOptions(
                cwd=folder,
                env={"HOME": str(folder), "ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_AUTH_TOKEN": "x",
                     "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
                hooks={"PreToolUse": list(matchers)},
                setting_sources=[],
                **options,
            )  # fmt: skip
            policies = {"Bash": sayso.Policy(irreversible=True, action="Run {command}.")}
            async with ClaudeSDKClient(gate_options(own, policies)) as client:
                await client.query("Tidy up.")
                async for _ in narrate(client.receive_response()):
                    pass

    asyncio.run(main())


def scripted(marker):
    return ScriptedModel([
        {"text": "I run it. ", "calls": [("Bash", {"command": f"touch {marker}", "description": "Touch a file"})]},
        {"text": "All is tidy.", "calls": []},
    ])  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"allowed_tools": ["Bash"]}], ids=["default", "allowed"])
@pytest.mark.parametrize("answer", ["accept", "reject"])
def test_bash_runs_only_after_a_yes(hub, listen, tmp_path, answer, options):
    listener = listen(answer)
    marker = tmp_path / "marker"
    model = scripted(marker)
    play(hub, model, tmp_path, **options)
    assert marker.exists() == (answer == "accept")
    listener.wait_for_end()
    assert len(listener.of_type("awaiting.confirmation")) == 1
    assert ("The tool was not run" in model.sent_text()) == (answer == "reject")
    listener.validate()


@pytest.mark.parametrize("is_late", [False, True])
def test_a_hook_that_changes_the_arguments_of_bash(hub, listen, tmp_path, is_late):
    """Claude Code runs all hooks at the same time, and the last that returns other arguments wins."""
    answered = threading.Event()

    def accept(event):
        answered.set()
        return "accept"

    listener = listen(accept)
    marker, changed = tmp_path / "marker", tmp_path / "changed"

    async def change(data, tool_use_id, context):
        if is_late:
            await asyncio.to_thread(answered.wait)
            await asyncio.to_thread(listener.wait_for, "tool.invoked")
        arguments = {"command": f"touch {changed}", "description": "Touch a file"}
        output = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": arguments}
        return {"hookSpecificOutput": output}

    play(hub, scripted(marker), tmp_path, [HookMatcher(hooks=[change])], allowed_tools=["Bash"])
    assert not changed.exists(), "nobody was asked about it"
    listener.wait_for_end()
    assert all(str(marker) in event["action"] for event in listener.of_type("awaiting.confirmation"))
    listener.validate()
