"""The README and the examples are tested code: each runs against the real hub, with a yes and with a no."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import TIMEOUT_SECONDS

FOLDER = Path(__file__).resolve().parents[1]
EXAMPLES = {
    "langchain": ["langchain_agent"],
    "langgraph": ["langgraph_graph"],
    "openai_agents": ["openai_agents_agent"],
    "anthropic": ["anthropic_tool_runner"],
    "openai_chat": ["openai_chat_loop"],
    "openai_responses": ["openai_responses_loop"],
    "openai_assistants": ["openai_assistant"],
    "agent_framework": ["agent_framework_agent"],
    "autogen": ["autogen_agent"],
    "semantic_kernel": ["semantic_kernel_agent"],
    "claude_agent": ["claude_agent_client"],
    "pydantic_ai": ["pydantic_ai_agent"],
    "google_adk": ["google_adk_agent"],
    "crewai": ["crewai_agent"],
    "strands": ["strands_agent"],
    "smolagents": ["smolagents_agent"],
}
ADAPTERS = [name for name in os.environ.get("TEST_ADAPTER", "").split(",") if name]
NAMES = [example for adapter in ADAPTERS for example in EXAMPLES.get(adapter, [])]
README_BLOCKS = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)


def run(arguments, hub):
    environment = {**os.environ, "SAYSO_URL": hub.url}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=FOLDER, timeout=TIMEOUT_SECONDS
    )


@pytest.mark.parametrize("answer", ["accept", "reject"])
@pytest.mark.parametrize("name", NAMES)
def test_an_example_wipes_only_after_a_yes(name, answer, hub, listen):
    listener = listen(answer)
    result = run([f"examples/{name}.py"], hub)
    assert result.returncode == 0, result.stderr
    assert ("wiped photos" in result.stdout) == (answer == "accept")
    listener.wait_for_end()
    assert "All is tidy." in listener.text()
    listener.validate()


@pytest.mark.skipif(bool(ADAPTERS), reason="needs no framework")
@pytest.mark.parametrize("answer", ["accept", "reject"])
@pytest.mark.parametrize("name", ["middleware", "callback", "decorator", "emitter", "loop"])
def test_a_pattern_of_the_guide(name, answer, hub, listen):
    listener = listen(answer)
    result = run(["examples/patterns.py", name], hub)
    assert result.returncode == 0, result.stderr
    assert ("wiped photos" in result.stdout) == (answer == "accept")
    listener.wait_for_end()
    listener.validate()


@pytest.mark.parametrize("answer", ["accept", "reject"])
@pytest.mark.parametrize("example", NAMES or [("patterns", "decorator")], ids=str)
def test_one_command_runs_an_example(example, answer):
    name, *arguments = [example] if isinstance(example, str) else example
    command = [sys.executable, "examples/run.py", name, "--answer", answer, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER, timeout=TIMEOUT_SECONDS)
    assert result.returncode == 0, result.stderr
    assert ("wiped photos" in result.stdout) == (answer == "accept")
    assert "heard: Wipe photos." in result.stdout


@pytest.mark.skipif(bool(ADAPTERS), reason="needs no framework")
@pytest.mark.parametrize("index", range(len(README_BLOCKS)))
def test_the_code_of_the_readme_runs(index, hub, listen):
    listener = listen(lambda event: "early" if "clarification" in event["type"] else "accept")
    result = run(["-c", README_BLOCKS[index]], hub)
    assert result.returncode == 0, result.stderr
    assert any(word in result.stdout for word in ("sent 5.00 to Ben", "deleted /tmp/old", "booked early"))
    listener.wait_for_end()
    listener.validate()
