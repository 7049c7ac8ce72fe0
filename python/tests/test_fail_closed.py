"""Whatever breaks, a dangerous function does not run without a yes."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import sayso
from support import Listener


def make_tools():
    ran = []

    @sayso.tool(irreversible=True, action="Wipe {what}.", consequence="It is gone.")
    def wipe(what, options=None):
        ran.append((what, options))
        return f"wiped {what}"

    @sayso.tool(irreversible=True, action="Wipe {what}.", consequence="It is gone.")
    async def wipe_async(what, options=None):
        ran.append((what, options))
        return f"wiped {what}"

    return ran, wipe, wipe_async


def call(client, tool, *args, **kwargs):
    """Calls a tool of either form in a session."""
    if not inspect.iscoroutinefunction(tool):
        with client.session("Tidying up."):
            return tool(*args, **kwargs)

    async def main():
        async with client.session("Tidying up."):
            return await tool(*args, **kwargs)

    return asyncio.run(main())


@pytest.mark.parametrize("form", [1, 2])
def test_a_yes_runs_it_once_and_reports(client, listen, form):
    listener = listen("accept")
    tools = make_tools()
    assert call(client, tools[form], "photos", options={"deep": True}) == "wiped photos"
    assert tools[0] == [("photos", {"deep": True})]
    listener.wait_for_end()
    types = [event["type"].removeprefix("aaep:agent.") for event in listener.of_sessions()]
    assert types.index("awaiting.confirmation") < types.index("tool.invoked") < types.index("tool.completed")
    listener.validate()


@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("answer", ["reject", "modify"])
def test_a_no_does_not_run_it(client, listen, form, answer):
    listener = listen(answer)
    tools = make_tools()
    with pytest.raises(sayso.Refused):
        call(client, tools[form], "photos")
    assert tools[0] == []
    listener.wait_for_end()
    listener.validate()


@pytest.mark.parametrize("form", [1, 2])
def test_no_answer_does_not_run_it(client, listen, form):
    listener = listen(None)
    ran = []

    def body():
        ran.append(1)

    async def body_async():
        ran.append(1)

    tool = sayso.tool(irreversible=True, action="Wipe.", answer_timeout=1)(body if form == 1 else body_async)
    with pytest.raises(sayso.Refused) as refusal:
        call(client, tool)
    assert refusal.value.by == "timeout" and ran == []
    listener.wait_for_end()
    listener.validate()


@pytest.mark.parametrize("form", [1, 2])
def test_without_a_session_it_does_not_run(form):
    tools = make_tools()
    with pytest.raises(sayso.NoSession):
        result = tools[form]("photos")
        asyncio.run(result)
    assert tools[0] == []


@pytest.mark.parametrize("transport", ["websocket", "http", "auto"])
def test_without_a_hub_it_does_not_run(transport):
    tools = make_tools()
    client = sayso.hub("http://127.0.0.1:9", connect_timeout=0.2, transport=transport)
    with pytest.raises(sayso.HubUnreachable):
        call(client, tools[1], "photos")
    assert tools[0] == []


@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("transport", ["websocket", "http"])
def test_a_hub_that_dies_while_the_question_is_open(hub, listen, form, transport):
    tools = make_tools()
    listen(lambda event: hub.kill())
    client = sayso.hub(hub.url, connect_timeout=0.5, transport=transport)
    with pytest.raises(sayso.HubUnreachable):
        call(client, tools[form], "photos")
    assert tools[0] == []


@pytest.mark.parametrize("form", [1, 2])
def test_a_hub_that_forgets_the_question(hub, listen, form):
    """The hub restarts without its journal. The session is unknown, so the question is lost."""
    tools = make_tools()

    def restart(event):
        hub.kill()
        hub.restart()

    listen(restart)
    client = sayso.hub(hub.url, connect_timeout=10)
    with pytest.raises(sayso.SaysoError):
        call(client, tools[form], "photos")
    assert tools[0] == []


def test_a_question_survives_a_restart_of_a_hub_with_a_journal(tmp_path):
    from support import HubProcess

    hub = HubProcess("--data", str(tmp_path / "data"))
    tools = make_tools()
    second: list[Listener] = []

    def restart(event):
        hub.kill()
        hub.restart()
        second.append(Listener(hub, "accept"))

    Listener(hub, restart)
    client = sayso.hub(hub.url, connect_timeout=10)
    # Nobody who heard the question returned, so the hub may refuse it. It must not run without a yes.
    try:
        call(client, tools[2], "photos")
        assert tools[0] == [("photos", None)]
    except sayso.SaysoError:
        assert tools[0] == []
    hub.close()


def test_cancelling_withdraws_the_question_and_a_late_yes_is_void(client, listen):
    listener = listen(None)
    ran, _, wipe = make_tools()

    async def main():
        async with client.session("Tidying up.") as s:
            task = asyncio.create_task(wipe("photos"))
            question = await asyncio.to_thread(listener.wait_for, "awaiting.confirmation")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            listener.answer(question, "accept")
            # The hub has withdrawn the question when it announces the next state.
            await asyncio.to_thread(
                listener.wait,
                lambda events: any(
                    e.get("type") == "aaep:agent.state.changed" and e.get("from_state") == "awaiting_input" for e in events
                ),
            )
            await s.think("Going on.")

    asyncio.run(main())
    assert ran == []
    listener.wait_for_end()
    assert listener.of_type("tool.invoked") == []
    listener.validate()


def test_a_cancelled_session_refuses_a_question_in_a_thread(client, listen):
    """A thread that waits for an answer cannot be cancelled, but the end of its session refuses the question."""
    listener = listen(None)
    ran, wipe, _ = make_tools()
    outcomes = []

    def work():
        try:
            wipe("photos")
        except sayso.SaysoError as error:
            outcomes.append(error)

    async def main():
        async with client.session("Tidying up."):
            await asyncio.to_thread(work)

    async def cancel():
        task = asyncio.create_task(main())
        question = await asyncio.to_thread(listener.wait_for, "awaiting.confirmation")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        listener.answer(question, "accept")

    asyncio.run(cancel())
    assert ran == [] and len(outcomes) == 1
    listener.wait_for_end()
    listener.validate()


def test_a_blocking_tool_refuses_to_block_an_event_loop(client, listen):
    listen("accept")
    ran, wipe, _ = make_tools()

    async def main():
        async with client.session("Tidying up."):
            with pytest.raises(sayso.EventLoopRunning):
                wipe("photos")
            assert await asyncio.to_thread(wipe, "photos") == "wiped photos"

    asyncio.run(main())
    assert ran == [("photos", None)]


@pytest.mark.parametrize("form", [1, 2])
def test_the_arguments_that_run_are_those_that_were_asked_about(client, listen, form):
    options = {"folders": ["a"]}
    tools = make_tools()

    def change(event):
        options["folders"].append("everything")
        return "accept"

    listener = listen(change)
    call(client, tools[form], "photos", options=options)
    assert tools[0] == [("photos", {"folders": ["a"]})]
    assert options == {"folders": ["a", "everything"]}
    listener.wait_for_end()


def test_arguments_that_cannot_be_bound_to_an_answer_are_refused(client, listen):
    listener = listen("accept")
    ran, wipe, _ = make_tools()

    class Opaque:
        pass

    for value in (Opaque(), threading.Lock(), "\ud800", {1: 2}):
        with pytest.raises(sayso.InvalidRequest):
            call(client, wipe, value)
    assert ran == []
    listener.wait_for_end(4)
    assert listener.of_type("awaiting.confirmation") == []


def test_a_grant_of_another_session_is_refused(client, listen):
    listen("accept")
    ran = []
    with client.session("One.") as one, client.session("Two.") as two:
        granted = one.ask("wipe", {}, action="Wipe.", consequence="Gone.", irreversible=True)
        with pytest.raises(sayso.ConsentMismatch):
            two.call(granted, lambda: ran.append(1))
    assert ran == []


def test_parallel_calls_are_asked_separately(client, listen):
    listener = listen(lambda event: "accept" if "photos" in event["action"] else "reject")
    ran, _, wipe = make_tools()

    async def main():
        async with client.session("Tidying up."):
            return await asyncio.gather(wipe("photos"), wipe("letters"), return_exceptions=True)

    results = asyncio.run(main())
    assert results[0] == "wiped photos" and isinstance(results[1], sayso.Refused)
    assert ran == [("photos", None)]
    listener.wait_for_end()
    listener.validate()


def test_an_error_of_the_tool_is_reported_and_raised(client, listen):
    listener = listen("accept")

    @sayso.tool(action="Look.")
    def look():
        raise ValueError("no light; password: hunter2")

    with pytest.raises(ValueError), client.session("Looking."):
        look()
    events = listener.wait_for_end()
    completed = listener.of_type("tool.completed")[0]
    assert completed["status"] == "error" and "no light" in completed["error_message"]
    assert "hunter2" not in str(events)
    listener.validate()


def test_a_hub_that_dies_after_the_yes_does_not_hide_the_result(hub, listen):
    """The function ran, so its result is returned although the outcome could not be reported."""
    listen("accept")
    client = sayso.hub(hub.url, connect_timeout=0.3)

    @sayso.tool(irreversible=True, action="Wipe.")
    def wipe():
        hub.kill()
        return "wiped"

    session = client.session("Tidying up.").start()
    with session.as_current():
        assert wipe() == "wiped"


def test_a_time_limit_cancels_an_asynchronous_tool(client, listen):
    listener = listen("accept")

    @sayso.tool(action="Wait.", timeout=0.05)
    async def wait():
        await asyncio.Event().wait()

    with pytest.raises(sayso.ToolTimedOut):
        call(client, wait)
    listener.wait_for_end()
    assert listener.of_type("tool.completed")[0]["status"] == "timeout"
    listener.validate()


SCRIPT = """
    import asyncio, sys, threading
    import sayso
    marker = sys.argv[2]

    @sayso.tool(irreversible=True, action="Wipe.")
    def wipe():
        open(marker, "w").close()

    def work(session):
        with session.as_current():
            wipe()

    session = sayso.hub(sys.argv[1]).session("Leaving.").start()
    {end}
"""


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("threading.Thread(target=work, args=(session,), daemon=True).start(); sys.stdin.readline(); sys.exit(0)", "exit"),
        ("work(session)", "interrupt"),
        ("work(session)", "kill"),
    ],
)
def test_the_end_of_the_interpreter(hub, listen, tmp_path, end, how):
    listener = listen(None)
    marker = tmp_path / "marker"
    script = textwrap.dedent(SCRIPT).replace("{end}", end)
    process = subprocess.Popen(
        [sys.executable, "-c", script, hub.url, str(marker)], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    question = listener.wait_for("awaiting.confirmation")
    if how == "exit":
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()
    else:
        process.send_signal(signal.SIGINT if how == "interrupt" else signal.SIGKILL)
    process.wait()
    listener.answer(question, "accept")
    assert not marker.exists()
    if how != "kill":
        events = listener.wait_for_end()
        assert events[-1]["type"] == "aaep:agent.session.errored"
        listener.validate()
    assert not marker.exists()


def test_a_forked_child_cannot_use_the_consent_of_its_parent(client, listen, tmp_path):
    listen("accept")
    marker = Path(tmp_path, "marker")
    with client.session("Forking.") as s:
        granted = s.ask("wipe", {}, action="Wipe.", consequence="Gone.", irreversible=True)
        child = os.fork()
        if child == 0:
            try:
                s.call(granted, lambda: marker.touch())
                os._exit(0)
            except BaseException:
                os._exit(7)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7
        assert not marker.exists()
