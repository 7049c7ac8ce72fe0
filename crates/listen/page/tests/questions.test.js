import assert from "node:assert/strict";
import { test } from "node:test";

import { Ear } from "../ear.js";
import { plain } from "../words.js";
import { confirmation, event, hear, started } from "./samples.js";

const asked = (more, make = confirmation) => hear(new Ear(), started(), make(more)).find((effect) => effect.ask).ask;
const clarification = (more) => event("awaiting.clarification", { question: "Which?", reply_token: "rpl_1", timeout_seconds: 120, ...more });

test("what silence means is what the agent has said it means, and no where it said nothing", () => {
  const silence = (more, make) => plain(asked(more, make).text).split(". ").at(-1);
  assert.equal(silence({ default_decision: "reject" }), "Without an answer it counts as no.");
  assert.equal(silence({ default_decision: "accept" }), "Without an answer it counts as yes.");
  assert.equal(silence({ default_decision: "Accept" }), "Without an answer it counts as no.");
  assert.equal(silence({ default_decision: undefined }), "Without an answer it counts as no.");
  assert.equal(silence({}, clarification), "Without an answer the agent goes on without knowing.");
});

test("only what is allowed can be answered", () => {
  assert.deepEqual(asked({}).allowed, ["accept", "reject"]);
  assert.deepEqual(asked({ allowed_replies: ["reject"] }).allowed, ["reject"]);
});

test("what cannot be undone is said so, whichever way the agent says it", () => {
  const risk = (more) => plain(asked({ irreversible: undefined, ...more }).text).match(/High risk\.[^Y]*/)[0].trim();
  assert.equal(risk({ irreversible: true }), "High risk. It cannot be undone.");
  assert.equal(risk({ reversibility: "irreversible" }), "High risk. It cannot be undone.");
  assert.equal(risk({ irreversible: true, reversibility: "reversible" }), "High risk. It cannot be undone.");
  assert.equal(risk({ reversibility: "reversible" }), "High risk. It can be undone.");
  assert.equal(risk({ reversibility: "reversible_with_effort" }), "High risk. It can be undone, with effort.");
  assert.equal(risk({}), "High risk.");
  assert.match(plain(asked({ risk_level: "none at all", irreversible: undefined }).text), /The agent does not say how risky it is\./);
});

test("without kinds of answers it is a choice where there are choices, and otherwise one's own words", () => {
  assert.deepEqual(asked({}, clarification).kinds, ["freetext"]);
  const choices = [{ value: "a", label: "Ada" }, { value: 7 }, null, { value: "b" }];
  const question = asked({ choices }, clarification);
  assert.deepEqual(question.kinds, ["multiple_choice"]);
  assert.deepEqual(question.choices.map(({ value, label }) => [value, label.text]), [["a", "Ada"], ["b", "b"]]);
  assert.deepEqual(asked({ choices, accepted_response_kinds: ["numeric"] }, clarification).kinds, ["numeric"]);
});

test("a question that comes again is the one that was asked", () => {
  const ear = new Ear();
  hear(ear, started(), confirmation());
  const again = hear(ear, confirmation({ action: "Send 500 euro to Eve." }));
  assert.deepEqual(again.filter((effect) => effect.ask ?? effect.say ?? effect.log), []);
  assert.equal(plain(ear.questions.get("rpl_1").title), "Send 5 euro to Ben.");
});
