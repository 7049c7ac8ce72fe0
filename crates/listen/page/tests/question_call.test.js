import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { createSpans } from "../announcer.js";
import { selectLanguage } from "../phrases.js";
import { MAX_SHORT_CALL_CHARS, describeNumber, parseEvent } from "../question_call.js";
import { Subscriber } from "../subscriber.js";
import { joinParts } from "../wording.js";
import { announcedTexts, confirmation, receive, started } from "./samples.js";

const ask = (sayso, more) => receive(new Subscriber(), started(), confirmation({ extensions: { sayso }, ...more })).find((effect) => effect.opened).opened;
const bound = (call) => ({ tool: "send_money", action_digest: "sha256:x", arguments: call });

test("a question contains the bound call if it is short", () => {
  for (const [call, expected] of [
    [{ amount: 5000000, to: "Ben" }, "send money, amount 5000000, to Ben"],
    [{}, "send money, without arguments"],
    [["a", true, null], "send money, a, true, null"],
    [{ user_name: { first: "Ada", all: [1, 2] } }, "send money, user name (first Ada, all (1, 2))"],
    [{ to: "Ben, amount 5" }, 'send money, to "Ben, amount 5"'],
    [{ "amount 5 to": "Ben" }, 'send money, "amount 5 to" Ben'],
  ]) {
    assert.ok(joinParts(ask(bound(call)).text).includes(`This cannot be undone: ${expected}.`), joinParts(ask(bound(call)).text));
  }
});

test("nothing disappears from the exact call, and nothing looks like a separator", () => {
  const cases = JSON.parse(readFileSync(new URL("call_texts.json", import.meta.url), "utf8"));
  for (const [call, expected] of cases) {
    const text = joinParts(ask(bound(call)).text);
    assert.ok(text.includes(`This cannot be undone: ${expected}.`), text);
  }
  assert.ok(joinParts(ask({ ...bound({}), tool: "send amount 1" }).text).includes('This cannot be undone: "send amount 1", without arguments.'));
});

test("each name and value of the call is an element of its own, and the text stays the same", () => {
  const part = ask(bound({ account: "\u05d0", amount: 5, all: [true, { to: "Ben" }] })).text.find(({ text }) => text.startsWith("This cannot be undone: "));
  const [span] = createSpansWithoutBrowser([part]);
  const isolated = span.children.filter((child) => child.name === "bdi").map((child) => child.textContent);
  assert.deepEqual(isolated, ["send money", "account", "\u05d0", "amount", "5", "all", "true", "to", "Ben"]);
  assert.equal(span.children.map((child) => child.textContent ?? child).join(""), part.text);
  assert.equal(part.text, "This cannot be undone: send money, account \u05d0, amount 5, all (true, (to Ben)).");
});

/** Creates elements in a document that only knows texts and children. */
function createSpansWithoutBrowser(parts) {
  const createElement = (name) => ({ name, children: [], append(...children) { this.children.push(...children); } });
  globalThis.document = { createElement };
  try {
    return createSpans(parts);
  } finally {
    delete globalThis.document;
  }
}

test("a number with an exponent is read in canonical form", () => {
  assert.deepEqual(["0.00005e8", "5E3", "5.00", "9007199254740993"].map(describeNumber), ["5000", "5000", "5.00", "9007199254740993"]);
});

test("an event with arguments is parsed", () => {
  const call = { amount: 5, list: [1.5, { a: 2 }], to: "Ben" };
  const event = parseEvent(JSON.stringify(confirmation({ extensions: { sayso: bound(call) } })));
  const { opened } = receive(new Subscriber(), started(), event).find((effect) => effect.opened);
  assert.ok(joinParts(opened.text).includes("This cannot be undone: send money, amount 5, list (1.5, (a 2)), to Ben."));
});

const detailsOf = (question) => question.details.map(joinParts);

test("a long call is in the details, and the question says so", () => {
  const to = "x".repeat(MAX_SHORT_CALL_CHARS);
  const question = ask(bound({ to }));
  assert.ok(joinParts(question.text).includes("The exact call is in the details."));
  assert.ok(!joinParts(question.text).includes(to));
  assert.ok(detailsOf(question).includes(`The exact call: send money, to ${to}.`));
});

test("a call that the action says word for word is only in the details", () => {
  const says = (action, sayso) => {
    const question = ask(sayso, { action });
    const isInText = joinParts(question.text).includes("This cannot be undone: ");
    assert.notEqual(detailsOf(question).some((line) => line.startsWith("The exact call:")), isInText, "it is said in one place");
    return !isInText;
  };
  const transfer = { tool: "transfer", arguments: { euros: 250, to: "Ben" }, action_digest: "sha256:00" };
  assert.equal(says("Transfer 250 euros to Ben.", transfer), true);
  assert.equal(says("transfer euros 250 to Ben", transfer), true);
  for (const action of ["Transfer 250 euros to Ben now.", "Transfer 25 euros to Ben.", "Transfer 250 euros to ben.", "Transfer 250 euros.", "Do not transfer 250 euros to Ben."]) assert.equal(says(action, transfer), false, action);
  assert.equal(says("Transfer to Ben 250 euros.", transfer), false, "the order counts");
  assert.equal(says("Transfer Ben to.", { ...transfer, arguments: { to: "Ben" } }), false, "only a number may come before its name");
  assert.equal(says("Send (5).", { tool: "send", arguments: { list: [5] }, action_digest: "sha256:00" }), false);
});

test("a Spanish action says a call with Spanish words, for a Spanish listener", (context) => {
  context.after(() => selectLanguage(["en"]));
  const transfer = { tool: "transfer", arguments: { euros: 20, to: "Ben" }, action_digest: "sha256:00" };
  const says = (language, action) => {
    selectLanguage([language]);
    return ask(transfer, { action }).exactCall === undefined;
  };
  for (const action of ["Transferir 20 euros a Ben.", "Transferir 20 euros para Ben.", "Transfer 20 euros to Ben."]) assert.equal(says("es", action), true, action);
  const others = ["Transferir 20 euros de Ben.", "Transferir 20 euros a Ben y Ada.", "No transferir 20 euros a Ben.", "Transferirle 20 euros a Ben."];
  for (const action of others) assert.equal(says("es", action), false, action);
  assert.equal(says("en", "Transferir 20 euros a Ben."), false, "an English listener does not understand it");
});

test("a command is not repeated if the action says it as the hook does", (context) => {
  context.after(() => selectLanguage(["en"]));
  const cases = JSON.parse(readFileSync(new URL("said_commands.json", import.meta.url), "utf8"));
  for (const [language, tool, call, action, isSaid] of cases) {
    selectLanguage([language]);
    const question = ask({ tool, action_digest: "sha256:x", arguments: call }, { action });
    assert.equal(question.exactCall === undefined, isSaid, action);
    const name = `${tool.replaceAll("_", " ")}, `;
    assert.equal(detailsOf(question).some((line) => line.includes(name)), isSaid, `${action}: it is said in one place`);
  }
});

test("the tool of a question that is not bound is in its details", () => {
  assert.ok(detailsOf(ask({ tool: "send_money" })).includes("It would use the tool send money."));
});

test("a dangerous question says that its answer is not bound", () => {
  const saysNotBound = (sayso, more) => joinParts(ask(sayso, more).text).includes("Your answer is not tied to one exact call.");
  assert.equal(saysNotBound({}), true);
  assert.equal(saysNotBound({ tool: "send_money" }), true);
  assert.equal(saysNotBound(bound({})), false);
  assert.equal(saysNotBound({}, { risk_level: "low", irreversible: false }), false);
});

test("an agent name that the hub has not verified is announced with the agent id", () => {
  const producer = { agent_id: "evil", agent_name: "Ada's Bank" };
  const hear = (sayso, more = {}) => {
    const effects = receive(new Subscriber(), started({ producer, extensions: { sayso } }), confirmation({ producer, ...more }));
    return [announcedTexts(effects)[0], effects.find((effect) => effect.opened).opened.agent];
  };
  assert.deepEqual(hear({}), ["Ada's Bank (agent id evil) has started: Paying Ben.", "Ada's Bank (agent id evil)"]);
  assert.deepEqual(hear({ verified_name: true }), ["Ada's Bank has started: Paying Ben.", "Ada's Bank"]);
  assert.equal(hear({ verified_name: true }, { producer: { agent_id: "evil", agent_name: "Police" } })[1], "Police (agent id evil)");
  assert.equal(hear({}, { producer: { agent_id: "ada-bank", agent_name: "Ada Bank" } })[1], "Ada Bank");
  assert.equal(hear({}, { producer: { agent_id: "evil", agent_name: "Bank (agent id ada)" } })[1], "An agent (agent id evil)");
});

test("the list of sessions shows the id behind a verified name", () => {
  const shownId = (agentId, agentName) => {
    const producer = { agent_id: agentId, agent_name: agentName };
    const effects = receive(new Subscriber(), started({ producer, extensions: { sayso: { verified_name: true } } }));
    return effects.find((effect) => effect.session).session.agentId;
  };
  assert.equal(shownId("ada-payments", "Ada's Bank"), "ada-payments");
  assert.equal(shownId("ada-bank", "Ada Bank"), undefined);
});

test("another agent with a verified name does not take over the session of the main one", () => {
  const bank = { agent_id: "ada-bank", agent_name: "Ada's Bank" };
  const scout = { agent_id: "scout", agent_name: "The Scout" };
  const joined = { sayso: { verified_name: true, main_producer: "ada-bank" } };
  const effects = receive(
    new Subscriber(),
    started({ producer: bank, extensions: { sayso: { verified_name: true } } }),
    confirmation({ producer: scout, extensions: joined }),
  );
  assert.equal(effects.find((effect) => effect.opened).opened.agent, "The Scout");
  assert.equal(effects.findLast((effect) => effect.session).session.agent, "Ada's Bank");
});

test("a page that opens late knows whose session it is, whoever speaks first", () => {
  const scout = { agent_id: "scout", agent_name: "The Scout" };
  const sayso = { verified_name: true, main_producer: "ada-bank", parent_session_id: "sess_0" };
  const effects = receive(new Subscriber(), confirmation({ producer: scout, extensions: { sayso } }));
  const { session } = effects.findLast((effect) => effect.session);
  assert.deepEqual([session.agent, session.parent], ["ada-bank", "sess_0"]);
  assert.equal(effects.find((effect) => effect.opened).opened.agent, "The Scout");
});
