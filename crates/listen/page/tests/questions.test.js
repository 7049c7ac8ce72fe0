import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { phrases, selectLanguage } from "../phrases.js";
import { Subscriber } from "../subscriber.js";
import { joinParts } from "../wording.js";
import { confirmation, event, receive, started } from "./samples.js";

const ask = (more, make = confirmation) => receive(new Subscriber(), started(), make(more)).find((effect) => effect.opened).opened;
const clarification = (more) => event("awaiting.clarification", { question: "Which?", reply_token: "rpl_1", timeout_seconds: 120, ...more });

const lastDetail = (more, make) => joinParts(ask(more, make).details.at(-1));

test("the details say what happens without an answer, and the question itself says it if that is yes", () => {
  const isAnnounced = (more) => joinParts(ask(more).text).includes("Without an answer");
  assert.equal(lastDetail({ default_decision: "reject" }), "Without an answer, it will not be done.");
  assert.equal(lastDetail({ default_decision: "accept" }), "Without an answer, it will be done.");
  assert.equal(lastDetail({ default_decision: "Accept" }), "Without an answer, it will not be done.");
  assert.equal(lastDetail({ default_decision: undefined }), "Without an answer, it will not be done.");
  assert.deepEqual(["reject", "accept", "Accept", undefined].map((decision) => isAnnounced({ default_decision: decision })), [false, true, false, false]);
});

test("the default of a clarification is the agent's default response", () => {
  const choices = [{ value: "lyon", label: "Lyon" }, { value: "nice", label: "Nice" }];
  assert.equal(lastDetail({}, clarification), "Without an answer, the agent continues without one.");
  assert.equal(lastDetail({ default_response: "Lyon" }, clarification), "Without an answer, the agent will use this: Lyon");
  assert.equal(lastDetail({ default_response: "lyon", choices }, clarification), "Without an answer, the agent will use this: Lyon");
  assert.equal(lastDetail({ default_response: true }, clarification), "Without an answer, the agent will use this: Yes");
  assert.equal(lastDetail({ default_response: 7 }, clarification), "Without an answer, the agent will use this: 7");
  assert.equal(lastDetail({ default_response: "" }, clarification), "Without an answer, the agent continues without one.");
});

test("a question takes about twelve seconds: 30 words, with the title of its dialog", () => {
  const sayso = { tool: "transfer", arguments: { euros: 250, to: "Ben" }, action_digest: "sha256:00" };
  const question = ask({ action: "Transfer 250 euros to Ben.", consequence: "The money leaves the account at once.", summary_normal: "May I transfer 250 euros to Ben?", extensions: { sayso } });
  const spoken = `Question from Demo assistant. ${joinParts(question.text)}`;
  assert.equal(spoken, "Question from Demo assistant. Transfer 250 euros to Ben. The money leaves the account at once. High risk. This cannot be undone. You have 2 minutes.");
  assert.ok(spoken.split(" ").length <= 30);
  assert.deepEqual(question.details.map(joinParts), ["The exact call: transfer, euros 250, to Ben.", "Without an answer, it will not be done."], "the summary adds nothing");
});

test("a dangerous question that must state the call takes about twelve seconds, in English and in Spanish", (context) => {
  context.after(() => selectLanguage(["en"]));
  const sayso = { tool: "pay_bill", arguments: { amount: 250, to: "Ben" }, action_digest: "sha256:00" };
  const spoken = (language, action, consequence) => {
    selectLanguage([language]);
    const question = ask({ action, consequence, extensions: { sayso } });
    return [`${phrases.questionFrom} Demo assistant. ${joinParts(question.text)}`, question.details.map(joinParts)];
  };
  const [english, details] = spoken("en", "Pay the bill of May.", "The money leaves the account at once.");
  assert.equal(english, "Question from Demo assistant. Pay the bill of May. The money leaves the account at once. This cannot be undone: pay bill, amount 250, to Ben. You have 2 minutes.");
  assert.deepEqual(details, ["High risk.", "Without an answer, it will not be done."], "the weaker warning is in the details");
  const [spanish] = spoken("es", "Pagar la factura de mayo.", "El dinero sale enseguida.");
  assert.equal(spanish, "Pregunta de Demo assistant. Pagar la factura de mayo. El dinero sale enseguida. Irreversible: pay bill, amount 250, to Ben. Tiene 2 minutos.");
  for (const text of [english, spanish]) assert.ok(text.split(" ").length <= 30, text);
  const demo = readFileSync(new URL("../../../cli/src/demo/phrases/confirmed_actions.rs", import.meta.url), "utf8");
  assert.ok(demo.includes('"El dinero sale enseguida."'), "the demo says another sentence");
});

test("the label of the call is the strongest warning, and the details have the others", () => {
  const sayso = { tool: "pay_bill", arguments: {}, action_digest: "sha256:00" };
  const parts = (more) => {
    const { exactCall, areRisksSpoken, details } = ask({ irreversible: undefined, ...more, extensions: { sayso } });
    return [exactCall.text, areRisksSpoken, joinParts(details[0])];
  };
  const call = "pay bill, without arguments.";
  assert.deepEqual(parts({ irreversible: true }), [`This cannot be undone: ${call}`, false, "High risk."]);
  assert.deepEqual(parts({ irreversible: true, risk_level: undefined }), [`This cannot be undone: ${call}`, false, "Without an answer, it will not be done."]);
  assert.deepEqual(parts({ reversibility: "reversible" }), [`High risk: ${call}`, false, "This can be undone."]);
  assert.deepEqual(parts({ risk_level: "low", reversibility: "reversible" }), [`The exact call: ${call}`, true, "Without an answer, it will not be done."]);
});

test("the details add what the question does not say", () => {
  const lines = ask({ summary_normal: "May I send 5 euros to Ben for the concert?", extra_context: { new_balance: 12, fee: "none" } }).details.map(joinParts);
  assert.deepEqual(lines, ["The agent adds: May I send 5 euros to Ben for the concert?", "The agent adds: new balance 12, fee none", "Without an answer, it will not be done."]);
});

test("only the allowed replies can be given", () => {
  assert.deepEqual(ask({}).allowedReplies, ["accept", "reject"]);
  assert.deepEqual(ask({ allowed_replies: ["reject"] }).allowedReplies, ["reject"]);
});

test("an action is announced as irreversible, whichever member of the event says so", () => {
  const risk = (more) => joinParts(ask({ irreversible: undefined, ...more }).text).match(/High risk\.[^Y]*/)[0].trim();
  assert.equal(risk({ irreversible: true }), "High risk. This cannot be undone.");
  assert.equal(risk({ reversibility: "irreversible" }), "High risk. This cannot be undone.");
  assert.equal(risk({ irreversible: true, reversibility: "reversible" }), "High risk. This cannot be undone.");
  assert.equal(risk({ reversibility: "reversible" }), "High risk. This can be undone.");
  assert.equal(risk({ reversibility: "reversible_with_effort" }), "High risk. This is hard to undo.");
  assert.equal(risk({}), "High risk.");
  assert.match(joinParts(ask({ risk_level: "none at all", irreversible: undefined }).text), /The agent does not say how risky this is\./);
});

test("the agent's text does not replace the statement that an action cannot be undone", () => {
  const announced = (more) => joinParts(ask({ risk_level: "high", irreversible: true, ...more }).text);
  for (const consequence of [" This cannot be undone. ", "It cannot be undone.", "No se puede deshacer."]) {
    assert.equal(announced({ consequence }).match(/undone|deshacer/g).length, 1, "the page says it, and the agent's sentence adds nothing");
    assert.match(announced({ consequence, irreversible: false }), /undone|deshacer/, "the page does not say it");
  }
  for (const consequence of ["Gone. This cannot be undone.", "This cannot be undone. Ignore that.", undefined]) {
    assert.match(announced({ consequence }), /High risk\. This cannot be undone\./, consequence);
  }
  assert.match(announced({ action: "Pay. This cannot be undone. Ignore that." }), /High risk\. This cannot be undone\./);
});

test("without response kinds, a question with choices accepts a choice and any other accepts text", () => {
  assert.deepEqual(ask({}, clarification).responseKinds, ["freetext"]);
  const choices = [{ value: "a", label: "Ada" }, { value: 7 }, null, { value: "b" }];
  const question = ask({ choices }, clarification);
  assert.deepEqual(question.responseKinds, ["multiple_choice"]);
  assert.deepEqual(question.choices.map(({ value, label }) => [value, label.text]), [["a", "Ada"], ["b", "b"]]);
  assert.deepEqual(ask({ choices, accepted_response_kinds: ["numeric"] }, clarification).responseKinds, ["numeric"]);
});

test("a repeated question does not replace the first one", () => {
  const subscriber = new Subscriber();
  receive(subscriber, started(), confirmation());
  const again = receive(subscriber, confirmation({ action: "Send 500 euros to Eve." }));
  assert.deepEqual(again.filter((effect) => effect.opened ?? effect.announce ?? effect.log), []);
  assert.equal(joinParts(subscriber.questions.get("rpl_1").title), "Send 5 euros to Ben.");
});
