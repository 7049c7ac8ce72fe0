"""The hooks for tools that Claude Code runs itself."""

from __future__ import annotations

import asyncio
import os

import pytest

claude_agent_sdk = pytest.importorskip("claude_agent_sdk")
if "claude_agent" not in os.environ.get("TEST_ADAPTER", "claude_agent"):
    pytest.skip("another adapter is tested", allow_module_level=True)

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

import sayso
from sayso.claude_agent import hooks, narrate
from scripted_model import ScriptedModel


@pytest.mark.parametrize("answer", ["accept", "reject"])
def test_bash_runs_only_after_a_yes(hub, listen, tmp_path, answer):
    listener = listen(answer)
    marker = tmp_path / "marker"
    model = ScriptedModel([
        {"text": "I run it. ", "calls": [("Bash", {"command": f"touch {marker}", "description": "Touch a file"})]},
        {"text": "All is tidy.", "calls": []},
    ])  # fmt: skip

    async def main():
        async with sayso.hub(hub.url).session("Tidy up."):
            policies = {"Bash": sayso.Policy(irreversible=True, action="Run {command}.")}
            options = ClaudeAgentOptions(
                cwd=tmp_path,
                env={"HOME": str(tmp_path), "ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_AUTH_TOKEN": "x",
                     "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
                hooks=hooks(policies),
                setting_sources=[],
            )  # fmt: skip
            async with ClaudeSDKClient(options) as client:
                await client.query("Tidy up.")
                async for _ in narrate(client.receive_response()):
                    pass

    asyncio.run(main())
    assert marker.exists() == (answer == "accept")
    listener.wait_for_end()
    assert len(listener.of_type("awaiting.confirmation")) == 1
    assert ("The tool was not run" in model.sent_text()) == (answer == "reject")
    listener.validate()
