"""Runs the behaviours of docs/contract/behaviours.json, which every client package shows."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import inspect
import json
import signal
import threading

import pytest

import sayso
from support import ROOT, HubProcess, Listener, is_end

BEHAVIOURS = json.loads((ROOT / "docs/contract/behaviours.json").read_text())
ERRORS = {
    "refused": sayso.Refused,
    "unreachable": sayso.HubUnreachable,
    "stopped": sayso.SessionStopped,
    "no_session": sayso.NoSession,
    "cancelled": asyncio.CancelledError,
    "used": sayso.ConsentUsed,
    "unanswered": sayso.Unanswered,
    "rules": sayso.RuleViolations,
    "tool": RuntimeError,
}


class Thrown(Exception):
    pass


def to_text(value):
    return value if isinstance(value, str) else sayso.text(value["normal"], **value["translations"])


async def settle(result):
    """Returns the result of a method, which only the awaited form has to wait for."""
    return await result if inspect.isawaitable(result) else result


def run_without_loop(coroutine):
    """Runs a coroutine in which nothing is awaited that takes time, as a program without an event loop does."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the blocking form has to be awaited")


class Runner:
    """Executes the steps of one behaviour in the awaited or the blocking form."""

    def __init__(self, behaviour, hub, client, is_blocking):
        self.behaviour, self.hub, self.client, self.is_blocking = behaviour, hub, client, is_blocking
        self.ran, self.digests = [], []
        self.session = self.granted = self.listener = None
        self.mutable = None

    def answer(self, event):
        kind = self.behaviour["listener"]
        if self.mutable is not None:
            arguments, changes = self.mutable
            arguments.update(changes)
        if kind == "kill_hub":
            self.hub.kill()
        elif kind == "stop":
            self.listener.stop(event["session_id"])
        elif isinstance(kind, dict):
            return kind["response"] if "response" in kind else ("accept" if kind["accept_if"] in event["action"] else "reject")
        return kind if kind in ("accept", "reject", "modify") else None

    async def run(self):
        steps = list(self.behaviour["steps"])
        if steps[0]["do"] != "session":
            for step in steps:
                await self.step(step)
            return
        first = steps.pop(0)
        says = {"says": to_text(first["says"])} if "says" in first else {}
        block = self.client.session(first["request"], **says)
        try:
            if self.is_blocking:
                with block as self.session:
                    for step in steps:
                        await self.step(step)
            else:
                async with block as self.session:
                    for step in steps:
                        await self.step(step)
        except Thrown:
            pass

    async def step(self, step):
        expected = step.get("expect")
        if expected is None:
            await self.do(step)
        elif "error" in expected:
            error = ERRORS[expected["error"]]
            # A blocking call is cancelled with Ctrl-C.
            if self.is_blocking and error is asyncio.CancelledError:
                error = KeyboardInterrupt
            with pytest.raises(error) as caught:
                await self.do(step)
            for name in expected.keys() - {"error"}:
                assert getattr(caught.value, name) == expected[name], step
        else:
            value = await self.do(step)
            if expected["result"] == "answer":
                assert value == expected["value"]
            elif expected["result"] == "hand_off":
                assert value.outcome == expected["outcome"]

    async def do(self, step):
        s, kind = self.session, step["do"]
        if kind == "think":
            await settle(s.think(to_text(step["says"])))
        elif kind == "progress":
            await settle(s.progress(step["says"], percent=step["percent"], step=step["step"], total_steps=step["total_steps"]))
        elif kind == "say":
            await settle(s.say(step["pieces"]))
        elif kind == "event":
            await settle(s.event(step["event"]))
        elif kind == "finish":
            await settle(s.finish(to_text(step["says"])))
        elif kind == "throw":
            raise Thrown(step["message"])
        elif kind == "clarify":
            timeout = {"answer_timeout": step["answer_timeout"]} if "answer_timeout" in step else {}
            return await settle(s.clarify(step["question"], choices=step.get("choices"), **timeout))
        elif kind == "hand_off":
            return await settle(s.hand_off(step["reason"]))
        elif kind == "ask":
            self.granted = await settle(s.ask(step["tool"], step["arguments"], **self.settings(step)))
            assert self.granted.receipt["action_digest"] == self.granted.digest
            self.digests.append(self.granted.digest)
        elif kind == "call":
            granted = self.granted

            def call(**arguments):
                self.ran.append({"tool": granted.tool, "arguments": arguments})

            await settle(s.call(granted, self.in_this_form(call)))
        elif kind == "parallel":
            await self.parallel(step["calls"])
        elif kind == "tool":
            await self.tool(step)
        return None

    @staticmethod
    def settings(step):
        names = ("action", "consequence", "irreversible", "answer_timeout", "confidential")
        return {name: step[name] for name in names if name in step}

    def in_this_form(self, function):
        async def awaited(**arguments):
            return function(**arguments)

        return function if self.is_blocking else awaited

    async def parallel(self, calls):
        if not self.is_blocking:
            await asyncio.gather(*(self.step(call) for call in calls))
            return
        failures = []

        def run(call):
            try:
                run_without_loop(self.step(call))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=contextvars.copy_context().run, args=(run, call)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    async def tool(self, step):
        def body(**arguments):
            self.ran.append({"tool": step["tool"], "arguments": arguments})
            if "fails" in step:
                raise RuntimeError(step["fails"])

        function = sayso.tool(name=step["tool"], **self.settings(step))(self.in_this_form(body))
        arguments = copy.deepcopy(step["arguments"])
        if "mutate" in step:
            self.mutable = arguments, step["mutate"]
        if step.get("cancel") != "while_asked":
            return await settle(function(**arguments))
        if self.is_blocking:
            return self.interrupt(function, arguments)
        task = asyncio.create_task(function(**arguments))
        question = await asyncio.to_thread(self.listener.wait_for, "awaiting.confirmation")
        task.cancel()
        await asyncio.wait({task})
        self.listener.answer(question, "accept")
        return await task

    def interrupt(self, function, arguments):
        """Presses Ctrl-C while the question is open."""
        main = threading.get_ident()

        def press():
            self.listener.wait_for("awaiting.confirmation")
            signal.pthread_kill(main, signal.SIGINT)

        threading.Thread(target=press, daemon=True).start()
        try:
            return function(**arguments)
        finally:
            self.listener.answer(self.listener.wait_for("awaiting.confirmation"), "accept")


@pytest.mark.parametrize("form", ["awaited", "blocking"])
@pytest.mark.parametrize("transport", ["websocket", "http"])
@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=[behaviour["name"] for behaviour in BEHAVIOURS])
def test_behaviour(behaviour, transport, form):
    hub = HubProcess()
    is_killed = behaviour["listener"] == "kill_hub"
    client = sayso.hub(hub.url, transport=transport, connect_timeout=0.5 if is_killed else 30.0)
    runner = Runner(behaviour, hub, client, form == "blocking")
    if behaviour["listener"] != "absent":
        runner.listener = Listener(hub, runner.answer, tuple(behaviour.get("languages", ["en"])))
    if runner.is_blocking:
        run_without_loop(runner.run())
    else:
        asyncio.run(runner.run())
    assert sorted(map(str, runner.ran)) == sorted(map(str, behaviour["ran"]))
    listener = runner.listener
    if listener is not None and is_killed:
        # The hub can no longer end the session, so only what was heard until then is checked.
        assert listener.of_type("awaiting.confirmation")
        assert not set(behaviour.get("absent", [])) & {event["type"].removeprefix("aaep:agent.") for event in listener.of_sessions()}
        listener.validate()
    elif listener is not None and runner.session is not None:
        events = listener.wait_for_end()
        check(behaviour, events, listener)
        listener.validate()
        for digest in behaviour.get("digests", []):
            assert runner.digests == [] or digest in runner.digests
            assert digest in [question["extensions"]["sayso"]["action_digest"] for question in listener.of_type("awaiting.confirmation")]
    hub.close()


def check(behaviour, events, listener):
    types = [event["type"].removeprefix("aaep:agent.") for event in events]
    position = -1
    for wanted in behaviour.get("events", []):
        assert wanted in types[position + 1 :], (wanted, types)
        position = types.index(wanted, position + 1)
    for absent in behaviour.get("absent", []):
        assert absent not in types
    final = next(event for event in events if is_end(event))
    for name, value in behaviour.get("final", {}).items():
        assert final[name] == (f"aaep:agent.{value}" if name == "type" else value)
    if "text" in behaviour:
        assert listener.text() == behaviour["text"]
    summaries = [event.get("summary_normal") for event in events]
    for heard in behaviour.get("heard", []):
        assert heard in summaries
    for secret in behaviour.get("not_heard", []):
        assert secret not in json.dumps(events)
    questions = [event["action"] for event in listener.of_type("awaiting.confirmation")]
    for action in behaviour.get("heard_questions", []):
        assert action in questions
