import assert from "node:assert/strict";
import { test } from "node:test";

import { MAX_QUESTIONS, MAX_REMEMBERED_IDS, MAX_SESSIONS, Subscriber } from "../subscriber.js";
import { formatDuration, joinParts } from "../wording.js";
import { confirmation, event, receive, loggedTexts, now, advance, resolution, announcedTexts, started } from "./samples.js";

test("a duplicate event is ignored", () => {
  const subscriber = new Subscriber();
  const start = started();
  assert.deepEqual(announcedTexts(receive(subscriber, start)), ["Bank has started: Paying Ben."]);
  assert.deepEqual(receive(subscriber, start, { ...start }), []);
  for (let count = 0; count < MAX_REMEMBERED_IDS + 10; count += 1) receive(subscriber, event("progress.updated", { progress: { percent: 1 } }));
  assert.equal(announcedTexts(receive(subscriber, start)).length, 1, "the number of remembered ids is bounded");
});

test("an event without a whole envelope is reported and has no other effect", () => {
  const subscriber = new Subscriber();
  const core = "https://aaep-protocol.org/context/v1";
  const faults = [
    { "@context": undefined },
    { "@context": "https://example.org/v1" },
    { "@context": [] },
    { "@context": ["https://example.org/v1", core] },
    { "@context": [core, 7] },
    { type: 1 },
    { type: "" },
    { event_id: 7 },
    { event_id: "evt_" },
    { event_id: "x" },
    { session_id: undefined },
    { session_id: "ses_1" },
    { timestamp: "yesterday" },
    { timestamp: "2026-13-01T00:00:00Z" },
    { timestamp: 7 },
    { producer: undefined },
    { producer: null },
    { producer: [] },
    { producer: { agent_id: "" } },
    { producer: { agent_name: "Bank" } },
  ];
  for (const fault of faults) {
    const effects = receive(subscriber, started(fault));
    assert.deepEqual(announcedTexts(effects), ["The hub sent something this page cannot read."], JSON.stringify(fault));
    assert.deepEqual(loggedTexts(effects), announcedTexts(effects));
    assert.equal(effects.length, 2);
  }
  assert.equal(subscriber.sessions.size, 0);
  assert.deepEqual(announcedTexts(receive(subscriber, started({ "@context": [core, "urn:sayso:context:v1"] }))), ["Bank has started: Paying Ben."]);
});

test("malformed members of an event do no harm", () => {
  const subscriber = new Subscriber();
  for (const type of ["awaiting.confirmation", "awaiting.clarification", "tool.completed", "tool.invoked", "output.streaming", "progress.updated", "state.changed", "handoff.requested", "session.started", "session.errored"]) {
    receive(subscriber, event(type, { progress: null, choices: 1, extensions: 3, tools_available: 1, tool: {}, extra_context: "x", packaged_context: 1, result_uri: {}, default_response: {}, eta_ms: "x" }));
  }
  assert.equal(subscriber.questions.size, 0, "a question without a token cannot be answered");
});

test("a question announces its action, consequence, risk and time limit", () => {
  const subscriber = new Subscriber();
  const effects = receive(subscriber, started(), confirmation());
  const question = effects.find((effect) => effect.opened).opened;
  assert.equal(
    joinParts(question.text),
    "Send 5 euros to Ben. The money is gone. High risk. This cannot be undone. Your answer is not tied to one exact call. You have 2 minutes.",
  );
  const { announce } = effects.find((effect) => effect.announce?.questionToken);
  assert.equal(announce.questionToken, "rpl_1");
  assert.equal(announce.critical, true);
});

test("a closed question is removed and its outcome is announced once", () => {
  const cases = [
    [{ decision: "accept", by: "reply" }, "accept", "Accepted."],
    [{ decision: "reject", by: "reply" }, "reject", "Rejected."],
    [{ decision: "reject", by: "reply" }, "accept", "Someone else rejected this: Send 5 euros to Ben."],
    [{ decision: "accept", by: "reply" }, undefined, "Someone else accepted this: Send 5 euros to Ben."],
    [{ decision: "reject", by: "timeout" }, undefined, "Nobody answered in time, so this was rejected: Send 5 euros to Ben."],
    [{ decision: "reject", by: "closure" }, undefined, "Nobody was left to answer, so this was rejected: Send 5 euros to Ben."],
    [{ decision: "reject", by: "something_new" }, undefined, "This was rejected: Send 5 euros to Ben."],
    [{ decision: "reject", by: "cancelled" }, undefined, "This question was withdrawn: Send 5 euros to Ben."],
  ];
  for (const [sayso, sentAnswer, expected] of cases) {
    const subscriber = new Subscriber();
    receive(subscriber, started(), confirmation());
    if (sentAnswer !== undefined) subscriber.questions.get("rpl_1").sentAnswer = sentAnswer;
    const effects = receive(subscriber, resolution({ reply_token: "rpl_1", ...sayso }));
    assert.deepEqual(announcedTexts(effects), [expected]);
    assert.equal(effects.filter((effect) => effect.closed).length, 1);
    assert.equal(subscriber.questions.size, 0);
    const { announce } = effects.find((effect) => effect.announce);
    assert.deepEqual([announce.critical, announce.first], [true, sentAnswer !== undefined]);
  }
});

test("an answer closes only its own question", () => {
  const subscriber = new Subscriber();
  receive(subscriber, started(), confirmation(), confirmation({ reply_token: "rpl_2", action: "Send 6." }), confirmation({ reply_token: "rpl_3" }));
  receive(subscriber, resolution({ reply_token: "rpl_2", decision: "reject", by: "reply" }));
  assert.deepEqual([...subscriber.questions.keys()], ["rpl_1", "rpl_3"]);
  receive(subscriber, resolution({ reply_token: "rpl_nobody", decision: "accept", by: "reply" }));
  assert.equal(subscriber.questions.size, 2);
});

test("the end of a session withdraws only its own questions", () => {
  for (const end of ["session.errored", "session.cancelled", "session.completed"]) {
    const subscriber = new Subscriber();
    receive(subscriber, started(), confirmation(), started({ session_id: "sess_2" }), confirmation({ session_id: "sess_2", reply_token: "rpl_2" }));
    const effects = receive(subscriber, event(end, { summary_normal: "Over." }));
    assert.ok(announcedTexts(effects).some((text) => text.includes("This question was withdrawn: Send 5 euros to Ben.")), end);
    assert.deepEqual([...subscriber.questions.keys()], ["rpl_2"]);
  }
});

test("the number of questions is bounded, and an excess question is announced", () => {
  const subscriber = new Subscriber();
  for (let number = 0; number < MAX_QUESTIONS; number += 1) receive(subscriber, confirmation({ reply_token: `rpl_n${number}` }));
  const effects = receive(subscriber, confirmation({ reply_token: "rpl_more" }));
  assert.equal(subscriber.questions.size, MAX_QUESTIONS);
  assert.match(announcedTexts(effects)[0], /More than 4096 questions are open/);
  assert.equal(effects.find((effect) => effect.announce).announce.critical, true);
});

test("the number of sessions is bounded, and open sessions are kept", () => {
  const subscriber = new Subscriber();
  receive(subscriber, started({ session_id: "sess_on" }));
  for (let number = 0; number < 2 * MAX_SESSIONS; number += 1) {
    receive(subscriber, started({ session_id: `sess_n${number}` }), event("session.completed", { session_id: `sess_n${number}`, summary_normal: "Done." }));
  }
  assert.ok(subscriber.sessions.size <= MAX_SESSIONS);
  assert.ok(subscriber.sessions.has("sess_on"));
});

test("output is held until a boundary and announced once", () => {
  const subscriber = new Subscriber();
  const outputEvent = (chunk, hint, more) => event("output.streaming", { chunk, coalesce_hint: hint, output_id: "out_1", complete: false, ...more });
  receive(subscriber, started());
  const effects = receive(subscriber, outputEvent("Hel", "none"), outputEvent("lo ", "word"), outputEvent("there.", "sentence"), outputEvent("B", "none"), outputEvent("ye", "none", { complete: true }));
  assert.deepEqual(announcedTexts(effects), ["Hello there.", "Bye"]);
  assert.deepEqual(loggedTexts(effects), ["Hello there.", "Bye"]);
});

test("outputs of two agents are not mixed", () => {
  const subscriber = new Subscriber();
  const outputEvent = (session, chunk, hint) => event("output.streaming", { session_id: session, chunk, coalesce_hint: hint, output_id: "out_1", complete: false });
  receive(subscriber, outputEvent("sess_a", "To ", "none"), outputEvent("sess_b", "For ", "none"));
  assert.match(announcedTexts(receive(subscriber, outputEvent("sess_a", "Ada.", "sentence")))[0], /To Ada\.$/);
  assert.match(announcedTexts(receive(subscriber, outputEvent("sess_b", "Ben.", "sentence")))[0], /For Ben\.$/);
  assert.deepEqual(receive(subscriber, outputEvent("sess_b", " ", "sentence")).filter((effect) => effect.announce ?? effect.log), [], "blank output is not announced");
});

test("held output is bounded", () => {
  const subscriber = new Subscriber();
  const outputEvent = () => event("output.streaming", { chunk: "x".repeat(1000), coalesce_hint: "none", output_id: "out_1", complete: false });
  const texts = Array.from({ length: 20 }, () => announcedTexts(receive(subscriber, outputEvent()))).flat();
  assert.deepEqual(texts.map((text) => text.length), [17000]);
});

test("every kind of critical event is announced as critical", () => {
  for (const type of ["session.errored", "tool.completed", "handoff.requested", "output.streaming"]) {
    for (const urgency of ["critical", "normal"]) {
      const effects = receive(new Subscriber(), event(type, { summary_normal: "Broken.", chunk: "Broken.", urgency }));
      const { announce } = effects.find((effect) => effect.announce);
      assert.equal(announce.critical, urgency === "critical", type);
    }
  }
});

test("the agent is named when several sessions are open", () => {
  const subscriber = new Subscriber();
  const tool = (session, name) => event("tool.invoked", { session_id: session, tool: "x", summary_normal: "Looking.", producer: { agent_id: name, agent_name: name } });
  const start = (session, name, title) => started({ session_id: session, summary_normal: title, producer: { agent_id: name, agent_name: name } });
  receive(subscriber, start("sess_1", "Bank", "Paying Ben."));
  assert.deepEqual(announcedTexts(receive(subscriber, tool("sess_1", "Bank"))), ["Tool: Looking."]);
  receive(subscriber, start("sess_2", "Post", "Writing to Ann."));
  assert.deepEqual(announcedTexts(receive(subscriber, tool("sess_1", "Bank"), tool("sess_2", "Post"))), ["Bank: Tool: Looking.", "Post: Tool: Looking."]);
  receive(subscriber, start("sess_3", "Post", "Writing to Chi."));
  assert.deepEqual(announcedTexts(receive(subscriber, tool("sess_2", "Post"))), ["Post: Writing to Ann. Tool: Looking."], "the session title distinguishes agents with the same name");
  receive(subscriber, event("session.completed", { session_id: "sess_2" }), event("session.completed", { session_id: "sess_3" }));
  assert.deepEqual(announcedTexts(receive(subscriber, tool("sess_1", "Bank"))), ["Tool: Looking."]);
});

test("a state is announced only if it lasts and nothing else replaces it", () => {
  const subscriber = new Subscriber();
  const state = (from, to) => event("state.changed", { from_state: from, to_state: to });
  const effects = receive(subscriber, started(), state("idle", "thinking"));
  const { announce } = effects.find((effect) => effect.announce?.key?.startsWith("state"));
  assert.ok(announce.notBefore > now() && announce.isState);
  assert.deepEqual(receive(subscriber, event("tool.invoked", { tool: "pay", summary_normal: "Paying." })).filter((effect) => effect.dropStates).map((effect) => effect.dropStates), ["sess_1"]);
  subscriber.quiet = true;
  const quiet = receive(subscriber, state("thinking", "frobnicating_now")).find((effect) => effect.announce).announce;
  assert.equal(joinParts(quiet.parts), "State frobnicating now.");
  assert.ok(quiet.notBefore >= now() + 30000, "quiet mode delays a state but does not drop it");
  assert.deepEqual(announcedTexts(receive(subscriber, state("x", "awaiting_input"))), [], "the question itself is announced next");
});

test("an unknown event type is announced in one line", () => {
  const subscriber = new Subscriber();
  const effects = receive(subscriber, { ...event("x"), type: "med:dose.given", summary_normal: "Ten milligrams." }, { ...event("x"), type: "med:dose.given" });
  assert.deepEqual(announcedTexts(effects), ["med dose given: Ten milligrams.", "med dose given: something this page does not know."]);
});

test("missed events are summarized in one sentence, and questions are announced immediately", () => {
  const subscriber = new Subscriber();
  receive(subscriber, started());
  subscriber.startCatchUp("resumed", 0);
  const meanwhile = Array.from({ length: 12 }, (_, number) => event("output.streaming", { chunk: `Sentence ${number}.`, complete: false }));
  const effects = receive(subscriber, ...meanwhile, confirmation());
  assert.equal(loggedTexts(effects).length, 13, "the log has every event");
  assert.deepEqual(effects.filter((effect) => effect.announce).map((effect) => effect.announce.questionToken), ["rpl_1"]);
  assert.deepEqual(announcedTexts(subscriber.endCatchUp(0)), ["You missed 12 messages in 1 session. They are in the log."]);
  assert.deepEqual(subscriber.endCatchUp(0), []);
});

test("a late join announces open sessions, and a snapshot closes what it does not list", () => {
  const subscriber = new Subscriber();
  const snapshot = (session, more) => event("state.changed", { session_id: session, from_state: "thinking", to_state: "thinking", ...more });
  subscriber.startCatchUp("first", 0);
  receive(subscriber, snapshot("sess_a"), confirmation({ session_id: "sess_a", reply_token: "rpl_a" }), snapshot("sess_b"));
  assert.deepEqual(announcedTexts(subscriber.endCatchUp(0)), ["Bank is working: Thinking."], "a question replaces the state of its session");
  receive(subscriber, confirmation({ session_id: "sess_a", reply_token: "rpl_b" }));
  subscriber.startCatchUp("snapshot", 0);
  receive(subscriber, snapshot("sess_c"), confirmation({ session_id: "sess_a", reply_token: "rpl_b" }));
  const effects = subscriber.endCatchUp(0);
  assert.deepEqual([...subscriber.questions.keys()], ["rpl_b"]);
  assert.ok(announcedTexts(effects).some((text) => text.startsWith("This question was decided while you were not connected:")));
});

test("events during the first catch-up are announced, and many sessions are counted", () => {
  const subscriber = new Subscriber();
  subscriber.startCatchUp("first", 0);
  const snapshots = [1, 2, 3, 4, 5].map((number) => event("state.changed", { session_id: `sess_n${number}`, from_state: "idle", to_state: "idle" }));
  assert.deepEqual(announcedTexts(receive(subscriber, ...snapshots)), []);
  const more = Array.from({ length: 6 }, (_, number) => event("tool.invoked", { session_id: "sess_n1", tool: "x", summary_normal: `Tool ${number}.` }));
  assert.equal(announcedTexts(receive(subscriber, ...more)).length, 6);
  assert.deepEqual(announcedTexts(subscriber.endCatchUp(0)), ["4 sessions are running. See the list of sessions."], "the tool events already announced the fifth session");
});

test("the hub's clock is derived from timestamps despite delayed events", () => {
  const subscriber = new Subscriber();
  const at = (time) => ({ ...event("progress.updated", { progress: { percent: 1 } }), timestamp: new Date(time).toISOString() });
  subscriber.receive(at(50_000), 90_000);
  subscriber.receive(at(60_000), 65_000);
  subscriber.receive(at(10_000), 65_000);
  assert.equal(subscriber.hubTime(65_000), 60_000);
});

test("a producer's text keeps its language and direction and is sanitized", () => {
  const subscriber = new Subscriber();
  const arabic = started({ summary_normal: "مرحبا \u202eabc\u0007\u001b[2J", localization_hints: { primary_language: "ar", text_direction: "rtl" } });
  const [, , text] = subscriber.receive(arabic, 0).find((effect) => effect.announce).announce.parts;
  assert.deepEqual([text.lang, text.dir], ["ar", "rtl"]);
  assert.doesNotMatch(text.text, /[\u202a-\u202e\u0000-\u0008\u001b]/);
  const malformed = started({ localization_hints: { primary_language: '"><script>', text_direction: "sideways" } });
  const [name, , part] = subscriber.receive(malformed, 0).find((effect) => effect.announce).announce.parts;
  assert.deepEqual([part.lang, part.dir], ["", "auto"]);
  assert.deepEqual([name.text, name.dir], ["Bank", "auto"], "a name has its own direction");
});

test("messages from the hub are announced", () => {
  const subscriber = new Subscriber();
  assert.deepEqual(announcedTexts(subscriber.receiveMessage({ type: "sayso:gap", reason_message: "Some is lost." }, 0)), ["Some is lost."]);
  assert.deepEqual(loggedTexts(subscriber.receiveMessage({ type: "subscription.close", reason_code: "slow_consumer" }, 0)), ["The hub ended this connection."]);
  assert.deepEqual(subscriber.receiveMessage({ type: "something.else" }, 0), []);
});

test("the log does not repeat its category", () => {
  const subscriber = new Subscriber();
  const effects = receive(subscriber, event("tool.invoked", { tool: "x", summary_normal: "Looking." }), event("session.errored", { summary_normal: "Broken." }));
  assert.deepEqual(loggedTexts(effects), ["Looking.", "Broken."]);
  assert.deepEqual(announcedTexts(effects), ["Tool: Looking.", "Error: Broken."]);
});

test("the summary follows the verbosity", () => {
  const subscriber = new Subscriber();
  for (const [verbosity, expected] of [["terse", "Short."], ["normal", "Medium."], ["detailed", "Long."]]) {
    subscriber.verbosity = verbosity;
    const effects = receive(subscriber, event("tool.invoked", { tool: "x", summary_terse: "Short.", summary_normal: "Medium.", summary_detailed: "Long." }));
    assert.deepEqual(announcedTexts(effects), [`Tool: ${expected}`]);
  }
});

test("deadline reminders are announced even in quiet mode", () => {
  const subscriber = new Subscriber();
  subscriber.quiet = true;
  const reminder = (token) =>
    event("progress.updated", {
      progress: { description: "x" },
      summary_normal: "You have 60 seconds left to answer.",
      ...(token === undefined ? {} : { extensions: { sayso: { reminds_of: token } } }),
    });
  receive(subscriber, started());
  assert.deepEqual(announcedTexts(receive(subscriber, reminder("rpl_1"))), [], "the question is not open");
  receive(subscriber, confirmation(), confirmation({ reply_token: "rpl_2", action: "Write to Ann." }));
  assert.deepEqual(announcedTexts(receive(subscriber, reminder("rpl_1"))), ["About 2 minutes left to answer: Send 5 euros to Ben."]);
  assert.deepEqual(announcedTexts(receive(subscriber, reminder("rpl_2"))), ["About 2 minutes left to answer: Write to Ann."]);
  assert.deepEqual(announcedTexts(receive(subscriber, reminder(undefined))), [], "the text alone could come from an agent");
  subscriber.recordSentAnswer("rpl_1", "accept");
  assert.deepEqual(announcedTexts(receive(subscriber, reminder("rpl_1"))), [], "the question is answered");
});

const moreTime = (until, more) =>
  event("progress.updated", {
    progress: { description: "x" },
    summary_normal: "There is more time.",
    extensions: { sayso: { extended: "rpl_1", deadline: new Date(until).toISOString() } },
    ...more,
  });

test("an extension applies to every listener and is announced once", () => {
  const subscriber = new Subscriber();
  receive(subscriber, started(), confirmation());
  const { askedAt, deadline } = subscriber.questions.get("rpl_1");
  assert.equal(deadline, askedAt + 120000);
  const effects = receive(subscriber, moreTime(askedAt + 241000));
  assert.deepEqual(announcedTexts(effects), ["This question has more time. About 4 minutes left to answer: Send 5 euros to Ben."]);
  assert.deepEqual(loggedTexts(effects), announcedTexts(effects));
  assert.equal(effects.filter((effect) => effect.extended?.deadline === askedAt + 241000).length, 1);
  assert.deepEqual(announcedTexts(receive(subscriber, moreTime(askedAt + 241000))), [], "an extension is announced once");
  assert.deepEqual(announcedTexts(receive(subscriber, moreTime(askedAt + 1000))), [], "a deadline never becomes earlier");
  assert.equal(subscriber.questions.get("rpl_1").deadline, askedAt + 241000);
  subscriber.questions.get("rpl_1").extensionRequested = true;
  assert.deepEqual(announcedTexts(receive(subscriber, moreTime(askedAt + 365000))), ["More time was added. About 6 minutes left."]);
  assert.equal(subscriber.questions.get("rpl_1").extensionRequested, false);
  const fromOtherExtension = moreTime(askedAt + 999000, { extensions: { other: { extended: "rpl_1", deadline: "2099-01-01T00:00:00Z" } } });
  receive(subscriber, fromOtherExtension, moreTime(0, { extensions: { sayso: { extended: "rpl_1", deadline: "never" } } }));
  assert.equal(subscriber.questions.get("rpl_1").deadline, askedAt + 365000, "only the hub's extension counts");
});

test("after a late join the remaining time is announced", () => {
  const subscriber = new Subscriber();
  const question = confirmation();
  const askedAt = Date.parse(question.timestamp);
  advance(150);
  receive(subscriber, event("state.changed", { from_state: "awaiting_input", to_state: "awaiting_input" }));
  assert.deepEqual(announcedTexts(receive(subscriber, moreTime(askedAt + 240000))), []);
  const [text] = announcedTexts(receive(subscriber, question));
  assert.ok(text.endsWith("You have 1 minute."), text);
});

test("open questions are announced again after an announced connection loss", () => {
  const subscriber = new Subscriber();
  receive(subscriber, started(), confirmation());
  const lostAt = now();
  const reconnect = (mode, wasLossAnnounced, ...events) => {
    subscriber.startCatchUp(mode, lostAt, wasLossAnnounced);
    const effects = receive(subscriber, ...events);
    return announcedTexts([...effects, ...subscriber.endCatchUp(lostAt)]);
  };
  assert.deepEqual(reconnect("resumed", true), ["This question is still open: Send 5 euros to Ben. About 2 minutes left."]);
  assert.deepEqual(reconnect("resumed", false), [], "the loss was not announced");
  const [asked, ...rest] = reconnect("resumed", true, confirmation({ reply_token: "rpl_2", action: "Write to Ann." }));
  assert.ok(asked.startsWith("Write to Ann."), asked);
  assert.equal(rest.length, 1, "a question asked in the meantime is announced on its own");
  assert.deepEqual(reconnect("resumed", true), ["2 questions are still open. They are in the list of questions."]);
  subscriber.recordSentAnswer("rpl_1", "accept");
  assert.match(reconnect("resumed", true)[0], /^This question is still open: Write to Ann\./);
  const texts = reconnect("resumed", true, resolution({ reply_token: "rpl_2", decision: "reject", by: "reply" }));
  assert.deepEqual(texts, ["Someone else rejected this: Write to Ann."]);
});

test("the page uses its own text for a state instead of the hub's", () => {
  const subscriber = new Subscriber();
  receive(subscriber, started());
  const state = (sayso) =>
    event("state.changed", { from_state: "idle", to_state: "thinking", summary_normal: "The hub's words.", extensions: { sayso } });
  assert.deepEqual(announcedTexts(receive(subscriber, state({ text_by: "hub" }))), ["Thinking."]);
  assert.deepEqual(announcedTexts(receive(subscriber, state({ reply_token: "rpl_9", by: "reply" }))), ["Thinking."]);
  assert.deepEqual(announcedTexts(receive(subscriber, state({}))), ["The hub's words."]);
});

test("only the hub can say that a person stopped a session", () => {
  const cancelled = (more) => announcedTexts(receive(new Subscriber(), event("session.cancelled", { summary_normal: "Stopped.", cancelled_by: "user", ...more })));
  assert.deepEqual(cancelled({}), ["Bank says that a person stopped it. Stopped."]);
  assert.deepEqual(cancelled({ extensions: { sayso: { ended_by: "user" } } }), ["Bank was stopped by a person."]);
});

test("an agent's change of state closes no question", () => {
  const subscriber = new Subscriber();
  receive(subscriber, started(), confirmation(), event("state.changed", { from_state: "awaiting_input", to_state: "thinking" }));
  assert.equal(subscriber.questions.size, 1);
});

const markdown = (chunk, more) => event("output.streaming", { chunk, content_type: "text/markdown", output_id: "out_1", complete: false, ...more });

test("an output in Markdown is announced with the parser's text, and each text once", () => {
  const subscriber = new Subscriber();
  const [{ parse: output }] = receive(subscriber, started(), markdown("# A\n- one")).filter((effect) => effect.parse);
  assert.deepEqual(output.parts, ["# A\n- one"]);
  const parsed = (spoken, isHeld) => announcedTexts(subscriber.onParsed(output, { blocks: [], spoken, isHeld }, now()));
  assert.deepEqual(parsed("Heading: A.\n\n", true), ["Heading: A."]);
  assert.equal(subscriber.releaseDeadline(output), now() + 5000);
  const question = confirmation();
  assert.deepEqual(subscriber.releaseBefore(question), [output], "held text is heard before a question");
  assert.deepEqual(output.parts, ["# A\n- one", ""]);
  assert.deepEqual(parsed("Heading: A.\n\n1 item.\n\none.\n\n", false), ["1 item.", "one."]);
  assert.equal(subscriber.releaseDeadline(output), undefined);
  receive(subscriber, question);
  const [{ parse: rest }] = receive(subscriber, markdown(" And.", { complete: true })).filter((effect) => effect.parse);
  assert.deepEqual([rest === output, rest.parts, rest.complete], [true, ["# A\n- one", " And."], true]);
});

test("if Markdown cannot be parsed, it is announced as it was written", () => {
  const subscriber = new Subscriber();
  const parse = (...events) => receive(subscriber, ...events).find((effect) => effect.parse).parse;
  const output = parse(started(), markdown("**One.** "));
  assert.deepEqual(announcedTexts(subscriber.onParsed(output, { blocks: [], spoken: "One. ", isHeld: false }, now())), ["One."]);
  parse(markdown("**Two.**"));
  assert.deepEqual(announcedTexts(subscriber.onParsed(output, undefined, now())), ["**Two.**"]);
  parse(markdown(" Three."));
  assert.deepEqual(announcedTexts(subscriber.onParsed(output, { blocks: [], spoken: "all again", isHeld: false }, now())), ["Three."]);
});

test("the end of a session completes its outputs in Markdown", () => {
  const subscriber = new Subscriber();
  const output = receive(subscriber, started(), markdown("- one")).find((effect) => effect.parse).parse;
  assert.deepEqual(subscriber.releaseBefore(event("session.completed")), [output]);
  assert.equal(output.complete, true);
  assert.deepEqual(subscriber.releaseBefore(event("progress.updated")), []);
});

test("another agent of the session is named when it speaks, and so is the first one afterwards", () => {
  const subscriber = new Subscriber();
  const tool = (agent, more) => event("tool.invoked", { tool: "x", summary_normal: "Looking.", producer: { agent_id: agent, agent_name: agent }, ...more });
  receive(subscriber, started());
  const texts = ["bank", "scout", "scout", "bank"].flatMap((agent) => announcedTexts(receive(subscriber, tool(agent))));
  assert.deepEqual(texts, ["Tool: Looking.", "scout: Tool: Looking.", "Tool: Looking.", "Bank: Tool: Looking."]);
  const { log } = receive(subscriber, tool("scout")).find((effect) => effect.log);
  assert.equal(joinParts(log.ownParts), "scout: Looking.");
  const { output } = receive(subscriber, event("output.streaming", { chunk: "Here.", complete: true, producer: { agent_id: "scout", agent_name: "scout" } })).find((effect) => effect.output);
  assert.equal(output.speaker, "scout");
});

test("a verified name of another agent does not become the name of the session", () => {
  const subscriber = new Subscriber();
  receive(subscriber, started());
  const other = { producer: { agent_id: "scout", agent_name: "Scout Service" }, extensions: { sayso: { verified_name: true } } };
  receive(subscriber, event("tool.invoked", { tool: "x", ...other }));
  assert.equal(subscriber.sessions.get("sess_1").agent, "Bank");
});

test("a session knows the session that started it", () => {
  const subscriber = new Subscriber();
  receive(subscriber, started(), started({ session_id: "sess_2", extensions: { sayso: { parent_session_id: "sess_1" } } }));
  assert.deepEqual([...subscriber.sessions.values()].map(({ parent }) => parent), [undefined, "sess_1"]);
});

test("a newer step replaces a waiting one, but a failed tool does not", () => {
  const announce = (more) => receive(new Subscriber(), event("tool.completed", { tool: "x", tool_call_id: "c", ...more })).find((effect) => effect.announce).announce;
  assert.deepEqual([announce({ status: "success" }).isStep, announce({ status: "success" }).key], [true, "step sess_1"]);
  assert.deepEqual([announce({ status: "error" }).isStep, announce({ status: "error" }).key], [undefined, undefined]);
  assert.equal(announce({ status: "success", urgency: "critical" }).isStep, undefined);
});

test("the start of one of several sessions can be skipped, because its answer names the agent", () => {
  const subscriber = new Subscriber();
  const start = (session) => receive(subscriber, started({ session_id: session })).find((effect) => effect.announce).announce;
  const first = start("sess_1");
  assert.deepEqual([first.isStart, first.isStep], [true, false], "text may cut it off, but it is not skipped");
  assert.deepEqual([start("sess_2").isStep, start("sess_3").key], [true, undefined]);
  assert.deepEqual(announcedTexts(receive(subscriber, event("output.streaming", { chunk: "Hi.", complete: true }))), ["Bank: Paying Ben. Hi."]);
});

test("a late listener hears what a session is about", () => {
  const subscriber = new Subscriber();
  const snapshot = event("state.changed", { from_state: "thinking", to_state: "thinking", extensions: { sayso: { about: "Paying the \u202erent.", text_by: "hub" } } });
  assert.deepEqual(announcedTexts(receive(subscriber, snapshot)), ["Bank is working: Paying the rent. Thinking."]);
  assert.equal(subscriber.sessions.get("sess_1").title.text, "Paying the rent.");
  receive(subscriber, started());
  assert.equal(subscriber.sessions.get("sess_1").title.text, "Paying Ben.", "the start itself counts more");
});

test("after answering, the person hears the answer in one word, or the question if others are open", () => {
  const subscriber = new Subscriber();
  receive(subscriber, started(), confirmation(), confirmation({ reply_token: "rpl_2", action: "Write to Ann." }));
  const answer = (token) => {
    subscriber.recordSentAnswer(token, "accept");
    const effects = receive(subscriber, resolution({ reply_token: token, decision: "accept", by: "reply" }));
    return [...announcedTexts(effects), ...loggedTexts(effects), joinParts(effects.find((effect) => effect.closed).closed.outcome)];
  };
  const long = (action) => `You accepted this: ${action}`;
  assert.deepEqual(answer("rpl_1"), [long("Send 5 euros to Ben."), long("Send 5 euros to Ben."), long("Send 5 euros to Ben.")]);
  assert.deepEqual(answer("rpl_2"), ["Accepted.", long("Write to Ann."), long("Write to Ann.")], "the log and the card keep the question");
});

test("the person's own free-text answer is announced with the question", () => {
  const subscriber = new Subscriber();
  receive(subscriber, started(), event("awaiting.clarification", { question: "Which city?", reply_token: "rpl_1", timeout_seconds: 120 }));
  Object.assign(subscriber.questions.get("rpl_1"), { sentAnswer: "answer", sentText: "Lyon\u202e" });
  assert.deepEqual(announcedTexts(receive(subscriber, resolution({ reply_token: "rpl_1", by: "reply" }))), ["You answered Lyon: Which city?"]);
});

test("after stopping an agent, the person hears one sentence, and its questions close silently", () => {
  const stopped = () => event("session.cancelled", { summary_normal: "The session was stopped.", cancelled_by: "user", extensions: { sayso: { ended_by: "user" } } });
  const subscriber = new Subscriber();
  receive(subscriber, started(), confirmation());
  subscriber.recordStop("sess_1", true);
  const effects = receive(subscriber, resolution({ reply_token: "rpl_1", decision: "reject", by: "cancelled" }), stopped());
  assert.deepEqual(announcedTexts(effects), ["You stopped Bank."]);
  assert.equal(effects.find((effect) => effect.closed).closed.isStopped, true, "the dialog closes");
  const other = new Subscriber();
  receive(other, started(), confirmation());
  other.recordStop("sess_1", true);
  other.recordStop("sess_1", false);
  const texts = announcedTexts(receive(other, stopped()));
  assert.deepEqual(texts, ["This question was withdrawn: Send 5 euros to Ben.", "Bank was stopped by a person."]);
});

test("the end of a session names its agent once, and its card shows only what the agent says about it", () => {
  const end = (subscriber, more) => {
    const effects = receive(subscriber, event("session.completed", more));
    return [announcedTexts(effects)[0], joinParts(effects.find((effect) => effect.log).log.ownParts)];
  };
  const subscriber = new Subscriber();
  receive(subscriber, started(), started({ session_id: "sess_2" }));
  assert.deepEqual(end(subscriber, { summary_normal: "Counted." }), ["Bank has finished. Counted.", "Counted."]);
  assert.deepEqual(end(subscriber, { session_id: "sess_2" }), ["Bank has finished.", ""]);
});

test("a failed tool says so once", () => {
  const completed = (more) => announcedTexts(receive(new Subscriber(), event("tool.completed", { tool: "scan_disk", status: "error", ...more })))[0];
  assert.equal(completed({ summary_normal: "The scan failed.", error_message: "Disk full." }), "Failed: The scan failed. Disk full.");
  assert.equal(completed({ summary_normal: "The scan failed: Disk full.", error_message: "Disk full" }), "Failed: The scan failed: Disk full.");
  assert.equal(completed({ error_message: "Disk full." }), "The tool scan disk failed. Disk full.");
  assert.equal(completed({ status: "timeout", summary_normal: "The scan hangs." }), "Not finished: The scan hangs.");
});

test("a working session knows what its agent does and how far it is", () => {
  const subscriber = new Subscriber();
  receive(subscriber, started());
  const { facts } = subscriber.sessions.get("sess_1");
  const after = (...events) => {
    receive(subscriber, ...events);
    return [joinParts(facts.activity()), facts.position(now())];
  };
  assert.deepEqual(after(), ["", ""]);
  assert.deepEqual(after(event("state.changed", { from_state: "idle", to_state: "thinking" })), ["Thinking.", ""]);
  assert.deepEqual(after(event("tool.invoked", { tool: "fetch_trains" })), ["Using fetch trains.", ""]);
  assert.deepEqual(after(event("progress.updated", { progress: { step: 3, total_steps: 7 }, eta_ms: 120000, summary_normal: "Comparing trains." })), ["Comparing trains.", "Step 3 of 7. About 2 minutes left."]);
  assert.deepEqual(after(event("progress.updated", { progress: { percent: 41.6 } })), ["Comparing trains.", "42 percent. About 2 minutes left."]);
  assert.deepEqual(after(event("progress.updated", { progress: { description: "x" }, summary_normal: "You have time.", extensions: { sayso: { reminds_of: "rpl_1" } } })), ["Comparing trains.", "42 percent. About 2 minutes left."], "the hub's reminders are no progress");
  advance(120);
  assert.deepEqual(after(event("tool.invoked", { tool: "book", summary_normal: "Booking." })), ["Booking.", "42 percent."], "the estimate is over");
});

test("durations are round", () => {
  const texts = [0, 1, 19.6, 20, 22, 23, 54, 55, 61, 88, 91, 115, 125, 235, 7100, 7200, 10800].map(formatDuration);
  assert.deepEqual(texts, ["0 seconds", "1 second", "20 seconds", "20 seconds", "20 seconds", "25 seconds", "55 seconds", "1 minute", "1 minute", "1 minute", "2 minutes", "2 minutes", "2 minutes", "4 minutes", "118 minutes", "2 hours", "3 hours"]);
});

test("a call that was just permitted warns of nothing, and the next one does", () => {
  const subscriber = new Subscriber();
  const call = () => announcedTexts(receive(subscriber, event("tool.invoked", { tool: "x", summary_normal: "Sending.", irreversible: true })))[0];
  receive(subscriber, started(), confirmation());
  assert.equal(call(), "Tool: Sending. This cannot be undone.");
  receive(subscriber, resolution({ reply_token: "rpl_1", decision: "accept", by: "reply" }));
  assert.deepEqual([call(), call()], ["Tool: Sending.", "Tool: Sending. This cannot be undone."]);
});
