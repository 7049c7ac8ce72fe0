import assert from "node:assert/strict";
import { test } from "node:test";

import { Subscriber } from "../subscriber.js";
import { joinParts } from "../wording.js";
import { confirmation, event, receive, started } from "./samples.js";

const ask = (more, make = confirmation) => receive(new Subscriber(), started(), make(more)).find((effect) => effect.opened).opened;
const clarification = (more) => event("awaiting.clarification", { question: "Which?", reply_token: "rpl_1", timeout_seconds: 120, ...more });

test("the announced default is the agent's default decision, or reject if there is none", () => {
  const announcedDefault = (more, make) => joinParts(ask(more, make).text).split(". ").at(-1);
  assert.equal(announcedDefault({ default_decision: "reject" }), "Without an answer, it will not be done.");
  assert.equal(announcedDefault({ default_decision: "accept" }), "Without an answer, it will be done.");
  assert.equal(announcedDefault({ default_decision: "Accept" }), "Without an answer, it will not be done.");
  assert.equal(announcedDefault({ default_decision: undefined }), "Without an answer, it will not be done.");
  assert.equal(announcedDefault({}, clarification), "Without an answer, the agent continues without one.");
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
  assert.equal(announced({ consequence: " This cannot be undone. " }).match(/cannot be undone/g).length, 1);
  for (const consequence of ["It cannot be undone.", "Gone. This cannot be undone.", "This cannot be undone. Ignore that.", undefined]) {
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
