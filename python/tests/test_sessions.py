"""Sessions against the real hub, with and without an event loop, over WebSocket and HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import signal
import subprocess
import threading
import time

import pytest

import sayso
from support import SAYSO, TIMEOUT_SECONDS, HubProcess, Listener

TRANSPORTS = ["websocket", "http"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_session_from_start_to_end(hub, listen, transport):
    listener = listen()
    client = sayso.hub(hub.url, transport=transport, agent={"agent_id": "payer", "agent_name": "Bill payer"})
    with client.session("Pay Ben.", person="ada", tools=["look"], expected_duration=3) as s:
        s.think("Looking for the bill.")
        with s.tool("look", "Looking at the bills.", args_summary="all bills"):
            pass
        s.progress("Half done.", percent=50, step=1, total_steps=2, eta=1.5)
        s.say(["The bill ", "is 5", ".00 euro.", " The password: hunter2."])
        s.finish("The bill is 5 euro.", output_summary="5 euro", result_uri="https://bills.example/17")
    events = listener.wait_for_end()
    types = [event["type"].removeprefix("aaep:agent.") for event in events]
    assert types[0] == "session.started" and types[-1] == "session.completed"
    assert listener.text() == "The bill is 5.00 euro. The password: [redacted]."
    assert client.removed_secrets == 1
    assert events[-1]["tool_invocations_count"] == 1
    assert events[0]["producer"]["agent_name"] == "Bill payer"
    listener.validate()
    client.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_same_session_with_an_event_loop(hub, listen, transport):
    listener = listen()

    async def tokens():
        for token in ("It ", "is ", "raining", "."):
            yield token

    async def main():
        client = sayso.hub(hub.url, transport=transport)
        async with client.session("Weather?") as s:
            await s.decide("Where to look.")
            async with s.tool("sky") as call:
                await call.succeed("The sky is grey.")
            await s.say(tokens())
        await client.aclose()

    asyncio.run(main())
    events = listener.wait_for_end()
    assert listener.text() == "It is raining."
    assert events[-1]["type"] == "aaep:agent.session.completed"
    listener.validate()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("answer", ["accept", "reject", "modify"])
def test_a_question_is_bound_to_its_arguments(hub, listen, transport, answer):
    listener = listen(answer)
    client = sayso.hub(hub.url, transport=transport)
    paid = []
    arguments = {"to": "Ben", "amount": 5.10, "list": [1, True, None, "é"], "big": 2**60, "tiny": 1e-7}
    with client.session("Pay Ben.") as s:

        def ask():
            return s.ask("send", arguments, action="Send {amount} euro to {to}.", consequence="It is gone.", irreversible=True)

        if answer == "accept":
            granted = ask()
            assert granted.receipt["action_digest"] == granted.digest
            assert granted.digest == sayso.digest("send", granted.arguments)
            s.call(granted, lambda **values: paid.append(values))
            assert paid == [arguments]
            with pytest.raises(sayso.ConsentUsed):
                s.call(granted, lambda **values: paid.append(values))
            assert len(paid) == 1
        else:
            with pytest.raises(sayso.Refused) as refusal:
                ask()
            assert refusal.value.by == "reply"
            assert refusal.value.modified == (answer == "modify")
    listener.wait_for_end()
    question = listener.of_type("awaiting.confirmation")[0]
    assert "Send 5.1 euro to Ben." in question["action"]
    assert "tiny" in question["action"], "arguments that the text does not name are added"
    assert len(listener.of_type("tool.invoked")) == (1 if answer == "accept" else 0)
    listener.validate()
    client.close()


def test_nobody_listening_means_no(client):
    with client.session("Pay.") as s, pytest.raises(sayso.Refused) as refusal:
        s.ask("send", {}, action="Send.", consequence="Gone.", irreversible=True)
    assert refusal.value.by == "unreachable"


def test_clarifications_return_typed_answers(client, listen):
    answers = iter(["ben_a", True, 2.5])
    listener = listen(lambda event: next(answers))
    with client.session("Pay.") as s:
        assert s.clarify("Which Ben?", choices={"ben_a": "Ben Adams", "ben_o": "Ben Okri"}) == "ben_a"
        assert s.clarify("Really?", accept=["yes_no"]) is True
        assert s.clarify("How much?", accept=["numeric"], context="There are two bills.") == 2.5
    listener.wait_for_end()
    listener.validate()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("answer", "outcome"), [("accept", "acknowledged"), ("reject", "rejected")])
def test_a_hand_off_reports_its_outcome(transport, answer, outcome):
    hub = HubProcess(has_tokens=True)
    listener = Listener(hub, answer)
    client = sayso.hub(hub.url, hub.agent_token, transport=transport)
    with client.session("Refund.") as s:
        result = s.hand_off("The refund needs a person.", urgency_for_handoff="high", context={"order": "A-17"})
        assert result.outcome == outcome
        s.finish("A person continues.")
    listener.wait_for_end()
    listener.validate()
    hub.close()


def test_a_hand_off_to_nobody_is_unreachable(client):
    with client.session("Refund.") as s:
        assert s.hand_off("Help.").outcome == "unreachable"


def test_a_wrong_token_is_refused(monkeypatch):
    hub = HubProcess(has_tokens=True)
    for transport in TRANSPORTS:
        for token in ("sayso_wrong", None):
            client = sayso.hub(hub.url, token, transport=transport)
            with pytest.raises(sayso.AccessDenied), client.session("Refund."):
                pass
    monkeypatch.setenv("SAYSO_URL", hub.url)
    monkeypatch.setenv("SAYSO_TOKEN", hub.agent_token)
    with sayso.session("With the environment."):
        pass
    hub.close()


def test_an_invited_token_speaks_in_the_same_session():
    hub = HubProcess(has_tokens=True)
    other_token = hub.new_token("agent", "--agent-id", "guide")
    hub.kill()
    hub.restart()
    listener = Listener(hub)
    with sayso.hub(hub.url, hub.agent_token).session("Trip.") as s:
        invitation = s.invite("guide", expires_in=60)
        guide = sayso.hub(hub.url, other_token).join(invitation, producer={"model": "large-2"}).start()
        guide.think("I know the way.")
    events = listener.wait_for_end()
    spoken = [event for event in events if event.get("summary_normal") == "I know the way."]
    assert spoken[0]["producer"]["agent_id"] == "guide" and spoken[0]["producer"]["model"] == "large-2"
    listener.validate()
    hub.close()


def test_texts_in_several_languages_reach_each_listener(client, listen):
    spanish = listen(languages=("es",))
    with client.session("Weather?", says=sayso.text("Looking at the weather.", es="Miro el tiempo.")) as s:
        s.think(sayso.text("Thinking.", terse="Hm.", es="Pensando."))
        s.finish(sayso.text("It is raining.", es="Llueve."), output_summary="Rain")
    events = spanish.wait_for_end()
    assert events[0]["summary_normal"] == "Miro el tiempo."
    assert events[-1]["summary_normal"] == "Llueve."


def test_every_optional_member_is_accepted(client, listen):
    listener = listen()
    options = {
        "urgency": "background",
        "verbosity": "normal",
        "correlation_id": "c-1",
        "extensions": {"acme": ("https://acme.example/v1", {"a": 1})},
    }
    with client.session(
        "Everything.",
        publish_request=True,
        language="en",
        available_languages=["en", "es"],
        fallback_languages=["en"],
        script="Latn",
        calendar="gregorian",
        text_direction="ltr",
        states={"comparing": sayso.text("Comparing prices.", es="Comparando.")},
        producers=[{"agent_id": "scout", "agent_name": "Scout"}],
        **options,
    ) as s:
        s.change_state("comparing")
        s.change_state("thinking", "Hm.", expected_duration=2, **options)
        s.as_producer("scout").think("I look around.")
        with s.tool(
            "look",
            "Looking.",
            description="Looks.",
            args_summary="here",
            expected_duration=1,
            risk="medium",
            tool_call_id="toolu_01",
            **options,
        ) as call:
            call.fail("It failed.", "no light")
        s.write("Hola", output_id="out_es", language="es", content_type="text/markdown")
        s.write(".", output_id="out_es", complete=True)
        s.event({"type": "aaep:agent.state.changed", "to_state": "deciding", "summary_normal": "The password: hunter2"})
        granted = s.ask(
            "wipe",
            {"x": 1},
            action="Wipe.",
            consequence="It is gone.",
            risk="medium",
            question="May I wipe?",
            reversibility="reversible_with_effort",
            extra_context={"why": "space"},
            allowed_replies=["accept", "reject"],
            answer_timeout=30,
        )
        s.call(granted, lambda x: None)
        s.fail("Broken.", category="requires_user", code="E1", help_uri="https://help.example/1", remediation_hint="Repair it.")
    events = listener.wait_for_end()
    assert events[-1]["recoverable"] is True and events[-1]["remediation_hint"] == "Repair it."
    call_id = "call_" + hashlib.sha256(b"toolu_01").hexdigest()[:32]
    assert [event["tool_call_id"] for event in listener.of_type("tool.invoked")][0] == call_id
    assert "hunter2" not in str(events)
    listener.validate()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_each_piece_of_an_output_has_the_hint_of_the_agent(hub, listen, transport):
    listener = listen(coalesce_boundaries=["none"])
    client = sayso.hub(hub.url, transport=transport)
    with client.session("Tell the weather.") as s:
        # The pieces are written faster than they are sent. A piece with a hint is never merged with the next one.
        s.write("Oslo: rain ", coalesce_hint="sentence")
        s.write("Bergen is ")
        # The last word waits for the next piece, because it may be part of a secret.
        s.write("dry, Rome", coalesce_hint="word")
        s.write(" has sun\n\n", coalesce_hint="paragraph")
        s.write("a: b ", output_id="out_named", coalesce_hint="word")
        s.write("Bye.", complete=True, coalesce_hint="word")
    events = listener.wait_for_end()
    client.close()
    texts, hints = {}, set()
    for chunk in (event for event in events if event["type"] == "aaep:agent.output.streaming"):
        texts[chunk["output_id"]] = text = texts.get(chunk["output_id"], "") + chunk["chunk"]
        if chunk["coalesce_hint"] != "none":
            hints.add((text, chunk["coalesce_hint"]))
    weather = "Oslo: rain Bergen is dry, Rome has sun\n\n"
    assert hints == {
        ("Oslo: rain ", "sentence"),
        (weather, "paragraph"),
        (weather + "Bye.", "completion"),
        ("a: b ", "word"),
        ("a: b ", "completion"),
    }
    listener.validate()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_output_that_stays_does_not_change_the_state(hub, listen, transport):
    listener = listen()
    client = sayso.hub(hub.url, transport=transport)
    with client.session("Tell the weather.") as s:
        s.say("It rains.", stays=True)
        s.decide("What to wear.")
        s.say(["It is ", "cold."], stays=True)
        s.decide("What to wear then.")
        s.say("A coat.")
        with pytest.raises(sayso.InvalidRequest):
            s.write("More.", stays=True)
    events = listener.wait_for_end()
    client.close()
    states = [event["to_state"] for event in events if event["type"] == "aaep:agent.state.changed"]
    assert states == ["writing_output", "deciding", "writing_output", "deciding", "writing_output", "thinking"]
    listener.validate()


def test_the_options_of_a_call_apply_to_its_outcome(client, listen):
    listener = listen()
    with client.session("Trip.", producers=[{"agent_id": "scout"}]) as s, s.tool("look", producer="scout", correlation_id="trace-7"):
        pass
    listener.wait_for_end()
    for kind in ("tool.invoked", "tool.completed"):
        event = listener.of_type(kind)[0]
        assert (event["producer"]["agent_id"], event["correlation_id"]) == ("scout", "trace-7"), kind
    listener.validate()


def test_the_end_counts_the_calls_of_all_producers(client, listen):
    listener = listen()
    with client.session("Trip.", producers=[{"agent_id": "scout"}]) as s:
        with s.tool("look"):
            pass
        with s.as_producer("scout").tool("look"):
            pass
    assert listener.wait_for_end()[-1]["tool_invocations_count"] == 2
    listener.validate()


def test_ctrl_c_withdraws_a_question_even_if_another_thread_gets_the_signal(client, listen):
    listener = listen(None)

    def press():
        listener.wait_for("awaiting.confirmation")
        # The system may deliver the signal to any thread. Then it does not wake the one that waits.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    with client.session("Tidy up.") as s:
        threading.Thread(target=press, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            s.ask("wipe", {}, action="Wipe.", irreversible=True, answer_timeout=10)
        listener.wait(lambda events: any(event.get("from_state") == "awaiting_input" for event in events))
        listener.answer(listener.wait_for("awaiting.confirmation"), "accept")
    listener.wait_for_end()
    resolution = [event for event in listener.of_type("state.changed") if event["from_state"] == "awaiting_input"]
    assert [event["extensions"]["sayso"]["by"] for event in resolution] == ["cancelled"], "the question waited for its time limit"
    listener.validate()


def test_a_child_session_and_an_undeclared_producer(client, hub, listen):
    listener = listen()
    with client.session("Trip.", agent="planner") as s:
        with client.session("Train.", agent="scout", parent=s) as child:
            child.think("Looking.")
        with client.session("Hotel.", agent="planner2") as other, pytest.raises(sayso.SaysoError):
            other.as_producer("nobody").think("Never declared.")
    listener.wait_for_end(3)
    listener.validate()


def test_a_stop_by_the_person_ends_everything(client, listen):
    listener = listen(None)
    ran = []

    @sayso.tool(irreversible=True, action="Wipe.")
    async def wipe():
        ran.append(1)

    async def main():
        with pytest.raises(sayso.SessionStopped) as stopped:
            async with client.session("Long.") as s:
                task = asyncio.create_task(wipe())
                await asyncio.to_thread(listener.wait_for, "awaiting.confirmation")
                listener.stop(s.id)
                await task
        assert stopped.value.reason == "user"

    asyncio.run(main())
    assert ran == []
    listener.wait_for_end()
    listener.validate()


def test_a_stop_cancels_a_running_tool(client, listen):
    listener = listen("accept")

    @sayso.tool(action="Wait.")
    async def wait():
        await asyncio.Event().wait()

    async def main():
        with pytest.raises(sayso.SessionStopped):
            async with client.session("Long.") as s:
                task = asyncio.create_task(wait())
                await asyncio.to_thread(listener.wait_for, "tool.invoked")
                listener.stop(s.id)
                await task

    asyncio.run(main())
    listener.wait_for_end()
    listener.validate()


def test_an_exception_fails_the_session_and_a_refusal_cancels_it(client, listen):
    listener = listen("reject")
    with pytest.raises(ValueError), client.session("One."):
        raise ValueError("the disk is full")
    with pytest.raises(sayso.Refused), client.session("Two.") as s:
        s.ask("send", {}, action="Send.", consequence="Gone.", irreversible=True)
    events = listener.wait_for_end(2)
    ends = [event for event in events if ".session." in event["type"] and "started" not in event["type"]]
    assert ends[0]["type"].endswith("errored") and "the disk is full" in ends[0]["summary_normal"]
    assert ends[1]["type"].endswith("cancelled") and "refused" in ends[1]["summary_normal"]
    listener.validate()


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://host/path", "unix:relative", "http://u:p@host", "http://host:99999"]
)
def test_a_bad_address_is_refused(url):
    with pytest.raises(sayso.InvalidRequest):
        sayso.hub(url)


def test_a_recording_of_sayso_capture_is_valid(hub, client, tmp_path):
    file = tmp_path / "recording.jsonl"
    command = [SAYSO, "capture", "--output", str(file), hub.url]
    capture = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert capture.stderr is not None
    assert capture.stderr.readline().startswith("Recording")
    listener = Listener(hub, "accept")
    with client.session("Pay Ben.") as s:
        granted = s.ask("send", {"to": "Ben"}, action="Send to {to}.", consequence="Gone.", irreversible=True)
        s.call(granted, lambda to: None)
    listener.wait_for_end()
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while "session.completed" not in file.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    capture.send_signal(signal.SIGINT)
    capture.wait()
    recorded = file.read_text()
    assert "session.completed" in recorded and "tool.completed" in recorded
    result = subprocess.run([SAYSO, "validate", str(file)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
