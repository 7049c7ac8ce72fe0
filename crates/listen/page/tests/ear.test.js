import assert from "node:assert/strict";
import { test } from "node:test";

import { Ear, MOST_QUESTIONS, MOST_SESSIONS, REMEMBERED } from "../ear.js";
import { plain } from "../words.js";
import { confirmation, event, hear, logs, now, pass, resolution, says, started } from "./samples.js";

test("an event that comes twice is heard once", () => {
  const ear = new Ear();
  const start = started();
  assert.deepEqual(says(hear(ear, start)), ["Bank started: Paying Ben."]);
  assert.deepEqual(hear(ear, start, { ...start }), []);
  for (let more = 0; more < REMEMBERED + 10; more += 1) hear(ear, event("progress.updated", { progress: { percent: 1 } }));
  assert.equal(says(hear(ear, start)).length, 1, "what is remembered is bounded");
});

test("what is no event is no harm", () => {
  const ear = new Ear();
  for (const odd of [{}, { type: 1 }, { event_id: "evt_x" }, { type: "aaep:agent.state.changed", event_id: 7 }]) {
    assert.deepEqual(ear.hear(odd, 0), []);
  }
  for (const type of ["awaiting.confirmation", "awaiting.clarification", "tool.completed", "output.streaming", "progress.updated", "session.errored"]) {
    ear.hear({ type: `aaep:agent.${type}`, event_id: `evt_${type}`, progress: null, producer: [], choices: 1, extensions: 3 }, 0);
  }
  assert.equal(ear.questions.size, 0, "a question without a token cannot be answered");
});

test("a question is told whole: action, consequence, risk, time and what silence means", () => {
  const ear = new Ear();
  const effects = hear(ear, started(), confirmation());
  const question = effects.find((effect) => effect.ask).ask;
  assert.equal(
    plain(question.text),
    "Send 5 euro to Ben. The money is gone. High risk. It cannot be undone. You have 2 minutes. Without an answer it counts as no.",
  );
  const said = effects.find((effect) => effect.say?.show).say;
  assert.equal(said.show, "rpl_1");
  assert.equal(said.critical, true);
});

test("a question that is over says how, once, and is withdrawn", () => {
  const how = [
    [{ decision: "accept", by: "reply" }, "accept", "You accepted this: Send 5 euro to Ben."],
    [{ decision: "reject", by: "reply" }, "reject", "You rejected this: Send 5 euro to Ben."],
    [{ decision: "reject", by: "reply" }, "accept", "Somebody else rejected this: Send 5 euro to Ben."],
    [{ decision: "accept", by: "reply" }, undefined, "Somebody else accepted this: Send 5 euro to Ben."],
    [{ decision: "reject", by: "timeout" }, undefined, "Nobody answered in time, so this was rejected: Send 5 euro to Ben."],
    [{ decision: "reject", by: "closure" }, undefined, "Nobody was left to answer, so this was rejected: Send 5 euro to Ben."],
    [{ decision: "reject", by: "witchcraft" }, undefined, "This was rejected: Send 5 euro to Ben."],
    [{ decision: "reject", by: "cancelled" }, undefined, "This question was withdrawn: Send 5 euro to Ben."],
  ];
  for (const [sayso, mine, wanted] of how) {
    const ear = new Ear();
    hear(ear, started(), confirmation());
    if (mine !== undefined) ear.questions.get("rpl_1").mine = mine;
    const effects = hear(ear, resolution({ reply_token: "rpl_1", ...sayso }));
    assert.deepEqual(says(effects), [wanted]);
    assert.equal(effects.filter((effect) => effect.settled).length, 1);
    assert.equal(ear.questions.size, 0);
    const { say } = effects.find((effect) => effect.say);
    assert.deepEqual([say.critical, say.first], [true, mine !== undefined]);
  }
});

test("of several questions only the one that was answered is over", () => {
  const ear = new Ear();
  hear(ear, started(), confirmation(), confirmation({ reply_token: "rpl_2", action: "Send 6." }), confirmation({ reply_token: "rpl_3" }));
  hear(ear, resolution({ reply_token: "rpl_2", decision: "reject", by: "reply" }));
  assert.deepEqual([...ear.questions.keys()], ["rpl_1", "rpl_3"]);
  hear(ear, resolution({ reply_token: "rpl_nobody", decision: "accept", by: "reply" }));
  assert.equal(ear.questions.size, 2);
});

test("the end of a session withdraws its questions and no others", () => {
  for (const end of ["session.errored", "session.cancelled", "session.completed"]) {
    const ear = new Ear();
    hear(ear, started(), confirmation(), started({ session_id: "sess_2" }), confirmation({ session_id: "sess_2", reply_token: "rpl_2" }));
    const effects = hear(ear, event(end, { summary_normal: "Over." }));
    assert.ok(says(effects).some((said) => said.includes("This question was withdrawn: Send 5 euro to Ben.")), end);
    assert.deepEqual([...ear.questions.keys()], ["rpl_2"]);
  }
});

test("questions are bounded, and one too many is told", () => {
  const ear = new Ear();
  for (let number = 0; number < MOST_QUESTIONS; number += 1) hear(ear, confirmation({ reply_token: `rpl_n${number}` }));
  const effects = hear(ear, confirmation({ reply_token: "rpl_more" }));
  assert.equal(ear.questions.size, MOST_QUESTIONS);
  assert.match(says(effects)[0], /More than 4096 questions are open/);
  assert.equal(effects.find((effect) => effect.say).say.critical, true);
});

test("sessions are bounded; those that go on are kept", () => {
  const ear = new Ear();
  hear(ear, started({ session_id: "sess_on" }));
  for (let number = 0; number < 2 * MOST_SESSIONS; number += 1) {
    hear(ear, started({ session_id: `sess_n${number}` }), event("session.completed", { session_id: `sess_n${number}`, summary_normal: "Done." }));
  }
  assert.ok(ear.sessions.size <= MOST_SESSIONS);
  assert.ok(ear.sessions.has("sess_on"));
});

test("pieces of a word are held until there is a boundary; each word is heard once", () => {
  const ear = new Ear();
  const piece = (chunk, hint, more) => event("output.streaming", { chunk, coalesce_hint: hint, output_id: "out_1", complete: false, ...more });
  hear(ear, started());
  const effects = hear(ear, piece("Hel", "none"), piece("lo ", "word"), piece("there.", "sentence"), piece("B", "none"), piece("ye", "none", { complete: true }));
  assert.deepEqual(says(effects), ["Hello there.", "Bye"]);
  assert.deepEqual(logs(effects), ["Hello there.", "Bye"]);
});

test("what two agents write at once is not mixed", () => {
  const ear = new Ear();
  const piece = (session, chunk, hint) => event("output.streaming", { session_id: session, chunk, coalesce_hint: hint, output_id: "out_1", complete: false });
  hear(ear, piece("sess_a", "To ", "none"), piece("sess_b", "For ", "none"));
  assert.match(says(hear(ear, piece("sess_a", "Ada.", "sentence")))[0], /To Ada\.$/);
  assert.match(says(hear(ear, piece("sess_b", "Ben.", "sentence")))[0], /For Ben\.$/);
  assert.deepEqual(hear(ear, piece("sess_b", " ", "sentence")).filter((effect) => effect.say ?? effect.log), [], "nothing is nothing to say");
});

test("what is held for its boundary is bounded", () => {
  const ear = new Ear();
  const piece = () => event("output.streaming", { chunk: "x".repeat(1000), coalesce_hint: "none", output_id: "out_1", complete: false });
  const said = Array.from({ length: 20 }, () => says(hear(ear, piece()))).flat();
  assert.deepEqual(said.map((one) => one.length), [17000]);
});

test("what is critical is said as such, whatever it is", () => {
  for (const type of ["session.errored", "tool.completed", "handoff.requested", "output.streaming"]) {
    for (const urgency of ["critical", "normal"]) {
      const said = hear(new Ear(), event(type, { summary_normal: "Broken.", chunk: "Broken.", urgency })).find((effect) => effect.say).say;
      assert.equal(said.critical, urgency === "critical", type);
    }
  }
});

test("who speaks is said where more than one could", () => {
  const ear = new Ear();
  const tool = (session, name) => event("tool.invoked", { session_id: session, tool: "x", summary_normal: "Looking.", producer: { agent_id: name, agent_name: name } });
  const begins = (session, name, title) => started({ session_id: session, summary_normal: title, producer: { agent_id: name, agent_name: name } });
  hear(ear, begins("sess_1", "Bank", "Paying Ben."));
  assert.deepEqual(says(hear(ear, tool("sess_1", "Bank"))), ["Tool: Looking."]);
  hear(ear, begins("sess_2", "Post", "Writing to Ann."));
  assert.deepEqual(says(hear(ear, tool("sess_1", "Bank"), tool("sess_2", "Post"))), ["Bank: Tool: Looking.", "Post: Tool: Looking."]);
  hear(ear, begins("sess_3", "Post", "Writing to Chi."));
  assert.deepEqual(says(hear(ear, tool("sess_2", "Post"))), ["Post: Writing to Ann. Tool: Looking."], "of two by the same name also what it does");
  hear(ear, event("session.completed", { session_id: "sess_2" }), event("session.completed", { session_id: "sess_3" }));
  assert.deepEqual(says(hear(ear, tool("sess_1", "Bank"))), ["Tool: Looking."]);
});

test("states are told only if they last, and those of a question, tool or end take their place", () => {
  const ear = new Ear();
  const state = (from, to) => event("state.changed", { from_state: from, to_state: to });
  const effects = hear(ear, started(), state("idle", "thinking"));
  const said = effects.find((effect) => effect.say?.key?.startsWith("state")).say;
  assert.ok(said.from > now() && said.stale);
  assert.deepEqual(hear(ear, event("tool.invoked", { tool: "pay", summary_normal: "Paying." })).filter((effect) => effect.hush).map((effect) => effect.hush), ["sess_1"]);
  ear.quiet = true;
  const quiet = hear(ear, state("thinking", "frobnicating_now")).find((effect) => effect.say).say;
  assert.equal(plain(quiet.parts), "State frobnicating now.");
  assert.ok(quiet.from >= now() + 30000, "quiet, but not for ever");
  assert.deepEqual(says(hear(ear, state("x", "awaiting_input"))), [], "the question itself follows");
});

test("a type that nobody knows is told in one line", () => {
  const ear = new Ear();
  const effects = hear(ear, { ...event("x"), type: "med:dose.given", summary_normal: "Ten milligrams." }, { ...event("x"), type: "med:dose.given" });
  assert.deepEqual(says(effects), ["med dose given: Ten milligrams.", "med dose given: something that this page does not know."]);
});

test("of what was missed one sentence is said; questions are told at once", () => {
  const ear = new Ear();
  hear(ear, started());
  ear.catchUp("again", 0);
  const meanwhile = Array.from({ length: 12 }, (_, number) => event("output.streaming", { chunk: `Sentence ${number}.`, complete: false }));
  const effects = hear(ear, ...meanwhile, confirmation());
  assert.equal(logs(effects).length, 13, "the log has all of it");
  assert.deepEqual(effects.filter((effect) => effect.say).map((effect) => effect.say.show), ["rpl_1"]);
  assert.deepEqual(says(ear.caughtUp(0)), ["12 things happened meanwhile in 1 session. The log has them."]);
  assert.deepEqual(ear.caughtUp(0), []);
});

test("who joins late hears what is under way; what is not told anew is over", () => {
  const ear = new Ear();
  const stands = (session, more) => event("state.changed", { session_id: session, from_state: "thinking", to_state: "thinking", ...more });
  ear.catchUp("first", 0);
  hear(ear, stands("sess_a"), confirmation({ session_id: "sess_a", reply_token: "rpl_a" }), stands("sess_b"));
  assert.deepEqual(says(ear.caughtUp(0)), ["A session of Bank is under way. Thinking."], "the question speaks for its session");
  hear(ear, confirmation({ session_id: "sess_a", reply_token: "rpl_b" }));
  ear.catchUp("anew", 0);
  hear(ear, stands("sess_c"), confirmation({ session_id: "sess_a", reply_token: "rpl_b" }));
  const effects = ear.caughtUp(0);
  assert.deepEqual([...ear.questions.keys()], ["rpl_b"]);
  assert.ok(says(effects).some((said) => said.startsWith("This question was settled while you were not connected:")));
});

test("what happens as one begins to listen is heard; of many sessions the number is", () => {
  const ear = new Ear();
  ear.catchUp("first", 0);
  const stands = [1, 2, 3, 4, 5].map((number) => event("state.changed", { session_id: `sess_n${number}`, from_state: "idle", to_state: "idle" }));
  assert.deepEqual(says(hear(ear, ...stands)), []);
  const more = Array.from({ length: 6 }, (_, number) => event("tool.invoked", { session_id: "sess_n1", tool: "x", summary_normal: `Tool ${number}.` }));
  assert.equal(says(hear(ear, ...more)).length, 6);
  assert.deepEqual(says(ear.caughtUp(0)), ["4 sessions are under way. The list of sessions has them."], "the tools told of the fifth");
});

test("the hub's clock is what events say, however late some of them come", () => {
  const ear = new Ear();
  const at = (time) => ({ ...event("progress.updated", { progress: { percent: 1 } }), timestamp: new Date(time).toISOString() });
  ear.hear(at(50_000), 90_000);
  ear.hear(at(60_000), 65_000);
  ear.hear(at(10_000), 65_000);
  assert.equal(ear.hubTime(65_000), 60_000);
});

test("a producer's text keeps its language and direction, and loses what could trick", () => {
  const ear = new Ear();
  const arabic = started({ summary_normal: "مرحبا \u202eabc\u0007\u001b[2J", localization_hints: { primary_language: "ar", text_direction: "rtl" } });
  const [, , text] = ear.hear(arabic, 0).find((effect) => effect.say).say.parts;
  assert.deepEqual([text.lang, text.dir], ["ar", "rtl"]);
  assert.doesNotMatch(text.text, /[\u202a-\u202e\u0000-\u0008\u001b]/);
  const odd = started({ localization_hints: { primary_language: '"><script>', text_direction: "sideways" } });
  const [name, , part] = ear.hear(odd, 0).find((effect) => effect.say).say.parts;
  assert.deepEqual([part.lang, part.dir], ["", "auto"]);
  assert.deepEqual([name.text, name.dir], ["Bank", "auto"], "a name runs by itself");
});

test("the hub's own messages are told", () => {
  const ear = new Ear();
  assert.deepEqual(says(ear.message({ type: "sayso:gap", reason_message: "Some is lost." }, 0)), ["Some is lost."]);
  assert.deepEqual(logs(ear.message({ type: "subscription.close", reason_code: "slow_consumer" }, 0)), ["The hub has ended this connection."]);
  assert.deepEqual(ear.message({ type: "something.else" }, 0), []);
});

test("the log does not say its word twice", () => {
  const ear = new Ear();
  const effects = hear(ear, event("tool.invoked", { tool: "x", summary_normal: "Looking." }), event("session.errored", { summary_normal: "Broken." }));
  assert.deepEqual(logs(effects), ["Looking.", "Broken."]);
  assert.deepEqual(says(effects), ["Tool: Looking.", "Error: Broken."]);
});

test("the words are those of the verbosity", () => {
  const ear = new Ear();
  for (const [verbosity, wanted] of [["terse", "Short."], ["normal", "Middling."], ["detailed", "At length."]]) {
    ear.verbosity = verbosity;
    const effects = hear(ear, event("tool.invoked", { tool: "x", summary_terse: "Short.", summary_normal: "Middling.", summary_detailed: "At length." }));
    assert.deepEqual(says(effects), [`Tool: ${wanted}`]);
  }
});

test("that time runs out is told of the question, also to who wants it quiet", () => {
  const ear = new Ear();
  ear.quiet = true;
  const reminder = (token) =>
    event("progress.updated", {
      progress: { description: "x" },
      summary_normal: "60 seconds are left to answer.",
      ...(token === undefined ? {} : { extensions: { sayso: { reminds_of: token } } }),
    });
  hear(ear, started());
  assert.deepEqual(says(hear(ear, reminder("rpl_1"))), [], "nobody was asked");
  hear(ear, confirmation(), confirmation({ reply_token: "rpl_2", action: "Write to Ann." }));
  assert.deepEqual(says(hear(ear, reminder("rpl_1"))), ["60 seconds are left to answer. Send 5 euro to Ben."]);
  assert.deepEqual(says(hear(ear, reminder("rpl_2"))), ["60 seconds are left to answer. Write to Ann."]);
  assert.deepEqual(says(hear(ear, reminder(undefined))), [], "words alone are an agent's");
  ear.answered("rpl_1", "accept");
  assert.deepEqual(says(hear(ear, reminder("rpl_1"))), [], "it is answered");
});

const moreTime = (until, more) =>
  event("progress.updated", {
    progress: { description: "x" },
    summary_normal: "There is more time.",
    extensions: { sayso: { extended: "rpl_1", deadline: new Date(until).toISOString() } },
    ...more,
  });

test("more time is had by everybody who listens, and told once", () => {
  const ear = new Ear();
  hear(ear, started(), confirmation());
  const { asked, deadline } = ear.questions.get("rpl_1");
  assert.equal(deadline, asked + 120000);
  const told = hear(ear, moreTime(asked + 241000));
  assert.deepEqual(says(told), ["There is more time. About 4 minutes are left to answer: Send 5 euro to Ben."]);
  assert.deepEqual(logs(told), says(told));
  assert.equal(told.filter((effect) => effect.moved?.deadline === asked + 241000).length, 1);
  assert.deepEqual(says(hear(ear, moreTime(asked + 241000))), [], "once");
  assert.deepEqual(says(hear(ear, moreTime(asked + 1000))), [], "and never less");
  assert.equal(ear.questions.get("rpl_1").deadline, asked + 241000);
  ear.questions.get("rpl_1").wished = true;
  assert.deepEqual(says(hear(ear, moreTime(asked + 365000))), ["You have more time. About 6 minutes are left."]);
  assert.equal(ear.questions.get("rpl_1").wished, false);
  const words = moreTime(asked + 999000, { extensions: { other: { extended: "rpl_1", deadline: "2099-01-01T00:00:00Z" } } });
  hear(ear, words, moreTime(0, { extensions: { sayso: { extended: "rpl_1", deadline: "never" } } }));
  assert.equal(ear.questions.get("rpl_1").deadline, asked + 365000, "only the hub's mark counts");
});

test("who joins late has the time that is left", () => {
  const ear = new Ear();
  const question = confirmation();
  const asked = Date.parse(question.timestamp);
  pass(150);
  hear(ear, event("state.changed", { from_state: "awaiting_input", to_state: "awaiting_input" }));
  assert.deepEqual(says(hear(ear, moreTime(asked + 240000))), []);
  const [said] = says(hear(ear, question));
  assert.ok(said.endsWith("You have 88 seconds. Without an answer it counts as no."), said);
});

test("after a loss that was told it is said what is still open", () => {
  const ear = new Ear();
  hear(ear, started(), confirmation());
  const then = now();
  const back = (how, told, ...events) => {
    ear.catchUp(how, then, told);
    const effects = hear(ear, ...events);
    return says([...effects, ...ear.caughtUp(then)]);
  };
  assert.deepEqual(back("again", true), ["This question is still open: Send 5 euro to Ben. About 2 minutes are left."]);
  assert.deepEqual(back("again", false), [], "a loss that nobody noticed");
  const [asked, ...rest] = back("again", true, confirmation({ reply_token: "rpl_2", action: "Write to Ann." }));
  assert.ok(asked.startsWith("Write to Ann."), asked);
  assert.equal(rest.length, 1, "what was asked meanwhile is said by itself");
  assert.deepEqual(back("again", true), ["2 questions are still open. The list of questions has them."]);
  ear.answered("rpl_1", "accept");
  assert.match(back("again", true)[0], /^This question is still open: Write to Ann\./);
  const settled = back("again", true, resolution({ reply_token: "rpl_2", decision: "reject", by: "reply" }));
  assert.deepEqual(settled, ["Somebody else rejected this: Write to Ann."]);
});

test("what the hub says of a state is said here in words of ours", () => {
  const ear = new Ear();
  hear(ear, started());
  const state = (sayso) =>
    event("state.changed", { from_state: "idle", to_state: "thinking", summary_normal: "The hub's words.", extensions: { sayso } });
  assert.deepEqual(says(hear(ear, state({ words: "hub" }))), ["Thinking."]);
  assert.deepEqual(says(hear(ear, state({ reply_token: "rpl_9", by: "reply" }))), ["Thinking."]);
  assert.deepEqual(says(hear(ear, state({}))), ["The hub's words."]);
});
