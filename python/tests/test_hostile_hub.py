"""Whatever a hub sends, a dangerous function runs only after a yes to exactly its arguments."""

from __future__ import annotations

import asyncio
import threading

import pytest

import sayso
from hostile_hub import TOKEN, HostileHttpHub, HostileHub, opened, yes
from support import TIMEOUT_SECONDS

OTHER = {"tool": "pay", "arguments": {"amount": "5000.00"}}


def play(hub, transport="websocket", calls=("5.00",)):
    """Calls a dangerous function once for each amount, in parallel. Returns what ran and how the calls ended."""
    ran = []

    @sayso.tool(irreversible=True, action="Pay {amount}.")
    async def pay(amount):
        ran.append(amount)

    async def main():
        client = sayso.hub(hub.url, connect_timeout=0.5, transport=transport)
        try:
            async with client.session("Paying."):
                return await asyncio.gather(*map(pay, calls), return_exceptions=True)
        finally:
            await client.aclose()

    try:
        return ran, asyncio.run(main())
    finally:
        hub.close()


def changed(**changes):
    """Returns a hub's yes with other members. None removes a member."""

    def answer(question):
        members = {**yes(question), **changes}
        return {name: value for name, value in members.items() if value is not None}

    return answer


def with_receipt(**changes):
    def answer(question):
        honest = yes(question)
        receipt = {**honest["receipt"], **changes}
        return {**honest, "receipt": {name: value for name, value in receipt.items() if value is not None}}

    return answer


#: Answers that do not accept the question's arguments, each with the exception that the call raises.
ANSWERS = {
    "a list": (lambda question: [yes(question)], sayso.MalformedResponse),
    "an unknown status": (changed(status="granted"), sayso.MalformedResponse),
    "no status": (changed(status=None), sayso.MalformedResponse),
    "an unknown decision": (changed(decision="Accept"), sayso.MalformedResponse),
    "a decision of another type": (changed(decision=True), sayso.MalformedResponse),
    "no decision": (changed(decision=None), sayso.MalformedResponse),
    "an unknown `by`": (changed(by="me"), sayso.MalformedResponse),
    "a receipt that is a string": (changed(receipt="{}"), sayso.MalformedResponse),
    "a signature that is a number": (changed(receipt_signature=7), sayso.MalformedResponse),
    "a no": (changed(decision="reject"), sayso.Refused),
    "a yes by timeout": (changed(by="timeout"), sayso.Refused),
    "a yes without `by`": (changed(by=None), sayso.Refused),
    "a stop": (changed(status="stopped"), sayso.SessionStopped),
    "no receipt": (changed(receipt=None), sayso.ConsentMismatch),
    "a receipt for other arguments": (lambda _: yes(OTHER), sayso.ConsentMismatch),
    "a receipt without a digest": (with_receipt(action_digest=None), sayso.ConsentMismatch),
    "a receipt for a no": (with_receipt(decision="reject"), sayso.ConsentMismatch),
    "a receipt for a default": (with_receipt(by="timeout"), sayso.ConsentMismatch),
    "a receipt from another session": (with_receipt(session_id="sess_2"), sayso.ConsentMismatch),
    "a receipt for another question": (with_receipt(reply_token="rpl_2"), sayso.ConsentMismatch),
    "another signed document": (with_receipt(type="aaep:producer.manifest"), sayso.ConsentMismatch),
}


@pytest.mark.parametrize("transport", ["websocket", "http"])
def test_an_honest_yes_runs_it(transport):
    hub = HostileHttpHub(yes) if transport == "http" else answering(yes)
    ran, outcomes = play(hub, transport)
    assert (ran, outcomes) == (["5.00"], [None])


def answering(answer):
    def ask(peer, call):
        peer.respond(call, opened())
        message = answer(call["params"])
        if isinstance(message, dict):
            peer.resolve(message)
        else:
            peer.send({"jsonrpc": "2.0", "method": "session.resolved", "params": message})

    return HostileHub(ask)


@pytest.mark.parametrize("transport", ["websocket", "http"])
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_is_not_a_yes(name, transport):
    answer, error = ANSWERS[name]
    ran, [outcome] = play(HostileHttpHub(answer) if transport == "http" else answering(answer), transport)
    assert ran == []
    assert type(outcome) is error, repr(outcome)


#: Results of a question that is not open.
RESULTS = [None, [], "rpl_1", 7, {}, opened(7), opened("token"), opened("rpl_1\n"), opened(None), {"reply_token": TOKEN}]


@pytest.mark.parametrize("transport", ["websocket", "http"])
@pytest.mark.parametrize("result", RESULTS, ids=repr)
def test_a_malformed_result(result, transport):
    def ask(peer, call):
        peer.respond(call, result)
        peer.resolve(yes(call["params"]))

    hub = HostileHttpHub(yes, "null" if result is None else result) if transport == "http" else HostileHub(ask)
    ran, [outcome] = play(hub, transport)
    assert ran == []
    assert type(outcome) is sayso.MalformedResponse, repr(outcome)


@pytest.mark.parametrize("text", ["", "yes", "null", "7", '"accept"', '["accept"]', "[" * 100_000, '{"id":'])
@pytest.mark.parametrize("is_asked", [False, True])
def test_text_that_is_not_a_message(text, is_asked):
    def ask(peer, call):
        if is_asked:
            peer.respond(call, opened())
        peer.send(text)
        peer.resolve(yes(call["params"]))

    ran, [outcome] = play(HostileHub(ask))
    assert ran == []
    assert type(outcome) is sayso.MalformedResponse, repr(outcome)


@pytest.mark.parametrize("text", ["", "yes", "[" * 100_000, "null"])
def test_an_http_body_that_is_not_a_message(text):
    ran, [outcome] = play(HostileHttpHub(lambda _: text), "http")
    assert ran == []
    assert type(outcome) is sayso.MalformedResponse, repr(outcome)


def test_an_error_instead_of_a_result():
    for error in ({}, {"code": "x", "message": 7, "data": 7}, {"code": -32022, "data": {"status": 422, "findings": [7]}}):

        def ask(peer, call, error=error):
            peer.send({"jsonrpc": "2.0", "id": call["id"], "error": error, "result": opened()})
            peer.resolve(yes(call["params"]))

        ran, [outcome] = play(HostileHub(ask))
        assert ran == []
        assert isinstance(outcome, sayso.SaysoError), repr(outcome)


def test_answers_to_other_questions_do_not_count():
    def ask(peer, call):
        peer.respond(call, opened())
        peer.resolve(yes(call["params"], "rpl_2"), token="rpl_2")
        peer.resolve(yes(call["params"]), session="sess_2")
        peer.stop()

    ran, [outcome] = play(HostileHub(ask))
    assert ran == []
    assert type(outcome) is sayso.HubUnreachable, repr(outcome)


def test_responses_to_other_calls_do_not_count():
    def ask(peer, call):
        for number in (call["id"] + 1, str(call["id"]), float(call["id"]) + 0.5, True, None, [call["id"]]):
            peer.respond({"id": number}, opened())
        peer.resolve(yes(call["params"]))
        peer.stop()

    ran, [outcome] = play(HostileHub(ask))
    assert ran == []
    assert type(outcome) is sayso.HubUnreachable, repr(outcome)


def test_the_first_of_two_responses_counts():
    def ask(peer, call):
        peer.respond(call, opened("rpl_1"))
        peer.respond(call, opened("rpl_2"))
        peer.resolve(yes(call["params"], "rpl_2"), token="rpl_2")
        peer.stop()

    ran, [outcome] = play(HostileHub(ask))
    assert ran == []
    assert type(outcome) is sayso.HubUnreachable, repr(outcome)


def test_the_first_of_two_answers_counts():
    def ask(peer, call):
        peer.respond(call, opened())
        peer.resolve({"status": "resolved", "decision": "reject", "by": "reply"})
        peer.resolve(yes(call["params"]))

    ran, [outcome] = play(HostileHub(ask))
    assert ran == []
    assert type(outcome) is sayso.Refused, repr(outcome)


def test_an_answer_before_the_response_counts_once():
    def ask(peer, call):
        peer.resolve(yes(call["params"]))
        peer.respond(call, opened())

    ran, outcomes = play(HostileHub(ask))
    assert (ran, outcomes) == (["5.00"], [None])


def test_two_questions_with_the_same_token():
    """The yes is for the first. Neither it nor the token may serve the second."""
    asked = []

    def ask(peer, call):
        asked.append(call)
        peer.respond(call, opened())
        if len(asked) == 2:
            peer.resolve(yes(asked[0]["params"]))
            peer.resolve(yes(asked[0]["params"]))

    ran, outcomes = play(HostileHub(ask), calls=("5.00", "5000.00"))
    assert ran == [asked[0]["params"]["arguments"]["amount"]]
    assert [type(outcome) for outcome in outcomes] == [type(None), sayso.MalformedResponse]


def test_a_message_that_is_too_large(monkeypatch):
    monkeypatch.setattr("sayso._connection.MAX_MESSAGE_BYTES", 64 * 1024)

    def ask(peer, call):
        peer.respond(call, opened())
        peer.resolve({**yes(call["params"]), "note": "x" * 100_000})
        peer.stop()

    ran, [outcome] = play(HostileHub(ask))
    assert ran == []
    assert type(outcome) is sayso.HubUnreachable, repr(outcome)


@pytest.mark.parametrize("is_honest", [True, False])
@pytest.mark.parametrize("is_asked", [True, False])
def test_a_connection_that_is_lost_while_a_question_is_open(is_honest, is_asked):
    asked = []

    def ask(peer, call):
        asked.append(call)
        if len(asked) == 1:
            if is_asked:
                peer.respond(call, opened())
            peer.close()
            return
        peer.respond(call, opened())
        peer.resolve(yes(call["params"] if is_honest else OTHER))

    def connect(peer):
        if is_asked and asked:
            # The question is known, so it is not repeated; the answer arrives on the new connection.
            peer.resolve(yes(asked[0]["params"] if is_honest else OTHER))

    ran, [outcome] = play(HostileHub(ask, connect))
    if is_honest:
        assert (ran, outcome) == (["5.00"], None)
    else:
        assert ran == []
        assert type(outcome) is sayso.ConsentMismatch, repr(outcome)
    if not is_asked:
        assert asked[0]["params"] == asked[1]["params"], "the repeated question has the same idempotency key"


def test_two_sessions_with_one_id():
    hub = HostileHub(lambda peer, call: None)

    async def main():
        client = sayso.hub(hub.url, connect_timeout=0.5)
        await client.session("One.").start_async()
        with pytest.raises(sayso.MalformedResponse):
            await client.session("Two.").start_async()
        await client.aclose()

    asyncio.run(main())
    hub.close()


def test_a_session_ends_after_a_question_that_was_just_asked_is_withdrawn():
    asked, is_ending = threading.Event(), threading.Event()

    def ask(peer, call):
        def respond():
            is_ending.wait(TIMEOUT_SECONDS)
            peer.respond(call, opened())

        asked.set()
        threading.Thread(target=respond, daemon=True).start()

    hub = HostileHub(ask)
    client = sayso.hub(hub.url)

    async def main():
        s = await client.session("Tidy up.").start_async()
        task = asyncio.create_task(s.ask("wipe", {}, action="Wipe.", irreversible=True))
        await asyncio.to_thread(asked.wait, TIMEOUT_SECONDS)
        task.cancel()
        await asyncio.wait({task})
        end = asyncio.create_task(s.finish("Done."))
        # When this report is through, the end has been sent, unless it waits for the withdrawal.
        await s.as_producer("other").think("Waiting.")
        is_ending.set()
        await end

    asyncio.run(main())
    client.close()
    hub.close()
    assert hub.received.index("session.withdraw") < hub.received.index("aaep:agent.session.completed")
