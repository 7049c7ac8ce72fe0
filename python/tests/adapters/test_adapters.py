"""Every adapter against its real framework, a scripted model and the real hub.

Only the adapters whose framework is installed are run; `cargo xtask packages` installs each in an environment of its own. An
adapter takes part with a module `run_NAME.py` that has an async function `run(case)`.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib
import importlib.util
import json
import os
import threading

import pytest

import sayso
from scripted_model import ScriptedModel
from support import Listener

#: The adapters, with the module whose presence shows that the framework is installed.
ADAPTERS = {
    "langchain": "langchain",
    "langchain_blocking": "langchain",
    "langgraph": "langgraph",
    "langgraph_blocking": "langgraph",
    "openai_agents": "agents",
    "openai_agents_hooks": "agents",
    "anthropic": "anthropic",
    "anthropic_blocking": "anthropic",
    "openai_chat": "openai",
    "openai_responses": "openai",
    "openai_responses_loop": "openai",
    "openai_assistants": "openai",
    "agent_framework": "agent_framework",
    "autogen": "autogen_agentchat",
    "semantic_kernel": "semantic_kernel",
    "claude_agent": "claude_agent_sdk",
    "claude_agent_gate": "claude_agent_sdk",
    "pydantic_ai": "pydantic_ai",
    "google_adk": "google.adk",
    "crewai": "crewai",
    "strands": "strands",
    "smolagents": "smolagents",
}
#: The adapters to test, from TEST_ADAPTER; if empty, all whose framework is installed. The variable is needed because some
#: frameworks install others as dependencies.
ONLY = [name for name in os.environ.get("TEST_ADAPTER", "").split(",") if name]


def is_installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


INSTALLED = [name for name, module in ADAPTERS.items() if (name in ONLY if ONLY else is_installed(module))]
INSTALLED = [name for name in INSTALLED if importlib.util.find_spec(f"run_{name}")]


@dataclasses.dataclass
class Case:
    """The input of an adapter's runner: the model, the session, the tools and their policies."""

    url: str
    session: sayso.AsyncSession
    policies: dict[str, sayso.Policy]
    ran: list
    #: The framework's own hook, which runs after the adapter's, changes the arguments.
    changes_arguments: bool = False
    prompt: str = "Tidy up."

    def look(self, where: str) -> str:
        """Looks somewhere."""
        self.ran.append(("look", where))
        return f"looked {where}"

    def wipe(self, what: str) -> str:
        """Wipes something."""
        self.ran.append(("wipe", what))
        if what == "broken":
            raise RuntimeError("the disk is broken")
        return f"wiped {what}"

    def tools(self):
        """Returns the tools as plain functions."""

        def look(where: str) -> str:
            """Looks somewhere.

            Args:
                where: The place.
            """
            return self.look(where)

        def wipe(what: str) -> str:
            """Wipes something.

            Args:
                what: The thing.
            """
            return self.wipe(what)

        return [look, wipe]


def wipe_policy(**changes):
    return sayso.Policy(**{"irreversible": True, "action": "Wipe {what}.", "consequence": "It is gone.", **changes})


class Scene:
    """One run of an agent in a session."""

    def __init__(self, name, hub, script, answer="accept", connect_timeout=30.0, **changes):
        self.runner = importlib.import_module(f"run_{name}")
        self.hub = hub
        prefix = getattr(self.runner, "TOOL_PREFIX", "")
        final = getattr(self.runner, "FINAL_TOOL", None)
        if final is not None:
            script = [turn if turn["calls"] else {**turn, "calls": [(final[0], {final[1]: turn["text"]})], "text": ""} for turn in script]
        self.model = ScriptedModel(
            [{**turn, "calls": [(prefix + tool, arguments) for tool, arguments in turn["calls"]]} for turn in script]
        )
        #: The prefix of a tool's name in the events that the gate reports.
        self.gated_prefix = getattr(self.runner, "GATED_PREFIX", "")
        self.listener = Listener(hub, answer)
        self.client = sayso.hub(hub.url, connect_timeout=connect_timeout)
        self.ran = []
        self.case_changes = {key: changes.pop(key) for key in list(changes) if key in ("changes_arguments",)}
        self.policies = {"look": sayso.Policy(action="Look {where}."), "wipe": wipe_policy(**changes)}

    def case(self, session):
        return Case(self.model.url, session, self.policies, self.ran, **self.case_changes)

    def play(self):
        async def main():
            async with self.client.session("Tidy up.") as session:
                return await self.runner.run(self.case(session))

        return asyncio.run(main())

    def wiped(self):
        return [what for tool, what in self.ran if tool == "wipe"]

    def finish(self, has_ended=True):
        if has_ended:
            self.listener.wait_for_end()
        self.listener.validate()
        self.listener.close()
        self.model.close()


WIPE = {"text": "I will tidy up. ", "calls": [("wipe", {"what": "photos"})]}
END = {"text": "All is tidy.", "calls": []}


@pytest.fixture(params=INSTALLED)
def adapter(request):
    return request.param


def test_a_harmless_tool_runs_and_the_text_is_heard(adapter, hub):
    scene = Scene(adapter, hub, [{"text": "I look around. ", "calls": [("look", {"where": "here"})]}, END])
    scene.play()
    assert scene.ran == [("look", "here")]
    scene.finish()
    assert scene.listener.of_type("awaiting.confirmation") == []
    assert [event["tool"] for event in scene.listener.of_type("tool.invoked")] == [scene.gated_prefix + "look"]
    heard = scene.listener.text()
    assert "I look around." in heard and heard.count("All is tidy.") == 1


def test_a_yes_runs_it_once(adapter, hub):
    scene = Scene(adapter, hub, [WIPE, END])
    scene.play()
    assert scene.ran == [("wipe", "photos")]
    scene.finish()
    types = [event["type"] for event in scene.listener.of_sessions()]
    assert types.index("aaep:agent.awaiting.confirmation") < types.index("aaep:agent.tool.invoked")
    assert scene.listener.of_type("tool.completed")[0]["status"] == "success"
    assert "wiped photos" in scene.model.sent_text()


def test_a_no_does_not_run_it_and_the_model_learns_why(adapter, hub):
    scene = Scene(adapter, hub, [WIPE, END], "reject")
    scene.play()
    assert scene.ran == []
    scene.finish()
    assert "The tool was not run" in scene.model.sent_text()


def test_no_answer_does_not_run_it(adapter, hub):
    scene = Scene(adapter, hub, [WIPE, END], None, answer_timeout=1)
    scene.play()
    assert scene.ran == []
    scene.finish()


def test_an_edited_action_is_asked_about_again(adapter, hub):
    again = {"text": "", "calls": [("wipe", {"what": "letters"})]}
    scene = Scene(adapter, hub, [WIPE, again, END], lambda event: "modify" if "photos" in event["action"] else "accept")
    scene.play()
    assert scene.ran == [("wipe", "letters")]
    scene.finish()
    assert len(scene.listener.of_type("awaiting.confirmation")) == 2


def test_two_in_parallel_and_one_denied(adapter, hub):
    both = {"text": "", "calls": [("wipe", {"what": "photos"}), ("wipe", {"what": "letters"})]}
    scene = Scene(adapter, hub, [both, END], lambda event: "accept" if "photos" in event["action"] else "reject")
    scene.play()
    assert scene.ran == [("wipe", "photos")]
    scene.finish()
    assert len(scene.listener.of_type("awaiting.confirmation")) == 2


def test_a_tool_that_nobody_declared_is_asked_about(adapter, hub):
    scene = Scene(adapter, hub, [{"text": "", "calls": [("look", {"where": "here"})]}, END], "reject")
    scene.policies.clear()
    scene.play()
    assert scene.ran == []
    scene.finish()
    assert len(scene.listener.of_type("awaiting.confirmation")) == 1
    assert "The tool was not run" in scene.model.sent_text()


def test_cancelled_while_the_question_is_open_with_a_late_yes(adapter, hub):
    scene = Scene(adapter, hub, [WIPE, END], None)
    if hasattr(scene.runner, "NOT_CANCELLABLE"):
        pytest.skip(f"{adapter}: {scene.runner.NOT_CANCELLABLE}")

    async def main():
        async with scene.client.session("Tidy up.") as session:
            task = asyncio.create_task(scene.runner.run(scene.case(session)))
            question = await asyncio.to_thread(scene.listener.wait_for, "awaiting.confirmation")
            task.cancel()
            await asyncio.wait({task}, timeout=20)
            scene.listener.answer(question, "accept")
            await asyncio.to_thread(
                scene.listener.wait,
                lambda events: any(event.get("from_state") == "awaiting_input" for event in events),
            )

    asyncio.run(main())
    scene.finish()
    assert scene.listener.of_type("tool.invoked") == []
    assert scene.ran == []


def test_arguments_that_a_later_hook_changes_are_those_that_were_asked_about(adapter, hub):
    scene = Scene(
        adapter, hub, [WIPE, END], lambda event: "reject" if "everything" in event["action"] else "accept", changes_arguments=True
    )
    scene.play()
    asked = [event["action"] for event in scene.listener.of_type("awaiting.confirmation")]
    assert "everything" not in scene.wiped(), "it was never allowed"
    assert all(f"Wipe {what}." in asked for what in scene.wiped())
    scene.finish()


def test_a_gate_that_raises_does_not_run_it(adapter, hub):
    def fail(**arguments):
        raise RuntimeError("the gate is broken")

    scene = Scene(adapter, hub, [WIPE, END], action=fail)
    scene.play()
    assert scene.ran == []
    scene.finish()
    assert scene.listener.of_type("tool.invoked") == []


def test_a_hub_that_is_killed_while_the_question_is_open(adapter, hub):
    scene = Scene(adapter, hub, [WIPE, END], lambda event: hub.kill(), connect_timeout=0.5)
    try:
        scene.play()
    except sayso.SaysoError:
        pass
    assert scene.ran == []
    scene.finish(has_ended=False)


def test_an_error_of_a_tool_is_heard(adapter, hub):
    scene = Scene(adapter, hub, [{"text": "", "calls": [("wipe", {"what": "broken"})]}, END])
    try:
        scene.play()
    except Exception:
        pass  # Whether an error of a tool ends the run is up to the framework.
    assert scene.wiped()[:1] == ["broken"]
    scene.finish()
    assert scene.listener.of_type("tool.completed")[0]["status"] == "error"
    expected = getattr(scene.runner, "TOOL_ERROR", "the disk is broken")
    assert expected in scene.listener.of_type("tool.completed")[0]["error_message"]


def test_an_error_of_the_model_is_heard_without_its_secrets(adapter, hub):
    # Claude Code repeats a request with fewer parameters.
    error = {"text": "", "calls": [], "error": "The quota is used up. password: hunter2"}
    scene = Scene(adapter, hub, [error] * 6)

    async def main():
        async with scene.client.session("Tidy up.") as session:
            with contextlib.suppress(Exception):  # Whether an error of the model ends the run is up to the framework.
                await scene.runner.run(scene.case(session))

    asyncio.run(main())
    scene.finish()
    heard = [json.dumps(event) for event in scene.listener.of_sessions()]
    expected = getattr(scene.runner, "MODEL_ERROR", "The quota is used up.")
    assert any(expected in event for event in heard), heard
    assert not any("hunter2" in event for event in heard), heard


def test_no_thread_runs_the_tool_after_the_end(adapter, hub):
    """The session ends while the question is open in the framework's own threads or tasks."""
    scene = Scene(adapter, hub, [WIPE, END], None)

    async def main():
        session = await scene.client.session("Tidy up.").start_async()
        task = asyncio.create_task(scene.runner.run(scene.case(session)))
        question = await asyncio.to_thread(scene.listener.wait_for, "awaiting.confirmation")
        await session.cancel("Never mind.")
        scene.listener.answer(question, "accept")
        await asyncio.wait({task}, timeout=20)
        task.cancel()
        await asyncio.wait({task}, timeout=20)

    asyncio.run(main())
    assert scene.ran == []
    scene.finish()
    assert threading.active_count() < 100
